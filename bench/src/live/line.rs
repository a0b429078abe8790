//! A second as a line of text, for pipes and logs.

use super::{Second, Waiting};
use std::fmt;

/// A second, on one line.
pub(super) struct Line<'s>(pub(super) &'s Second);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = self.0;
        write!(
            f,
            "{:>6.1} s{}, {}: {} requests/s, {:.1} MB/s",
            second.elapsed_s,
            second.of_s.map_or_else(String::new, |of_s| format!(" of {of_s:.0} s")),
            second.phase,
            second.requests,
            second.bytes as f64 / 1e6
        )?;
        if let Some(waiting) = &second.waiting {
            write!(f, ", {waiting}")?;
        }
        write!(f, ", {} in flight", second.in_flight)?;
        if let Some(us) = second.server_cpu_us_per_request {
            write!(f, ", server {us:.2} µs CPU/request")?;
        }
        if second.errors.total() > 0 {
            write!(f, ", errors: {}", listed(second.errors.kinds()))?;
        }
        if second.behind {
            write!(f, ", behind schedule")?;
        }
        Ok(())
    }
}

/// Kinds of errors and how often, such as `reset 3, timeout 1`.
pub(super) fn listed<'k>(kinds: impl Iterator<Item = (&'k str, u64)>) -> String {
    kinds.map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, max] = [self.p50_us, self.p99_us, self.max_us].map(duration);
        write!(f, "p50 {p50}, p99 {p99}, max {max}")
    }
}

/// A duration of so many µs, to three digits.
fn duration(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 1e3 => (us, "µs"),
        us if us < 1e6 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::super::Phase;
    use super::*;

    #[test]
    fn a_second_is_a_line_and_only_what_happened_is_in_it() {
        let mut second = Second {
            elapsed_s: 3.0,
            of_s: Some(10.0),
            phase: Phase::Measured,
            requests: 182_345,
            errors: std::iter::empty::<(&str, u64)>().collect(),
            bytes: 187_200_000,
            in_flight: 64,
            waiting: Some(Waiting { p50_us: 340.0, p99_us: 1204.0, max_us: 2_000_000.0 }),
            behind: false,
            server_cpu_us_per_request: Some(5.314),
        };
        assert_eq!(
            Line(&second).to_string(),
            "   3.0 s of 10 s, measured: 182345 requests/s, 187.2 MB/s, p50 340 µs, p99 1.20 ms, \
             max 2.00 s, 64 in flight, server 5.31 µs CPU/request"
        );
        second.phase = Phase::RampDown;
        second.of_s = None;
        assert!(Line(&second).to_string().starts_with("   3.0 s, ramp-down: 182345 requests/s, "));
        second.of_s = Some(10.0);
        second.phase = Phase::Iteration(2);
        second.requests = 0;
        second.waiting = None;
        second.server_cpu_us_per_request = None;
        second.errors = [("timeout", 1), ("reset", 3)].into_iter().collect();
        second.behind = true;
        assert_eq!(
            Line(&second).to_string(),
            "   3.0 s of 10 s, iteration 2: 0 requests/s, 187.2 MB/s, 64 in flight, errors: reset 3, \
             timeout 1, behind schedule"
        );
    }

    #[test]
    fn durations_have_three_digits() {
        let texts = [0.5, 45.67, 999.0, 1000.0, 45_678.0, 2_345_678.0].map(duration);
        assert_eq!(texts, ["0.50 µs", "45.7 µs", "999 µs", "1.00 ms", "45.7 ms", "2.35 s"]);
    }
}
