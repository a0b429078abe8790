//! `--start-at`: a moment on the wall clock at which a run begins, so that several generators begin
//! together whoever has launched them.

use crate::interrupt::Interrupt;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How late a start may be and still be made at once: a launcher's own delay.
const LATE_MAX: Duration = Duration::from_secs(1);

/// How far ahead a start may be. Beyond it somebody has mistaken the day, or ms for s.
const AHEAD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long is waited before the clock is read again, which may have been set meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// A moment on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartAt {
    since_epoch: Duration,
}

/// Why a text is no moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a moment is written as RFC 3339 has it, such as 2026-11-30T18:05:00Z or \
     2026-11-30T19:05:00.5+01:00, or as seconds since 1970 UTC, such as 1796061900 (date +%s)"
)]
pub struct NoMoment;

/// Why a run cannot begin at its moment.
#[derive(Debug, thiserror::Error)]
pub enum StartAtError {
    /// It has passed.
    #[error(
        "--start-at {at} was {late_s:.1} s ago by this machine's clock\n  fix: name a moment to \
         come, and see that the clocks agree (chronyc tracking)"
    )]
    Past {
        /// The moment.
        at: StartAt,
        /// How long ago.
        late_s: f64,
    },
    /// It is too far away.
    #[error(
        "--start-at {at} is {ahead_h:.1} h away by this machine's clock, and at most 24 h are \
         waited\n  fix: name a moment nearer by, in seconds if it is a number"
    )]
    Far {
        /// The moment.
        at: StartAt,
        /// How far.
        ahead_h: f64,
    },
    /// A signal cannot be waited for.
    #[error("cannot wait for signals: {0}")]
    Signals(#[from] io::Error),
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The moment has come.
    Arrived,
    /// A signal has come before it.
    Interrupted,
}

impl StartAt {
    /// How long it is from `now` to the moment; nothing if it passed less than a second ago.
    pub fn ahead(self, now: SystemTime) -> Result<Duration, StartAtError> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        match self.since_epoch.checked_sub(now) {
            Some(ahead) if ahead > AHEAD_MAX => {
                Err(StartAtError::Far { at: self, ahead_h: ahead.as_secs_f64() / 3600.0 })
            }
            Some(ahead) => Ok(ahead),
            None if now - self.since_epoch > LATE_MAX => {
                let late_s = (now - self.since_epoch).as_secs_f64();
                Err(StartAtError::Past { at: self, late_s })
            }
            None => Ok(Duration::ZERO),
        }
    }

    /// Waits until the moment has come by this machine's clock, or a signal.
    pub fn wait(self, interrupt: &Interrupt) -> Result<Waited, StartAtError> {
        let mut ahead = self.ahead(SystemTime::now())?;
        while !ahead.is_zero() {
            if interrupt.wait(ahead.min(LOOK))? {
                return Ok(Waited::Interrupted);
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            ahead = self.since_epoch.saturating_sub(now);
        }
        Ok(Waited::Arrived)
    }
}

impl FromStr for StartAt {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, NoMoment> {
        let since_epoch = match text.split_once(['T', 't', ' ']) {
            Some((date, time)) => rfc3339(date, time),
            None => seconds(text),
        };
        since_epoch.map(|since_epoch| Self { since_epoch }).ok_or(NoMoment)
    }
}

/// Whole seconds with an optional fraction.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let nanos = fraction.map_or(Some(0), nanos)?;
    Some(Duration::new(digits(whole)?, nanos))
}

/// A fraction of a second, of any number of digits; what is finer than ns is cut off.
fn nanos(fraction: &str) -> Option<u32> {
    let nine: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    are_digits(fraction).then(|| nine.parse().ok())?
}

