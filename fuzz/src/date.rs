//! Dates: `http::date` against httpdate, and against a calendar of its own.
//!
//! The input is a date in any form; or a number of seconds, which is written and read back.

use std::time::{Duration, UNIX_EPOCH};

use onering::http::date::{ImfDate, parse};

/// 2026-11-30
const NOW_S: u64 = 1_796_000_000;
/// 9999-12-31T23:59:59Z
const LAST_S: i64 = 253_402_300_799;
const HALF_CENTURY_S: u64 = 50 * 31_556_952;
/// From a day of the 20th century to that of the 21st.
const CENTURY_S: u64 = 36_525 * 86_400;

/// Checks a date, or a number.
pub fn check(input: &[u8]) {
    if let Some(seconds) = str::from_utf8(input).ok().and_then(|text| text.parse().ok()) {
        is_written(seconds);
    }
    let said = parse(input, NOW_S);
    // A leap second is read as the one before it; httpdate reads none.
    let mut input = input.to_vec();
    if let Some(at) = input.windows(9).position(|time| time == b" 23:59:60") {
        input[at + 7..][..2].copy_from_slice(b"59");
    }
    let input = &*input;
    // httpdate takes spaces around a date; here a field's value has none any more.
    let theirs = str::from_utf8(input)
        .ok()
        .filter(|text| text.trim() == *text)
        .and_then(|text| httpdate::parse_http_date(text).ok())
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map(|since| since.as_secs());
    match (said, input.contains(&b'-')) {
        (None, false) => assert_eq!(theirs, None, "refused"),
        // Before 1970 httpdate knows no dates, and 1970 it is.
        (Some(0), false) => assert!(matches!(theirs, None | Some(0)), "{theirs:?}"),
        (Some(_), false) => assert_eq!(theirs, said),
        // Two digits of a year: the century is ours to choose, and httpdate has its own rule.
        (Some(seconds), true) => {
            assert!(seconds <= NOW_S + HALF_CENTURY_S, "too far ahead");
            let written = written_as_rfc850(seconds);
            assert!(seconds == 0 || written == input, "{}: {written:?}", input.escape_ascii());
        }
        (None, true) => {
            // It is none of this century and, if it could be believed, none of the next.
            if let Some(seconds) = theirs {
                for other in [seconds, seconds + CENTURY_S] {
                    let is_believed = other <= NOW_S + HALF_CENTURY_S;
                    assert!(!is_believed || written_as_rfc850(other) != input, "refused");
                }
            }
        }
    }
}

fn is_written(seconds: i64) {
    let date = ImfDate::from_unix_s(seconds);
    let nearest = seconds.clamp(0, LAST_S).unsigned_abs();
    let (weekday, year, month, day, time) = calendar(nearest);
    let expected = format!("{}, {day:02} {month} {year:04} {time} GMT", &weekday[..3]);
    assert_eq!(date.as_bytes().escape_ascii().to_string(), expected);
    for now_s in [0, NOW_S, u64::MAX] {
        assert_eq!(parse(date.as_bytes(), now_s), Some(nearest));
        let asctime = format!("{} {month} {day:2} {time} {year:04}", &weekday[..3]);
        assert_eq!(parse(asctime.as_bytes(), now_s), Some(nearest));
    }
    // Seen from the same time, the two digits mean this century.
    assert_eq!(parse(&written_as_rfc850(nearest), nearest), Some(nearest));
    let theirs = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(nearest));
    assert_eq!(theirs, expected);
}

fn written_as_rfc850(seconds: u64) -> Vec<u8> {
    let (weekday, year, month, day, time) = calendar(seconds);
    format!("{weekday}, {day:02}-{month}-{:02} {time} GMT", year % 100).into_bytes()
}

/// Weekday, year, month, day and time of a Unix time: it goes through the years and the months.
fn calendar(seconds: u64) -> (&'static str, u64, &'static str, u64, String) {
    const WEEKDAYS: [&str; 7] =
        ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let mut days = seconds / 86_400;
    let weekday = WEEKDAYS[(days % 7) as usize];
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    let days_of = |month: usize| MONTHS[month].1 + u64::from(month == 1 && is_leap(year));
    while days >= days_of(month) {
        days -= days_of(month);
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    (weekday, year, MONTHS[month].0, days + 1, format!("{hour:02}:{minute:02}:{second:02}"))
}
