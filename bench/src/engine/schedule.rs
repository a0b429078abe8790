//! When requests of an open loop are to be sent: planned before the run, whatever the server does.

use crate::result::load::Arrivals;
use std::time::{Duration, Instant};

/// The planned starts of one thread, without end.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    begin: Instant,
    per_s: f64,
    gaps: Gaps,
    next_s: f64,
}

#[derive(Clone, Debug)]
enum Gaps {
    /// Starts are counted, so that no error adds up.
    Constant {
        first_s: f64,
        taken: u64,
    },
    Poisson(fastrand::Rng),
}

impl Schedule {
    /// Part `part` of `parts` equal ones of a schedule of `rate_per_s` (above zero) from `begin` on;
    /// together the parts of constant arrivals are at equal distances as well.
    pub(super) fn new(
        begin: Instant,
        rate_per_s: f64,
        arrivals: Arrivals,
        seed: u64,
        (part, parts): (usize, usize),
    ) -> Self {
        let per_s = rate_per_s / parts as f64;
        let gaps = match arrivals {
            Arrivals::Constant => Gaps::Constant { first_s: part as f64 / rate_per_s, taken: 0 },
            Arrivals::Poisson => {
                // Seeds that differ by one shall not give threads the same draws.
                let mut seeds = fastrand::Rng::with_seed(seed);
                let own = (0..=part).fold(0, |_, _| seeds.u64(..));
                Gaps::Poisson(fastrand::Rng::with_seed(own))
            }
        };
        let mut schedule = Self { begin, per_s, gaps, next_s: 0.0 };
        schedule.advance();
        schedule
    }

    /// The next planned start.
    pub(super) fn next(&self) -> Instant {
        self.begin + Duration::from_secs_f64(self.next_s)
    }

    /// Goes on to the one after it.
    pub(super) fn advance(&mut self) {
        match &mut self.gaps {
            Gaps::Constant { first_s, taken } => {
                self.next_s = *first_s + *taken as f64 / self.per_s;
                *taken += 1;
            }
            Gaps::Poisson(random) => {
                // 1 - f64() is never zero.
                self.next_s -= (1.0 - random.f64()).ln() / self.per_s;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(schedule: &mut Schedule, count: usize) -> Vec<Duration> {
        let mut starts = Vec::new();
        for _ in 0..count {
            starts.push(schedule.next() - schedule.begin);
            schedule.advance();
        }
        starts
    }

    #[test]
    fn constant_starts_are_at_equal_distances_over_all_threads() {
        let part = |part| Schedule::new(Instant::now(), 1000.0, Arrivals::Constant, 0, (part, 2));
        let mut all = [starts(&mut part(0), 50), starts(&mut part(1), 50)].concat();
        all.sort_unstable();
        let expected: Vec<_> = (0..100).map(Duration::from_millis).collect();
        let late = all.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(late <= Duration::from_nanos(1), "{late:?}");
    }

    #[test]
    fn poisson_gaps_are_exponential_and_threads_draw_their_own() {
        const COUNT: usize = 100_000;
        let draw = |part| {
            let mut schedule =
                Schedule::new(Instant::now(), 2000.0, Arrivals::Poisson, 7, (part, 2));
            starts(&mut schedule, COUNT)
        };
        let (first, second) = (draw(0), draw(1));
        assert_ne!(first, second);
        assert_eq!(first, draw(0));
        let gaps: Vec<f64> = first.windows(2).map(|w| (w[1] - w[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // The deviation of an exponential's mean is the mean over the root of the count.
        let sigma = 0.001 / (gaps.len() as f64).sqrt();
        assert!((mean - 0.001).abs() < 3.0 * sigma, "{mean}");
        // A share of 1/e is longer than the mean.
        let share = gaps.iter().filter(|&&gap| gap > 0.001).count() as f64 / gaps.len() as f64;
        let expected = (-1.0_f64).exp();
        let sigma = (expected * (1.0 - expected) / gaps.len() as f64).sqrt();
        assert!((share - expected).abs() < 3.0 * sigma, "{share}");
    }
}