/// A number of digits alone: no sign.
fn digits(text: &str) -> Option<u64> {
    are_digits(text).then(|| text.parse().ok())?
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// RFC 3339 section 5.6: `full-date` and `full-time`. A leap second is the second after it.
fn rfc3339(date: &str, time: &str) -> Option<Duration> {
    let fixed = |text: &str, len: usize| (text.len() == len).then(|| digits(text))?;
    let mut parts = date.splitn(3, '-');
    let year = fixed(parts.next()?, 4)?;
    let month = fixed(parts.next()?, 2).filter(|month| (1..=12).contains(month))?;
    let day = fixed(parts.next()?, 2)?;
    if day < 1 || day > days_of(year, month) || year < 1970 {
        return None;
    }
    let zone_at = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone_at);
    let mut parts = clock.splitn(3, ':');
    let hour = fixed(parts.next()?, 2).filter(|hour| *hour < 24)?;
    let minute = fixed(parts.next()?, 2).filter(|minute| *minute < 60)?;
    let second = parts.next()?;
    let (whole, _) = second.split_once('.').unwrap_or((second, ""));
    fixed(whole, 2).filter(|second| *second <= 60)?;
    let local =
        Duration::from_secs(((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60)
            + seconds(second)?;
    if zone.eq_ignore_ascii_case("z") {
        return Some(local);
    }
    let (hours, minutes) = zone[1..].split_once(':')?;
    let hours = fixed(hours, 2).filter(|hours| *hours < 24)?;
    let minutes = fixed(minutes, 2).filter(|minutes| *minutes < 60)?;
    let offset = Duration::from_secs((hours * 60 + minutes) * 60);
    if zone.starts_with('+') { local.checked_sub(offset) } else { local.checked_add(offset) }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let years: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let months: u64 = (1..month).map(|month| days_of(year, month)).sum();
    years + months + day - 1
}

impl fmt::Display for StartAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.since_epoch.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{Signal, raise};

    fn moment(text: &str) -> Option<f64> {
        text.parse::<StartAt>().ok().map(|at| at.since_epoch.as_secs_f64())
    }

    #[test]
    fn moments_are_read_in_both_forms() {
        assert_eq!(moment("1796061900"), Some(1_796_061_900.0));
        assert_eq!(moment("1796061900.25"), Some(1_796_061_900.25));
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(0.0));
        // As `date -d … +%s` has them.
        assert_eq!(moment("2026-11-30T18:05:00Z"), Some(1_796_061_900.0));
        assert_eq!(moment("2026-11-30t19:05:00.5+01:00"), Some(1_796_061_900.5));
        assert_eq!(moment("2026-11-30 12:35:00-05:30"), Some(1_796_061_900.0));
        assert_eq!(moment("2000-02-29T00:00:00Z"), Some(951_782_400.0));
        assert_eq!(moment("2016-12-31T23:59:60Z"), Some(1_483_228_800.0));
    }

    #[test]
    fn what_is_no_moment_is_refused_with_an_example() {
        for text in [
            "",
            "now",
            "-1",
            "+1",
            "1.",
            "1.x",
            "1e9",
            "2026-11-30",
            "2026-11-30T18:05Z",
            "2026-11-30T18:05:00",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-11-30T24:00:00Z",
            "2026-11-30T18:60:00Z",
            "2026-11-30T18:05:61Z",
            "2026-11-30T18:05:00+24:00",
            "2026-11-30T18:05:00+0100",
            "26-11-30T18:05:00Z",
            "1969-12-31T23:59:59Z",
            "2026-11-30T18:05:é0Z",
            "99999999999999999999",
            "1.99999999999999999é",
        ] {
            assert_eq!(text.parse::<StartAt>(), Err(NoMoment), "{text}");
        }
        assert!(NoMoment.to_string().contains("2026-11-30T18:05:00Z"));
    }

    #[test]
    fn the_past_and_the_far_future_are_refused_with_the_reason() {
        let at: StartAt = "1000000".parse().unwrap();
        let now = |s: f64| UNIX_EPOCH + Duration::from_secs_f64(s);
        assert_eq!(at.ahead(now(999_990.0)).unwrap(), Duration::from_secs(10));
        assert_eq!(at.ahead(now(1_000_001.0)).unwrap(), Duration::ZERO);
        let past = at.ahead(now(1_000_002.5)).unwrap_err().to_string();
        assert!(past.contains("was 2.5 s ago") && past.contains("chronyc"), "{past}");
        assert!(at.ahead(now(1_000_000.0 - 86_400.0)).is_ok());
        let far = at.ahead(now(1_000_000.0 - 90_000.0)).unwrap_err().to_string();
        assert!(far.contains("is 25.0 h away"), "{far}");
    }

    #[test]
    fn a_wait_ends_at_the_moment_or_with_a_signal() {
        let interrupt = Interrupt::hold().unwrap();
        let soon = |ahead| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            StartAt { since_epoch: now + ahead }
        };
        let moment = soon(Duration::from_millis(20));
        assert_eq!(moment.wait(&interrupt).unwrap(), Waited::Arrived);
        assert!(moment.ahead(SystemTime::now()).unwrap().is_zero());
        raise(Signal::SIGINT).unwrap();
        let waited = soon(Duration::from_secs(3600)).wait(&interrupt).unwrap();
        assert_eq!(waited, Waited::Interrupted);
    }
}
