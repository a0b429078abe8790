//! What a client thread counts, and how the counts of several threads become one.
//!
//! Latencies are kept for each class of requests and each phase by itself. Nothing is corrected
//! afterwards: a request in an open loop has its planned start with it, and both its times are
//! recorded as they were.

use crate::histogram;
use crate::tls::{Handshake, Intent, TlsError};
use crate::workload::Wrong;
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The generator's own lateness is behind schedule from here on, if it is also [`LAG_SHARE`].
const LAG: Duration = Duration::from_millis(1);

/// Lateness that is this share of what the server takes says something else than its figures do.
const LAG_SHARE: f64 = 0.1;

/// The quantile at which lateness is compared.
const LAG_QUANTILE: f64 = 0.99;

/// What went wrong, by kind. A request ends in exactly one of these or in
/// [`ClassTally::requests`]; a connection that fails takes the requests awaited on it along uncounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// Connections that were not established.
    pub connect: u64,
    /// Connections on which TLS failed.
    pub tls: u64,
    /// Connections that broke: reset by the server, or another error of send or receive.
    pub reset: u64,
    /// Connections that the server closed before an awaited response was complete.
    pub ended: u64,
    /// Connections on which nothing came within the time allowed.
    pub timeout: u64,
    /// Connections that carried something else than the responses asked for.
    pub framing: u64,
    /// Responses with another status than the one that is right.
    pub status: u64,
    /// Responses whose body has another length than the right one.
    pub length: u64,
    /// Files whose first line does not name them.
    pub first_line: u64,
    /// Files with a validation marker that is another.
    pub marker: u64,
    /// Responses with a missing or another cookie.
    pub cookie: u64,
    /// Responses whose page around a file, or tag within it, is another.
    pub page: u64,
    /// Records of the server's log of POSTs that are missing, there twice, or other than sent.
    pub post_log: u64,
}

impl Errors {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.kinds().iter().map(|(_, count)| count).sum()
    }

    /// Name and count of each kind.
    pub fn kinds(&self) -> [(&'static str, u64); 13] {
        let mut copy = *self;
        copy.counts().map(|(name, count)| (name, *count))
    }

    /// Takes in the counts of another.
    pub fn add(&mut self, other: &Self) {
        for ((_, sum), (_, count)) in self.counts().into_iter().zip(other.kinds()) {
            *sum += count;
        }
    }

    /// Counts a response that was not right.
    pub fn wrong(&mut self, wrong: Wrong) {
        *match wrong {
            Wrong::Status => &mut self.status,
            Wrong::Length => &mut self.length,
            Wrong::FirstLine => &mut self.first_line,
            Wrong::Marker => &mut self.marker,
            Wrong::Cookie => &mut self.cookie,
            Wrong::Page => &mut self.page,
        } += 1;
    }

    fn counts(&mut self) -> [(&'static str, &mut u64); 13] {
        let Self {
            connect,
            tls,
            reset,
            ended,
            timeout,
            framing,
            status,
            length,
            first_line,
            marker,
            cookie,
            page,
            post_log,
        } = self;
        [
            ("connect", connect),
            ("tls", tls),
            ("reset", reset),
            ("ended", ended),
            ("timeout", timeout),
            ("framing", framing),
            ("status", status),
            ("length", length),
            ("first_line", first_line),
            ("marker", marker),
            ("cookie", cookie),
            ("page", page),
            ("post_log", post_log),
        ]
    }
}

/// Latencies, ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// None.
    pub fn new() -> Self {
        Self(histogram::empty())
    }

    /// One more; longer than a minute is recorded as a minute.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Takes in those of another.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms are made with the same bounds");
    }

    /// The histogram, ns.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

/// When what happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it was to be sent, in an open loop.
    pub planned: Option<Instant>,
    /// When it was sent.
    pub sent: Instant,
    /// When the first byte of its response had come.
    pub first_byte: Instant,
    /// When the last had.
    pub last_byte: Instant,
}

/// Right responses to the requests of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassTally {
    /// How many.
    pub requests: u64,
    /// Bytes of their heads and bodies.
    pub received_bytes: u64,
    /// From the send to the first byte.
    pub first_byte: Latencies,
    /// From the send to the last byte: service time.
    pub service: Latencies,
    /// From the planned start to the last byte: response time. Only in an open loop; in a closed one
    /// the send is the planned start.
    pub response: Option<Latencies>,
}

