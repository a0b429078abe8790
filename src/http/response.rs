//! A response head, written into a buffer (RFC 9112 §4, RFC 9110 §6.6 and §8).
//!
//! It writes what it is told and judges nothing: that a 304 carries no `Content-Length` is for the
//! caller to know. The answer is always `HTTP/1.1`, whatever the request's version (RFC 9110 §6.2).

use super::range::ContentRange;
use super::{ImfDate, Persistence, Status};

/// What a response head says.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status line's code and reason.
    pub status: Status,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `Content-Encoding`.
    pub content_encoding: Option<&'static str>,
    /// `Content-Range`, of a 206 with one part and of every 416.
    pub content_range: Option<ContentRange>,
    /// `Content-Length` in bytes; of the GET's body too when HEAD is answered.
    pub content_length: Option<u64>,
    /// `ETag`, quotes and weakness mark included.
    pub etag: Option<&'a [u8]>,
    /// `Last-Modified`.
    pub last_modified: Option<ImfDate>,
    /// `Accept-Ranges: bytes`.
    pub accept_ranges: bool,
    /// `Vary`: the request fields that have decided what is sent.
    pub vary: Option<&'a str>,
    /// `Allow`, which every 405 must carry.
    pub allow: Option<&'static str>,
    /// `Location`: a URI reference that is encoded already.
    pub location: Option<&'a [u8]>,
    /// `Retry-After` in seconds: when a 503 may have passed (RFC 9110 §10.2.3).
    pub retry_after_s: Option<u32>,
    /// Further field lines, each with its CRLF: what the configuration adds. None of their names is
    /// one of those above.
    pub more: &'a [u8],
    /// Whether the connection lives on; `Connection` says so where the default would not.
    pub persistence: Persistence,
}

