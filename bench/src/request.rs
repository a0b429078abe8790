//! The bytes of the requests, prepared once before the run.
//!
//! Nothing is put together while requests are sent: they are ranges of a [`Script`].

use crate::target::Target;
use onering::ring::SendBuf;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

/// The HTTP version that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0; a persistent connection is asked for by `Connection: keep-alive`.
    Http10,
    /// HTTP/1.1; persistent unless `Connection: close` says otherwise.
    Http11,
}

/// What all requests of a run say, besides their targets and what becomes of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// The version.
    pub version: Version,
    /// More fields, in this order.
    pub fields: Vec<Field>,
}

impl Wording {
    /// Nothing but what each request must say.
    pub fn plain(version: Version) -> Self {
        Self { version, fields: Vec::new() }
    }
}

/// A field that is sent with every request, such as `Range: bytes=0-1023`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    value: String,
}

/// Why a text is no field to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// There is no colon, or what is before it is no name.
    #[error("write a field as `Name: value`")]
    Form,
    /// The value would end the line.
    #[error("a value cannot have control characters")]
    Value,
    /// The client writes this field itself, or would not understand the answer.
    #[error("Host and Connection are the client's own, and it sends no bodies")]
    Reserved,
}

impl FromStr for Field {
    type Err = FieldError;

    /// A line as a head has it (RFC 9110 §5).
    fn from_str(line: &str) -> Result<Self, FieldError> {
        let (name, value) = line.split_once(':').ok_or(FieldError::Form)?;
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(FieldError::Form);
        }
        let own = ["host", "connection", "content-length", "transfer-encoding", "expect"];
        if own.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(FieldError::Reserved);
        }
        let value = value.trim_matches([' ', '\t']);
        if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(FieldError::Value);
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

/// What a request says about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// More requests follow.
    Persist,
    /// This is the last request of its connection.
    Close,
}

/// Requests for every target in order, over and over, as one run of bytes.
///
/// The requests after the last target repeat the first ones, so that several in a row mostly lie one
/// behind the other. A place in the script is the number of a request in it.
#[derive(Clone, Debug)]
pub struct Script {
    bytes: Rc<[u8]>,
    /// Request `i` is `bytes[starts[i]..starts[i + 1]]`, where `starts[i] <= starts[i + 1]`.
    starts: Box<[u32]>,
    targets: usize,
}

impl Script {
    /// Prepares requests for `targets` (not empty), of which up to `batch_max` are sent at once.
    pub fn new(
        targets: &[Target],
        wording: &Wording,
        persistence: Persistence,
        batch_max: usize,
    ) -> Self {
        let mut bytes = Vec::new();
        let mut starts = vec![0];
        for target in targets.iter().cycle().take(targets.len() + batch_max - 1) {
            append(&mut bytes, target, wording, persistence);
            starts.push(bytes.len() as u32);
        }
        Self { bytes: bytes.into(), starts: starts.into(), targets: targets.len() }
    }

    /// The request at a place.
    #[inline]
    pub fn request(&self, place: usize) -> SendBuf {
        SendBuf::Shared(Rc::clone(&self.bytes), self.starts[place]..self.starts[place + 1])
    }

    /// The target that the request at a place asks for.
    #[inline]
    pub fn target(&self, place: usize) -> usize {
        if place < self.targets { place } else { place % self.targets }
    }

    /// The place of the request after it: right behind it, but for the last.
    #[inline]
    pub fn after(&self, place: usize) -> usize {
        let next = place + 1;
        if next + 1 < self.starts.len() { next } else { self.target(next) }
    }
}

