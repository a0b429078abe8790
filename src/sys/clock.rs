//! The two clocks a shard reads once a turn. Both are answered in user space (vDSO) at the
//! resolution of the timer interrupt, 1 to 4 ms: cheap, and fine enough for deadlines and dates.

use std::time::Duration;

use nix::time::ClockId;

/// Time since the Unix epoch.
fn realtime() -> Duration {
    coarse(ClockId::CLOCK_REALTIME_COARSE)
}

/// Whole seconds since the Unix epoch, for a `Date` field.
pub fn realtime_s() -> u64 {
    realtime().as_secs()
}

/// Milliseconds since some point in the past; never goes back.
pub fn monotonic_ms() -> u64 {
    let now = coarse(ClockId::CLOCK_MONOTONIC_COARSE);
    now.as_secs() * 1000 + u64::from(now.subsec_millis())
}

fn coarse(clock: ClockId) -> Duration {
    // Both coarse clocks exist since 2.6.32, so that reading one cannot fail. A clock set before
    // 1970 would be negative: zero then.
    clock.now().map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realtime_agrees_with_the_standard_library() {
        let exact = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
        assert!(exact.abs_diff(realtime()) < Duration::from_secs(30));
        assert!(exact.as_secs().abs_diff(realtime_s()) < 30);
    }

    #[test]
    fn monotonic_never_goes_back_and_does_advance() {
        let first = monotonic_ms();
        let mut last = first;
        while last == first {
            let now = monotonic_ms();
            assert!(now >= last);
            last = now;
        }
    }
}