impl ResponseHead<'_> {
    /// A head that says nothing but this.
    pub const fn new(status: Status, persistence: Persistence) -> Self {
        Self {
            status,
            content_type: None,
            content_encoding: None,
            content_range: None,
            content_length: None,
            etag: None,
            last_modified: None,
            accept_ranges: false,
            vary: None,
            allow: None,
            location: None,
            retry_after_s: None,
            more: b"",
            persistence,
        }
    }

    /// Appends the head with its final empty line to `out`.
    ///
    /// Returns where in `out` the bytes of `date` begin: a head that is kept can have them
    /// overwritten, [`ImfDate::BYTES`] long, when a second has passed.
    pub fn write(&self, date: &ImfDate, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(&self.status.digits());
        out.push(b' ');
        out.extend_from_slice(self.status.reason().as_bytes());
        out.extend_from_slice(b"\r\nServer: onering\r\nDate: ");
        let date_at = out.len();
        out.extend_from_slice(date.as_bytes());
        out.extend_from_slice(b"\r\n");

        if let Some(content_type) = self.content_type {
            field(out, b"Content-Type: ", content_type.as_bytes());
        }
        if let Some(content_encoding) = self.content_encoding {
            field(out, b"Content-Encoding: ", content_encoding.as_bytes());
        }
        if let Some(content_range) = &self.content_range {
            out.extend_from_slice(b"Content-Range: ");
            content_range.write(out);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(bytes) = self.content_length {
            out.extend_from_slice(b"Content-Length: ");
            push_decimal(out, bytes);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(last_modified) = &self.last_modified {
            field(out, b"Last-Modified: ", last_modified.as_bytes());
        }
        if let Some(etag) = self.etag {
            field(out, b"ETag: ", etag);
        }
        if self.accept_ranges {
            field(out, b"Accept-Ranges: ", b"bytes");
        }
        if let Some(vary) = self.vary {
            field(out, b"Vary: ", vary.as_bytes());
        }
        if let Some(allow) = self.allow {
            field(out, b"Allow: ", allow.as_bytes());
        }
        if let Some(location) = self.location {
            field(out, b"Location: ", location);
        }
        if let Some(seconds) = self.retry_after_s {
            out.extend_from_slice(b"Retry-After: ");
            push_decimal(out, seconds.into());
            out.extend_from_slice(b"\r\n");
        }
        debug_assert!(self.more.is_empty() || self.more.ends_with(b"\r\n"), "whole lines");
        out.extend_from_slice(self.more);
        match self.persistence {
            Persistence::KeepAlive => {}
            Persistence::KeepAliveExplicit => field(out, b"Connection: ", b"keep-alive"),
            Persistence::Close => field(out, b"Connection: ", b"close"),
        }
        out.extend_from_slice(b"\r\n");
        date_at
    }
}

/// Appends one field line; `name` brings its colon.
fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(!value.iter().any(u8::is_ascii_control), "a field value would split the head");
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Digits of the largest `u64`.
const DIGITS_MAX: usize = u64::MAX.ilog10() as usize + 1;

/// Appends `value` in decimal; `core::fmt` would cost more than the whole head.
pub(super) fn push_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return out.extend_from_slice(&digits[start..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ResponseHead, push_decimal};
    use crate::http::range::{ByteRange, ContentRange};
    use crate::http::{ImfDate, Persistence, Status};

    const BARE: ResponseHead<'static> =
        ResponseHead::new(Status::NOT_FOUND, Persistence::KeepAlive);

    fn written(head: &ResponseHead<'_>) -> String {
        let mut out = Vec::new();
        head.write(&ImfDate::from_unix_s(784_111_777), &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn nothing_is_said_that_is_not_asked_for() {
        assert_eq!(
            written(&BARE),
            "HTTP/1.1 404 Not Found\r\nServer: onering\r\n\
             Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"
        );
    }

    #[test]
    fn every_field_has_its_line() {
        let head = ResponseHead {
            status: Status::OK,
            content_type: Some("text/html; charset=utf-8"),
            content_encoding: Some("br"),
            content_range: Some(ContentRange {
                range: Some(ByteRange { first: 5, last: 9 }),
                complete_bytes: 10,
            }),
            content_length: Some(u64::MAX),
            etag: Some(b"W/\"1-2\""),
            last_modified: Some(ImfDate::from_unix_s(0)),
            accept_ranges: true,
            vary: Some("Accept-Encoding"),
            allow: Some("GET, HEAD"),
            location: Some(b"/dir/"),
            retry_after_s: Some(120),
            more: b"Cache-Control: no-store\r\nX-More: x\r\n",
            persistence: Persistence::Close,
        };
        assert_eq!(
            written(&head),
            "HTTP/1.1 200 OK\r\nServer: onering\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Content-Type: text/html; charset=utf-8\r\nContent-Encoding: br\r\n\
             Content-Range: bytes 5-9/10\r\nContent-Length: 18446744073709551615\r\n\
             Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nETag: W/\"1-2\"\r\n\
             Accept-Ranges: bytes\r\nVary: Accept-Encoding\r\nAllow: GET, HEAD\r\n\
             Location: /dir/\r\nRetry-After: 120\r\nCache-Control: no-store\r\nX-More: x\r\n\
             Connection: close\r\n\r\n"
        );
    }

    #[test]
    fn only_what_the_version_does_not_imply_is_said_about_the_connection() {
        let connection = |persistence| {
            let text = written(&ResponseHead { persistence, ..BARE });
            text.lines().find_map(|line| line.strip_prefix("Connection: ").map(str::to_owned))
        };
        assert_eq!(connection(Persistence::KeepAlive), None);
        assert_eq!(connection(Persistence::KeepAliveExplicit).as_deref(), Some("keep-alive"));
        assert_eq!(connection(Persistence::Close).as_deref(), Some("close"));
    }

    #[test]
    fn the_date_can_be_patched_in_place() {
        let (then, now) = (ImfDate::from_unix_s(784_111_777), ImfDate::from_unix_s(784_111_778));
        let (mut patched, mut fresh) = (b"kept".to_vec(), b"kept".to_vec());
        let date_at = BARE.write(&then, &mut patched);
        patched[date_at..][..ImfDate::BYTES].copy_from_slice(now.as_bytes());
        assert_eq!(BARE.write(&now, &mut fresh), date_at);
        assert_eq!(patched, fresh);
    }

    proptest! {
        #[test]
        fn decimals_are_those_of_the_standard_library(value: u64) {
            let mut digits = Vec::new();
            push_decimal(&mut digits, value);
            prop_assert_eq!(String::from_utf8(digits).expect("ASCII"), value.to_string());
        }
    }
}
