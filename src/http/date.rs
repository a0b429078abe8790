//! Dates as HTTP writes them, and has written them (RFC 9110 §5.6.7). Nobody here asks what time it
//! is.
//!
//! One form is written, three are read. httpdate judges them all, as IMF-fixdates: its own reading
//! of two-digit years has a fixed turn of the century, where RFC 9110 has a moving one.

use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// The last second that an IMF-fixdate can name: 9999-12-31T23:59:59Z.
const LAST_S: i64 = 253_402_300_799;

/// An IMF-fixdate, always 29 bytes: `Sun, 06 Nov 1994 08:49:37 GMT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImfDate([u8; ImfDate::BYTES]);

impl ImfDate {
    /// Length of every IMF-fixdate.
    pub const BYTES: usize = 29;

    /// The date of a Unix time in seconds.
    ///
    /// A file may carry any modification time: what lies before 1970 or after 9999 becomes the
    /// nearest second that can be written.
    pub fn from_unix_s(seconds: i64) -> Self {
        let since_epoch = Duration::from_secs(seconds.clamp(0, LAST_S).unsigned_abs());
        let mut date = [0; Self::BYTES];
        write!(&mut date[..], "{}", httpdate::HttpDate::from(UNIX_EPOCH + since_epoch))
            .expect("an IMF-fixdate has 29 bytes, and years have four digits up to 9999");
        Self(date)
    }

