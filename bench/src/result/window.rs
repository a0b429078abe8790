//! One measured interval: what was counted in it, in integers that add up exactly, and the figures
//! that people read, which follow from the counts.
//!
//! A plain run has one window, a SPECweb99-style run one for each iteration, a SPECweb96-style run
//! one for each load point.

use super::cost::{ClientCost, ServerCost};
use super::latencies::Latencies;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was counted in a window.
///
/// In a request's life: *planned start* (open loop only), *actual send*, *first byte*, *last byte*.
/// **Service time** runs from the actual send to the last byte, **response time** from the planned
/// start to the last byte. A closed loop has no planned start other than the send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Such as `measured`, `iteration 2`, `4 620/s`.
    pub name: String,
    /// When it began, ns since 1970-01-01 UTC.
    pub begin_unix_ns: u64,
    /// How long it was, ns.
    pub duration_ns: u64,
    /// Right responses.
    pub requests: u64,
    /// Bytes received, heads included, TLS not.
    pub received_bytes: u64,
    /// Bytes sent, heads included, TLS not.
    pub sent_bytes: u64,
    /// Connections established.
    pub connects: u64,
    /// TLS handshakes completed.
    pub handshakes: Handshakes,
    /// What went wrong, by kind; kinds that did not occur are left out.
    pub errors: Errors,
    /// The right responses by class; their requests add up to all.
    pub classes: Vec<Class>,
    /// From the first SYN being queued to the connection being established.
    pub connect: Latencies,
    /// From the connection being established to the end of its TLS handshake.
    pub tls: Latencies,
    /// What became of the plan; present in an open loop.
    pub schedule: Option<Schedule>,
    /// Each second in which something happened, in order.
    pub seconds: Vec<Second>,
    /// What the generators consumed.
    pub client: ClientCost,
    /// What the server consumed.
    pub server: ServerCost,
    /// What a SPECweb99-style disclosure follows from; absent for other workloads.
    pub conformity: Option<Conformity>,
}

/// TLS handshakes completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handshakes {
    /// With a key exchange and a certificate.
    pub full: u64,
    /// Resumed sessions.
    pub resumed: u64,
    /// Of those in full: the server would not resume the session that it was offered.
    #[serde(default)]
    pub refused: u64,
    /// Of those in full: a session was to be resumed, but none was at hand, since a ticket is used
    /// once and the server had not sent enough of them.
    #[serde(default)]
    pub without_session: u64,
}

/// How often something went wrong, by kind: `connect`, `tls`, `reset`, `ended`, `timeout`, `status`,
/// `length`, `framing`, `first_line`, `marker`, `cookie`, `page`, `post_log`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Errors(BTreeMap<String, u64>);

impl Errors {
    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The kinds that occurred and how often, in the order of their names.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(kind, &count)| (kind.as_str(), count))
    }
}

impl<S: Into<String>> FromIterator<(S, u64)> for Errors {
    /// Adds up what is named more than once, and leaves out what did not occur.
    fn from_iter<I: IntoIterator<Item = (S, u64)>>(kinds: I) -> Self {
        let mut errors = BTreeMap::new();
        for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            let sum: &mut u64 = errors.entry(kind.into()).or_default();
            *sum = sum.saturating_add(count);
        }
        Self(errors)
    }
}

/// Right responses of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Such as `class 0` or `CAD`.
    pub name: String,
    /// Right responses.
    pub requests: u64,
    /// Bytes received with them, heads included, and what had come before the window.
    pub received_bytes: u64,
    /// From the actual send to the first byte of the response.
    pub first_byte: Latencies,
    /// From the actual send to the last byte of the response.
    pub service: Latencies,
    /// From the planned start to the last byte of the response; present in an open loop.
    pub response: Option<Latencies>,
}

/// What became of an open loop's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Requests whose planned start lies in the window.
    pub planned: u64,
    /// Of these, those that were never sent.
    pub never_sent: u64,
    /// Of these, those that were sent and had no answer when the run ended.
    pub unanswered: u64,
    /// Right responses that came in the window, whenever they were planned: those from which rates and
    /// costs follow. Absent where they were not counted apart; then all right responses are taken.
    #[serde(default)]
    pub completed: Option<u64>,
    /// From the planned start to the actual send, where a connection was free: the generator's own
    /// lateness.
    pub lag: Latencies,
    /// Whether the generator fell behind its own schedule, so that the figures are not the server's.
    pub behind: bool,
}

/// What happened in one second of the wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Second {
    /// The second: whole seconds since 1970-01-01 UTC. The first and the last of a window are in it
    /// only in part; answers to what an open loop has planned may come in seconds behind it.
    pub unix_s: u64,
    /// Right responses completed.
    pub requests: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// What went wrong, all kinds together.
    pub errors: u64,
    /// Of the requests completed: response time in an open loop, service time in a closed one.
    pub latencies: Latencies,
}

impl Second {
    /// This part of the second and another of the same one; `None` if there would be more than can be
    /// counted.
    #[must_use]
    pub fn and(&self, other: &Self) -> Option<Self> {
        Some(Self {
            unix_s: self.unix_s,
            requests: self.requests.checked_add(other.requests)?,
            received_bytes: self.received_bytes.checked_add(other.received_bytes)?,
            errors: self.errors.checked_add(other.errors)?,
            latencies: self.latencies.and(&other.latencies)?,
        })
    }
}

