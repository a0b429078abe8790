//! One CPU: event loop, connections, timers, inbox.
//!
//! A [`Shard`] is everything that one serving thread owns; nothing in it is shared but the inbox
//! and the counters, which others read. [`Shard::run`] is the loop. What the loop does with each
//! completion is in a file of its own:
//!
//! - `accepting`: listeners, pauses, hand-off to other shards
//! - `serving`: received bytes to requests to answers
//! - `handshaking`: TLS handshakes; `worker`: those with keys that are slow
//! - `records`: TLS records in and out
//! - `sending`: bodies, a quantum at a time; `sealing`: the same for TLS peers
//! - `closing`: deadlines, lingering, the end of a connection
//! - `draining`: the end of the shard
//!
//! What it asks of the kernel goes through [`Kernel`], which a test can play.
//!
//! Fairness: a connection is given at most `requests_per_turn` answers and one quantum of a body
//! in a turn; what is left waits in `ready` for the next.

mod accepting;
mod closing;
mod connection;
mod draining;
mod exchange;
mod handshaking;
mod inbox;
mod kernel;
mod records;
mod sealing;
mod sending;
mod serving;
mod transport;
mod wheel;
mod worker;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use slab::Slab;

use crate::config::Config;
use crate::files::{Files, Now, OpenError};
use crate::http::{HeadLimits, RequestLimits};
use crate::metrics::Counters;
use crate::ring::{Completion, Event, Ring, SendBuf, Setup, SetupError, Token, Wait};
use crate::sys;
use crate::tls::tickets::TicketCounters;
use crate::tls::{Contexts, Material, Options, RecordSizes, Resumption};

use accepting::Accepting;
use connection::{Connection, Step, Writing};
use draining::Draining;
use handshaking::Handshakes;
use wheel::Wheel;

pub use inbox::{Inbox, Inboxes, Letter};
pub use kernel::Kernel;
pub use worker::{Job, Worker};

const _: () = assert!(
    crate::config::defaults::FIELDS_MAX == crate::http::head::FIELDS_MAX,
    "as many fields as can be set are read"
);

