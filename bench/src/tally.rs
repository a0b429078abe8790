//! What a client thread counts, and how the counts of several threads become one.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest latency told apart from longer ones: 60 s, in ns.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Significant decimal digits kept of each latency.
const LATENCY_DIGITS: u8 = 3;

/// What went wrong, by kind. A request ends in exactly one of these or in
/// [`Tally::requests`]; a connection that fails takes the requests awaited on it along uncounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Connections that were not established.
    pub connect: u64,
    /// Connections that broke: reset by the server, or another error of send or receive.
    pub reset: u64,
    /// Connections that the server closed before an awaited response was complete.
    pub ended: u64,
    /// Connections on which nothing came within the time allowed.
    pub timeout: u64,
    /// Responses with another status than the one that is right.
    pub status: u64,
    /// Responses whose body has another length than the first one of the same target.
    pub length: u64,
    /// Connections that carried something else than the responses asked for.
    pub framing: u64,
}

impl Errors {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.kinds().iter().map(|(_, count)| count).sum()
    }

    /// Name and count of each kind.
    pub fn kinds(&self) -> [(&'static str, u64); 7] {
        let Self { connect, reset, ended, timeout, status, length, framing } = *self;
        [
            ("connect", connect),
            ("reset", reset),
            ("ended", ended),
            ("timeout", timeout),
            ("status", status),
            ("length", length),
            ("framing", framing),
        ]
    }

    fn add(&mut self, other: &Self) {
        self.connect += other.connect;
        self.reset += other.reset;
        self.ended += other.ended;
        self.timeout += other.timeout;
        self.status += other.status;
        self.length += other.length;
        self.framing += other.framing;
    }
}

/// Counted during the measured interval.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Responses that were right: the expected status and length.
    pub requests: u64,
    /// Bytes received, heads included.
    pub received_bytes: u64,
    /// Connections established.
    pub connects: u64,
    /// What went wrong.
    pub errors: Errors,
    /// From a request's send being queued to the last byte of its response, ns; right responses
    /// only.
    latency_ns: Histogram<u64>,
}

impl Tally {
    /// All zero.
    pub fn new() -> Self {
        let latency_ns = Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS)
            .expect("the bounds are constants which the histogram accepts");
        Self { requests: 0, received_bytes: 0, connects: 0, errors: Errors::default(), latency_ns }
    }

    /// Counts a right response.
    pub fn answered(&mut self, latency: Duration) {
        self.requests += 1;
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latency_ns.saturating_record(ns);
    }

    /// Takes in the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.received_bytes += other.received_bytes;
        self.connects += other.connects;
        self.errors.add(&other.errors);
        self.latency_ns
            .add(&other.latency_ns)
            .expect("all histograms are made with the same bounds");
    }

    /// The latencies at the customary quantiles; `None` if no response was right.
    pub fn latency(&self) -> Option<Latency> {
        let us = |ns: u64| ns as f64 / 1e3;
        let at = |quantile| us(self.latency_ns.value_at_quantile(quantile));
        (self.requests > 0).then(|| Latency {
            mean: self.latency_ns.mean() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: us(self.latency_ns.max()),
        })
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

/// Latencies, µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// Nine in ten are not longer.
    pub p90: f64,
    /// 99 in a hundred are not longer.
    pub p99: f64,
    /// 999 in a thousand are not longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(latencies_us: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::new();
        latencies_us.into_iter().for_each(|us| tally.answered(Duration::from_micros(us)));
        tally
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let latency = tally(1..=1000).latency().unwrap();
        let Latency { mean, p50, p90, p99, p999, max } = latency;
        let expected = [500.5, 500.0, 900.0, 990.0, 999.0, 1000.0];
        for (value, expected) in [mean, p50, p90, p99, p999, max].into_iter().zip(expected) {
            assert!((value - expected).abs() <= expected / 1000.0, "{latency:?}");
        }
    }

    #[test]
    fn two_threads_add_up() {
        let (mut low, mut high) = (tally(1..=500), tally(501..=1000));
        (low.received_bytes, high.received_bytes) = (3, 4);
        low.errors.reset = 1;
        high.errors.reset = 2;
        high.errors.framing = 3;
        low.add(&high);
        assert_eq!(low.requests, 1000);
        assert_eq!(low.received_bytes, 7);
        assert_eq!(low.errors, Errors { reset: 3, framing: 3, ..Errors::default() });
        assert_eq!(low.errors.total(), 6);
        assert_eq!(low.latency(), tally(1..=1000).latency());
    }

    #[test]
    fn nothing_answered_has_no_latency_and_an_hour_is_not_lost() {
        assert_eq!(Tally::new().latency(), None);
        assert!(tally([3_600_000_000]).latency().unwrap().max >= 60e6);
    }
}
