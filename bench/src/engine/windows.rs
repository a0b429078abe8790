//! When is measured: windows of a run, cut into parts of at most a second, at the same moments on
//! every thread and, since parts end with the seconds of the wall clock, of every generator.

use std::time::{Duration, Instant, SystemTime};

/// What goes on at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Load, before the first window.
    WarmUp,
    /// The window of that number.
    Measured(usize),
    /// Load, between two windows.
    Between,
    /// No new requests; those of the last window are awaited.
    Draining,
}

/// A measured stretch of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From the beginning of the run.
    pub from: Duration,
    /// How long, above zero.
    pub length: Duration,
}

/// The windows, in order and apart.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    begin: Instant,
    /// What the wall clock says at the beginning, since 1970. It is read once: clocks may be set.
    begin_unix: Duration,
    list: Vec<Window>,
}

impl Windows {
    /// `list` is not empty. `begin_unix` is `begin` by the wall clock, since 1970.
    pub(super) fn new(begin: Instant, begin_unix: Duration, list: Vec<Window>) -> Self {
        Self { begin, begin_unix, list }
    }

    /// Windows of a run that begins now.
    pub(super) fn from_now(list: Vec<Window>) -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self::new(Instant::now(), unix.unwrap_or_default(), list)
    }

    /// `at` by the wall clock, since 1970.
    pub(super) fn unix(&self, at: Instant) -> Duration {
        self.begin_unix + at.saturating_duration_since(self.begin)
    }

    /// When the run begins.
    pub(super) fn begin(&self) -> Instant {
        self.begin
    }

    /// The end of the last window.
    pub(super) fn end(&self) -> Instant {
        self.begin + self.list.last().map_or(Duration::ZERO, |last| last.from + last.length)
    }

    /// What goes on from `at` on.
    pub(super) fn phase(&self, at: Instant) -> Phase {
        let at = at.saturating_duration_since(self.begin);
        let mut before = Phase::WarmUp;
        for (number, window) in self.list.iter().enumerate() {
            if at < window.from {
                return before;
            }
            if at < window.from + window.length {
                return Phase::Measured(number);
            }
            before = Phase::Between;
        }
        Phase::Draining
    }

    /// When the phase at `at` began, and when it ends; draining has no end that is known.
    pub(super) fn span(&self, at: Instant) -> (Instant, Option<Instant>) {
        let turns = || {
            let turns = self.list.iter().flat_map(|w| [w.from, w.from + w.length]);
            turns.map(|turn| self.begin + turn)
        };
        let begin = turns().filter(|&turn| turn <= at).fold(self.begin, Instant::max);
        (begin, turns().filter(|&turn| turn > at).min())
    }

    /// The first moment behind `at` at which a part ends: where the phase changes, or with the
    /// second of the wall clock.
    pub(super) fn edge(&self, at: Instant) -> Instant {
        let unix = self.unix(at);
        let second = at + (Duration::from_secs(unix.as_secs() + 1) - unix);
        let turns = self.list.iter().flat_map(|window| [window.from, window.from + window.length]);
        turns.map(|turn| self.begin + turn).filter(|&turn| turn > at).fold(second, Instant::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_with_phases_and_with_seconds() {
        let ms = Duration::from_millis;
        let window = |from, length| Window { from: ms(from), length: ms(length) };
        let begin = Instant::now();
        let list = vec![window(1500, 2200), window(4000, 1000)];
        let windows = Windows::new(begin, ms(1_000_200), list);
        let mut at = begin;
        let mut seen = Vec::new();
        while at < windows.end() + ms(1500) {
            let edge = windows.edge(at);
            assert_eq!(windows.phase(at), windows.phase(edge - ms(1)));
            let (since, until) = windows.span(at);
            assert!(since <= at && until.is_none_or(|until| until >= edge));
            assert_eq!(windows.phase(since), windows.phase(at));
            seen.push((windows.phase(at), (edge - begin).as_millis()));
            at = edge;
        }
        use Phase::{Between, Draining, Measured, WarmUp};
        let expected = [
            (WarmUp, 800),
            (WarmUp, 1500),
            (Measured(0), 1800),
            (Measured(0), 2800),
            (Measured(0), 3700),
            (Between, 3800),
            (Between, 4000),
            (Measured(1), 4800),
            (Measured(1), 5000),
            (Draining, 5800),
            (Draining, 6800),
        ];
        assert_eq!(seen, expected);
        assert_eq!(windows.end() - begin, ms(5000));
    }

    #[test]
    fn without_a_warm_up_the_first_part_is_measured() {
        let begin = Instant::now();
        let length = Duration::from_millis(300);
        let list = vec![Window { from: Duration::ZERO, length }];
        let windows = Windows::new(begin, Duration::from_millis(5_500), list);
        assert_eq!(windows.phase(begin), Phase::Measured(0));
        assert_eq!(windows.edge(begin), begin + length);
    }
}