/// Why a shard could not be made.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No ring.
    #[error("{0}")]
    Ring(#[from] SetupError),
    /// A site's files cannot be served.
    #[error("{0}")]
    Files(#[from] OpenError),
    /// The ring's descriptor could not be duplicated for the inbox.
    #[error("no descriptor for an inbox: {0}\n  fix: ulimit -n 65536")]
    Inbox(io::Error),
    /// There is no thread for handshakes with slow keys.
    #[error("no thread for handshakes with slow keys: {0}\n  fix: ulimit -u 4096")]
    Worker(io::Error),
}

/// What a shard is given to work with.
#[derive(Debug)]
pub struct Assignment<S = OwnedFd> {
    /// Its number, from 0.
    pub index: usize,
    /// The CPU it runs on.
    pub cpu: usize,
    /// Whether connections are steered to it by CPU: then those that went astray are counted.
    pub steered: bool,
    /// Its listeners, lent; they stay open after it has ended.
    pub listeners: Vec<Arc<S>>,
    /// Certificates, keys and policies of the listeners that speak TLS.
    pub material: Arc<Material>,
    /// Whether the kernel can seal TLS records, and may.
    pub kernel_may_seal: bool,
    /// Who does the handshakes that take too long for a shard.
    pub worker: Option<Worker>,
    /// Where it counts.
    pub counters: Arc<Counters>,
}

/// One serving thread's everything.
pub struct Shard<K: Kernel = Ring> {
    assignment: Assignment<K::Socket>,
    config: Arc<Config>,
    request_limits: RequestLimits,
    kernel: K,
    files: Files,
    inbox: Arc<Inbox<K>>,
    /// All shards', this one's too.
    inboxes: Inboxes<K>,
    contexts: Contexts,
    session_options: Options,
    resumption: Arc<Resumption>,
    tickets: Arc<TicketCounters>,
    handshakes: Handshakes,
    accepting: Vec<Accepting>,
    connections: Slab<Connection<K::Socket>>,
    /// Given to the next connection, so that a slot's next tenant has another name.
    next_generation: u32,
    wheel: Wheel,
    now: Now,
    /// Connections that have work left for the next turn.
    ready: VecDeque<Token>,
    /// Connections that wait for a buffer to read a cold file into.
    wanting_lease: VecDeque<Token>,
    draining: Draining,
    /// Answers of the connection that is being served, on their way to the ring.
    answers: Vec<SendBuf>,
    /// Deadlines that have fired in this turn.
    fired: Vec<u32>,
    /// Input buffers for reuse.
    spare_inputs: Vec<Vec<u8>>,
    /// Buffers of records for reuse.
    spare_records: Vec<Vec<u8>>,
    /// A quantum of a file, on its way into records.
    plain: Vec<u8>,
}

impl Shard {
    /// Makes a shard on the thread that will run it.
    pub fn new(config: Arc<Config>, assignment: Assignment) -> Result<Shard, StartError> {
        let ring = Ring::new(&Setup {
            entries: config.ring.entries,
            recv_buffers: config.ring.recv_buffers,
            recv_buffer_bytes: config.ring.recv_buffer_bytes,
            fixed_buffers: config.ring.fixed_buffers,
            fixed_buffer_bytes: config.transfer.cold_window_bytes,
            min_wait: config.ring.min_wait,
        })?;
        Shard::on(ring, config, assignment)
    }
}

impl<K: Kernel> Shard<K> {
    fn on(
        kernel: K,
        config: Arc<Config>,
        assignment: Assignment<K::Socket>,
    ) -> Result<Self, StartError> {
        let files = Files::open(&config.sites, &config.cache)?;
        let inbox = Arc::new(Inbox::new(kernel.address().map_err(StartError::Inbox)?));
        let request_limits = RequestLimits {
            head: HeadLimits {
                request_line_bytes: config.limits.request_line_bytes,
                head_bytes: config.limits.head_bytes,
                fields: config.limits.fields,
            },
            body_bytes: config.limits.body_bytes,
        };
        let tickets = Arc::default();
        let now = Now::new(kernel.realtime_s(), kernel.monotonic_ms());
        Ok(Shard {
            accepting: vec![Accepting::Stopped; assignment.listeners.len()],
            inboxes: Arc::from([Arc::clone(&inbox)]),
            wheel: Wheel::new(now.monotonic_ms),
            connections: Slab::new(),
            next_generation: 0,
            ready: VecDeque::new(),
            wanting_lease: VecDeque::new(),
            draining: Draining::No,
            answers: Vec::new(),
            // The first deadline comes when all else is warm.
            fired: Vec::with_capacity(64),
            spare_inputs: Vec::new(),
            spare_records: Vec::new(),
            plain: Vec::new(),
            contexts: Contexts::new(&assignment.material, &tickets),
            session_options: Options {
                records: RecordSizes::default().until(config.tls.records_small_bytes as usize),
                ktls: assignment.kernel_may_seal,
            },
            resumption: Arc::clone(assignment.material.resumption()),
            tickets,
            handshakes: Handshakes::default(),
            assignment,
            config,
            request_limits,
            kernel,
            files,
            inbox,
            now,
        })
    }

    /// Where others reach this shard.
    pub fn inbox(&self) -> Arc<Inbox<K>> {
        Arc::clone(&self.inbox)
    }

    /// Serves until it is told to drain and has done so. An error means that the ring failed.
    pub fn run(mut self, inboxes: Inboxes<K>) -> io::Result<()> {
        self.inboxes = inboxes;
        self.start_accepting();
        while !self.drained() {
            self.turn(self.patience())?;
        }
        self.publish_sessions();
        Ok(())
    }

    /// One turn of the loop.
    fn turn(&mut self, wait: Wait) -> io::Result<()> {
        self.kernel.enter(wait)?;
        let before_s = self.now.unix_s;
        self.now.advance(self.kernel.realtime_s(), self.kernel.monotonic_ms());
        if self.now.unix_s != before_s {
            self.tick();
        }
        while let Some(completion) = self.kernel.completion() {
            self.dispatch(completion);
        }
        self.read_inbox();
        self.work_flights();
        self.lend_leases();
        self.work_ready();
        self.fire_deadlines();
        self.publish();
        Ok(())
    }

    /// A second has begun.
    #[cold]
    fn tick(&mut self) {
        self.resumption.clock().tick(self.now.unix_s);
        if let Some(cache) = self.resumption.cache() {
            cache.sweep();
        }
        self.publish_sessions();
    }

    /// Shows what has become of sessions. It adds up what others write, which takes its time.
    fn publish_sessions(&self) {
        let counters = &self.assignment.counters;
        let tickets = self.tickets.values();
        counters.tickets_issued.set(tickets.issued);
        counters.tickets_accepted.set(tickets.accepted);
        counters.tickets_unknown.set(tickets.unknown);
        counters.tickets_forged.set(tickets.forged);
        counters.tickets_too_large.set(tickets.too_large);
        if let (0, Some(cache)) = (self.assignment.index, self.resumption.cache()) {
            let sessions = cache.values();
            counters.session_cache_entries.set(sessions.entries);
            counters.session_cache_capacity.set(sessions.capacity);
            counters.session_cache_hits.set(sessions.hits);
            counters.session_cache_misses.set(sessions.misses);
            counters.session_cache_evictions.set(sessions.evictions);
            counters.session_cache_expirations.set(sessions.expirations);
            counters.session_cache_too_large.set(sessions.too_large);
            counters.session_cache_contended.set(sessions.contended);
        }
    }

    /// How long this turn may wait for completions.
    fn patience(&self) -> Wait {
        if !self.ready.is_empty() || !self.inbox.is_empty() || self.handshakes.are_waiting() {
            return Wait::No;
        }
        let now_ms = self.now.monotonic_ms;
        let times = [
            self.wheel.next_ms(now_ms),
            self.accept_again_ms(),
            self.sweep_again_ms(),
            self.draining.ends_ms().map(|end_ms| end_ms.saturating_sub(now_ms)),
        ];
        match times.into_iter().flatten().min() {
            // The clock's steps are coarse: at least one of them must pass.
            Some(wait_ms) => Wait::AtMost(Duration::from_millis(wait_ms.max(1))),
            None => Wait::Completion,
        }
    }

    fn dispatch(&mut self, Completion { token, event }: Completion<K::Socket>) {
        match event {
            Event::Accepted(socket) => return self.accepted(token, socket),
            Event::AcceptFailed(error) => return self.accept_failed(token, error),
            Event::Woken => return self.inbox.awake(),
            _ => {}
        }
        if !self.is_current(token) {
            self.assignment.counters.late_completions.add(1);
            return;
        }
        match event {
            Event::Received(bytes) => self.received(token, bytes),
            Event::Ended => self.peer_ended(token),
            Event::RecvFailed(error) => self.receive_failed(token, error),
            Event::Sent(result) => self.sent(token, result),
            Event::Polled(_) => self.writable(token),
            Event::Read(result) => self.cold_read(token, result),
            Event::Accepted(_) | Event::AcceptFailed(_) | Event::Woken | Event::Connected(_) => {
                unreachable!("handled above, or never asked for")
            }
        }
    }

    fn is_current(&self, token: Token) -> bool {
        self.connections
            .get(token.slot as usize)
            .is_some_and(|connection| connection.generation == token.generation)
    }

    fn connection(&mut self, token: Token) -> &mut Connection<K::Socket> {
        &mut self.connections[token.slot as usize]
    }

    fn read_inbox(&mut self) {
        if self.inbox.is_empty() {
            return;
        }
        self.inbox.awake();
        while let Some(letter) = self.inbox.take() {
            match letter {
                Letter::Connection { socket, listener } => {
                    self.assignment.counters.received_hand_off.add(1);
                    self.adopt(socket, listener);
                }
                Letter::Handshake { token, handshake, progress } => {
                    self.handshake_is_back(token, handshake, progress);
                }
                Letter::Material(material) => {
                    self.contexts = Contexts::new(&material, &self.tickets);
                }
                Letter::Drain => self.drain(),
                Letter::Cut => self.cut(),
            }
        }
    }

    /// Gives each connection that has work left one more go.
    fn work_ready(&mut self) {
        for _ in 0..self.ready.len() {
            let Some(token) = self.ready.pop_front() else { break };
            if self.is_current(token) {
                self.resume(token);
            }
        }
    }

    /// Goes on where the last turn left off: with a body, or with requests that are waiting.
    fn resume(&mut self, token: Token) {
        match &self.connection(token).writing {
            Writing::Idle => self.serve_input(token),
            Writing::Body { step: Step::Ready, .. } => self.pump(token),
            Writing::Flushing => self.linger(token),
            Writing::Body { .. } | Writing::Answers { .. } => {}
        }
    }

    /// Shows what the parts below have counted.
    fn publish(&self) {
        let counters = &self.assignment.counters;
        counters.turns.add(1);
        counters.connections.set(self.connections.len() as u64);
        counters.set_ring(&self.kernel.counters());
        let files = self.files.counters();
        counters.cache_hits.set(files.hits);
        counters.cache_misses.set(files.misses);
        counters.cache_revalidations.set(files.revalidations);
        counters.cache_changed.set(files.stale_changed);
        counters.cache_evictions.set(files.evictions);
        counters.cache_promotions.set(files.promotions);
        counters.cache_descriptors_short.set(files.descriptors_short);
        counters.cache_troubles.set(files.troubles);
        counters.error_pages_missing.set(files.error_pages_missing);
        counters.listings_cut.set(files.listings_cut);
        counters.cache_unsettled.set(files.unsettled);
        counters.cache_too_heavy.set(files.too_heavy);
        counters.bad_targets.set(files.bad_targets);
        counters.cache_entries.set(files.entries as u64);
        counters.cache_bytes.set(files.bytes as u64);
        counters.cache_descriptors.set(files.descriptors as u64);
        counters.system_calls.set(sys::calls());
    }
}
