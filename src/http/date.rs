//! Dates as HTTP writes them: IMF-fixdate (RFC 9110 §5.6.7). Nobody here asks what time it is.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ImfDate, LAST_S};

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
        }
    }
}
