//! Counters: what a server did, refused, dropped and was surprised by, each under a name.
//!
//! Every shard writes its own [`Counters`] and nobody else writes them, so that counting is a load
//! and a store: no locked instruction, no cache line that two CPUs write. Readers add the shards up
//! ([`Metrics::snapshot`]); what they see of different counters may be a few operations apart.
//!
//! What each counts: the table at [`Values`]. `onering serve --stats FILE` writes them all, under these
//! names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::http::Refusal;
use crate::ring::{self, ring_counters};

/// A number with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts `n` more.
    pub fn add(&self, n: u64) {
        self.set(self.value().wrapping_add(n));
    }

    /// Replaces the value: for a gauge, and for a count that is kept elsewhere.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value as its writer last left it.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares the counters once: the struct that is written, the one that is read, and the list. Those
/// that are a shard's own come first, then the ring's, whose list is the ring's.
macro_rules! counters {
    (
        $($(#[doc = $doc:literal])+ $name:ident,)+
        @ring $($(#[doc = $ring_doc:literal])+ $ring_name:ident,)+
    ) => {
        counters! {
            @all
            $($(#[doc = $doc])+ $name,)+
            $($(#[doc = $ring_doc])+ $ring_name,)+
        }

        impl Counters {
            /// Copies what the shard's ring has counted.
            pub fn set_ring(&self, counters: &ring::Counters) {
                $(self.$ring_name.set(counters.$ring_name);)+
            }
        }
    };
    (@all $($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The counters of one shard, which alone writes them.
        ///
        /// Aligned to two cache lines, the unit in which CPUs fetch: no other thread's data shares one.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: Counter,)+
        }

        /// The counters' values at one moment.
        ///
        /// | name | counts |
        /// |---|---|
        $(#[doc = concat!("| `", stringify!($name), "` |", $($doc,)+ " |")])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Values {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Counters {
            /// The values now.
            pub fn values(&self) -> Values {
                Values { $($name: self.$name.value(),)+ }
            }
        }

        impl Values {
            /// Each counter's name and what it counts, in the order of the struct.
            pub const NAMES: &[(&str, &str)] =
                &[$((stringify!($name), concat!($($doc,)+).trim_ascii_start()),)+];

            /// Adds those of another shard.
            pub fn merge(&mut self, other: &Values) {
                $(self.$name = self.$name.wrapping_add(other.$name);)+
            }
        }
    };
}

ring_counters!(counters {
    /// Connections taken from a listener.
    accepted,
    /// Fresh connections given to a less loaded shard.
    handed_off,
    /// Fresh connections taken over from another shard.
    received_hand_off,
    /// Connections whose packets arrived on another CPU than their shard's.
    wrong_cpu,
    /// Connections closed, for whatever reason.
    closed,
    /// Connections that are open. A gauge.
    connections,

    /// Requests that were answered or refused, whose bodies had come or were not waited for. Those whose
    /// time was up are not among them.
    requests,
    /// Responses 200 to 299.
    responses_2xx,
    /// Responses 300 to 399.
    responses_3xx,
    /// Responses 400 to 499.
    responses_4xx,
    /// Responses 500 to 599.
    responses_5xx,
    /// Requests that were refused because they broke a rule or a limit.
    refused,
    /// Of these, requests whose request line was longer than `limits.request_line`.
    refused_request_line,
    /// Of these, requests whose head was longer than `limits.head`.
    refused_head,
    /// Of these, requests with more field lines than `limits.fields`.
    refused_fields,
    /// Of these, requests whose body was larger than it may be.
    refused_body_too_large,
    /// Of these, requests whose peer ended before the end of the body.
    refused_body_cut,
    /// Of these, requests with a fault in the chunks of their body, or in its trailers.
    refused_chunks,
    /// Of these, requests that expected what we do not know.
    refused_expectation,
    /// Request bodies that were read to their end.
    bodies,
    /// Requests that were answered without their body, because the peer waited before it sent it.
    bodies_declined,
    /// Bytes of data in request bodies.
    body_bytes,
    /// Bytes of heads and bodies handed to the kernel.
    bytes_sent,

    /// Connections that did not finish a request head in time.
    timeouts_head,
    /// Connections that did not send the whole of a request body in time.
    timeouts_body,
    /// Connections that sent no further request in time.
    timeouts_idle,
    /// Connections whose peer acknowledged nothing of a response in time.
    timeouts_write_stall,
    /// Connections whose peer did not close its side in time.
    timeouts_linger,
    /// Connections cut off because their peer went on sending after the last answer: 16 MiB and more.
    linger_cut_off,
    /// Times that a deadline came while bytes of the peer's were still to be looked at.
    deadlines_put_off,

    /// Times that accepting paused because descriptors had run out (EMFILE, ENFILE).
    accept_paused_descriptors,
    /// Times that accepting paused because the shard had as many connections as it may.
    accept_paused_limit,
    /// Connections that the peer reset.
    resets,
    /// Sends of whole answers that failed, other than because the peer was gone.
    send_errors,
    /// Reads of files that failed.
    read_errors,
    /// Times that a connection was not read from because too many requests waited.
    receives_stopped,

    /// TLS handshakes that came to their end, without an earlier session.
    handshakes_full,
    /// TLS handshakes that resumed an earlier session.
    handshakes_resumed,
    /// Flights of handshakes that waited for a later turn (`tls.handshakes_per_turn`).
    handshakes_delayed,
    /// Flights of handshakes that a worker has worked on, since the key is slow.
    handshakes_sent_away,
    /// Handshakes that made room for others (`tls.handshakes`).
    handshakes_evicted,
    /// Handshakes whose peer ended its side in the midst of it.
    handshakes_abandoned,
    /// Handshakes that took too long (`timeouts.handshake`).
    timeouts_handshake,
    /// TLS connections that failed, in the handshake or later.
    tls_failed,
    /// Of these, such as spoke plain HTTP.
    tls_plain_http,
    /// Of these, such as spoke neither TLS nor HTTP.
    tls_not_tls,
    /// Of these, such as have no version, cipher suite or protocol in common with us.
    tls_nothing_shared,
    /// Of these, such as asked for a name that we have no certificate for.
    tls_no_certificate,
    /// Of these, such as showed no certificate that we accept, where one is asked for.
    tls_client_certificates,
    /// Of these, such as sent a record that is too long, or that their key does not open.
    tls_bad_records,
    /// Of these, such as sent more of a handshake than is kept.
    tls_oversized_handshakes,
    /// Of these, such as sent on and on, and no data.
    tls_unproductive,
    /// Of these, such as came when too many handshakes waited for a worker (`tls.handshakes`).
    tls_overloaded,
    /// Of these, such as gave up themselves, and said so.
    tls_peer_alerts,
    /// Of these, such as had sent all that one key may seal.
    tls_keys_used_up,
    /// Connections whose peer ended its side of TLS in good order.
    tls_closed_by_peer,
    /// Connections whose peer ended without having said so in TLS.
    tls_truncated,
    /// Attempts to agree on new keys in TLS 1.2, which were declined.
    tls_renegotiations,
    /// Times that a peer took other keys (TLS 1.3).
    tls_key_updates,
    /// Ends that a peer could not be told of because its socket had no room.
    tls_close_unsent,
    /// Tickets made. Like what follows about sessions, brought up to date once a second.
    tickets_issued,
    /// Tickets that were opened, and whose session may be resumed.
    tickets_accepted,
    /// Tickets that no key of ours opens by now, or ever did.
    tickets_unknown,
    /// Tickets that name a key of ours, which does not open them.
    tickets_forged,
    /// Sessions that are too large for a ticket: a client's chain.
    tickets_too_large,
    /// Sessions in the cache. A gauge; like what follows, of all shards together, and counted by the first.
    session_cache_entries,
    /// Sessions that the cache has room for. A gauge.
    session_cache_capacity,
    /// Look-ups in the session cache that found a session.
    session_cache_hits,
    /// Look-ups in the session cache that found none.
    session_cache_misses,
    /// Sessions that made room for others.
    session_cache_evictions,
    /// Sessions whose time was over.
    session_cache_expirations,
    /// Sessions that were not kept because they are too large: a client's chain.
    session_cache_too_large,
    /// Times that a shard had to wait for another to copy a session.
    session_cache_contended,
    /// Bytes of TLS records that were sealed by us and handed to the kernel.
    tls_bytes_sealed,
    /// Connections whose encryption the kernel took over.
    ktls_connections,
    /// Connections whose encryption it did not take over when it was asked to.
    ktls_refused,

    /// Look-ups that found their entry in the cache.
    cache_hits,
    /// Look-ups that did not.
    cache_misses,
    /// Entries that made room for others.
    cache_evictions,
    /// Entries that were compared with the file system because their time was over.
    cache_revalidations,
    /// Of these, entries whose file had changed.
    cache_changed,
    /// Files that are kept in memory since a later request found them there.
    cache_promotions,
    /// Look-ups that found no descriptor free, and evicted entries for it.
    cache_descriptors_short,
    /// Look-ups that failed because of the file system or for want of descriptors.
    cache_troubles,
    /// Small files that were not kept because they changed while they were being read.
    cache_unsettled,
    /// Answers that were not kept because they alone are larger than the cache.
    cache_too_heavy,
    /// Targets that name no path.
    bad_targets,
    /// Looks at a site's page about an error that found none to be sent.
    error_pages_missing,
    /// Listings of directories with more names than a listing may have.
    listings_cut,
    /// Entries in the cache. A gauge.
    cache_entries,
    /// Bytes of inline answers in the cache. A gauge.
    cache_bytes,
    /// Descriptors that the cache holds open. A gauge.
    cache_descriptors,

    /// Submissions of whole answers, head and body together: of one, or of several to pipelined requests.
    inline_sends,
    /// Calls of sendfile(2).
    sendfile_calls,
    /// Times that a body had to wait for room in its socket, by whichever way it goes out.
    sendfile_would_block,
    /// Windows of a file that were found not to be in memory.
    residency_cold,
    /// Windows of a file that were read through the ring.
    cold_reads,
    /// Times that a body had to wait for a buffer to read a cold file into (`ring.fixed_buffers`).
    cold_reads_waited,
    /// Times that the kernel had no memory to send a body with, tried again a little later.
    send_no_memory,
    /// Files that became shorter while they were being sent.
    truncated_files,

    /// Turns of the loop.
    turns,
    /// Times that a connection had to wait for the next turn because of its number of requests.
    turn_requests_capped,
    /// Times that a connection had to wait for the next turn because of its number of bytes.
    turn_bytes_capped,
    /// Connections cut off because the grace time for draining was over.
    drain_cut_off,
    /// Connections that were cut off and that the kernel had not let go of a second later.
    drain_abandoned,
    /// Completions for connections that had ended by then.
    late_completions,
    /// System calls other than the ring's.
    system_calls,
});

impl Counters {
    /// Counts a response by its status.
    pub fn count_response(&self, status: u16) {
        let class = match status {
            ..300 => &self.responses_2xx,
            300..400 => &self.responses_3xx,
            400..500 => &self.responses_4xx,
            500.. => &self.responses_5xx,
        };
        class.add(1);
    }

    /// Counts a request that was refused; one that met a limit, under its name too.
    pub fn count_refusal(&self, refusal: Refusal) {
        self.refused.add(1);
        match refusal {
            Refusal::RequestLineTooLong => self.refused_request_line.add(1),
            Refusal::HeadTooLong => self.refused_head.add(1),
            Refusal::TooManyFields => self.refused_fields.add(1),
            Refusal::BodyTooLarge => self.refused_body_too_large.add(1),
            Refusal::BodyCut => self.refused_body_cut.add(1),
            Refusal::Expectation => self.refused_expectation.add(1),
            Refusal::ChunkSize
            | Refusal::ChunkExtension
            | Refusal::ChunkLineEnd
            | Refusal::ChunkDataEnd
            | Refusal::ChunkOverhead
            | Refusal::TrailerLine
            | Refusal::TrailerTooLong
            | Refusal::TooManyTrailers => self.refused_chunks.add(1),
            _ => {}
        }
    }
}

/// What the server itself counts, whose thread alone writes it.
#[derive(Debug, Default)]
pub struct ServerCounters {
    /// Times that certificates were read again and took the place of those before.
    pub certificates_loaded: Counter,
    /// Times that they were read again and did not, for they were bad.
    pub certificates_refused: Counter,
}

/// The values of [`ServerCounters`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerValues {
    /// Times that certificates were read again and took the place of those before.
    pub certificates_loaded: u64,
    /// Times that they were read again and did not, for they were bad.
    pub certificates_refused: u64,
}

/// The counters of all shards, and the server's, to be read.
#[derive(Clone, Debug)]
pub struct Metrics {
    server: Arc<ServerCounters>,
    shards: Vec<Arc<Counters>>,
}

/// All counters at one moment. As JSON: `{"total":{…},"server":{…},"shards":[{…}]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// The sum over the shards, gauges too.
    pub total: Values,
    /// The server's own.
    pub server: ServerValues,
    /// Each shard's, in the order of the shards.
    pub shards: Vec<Values>,
}

impl Metrics {
    /// Makes the counters of `shards` shards, all zero.
    pub fn new(shards: usize) -> Self {
        let server = Arc::default();
        Self { server, shards: (0..shards).map(|_| Arc::default()).collect() }
    }

    /// The counters that the server writes.
    pub fn server(&self) -> &ServerCounters {
        &self.server
    }

    /// The counters that shard `index` writes. `None` when there is no such shard.
    pub fn of_shard(&self, index: usize) -> Option<Arc<Counters>> {
        self.shards.get(index).cloned()
    }

    /// The values now, of each shard and in total.
    pub fn snapshot(&self) -> Snapshot {
        let shards: Vec<Values> = self.shards.iter().map(|counters| counters.values()).collect();
        let mut total = Values::default();
        for values in &shards {
            total.merge(values);
        }
        let server = ServerValues {
            certificates_loaded: self.server.certificates_loaded.value(),
            certificates_refused: self.server.certificates_refused.value(),
        };
        Snapshot { total, server, shards }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_counts() {
        let counter = Counter::default();
        counter.add(5);
        counter.add(2);
        assert_eq!(counter.value(), 7);
        counter.set(3);
        assert_eq!(counter.value(), 3);
    }

    #[test]
    fn a_snapshot_adds_the_shards_up() {
        let metrics = Metrics::new(2);
        metrics.of_shard(0).expect("a shard").requests.add(3);
        metrics.of_shard(1).expect("a shard").requests.add(4);
        metrics.of_shard(1).expect("a shard").connections.add(1);
        assert!(metrics.of_shard(2).is_none());
        let snapshot = metrics.snapshot();
        assert_eq!(snapshot.total, Values { requests: 7, connections: 1, ..Values::default() });
        assert_eq!(snapshot.shards[0], Values { requests: 3, ..Values::default() });
    }

    #[test]
    fn counters_are_read_while_they_are_written() {
        let metrics = Metrics::new(1);
        let counters = metrics.of_shard(0).expect("a shard");
        std::thread::scope(|scope| {
            scope.spawn(move || (0..100_000).for_each(|_| counters.turns.add(1)));
            let mut last = 0;
            while last < 100_000 {
                let now = metrics.snapshot().total.turns;
                assert!(now >= last);
                last = now;
            }
        });
    }

    #[test]
    fn json_has_every_name_and_nothing_else() {
        let metrics = Metrics::new(1);
        metrics.of_shard(0).expect("a shard").bytes_sent.set(u64::MAX);
        let json = serde_json::to_value(metrics.snapshot()).expect("numbers are JSON");
        let total = json["total"].as_object().expect("an object");
        assert_eq!(total.len(), Values::NAMES.len());
        assert!(Values::NAMES.iter().all(|(name, _)| total.contains_key(*name)));
        assert_eq!(total["bytes_sent"], u64::MAX);
        assert_eq!(json["shards"][0], json["total"]);
    }

    #[test]
    fn every_name_says_what_it_counts() {
        for (name, counts) in Values::NAMES {
            assert!(counts.ends_with('.'), "{name}: {counts}");
        }
        assert_eq!(Values::NAMES[0], ("accepted", "Connections taken from a listener."));
    }

    #[test]
    fn refusals_are_counted_by_their_kind() {
        for &refusal in Refusal::ALL {
            let counters = Counters::default();
            counters.count_refusal(refusal);
            let is_of = |name: &str| u64::from(refusal.name() == name);
            let is_of_chunks = ["chunk_", "trailer_", "too_many_trailers"]
                .map(|kind| refusal.name().starts_with(kind));
            let expected = Values {
                refused: 1,
                refused_request_line: is_of("request_line_too_long"),
                refused_head: is_of("head_too_long"),
                refused_fields: is_of("too_many_fields"),
                refused_body_too_large: is_of("body_too_large"),
                refused_body_cut: is_of("body_cut"),
                refused_chunks: u64::from(is_of_chunks.contains(&true)),
                refused_expectation: is_of("expectation"),
                ..Values::default()
            };
            assert_eq!(counters.values(), expected, "{refusal:?}");
        }
    }

    #[test]
    fn the_rings_counters_are_copied() {
        let counters = Counters::default();
        let ring = ring::Counters { enters: 3, unexpected_errors: 4, ..Default::default() };
        counters.set_ring(&ring);
        let expected = Values { enters: 3, unexpected_errors: 4, ..Values::default() };
        assert_eq!(counters.values(), expected);
    }
}