/// How the schedule of an open loop was kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleTally {
    /// Starts that were planned for the interval.
    pub planned: u64,
    /// Planned starts for which no connection came free until the end.
    pub unsent: u64,
    /// Requests sent that had no answer at the end.
    pub unanswered: u64,
    /// Right responses that came in the interval, whenever they were planned.
    pub completed: u64,
    /// How much later than planned the generator itself acted; waiting for a connection to come free
    /// is not part of it.
    pub lag: Latencies,
}

impl ScheduleTally {
    /// Planned starts that waited for a connection: for all others lateness was recorded.
    pub fn waited(&self) -> u64 {
        self.planned.saturating_sub(self.lag.0.len())
    }
}

/// Counted over some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// By class.
    pub classes: Vec<ClassTally>,
    /// From the beginning of a connection until it stood.
    pub connect: Latencies,
    /// From then until TLS was established.
    pub tls: Latencies,
    /// Bytes received, heads and TLS included.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Connections established.
    pub connects: u64,
    /// TLS handshakes in full.
    pub handshakes_full: u64,
    /// TLS handshakes that resumed a session.
    pub handshakes_resumed: u64,
    /// Full handshakes for which the server would not resume the session that it was offered.
    pub handshakes_refused: u64,
    /// Full handshakes that were to resume a session, when there was none at hand.
    pub handshakes_without_session: u64,
    /// What went wrong.
    pub errors: Errors,
    /// How TLS failed first, if it did.
    pub tls_failure: Option<TlsError>,
    /// The schedule, if there is one.
    pub schedule: Option<ScheduleTally>,
}

impl Tally {
    /// All zero, for so many classes; `open` if there is a schedule.
    pub fn new(classes: usize, open: bool) -> Self {
        let response = open.then(Latencies::new);
        let class = ClassTally { response, ..ClassTally::default() };
        Self {
            classes: vec![class; classes],
            schedule: open.then(ScheduleTally::default),
            ..Self::default()
        }
    }

    /// All zero, and of the same kind as this one, which is given.
    pub fn take(&mut self) -> Self {
        let zero = Self::new(self.classes.len(), self.schedule.is_some());
        std::mem::replace(self, zero)
    }

    /// Counts a right response.
    #[inline]
    pub fn answered(&mut self, class: usize, times: Times, bytes: u64) {
        let class = &mut self.classes[class];
        class.requests += 1;
        class.received_bytes += bytes;
        class.first_byte.record(times.first_byte.saturating_duration_since(times.sent));
        class.service.record(times.last_byte.saturating_duration_since(times.sent));
        if let (Some(response), Some(planned)) = (&mut class.response, times.planned) {
            response.record(times.last_byte.saturating_duration_since(planned));
        }
    }

    /// Counts a TLS handshake.
    pub fn secured(&mut self, handshake: Handshake, took: Duration) {
        self.tls.record(took);
        if handshake.resumed {
            self.handshakes_resumed += 1;
            return;
        }
        self.handshakes_full += 1;
        match handshake.intent {
            Intent::Full => {}
            Intent::Resume => self.handshakes_refused += 1,
            Intent::ResumeWithout => self.handshakes_without_session += 1,
        }
    }

    /// Takes in the counts of another, which has the same classes.
    pub fn add(&mut self, other: &Self) {
        for (class, other) in self.classes.iter_mut().zip(&other.classes) {
            class.requests += other.requests;
            class.received_bytes += other.received_bytes;
            class.first_byte.add(&other.first_byte);
            class.service.add(&other.service);
            if let (Some(response), Some(other)) = (&mut class.response, &other.response) {
                response.add(other);
            }
        }
        self.connect.add(&other.connect);
        self.tls.add(&other.tls);
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.connects += other.connects;
        self.handshakes_full += other.handshakes_full;
        self.handshakes_resumed += other.handshakes_resumed;
        self.handshakes_refused += other.handshakes_refused;
        self.handshakes_without_session += other.handshakes_without_session;
        self.errors.add(&other.errors);
        self.tls_failure = self.tls_failure.or(other.tls_failure);
        if let (Some(schedule), Some(other)) = (&mut self.schedule, &other.schedule) {
            schedule.planned += other.planned;
            schedule.unsent += other.unsent;
            schedule.unanswered += other.unanswered;
            schedule.completed += other.completed;
            schedule.lag.add(&other.lag);
        }
    }

