//! How a run has gone so far: what is drawn beside the last second.

use super::Second;
use std::collections::BTreeMap;

/// Seconds of which the rate is kept: more than any terminal is wide.
const RATES_MAX: usize = 512;

/// How a run has gone so far.
#[derive(Debug, Default)]
pub(super) struct Course {
    rates: Vec<u64>,
    errors: BTreeMap<String, u64>,
    seconds_behind: u64,
}

impl Course {
    pub(super) fn add(&mut self, second: &Second) {
        if self.rates.len() == RATES_MAX {
            self.rates.remove(0);
        }
        self.rates.push(second.requests);
        for (kind, count) in second.errors.kinds() {
            let sum = self.errors.entry(kind.to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
        self.seconds_behind += u64::from(second.behind);
    }

    /// Right responses in each of the last `count` seconds, the latest last.
    pub(super) fn rates(&self, count: usize) -> &[u64] {
        &self.rates[self.rates.len().saturating_sub(count)..]
    }

    /// What has gone wrong since the beginning, by kind.
    pub(super) fn errors(&self) -> impl Iterator<Item = (&str, u64)> {
        self.errors.iter().map(|(kind, &count)| (kind.as_str(), count))
    }

    /// Seconds in which the generator was behind its own schedule.
    pub(super) fn seconds_behind(&self) -> u64 {
        self.seconds_behind
    }
}