    /// The 29 bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

/// The leap second, which an HTTP-date may name (RFC 9110 §5.6.7) and Unix time does not have: it is read
/// as the one before.
const LEAP_SECOND: &[u8] = b" 23:59:60";
const BEFORE_IT: &[u8] = b" 23:59:59";

/// The end of every date but of one form, which means the same.
const ZONE: &[u8] = b" GMT";

/// Half a century, within which a two-digit year of the future is believed.
const HALF_CENTURY_S: u64 = 50 * YEAR_S;

/// A mean Gregorian year.
const YEAR_S: u64 = 31_556_952;

/// The Gregorian calendar repeats itself, weekdays included, after this many years.
const CYCLE_YEARS: u16 = 400;

/// The Unix time in seconds that an HTTP-date names, in any of its three forms; `None`: it is no
/// valid one. A date before 1970 counts as 1970, as [`ImfDate`] writes it.
///
/// `now_s` decides the century of a two-digit year: more than 50 years after it is the past.
pub fn parse(value: &[u8], now_s: u64) -> Option<u64> {
    match value.len() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        29 => {
            let time = value[16..].strip_suffix(ZONE)?;
            from_parts(&value[..3], &value[3..12], decimal(&value[12..16])?, time)
        }
        // Sun Nov  6 08:49:37 1994
        24 => {
            let [w1, w2, w3, b' ', m1, m2, m3, b' ', d1, d2, ref time @ .., b' ', _, _, _, _] =
                *value
            else {
                return None;
            };
            let d1 = if d1 == b' ' { b'0' } else { d1 };
            let day = [b',', b' ', d1, d2, b' ', m1, m2, m3, b' '];
            from_parts(&[w1, w2, w3], &day, decimal(&value[20..])?, time)
        }
        _ => parse_rfc850(value, now_s),
    }
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn parse_rfc850(value: &[u8], now_s: u64) -> Option<u64> {
    const WEEKDAYS: [&[u8]; 7] =
        [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];
    let comma = memchr::memchr(b',', value)?;
    let (weekday, rest) = value.split_at(comma);
    let [b',', b' ', d1, d2, b'-', m1, m2, m3, b'-', y1, y2, time @ ..] = rest else {
        return None;
    };
    let day = [b',', b' ', *d1, *d2, b' ', *m1, *m2, *m3, b' '];
    let of_century = decimal(&[*y1, *y2])?;
    let weekday = WEEKDAYS.contains(&weekday).then(|| &weekday[..3])?;
    let time = time.strip_suffix(ZONE)?;

    let latest_s = now_s.saturating_add(HALF_CENTURY_S).min(LAST_S.unsigned_abs());
    // The mean year may be one too early at the turn of a year.
    let latest_year = 1970 + (latest_s / YEAR_S) as u16 + 1;
    let year = latest_year - (latest_year + 100 - of_century) % 100;
    // Either it is too late, or the weekday may tell.
    [year, year - 100]
        .into_iter()
        .filter_map(|year| from_parts(weekday, &day, year, time))
        .find(|&seconds| seconds <= latest_s)
}

/// The time of an IMF-fixdate that comes in pieces: `Sun`, `, 06 Nov `, 1994, ` 08:49:37`.
fn from_parts(weekday: &[u8], day: &[u8], year: u16, time: &[u8]) -> Option<u64> {
    let time = if time == LEAP_SECOND { BEFORE_IT } else { time };
    let cycles = 1970_u16.saturating_sub(year).div_ceil(CYCLE_YEARS);
    let mut date = [0; ImfDate::BYTES];
    let mut rest = &mut date[..];
    rest.write_all(weekday).ok()?;
    rest.write_all(day).ok()?;
    write!(rest, "{:04}", year + cycles * CYCLE_YEARS).ok()?;
    rest.write_all(time).ok()?;
    rest.write_all(ZONE).ok()?;
    if !rest.is_empty() {
        return None;
    }
    let time = httpdate::parse_http_date(std::str::from_utf8(&date).ok()?).ok()?;
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(if cycles == 0 { seconds } else { 0 })
}

fn decimal(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0_u16, |value, &digit| {
        digit.is_ascii_digit().then(|| value * 10 + u16::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ImfDate, LAST_S, parse};

    const NOW_S: u64 = 1_780_000_000; // 2026-05-28

    #[test]
    fn all_three_forms_are_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text.as_bytes(), NOW_S), Some(784_111_777), "{text}");
        }
        assert_eq!(parse(b"Wed Nov 16 08:49:37 1994", NOW_S), Some(784_975_777));
        assert_eq!(parse(b"Wednesday, 16-Nov-94 08:49:37 GMT", NOW_S), Some(784_975_777));
    }

    #[test]
    fn a_leap_second_is_the_last_second_of_its_day() {
        for text in [
            "Sat, 31 Dec 2016 23:59:60 GMT",
            "Saturday, 31-Dec-16 23:59:60 GMT",
            "Sat Dec 31 23:59:60 2016",
        ] {
            assert_eq!(parse(text.as_bytes(), NOW_S), Some(1_483_228_799), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "yesterday",
            "784111777",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "sun, 06 nov 1994 08:49:37 gmt",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Thu, 30 Feb 2023 00:00:00 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sat, 31 Dec 2016 23:59:61 GMT",
            "Sun, 01 Jan 2017 00:00:60 GMT",
            "Sun, 06 Nov 19x4 08:49:37 GMT",
            "Sunday, 06 Nov 94 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Monday, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT ",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov  6 08:49:37 19 4",
            "Sun Nov  x 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text.as_bytes(), NOW_S), None, "{text:?}");
        }
    }

    /// RFC 9110 §5.6.7: more than 50 years in the future is the most recent year in the past.
    #[test]
    fn two_digit_years_turn_half_a_century_from_now() {
        for (text, year) in [
            ("Thursday, 28-May-26 00:00:00 GMT", "2026"),
            ("Wednesday, 01-Jan-75 00:00:00 GMT", "1975"), // the weekday tells it from 2075
            ("Tuesday, 01-Jan-75 00:00:00 GMT", "2075"),
            ("Wednesday, 01-Jan-76 00:00:00 GMT", "2076"),
            ("Friday, 31-Dec-76 00:00:00 GMT", "1976"),
            ("Saturday, 01-Jan-77 00:00:00 GMT", "1977"),
            ("Friday, 01-Jan-99 00:00:00 GMT", "1999"),
            ("Saturday, 01-Jan-00 00:00:00 GMT", "2000"),
        ] {
            let seconds = parse(text.as_bytes(), NOW_S).expect(text);
            let date = ImfDate::from_unix_s(seconds as i64);
            assert_eq!(&date.as_bytes()[12..16], year.as_bytes(), "{text}");
        }
        assert_eq!(parse(b"Thursday, 31-Dec-76 00:00:00 GMT", NOW_S), None, "2076 is too late");
    }

    #[test]
    fn a_date_before_1970_is_as_early_as_can_be() {
        for text in [
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun, 06 Nov 1904 08:49:37 GMT",
            "Mon, 01 Jan 1601 00:00:00 GMT",
            "Sat, 01 Jan 0000 00:00:00 GMT",
            "Sun Nov  6 08:49:37 1904",
        ] {
            assert_eq!(parse(text.as_bytes(), NOW_S), Some(0), "{text}");
        }
        assert_eq!(parse(b"Thu, 31 Dec 1969 23:59:59 GMT", NOW_S), None, "it was a Wednesday");
    }

    #[test]
    fn known_dates() {
        for (seconds, text) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (LAST_S, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(ImfDate::from_unix_s(seconds).as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn times_that_cannot_be_written_become_the_nearest_that_can() {
        assert_eq!(ImfDate::from_unix_s(-1), ImfDate::from_unix_s(0));
        assert_eq!(ImfDate::from_unix_s(i64::MIN), ImfDate::from_unix_s(0));
        assert_eq!(ImfDate::from_unix_s(LAST_S + 1), ImfDate::from_unix_s(LAST_S));
        assert_eq!(ImfDate::from_unix_s(i64::MAX), ImfDate::from_unix_s(LAST_S));
    }

    proptest! {
        #[test]
        fn a_date_reads_back(seconds in 0..=LAST_S) {
            let date = ImfDate::from_unix_s(seconds);
            let text = std::str::from_utf8(date.as_bytes()).expect("ASCII");
            let time = httpdate::parse_http_date(text).expect("a valid date");
            let since = time.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
            prop_assert_eq!(since.as_secs(), seconds.unsigned_abs());
            prop_assert_eq!(parse(date.as_bytes(), NOW_S), Some(seconds.unsigned_abs()));
        }

        /// The other two forms of a date name the same second.
        #[test]
        fn every_form_reads_back(seconds in 0..=LAST_S) {
            const WEEKDAYS: [&str; 7] =
                ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
            let date = ImfDate::from_unix_s(seconds);
            let text = std::str::from_utf8(date.as_bytes()).expect("ASCII");
            let (day, month, year, time) = (&text[5..7], &text[8..11], &text[12..16], &text[17..25]);
            let weekday = WEEKDAYS[(seconds / 86_400 % 7) as usize];
            let unpadded = day.trim_start_matches('0');
            let seconds = seconds.unsigned_abs();
            let asctime = format!("{} {month} {unpadded:>2} {time} {year}", &weekday[..3]);
            prop_assert_eq!(parse(asctime.as_bytes(), NOW_S), Some(seconds), "{}", asctime);
            let rfc850 = format!("{weekday}, {day}-{month}-{} {time} GMT", &year[2..]);
            prop_assert_eq!(parse(rfc850.as_bytes(), seconds), Some(seconds), "{}", rfc850);
        }

        /// Whatever bytes come: no panic, and nothing that httpdate would not take for a date, but for
        /// centuries.
        #[test]
        fn httpdate_agrees(date in 0..=LAST_S, at in 0..29_usize, to in any::<u8>()) {
            let mut bytes = *ImfDate::from_unix_s(date).as_bytes();
            bytes[at] = to;
            let theirs = std::str::from_utf8(&bytes)
                .ok()
                .and_then(|text| httpdate::parse_http_date(text).ok())
                .and_then(|time| time.duration_since(super::UNIX_EPOCH).ok())
                .map(|since| since.as_secs());
            match parse(&bytes, NOW_S) {
                // A year before 1970.
                Some(0) => {}
                ours => prop_assert_eq!(ours, theirs, "{}", bytes.escape_ascii()),
            }
        }
    }
}