    /// Response times in an open loop, service times in a closed one, of all classes.
    pub fn waiting(&self) -> Latencies {
        let mut sum = Latencies::new();
        for class in &self.classes {
            sum.add(class.response.as_ref().unwrap_or(&class.service));
        }
        sum
    }

    /// Whether the generator fell behind its schedule: whether its own lateness is above `LAG` and
    /// a good part of what the figures say of the server.
    pub fn is_behind(&self) -> bool {
        let Some(schedule) = &self.schedule else { return false };
        let at_quantile =
            |latencies: &Latencies| latencies.0.value_at_quantile(LAG_QUANTILE) as f64;
        let late = at_quantile(&schedule.lag);
        late > LAG.as_nanos() as f64 && late > LAG_SHARE * at_quantile(&self.waiting())
    }

    /// Right responses of all classes.
    pub fn requests(&self) -> u64 {
        self.classes.iter().map(|class| class.requests).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(latencies_us: impl IntoIterator<Item = u64>, open: bool) -> Tally {
        let mut tally = Tally::new(2, open);
        let sent = Instant::now();
        let at = |us| sent + Duration::from_micros(us);
        for us in latencies_us {
            let times = Times {
                planned: open.then_some(sent),
                sent: at(us / 2),
                first_byte: at(us / 2),
                last_byte: at(us),
            };
            tally.answered(1, times, 10);
        }
        tally
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let tally = tally(1..=1000, true);
        let response = tally.classes[1].response.as_ref().unwrap().histogram();
        for (quantile, expected) in [(0.5, 500e3), (0.9, 900e3), (0.999, 999e3), (1.0, 1e6)] {
            let value = response.value_at_quantile(quantile) as f64;
            assert!((value - expected).abs() <= expected / 1000.0, "{quantile}: {value}");
        }
        let service = tally.classes[1].service.histogram();
        assert!((service.max() as f64 - 500e3).abs() <= 500.0, "{}", service.max());
        assert_eq!(tally.classes[0].requests, 0);
    }

    #[test]
    fn two_threads_add_up() {
        let (mut low, mut high) = (tally(1..=500, true), tally(501..=1000, true));
        (low.received_bytes, high.received_bytes) = (3, 4);
        low.errors.reset = 1;
        high.errors.reset = 2;
        high.errors.page = 3;
        low.schedule.as_mut().unwrap().planned = 500;
        high.schedule.as_mut().unwrap().planned = 501;
        low.add(&high);
        assert_eq!((low.requests(), low.received_bytes), (1000, 7));
        assert_eq!(low.errors, Errors { reset: 3, page: 3, ..Errors::default() });
        assert_eq!(low.errors.total(), 6);
        assert_eq!(low.schedule.as_ref().unwrap().planned, 1001);
        assert_eq!(low.classes, tally(1..=1000, true).classes);
    }

    #[test]
    fn in_a_closed_loop_there_is_one_time_and_an_hour_is_not_lost() {
        let tally = tally([3_600_000_000 * 2], false);
        assert_eq!(tally.classes[1].response, None);
        assert!(tally.classes[1].service.histogram().max() >= histogram::NS_MAX);
    }

    #[test]
    fn what_is_taken_leaves_the_same_kind_behind() {
        let mut whole = tally(1..=3, true);
        let taken = whole.take();
        assert_eq!((taken.requests(), whole.requests()), (3, 0));
        assert_eq!(whole, Tally::new(2, true));
    }

    #[test]
    fn a_generator_is_behind_if_its_lateness_is_much_of_what_was_measured() {
        let behind = |lag_us: u64, taken_ms: u64| {
            let mut tally = tally([1000 * taken_ms], true);
            tally.schedule.as_mut().unwrap().lag.record(Duration::from_micros(lag_us));
            tally.is_behind()
        };
        assert!(!behind(900, 1));
        assert!(behind(1100, 1));
        assert!(!behind(1100, 20));
        assert!(behind(11_000, 20));
    }

    #[test]
    fn every_kind_of_wrong_has_its_count() {
        use Wrong::{Cookie, FirstLine, Length, Marker, Page, Status};
        let mut errors = Errors::default();
        for wrong in [Status, Length, FirstLine, Marker, Cookie, Page] {
            errors.wrong(wrong);
        }
        assert_eq!(errors.kinds().iter().filter(|(_, count)| *count == 1).count(), 6);
    }
}