fn append(bytes: &mut Vec<u8>, target: &Target, wording: &Wording, persistence: Persistence) {
    let (version, connection) = match (wording.version, persistence) {
        (Version::Http10, Persistence::Persist) => ("1.0", "Connection: keep-alive\r\n"),
        (Version::Http11, Persistence::Close) => ("1.1", "Connection: close\r\n"),
        (Version::Http10, Persistence::Close) => ("1.0", ""),
        (Version::Http11, Persistence::Persist) => ("1.1", ""),
    };
    let Target { scheme: _, authority, path } = target;
    let mut request = format!("GET {path} HTTP/{version}\r\nHost: {authority}\r\n{connection}");
    for field in &wording.fields {
        request += &format!("{field}\r\n");
    }
    bytes.extend_from_slice(request.as_bytes());
    bytes.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(urls: &[&str]) -> Vec<Target> {
        urls.iter().map(|url| url.parse().unwrap()).collect()
    }

    #[test]
    fn one_request_says_what_it_must_and_no_more() {
        let text = |version, persistence| {
            let wording = Wording::plain(version);
            let script = Script::new(&targets(&["http://h:1/p"]), &wording, persistence, 1);
            String::from_utf8(script.request(0).as_slice().to_vec()).unwrap()
        };
        let (persist, close) = (Persistence::Persist, Persistence::Close);
        assert_eq!(text(Version::Http11, persist), "GET /p HTTP/1.1\r\nHost: h:1\r\n\r\n");
        assert_eq!(
            text(Version::Http11, close),
            "GET /p HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(
            text(Version::Http10, persist),
            "GET /p HTTP/1.0\r\nHost: h:1\r\nConnection: keep-alive\r\n\r\n"
        );
        assert_eq!(text(Version::Http10, close), "GET /p HTTP/1.0\r\nHost: h:1\r\n\r\n");
    }

    #[test]
    fn more_fields_are_sent_in_order() {
        let fields = ["Range:bytes=0-1", "x-y: \t a  b "].map(|line| line.parse().unwrap()).into();
        let wording = Wording { version: Version::Http10, fields };
        let script = Script::new(&targets(&["http://h/p"]), &wording, Persistence::Close, 1);
        let text = String::from_utf8(script.request(0).as_slice().to_vec()).unwrap();
        assert_eq!(text, "GET /p HTTP/1.0\r\nHost: h\r\nRange: bytes=0-1\r\nx-y: a  b\r\n\r\n");
    }

    #[test]
    fn fields_that_would_break_a_request_are_refused() {
        let error = |line: &str| line.parse::<Field>().unwrap_err();
        for line in ["", "no colon", ": value", "a b: c", "a : c", "\u{e9}: c"] {
            assert_eq!(error(line), FieldError::Form, "{line:?}");
        }
        assert_eq!(error("A: b\r\nC: d"), FieldError::Value);
        assert_eq!(error("connection: close"), FieldError::Reserved);
        assert_eq!(error("Content-Length: 3"), FieldError::Reserved);
    }

    #[test]
    fn requests_go_round_robin_and_a_batch_lies_in_one_piece() {
        let list = targets(&["http://h/a", "http://h/bb", "http://h/c"]);
        let plain = Wording::plain(Version::Http11);
        let script = Script::new(&list, &plain, Persistence::Persist, 4);
        let mut place = 0;
        let mut behind = 0;
        for i in 0..30 {
            let SendBuf::Shared(bytes, range) = script.request(place) else { unreachable!() };
            let text = &bytes[range.start as usize..range.end as usize];
            assert!(text.starts_with(format!("GET {} ", list[i % 3].path).as_bytes()));
            assert_eq!(script.target(place), i % 3);
            place = script.after(place);
            let SendBuf::Shared(_, next) = script.request(place) else { unreachable!() };
            behind += usize::from(next.start == range.end);
        }
        // Six requests lie in a row.
        assert_eq!(behind, 25);
    }

    #[test]
    fn one_target_is_asked_for_again_and_again() {
        let list = targets(&["http://h/a"]);
        let script = Script::new(&list, &Wording::plain(Version::Http11), Persistence::Close, 1);
        assert_eq!((script.after(0), script.target(0)), (0, 0));
    }
}