/// Sums over a SPECweb99-style iteration (WORKLOAD.md §1.5, §7.1), which add up over generators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conformity {
    /// Connections asked for.
    pub requested_connections: u64,
    /// Of these, those that were fast enough and right often enough.
    pub conforming_connections: u64,
    /// Operations of all of them.
    pub operations: u64,
    /// How long the operations took together, transfer included, ns.
    pub response_ns_sum: u64,
    /// The bit rates of all connections together, bit/s.
    pub bits_per_s_sum: u64,
    /// TCP connections opened.
    pub opened: u64,
}

/// The figures that people read: they follow from the counts, and are checked against them when a
/// file is read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Right responses per second that came in the window.
    pub requests_per_s: f64,
    /// Bytes received per second, heads included, in units of 10⁶.
    pub received_mb_per_s: f64,
    /// The server's CPU time per right response, µs; absent if unknown or if there was none.
    pub server_cpu_us_per_request: Option<f64>,
    /// The server's CPU time, in CPUs: 1 is one CPU busy all the time; absent if unknown.
    pub server_cpus_busy: Option<f64>,
    /// The generators' CPU time per right response, µs; absent if there was none.
    pub client_cpu_us_per_request: Option<f64>,
    /// Share of the window for which the busiest thread of a generator ran.
    pub client_busiest_thread: f64,
}

/// One measured interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// What people read.
    figures: Figures,
    /// When all generators measured.
    common: Span,
    /// What was counted.
    counts: Counts,
}

/// A time in which something was going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// ns since 1970-01-01 UTC.
    pub begin_unix_ns: u64,
    /// ns since 1970-01-01 UTC.
    pub end_unix_ns: u64,
}

impl Window {
    /// Of what one generator counted.
    pub fn new(counts: Counts) -> Self {
        let common =
            Span { begin_unix_ns: counts.begin_unix_ns, end_unix_ns: counts.end_unix_ns() };
        Self::merged(counts, common)
    }

    /// Of what generators counted that all measured in `common`.
    pub(super) fn merged(counts: Counts, common: Span) -> Self {
        Self { figures: counts.figures(), common, counts }
    }

    /// When all generators measured; the counts' own interval is when any of them did.
    pub fn common(&self) -> Span {
        self.common
    }

    /// What people read.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Figures {
    /// Equal but for how the decimals of a file are rounded.
    pub(super) fn agree_with(&self, other: &Self) -> bool {
        let all = |f: &Self| {
            [
                Some(f.requests_per_s),
                Some(f.received_mb_per_s),
                f.server_cpu_us_per_request,
                f.server_cpus_busy,
                f.client_cpu_us_per_request,
                Some(f.client_busiest_thread),
            ]
        };
        let same = |(a, b): (Option<f64>, Option<f64>)| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= b.abs() * 1e-9,
            (a, b) => a == b,
        };
        all(self).into_iter().zip(all(other)).all(same)
    }
}

impl Counts {
    /// How long the window was, s.
    pub fn seconds_f64(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }

    /// When it ended, ns since 1970-01-01 UTC.
    pub fn end_unix_ns(&self) -> u64 {
        self.begin_unix_ns.saturating_add(self.duration_ns)
    }

    /// Service time over all classes.
    pub fn service(&self) -> Latencies {
        together(self.classes.iter().map(|class| &class.service))
    }

    /// From the actual send to the first byte, over all classes.
    pub fn first_byte(&self) -> Latencies {
        together(self.classes.iter().map(|class| &class.first_byte))
    }

    /// Response time over all classes; `None` in a closed loop.
    pub fn response(&self) -> Option<Latencies> {
        let open = self.classes.iter().any(|class| class.response.is_some());
        open.then(|| together(self.classes.iter().filter_map(|class| class.response.as_ref())))
    }

    /// What users of the server wait: response time where there was a plan, else service time.
    pub fn waiting(&self) -> Latencies {
        self.response().unwrap_or_else(|| self.service())
    }

    /// Right responses that came in the window. Those of an open loop are awaited for longer, so that
    /// their times are known, and a server that is too slow for the plan has many that come later.
    pub fn completed(&self) -> u64 {
        let counted = self.schedule.as_ref().and_then(|schedule| schedule.completed);
        counted.unwrap_or(self.requests)
    }

    /// `amount`, of what the window has cost, for each right response that came in it; unless there
    /// were none.
    pub fn per_request(&self, amount: u64) -> Option<f64> {
        let completed = self.completed();
        (completed > 0).then(|| amount as f64 / completed as f64)
    }

    /// `amount` for each second.
    pub fn per_s(&self, amount: u64) -> f64 {
        amount as f64 / self.seconds_f64()
    }

    pub(super) fn figures(&self) -> Figures {
        let server = self.server.known();
        let cpu_us = |ns| self.per_request(ns).map(|ns| ns / 1e3);
        Figures {
            requests_per_s: self.per_s(self.completed()),
            received_mb_per_s: self.per_s(self.received_bytes) / 1e6,
            server_cpu_us_per_request: server.and_then(|cost| cpu_us(cost.usage.cpu_ns)),
            server_cpus_busy: server.map(|cost| self.per_s(cost.usage.cpu_ns) / 1e9),
            client_cpu_us_per_request: cpu_us(self.client.usage.cpu_ns),
            client_busiest_thread: self.per_s(self.client.busiest_thread_ns) / 1e9,
        }
    }
}

/// All of them; what would be more than can be counted has been refused when it was read.
fn together<'a>(parts: impl Iterator<Item = &'a Latencies>) -> Latencies {
    parts.fold(Latencies::default(), |sum, part| sum.and(part).unwrap_or(sum))
}
