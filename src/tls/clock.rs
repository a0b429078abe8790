//! The time that everything in TLS goes by: certificates, sessions and ticket keys.
//!
//! The interfaces through which rustls asks for sessions and tickets have no argument for the time,
//! and nothing in this module reads a clock. So there is one value that all threads read and that
//! shards move on: a whole second, written once a second, which no reader's cache line suffers from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// Whole seconds since the Unix epoch, as of the last [`tick`](Clock::tick).
///
/// Aligned to two cache lines, the unit in which CPUs fetch: nothing that is written shares them.
#[derive(Debug)]
#[repr(align(128))]
pub struct Clock(AtomicU64);

impl Clock {
    /// A clock that stands at `unix_s`.
    pub fn at(unix_s: u64) -> Clock {
        Clock(AtomicU64::new(unix_s))
    }

    /// Sets the time. Every shard does so once a turn, before it works; all but the first of a second
    /// write nothing. A step backwards is followed: it is how a wrong clock is set right.
    pub fn tick(&self, unix_s: u64) {
        if self.unix_s() != unix_s {
            self.0.store(unix_s, Ordering::Relaxed);
        }
    }

    /// The time.
    pub fn unix_s(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// rustls judges certificates, and dates sessions, by the same clock.
impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.unix_s())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_still_until_it_is_set_and_follows_a_step_backwards() {
        let clock = Clock::at(1000);
        assert_eq!(clock.unix_s(), 1000);
        for time in [1000, 1001, 5000, 900] {
            clock.tick(time);
            assert_eq!(clock.unix_s(), time);
            assert_eq!(clock.current_time().map(|time| time.as_secs()), Some(time));
        }
    }
}
