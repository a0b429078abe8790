//! A request head, read in place (RFC 9112 §2, §3, §5).
//!
//! httparse walks the bytes; what it lets pass and a strict server must not is judged here, from
//! the places where its fields lie, without another walk: every field line must begin right after
//! a CRLF. A head that httparse refuses is walked once more to name the fault ([`Refusal`]).
//!
//! What is read is borrowed from the input. Nothing is allocated.
//!
//! Deviations from the letter of the RFCs: bare LF, obsolete line folding, repeated equal
//! `Content-Length` and empty members of `Transfer-Encoding` are refused where a server may accept
//! them.

mod authority;
mod bytes;
mod fault;
mod field_lines;
mod fields;
mod refusal;
mod target_form;

use std::mem::MaybeUninit;

use httparse::{Header, Request, Status::Complete, Status::Partial};

pub use authority::host_of;
pub use field_lines::{Field, FieldLines};
pub use refusal::Refusal;

pub(super) use bytes::{TCHAR, is_field_text};

use fields::Fields;
use target_form::Target;

/// The most field lines that a head may have, whatever [`HeadLimits::fields`] says: their places
/// are kept on the stack while a head is read.
pub const FIELDS_MAX: usize = 100;

/// The most empty lines that are skipped before a request line. RFC 9112 §2.2 asks for one, which
/// old clients send after a body; more is noise.
pub const LEADING_LINES_MAX: usize = 4;

const CRLF_BYTES: usize = 2;

/// How large a request head may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of the request line without its CRLF. Beyond: [`Refusal::RequestLineTooLong`].
    pub request_line_bytes: usize,
    /// Bytes of the whole head: from the first byte, skipped empty lines included, to the final
    /// CRLF. Beyond: [`Refusal::HeadTooLong`].
    pub head_bytes: usize,
    /// Field lines, [`FIELDS_MAX`] at most. Beyond: [`Refusal::TooManyFields`].
    pub fields: usize,
}

/// A request method (RFC 9110 §9, RFC 5789). Case-sensitive: `get` is [`Method::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the methods'")]
pub enum Method {
    Get,
    Head,
    Options,
    Post,
    Put,
    Delete,
    Trace,
    Connect,
    Patch,
    /// A token that this server does not know: 501, where a known method that a resource does not
    /// have is 405.
    Other,
}

impl Method {
    fn from_token(token: &str) -> Self {
        match token {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "OPTIONS" => Self::Options,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "TRACE" => Self::Trace,
            "CONNECT" => Self::Connect,
            "PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }
}

/// The version of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1, or a later minor version, which is read as that (RFC 9110 §2.5).
    Http11,
}

/// The two schemes of HTTP (RFC 9110 §4.2): of a connection, secured or not, and of what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Not secured.
    Http,
    /// Secured by TLS.
    Https,
}

/// Whether a connection lives on after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Persistence {
    /// It does, as HTTP/1.1 implies.
    KeepAlive,
    /// It does, as a client of HTTP/1.0 has asked: the answer must say so.
    KeepAliveExplicit,
    /// It does not.
    Close,
}

/// What follows a request head (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestBody {
    /// The next request.
    None,
    /// A body of so many bytes, never zero.
    Length(u64),
    /// A chunked body, which may turn out to be empty.
    Chunked,
}

/// A request head that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: Method,
    /// Path and query as received, from `/` on.
    ///
    /// Of an absolute URI without path it begins with the `?` of the query, or is `/` (`*` for
    /// OPTIONS). `*` for OPTIONS about the server; for CONNECT the authority.
    pub target: &'a [u8],
    /// That of an absolute URI.
    pub scheme: Option<Scheme>,
    /// The version.
    pub version: Version,
    /// The valid authority (see [`host_of`]): that of an absolute URI, which wins over `Host`
    /// (RFC 9112 §3.2.2), else `Host`. Never empty.
    pub host: Option<&'a [u8]>,
    /// What the client asks for. The answer says what [`Connection`](super::Connection) says.
    pub persistence: Persistence,
    /// What follows.
    pub body: RequestBody,
    /// The client may wait for `100 Continue`, or for the final answer, before it sends the body
    /// (RFC 9110 §10.1.1). Never set without a body, or by HTTP/1.0.
    pub expects_continue: bool,
    /// The field lines, for what selects a representation.
    pub fields: FieldLines<'a>,
    /// Bytes of the whole head: skipped empty lines, and the final CRLF, included.
    pub bytes: usize,
}

/// Reads the request head at the start of `input`.
///
/// `Ok(None)`: it is incomplete, and within the limits so far. More input never turns a refusal
/// into something else. See [`worth_parsing`] for a head that comes in many small pieces.
pub fn parse<'a>(input: &'a [u8], limits: &HeadLimits) -> Result<Option<RequestHead<'a>>, Refusal> {
    // Bytes beyond the limit belong to another head, or to none: they are not looked at.
    let within = &input[..input.len().min(limits.head_bytes)];
    let incomplete = || match within.len() < limits.head_bytes {
        true => Ok(None),
        false => Err(Refusal::HeadTooLong),
    };
    let Some(skipped) = leading_lines(within)? else { return incomplete() };
    let head = &within[skipped..];

    let mut places = [const { MaybeUninit::<Header<'_>>::uninit() }; FIELDS_MAX];
    let places = &mut places[..limits.fields.min(FIELDS_MAX)];
    let mut request = Request::new(&mut []);
    match request.parse_with_uninit_headers(head, places) {
        Ok(Complete(bytes)) => {
            let Request { method, path, version, ref headers } = request;
            let method = method.unwrap_or_default();
            let target = path.unwrap_or_default().as_bytes();
            let version = if version == Some(0) { Version::Http10 } else { Version::Http11 };
            let line = RequestLine { method, target, version };
            judge(&head[..bytes], &line, headers, skipped, limits).map(Some)
        }
        Ok(Partial) => match head.get(..limits.request_line_bytes.saturating_add(CRLF_BYTES)) {
            Some(line) if memchr::memchr(b'\n', line).is_none() => Err(Refusal::RequestLineTooLong),
            _ => incomplete(),
        },
        Err(_) => {
            let limits = HeadLimits { fields: limits.fields.min(FIELDS_MAX), ..*limits };
            fault::first_fault(head, &limits)?;
            match later_minor(head, skipped, &limits)? {
                Some(head) => Ok(Some(head)),
                None => incomplete(),
            }
        }
    }
}

/// Reads a head of HTTP/1.2 to 1.9, in which no fault was found, as one of the highest minor version
/// that we know (RFC 9110 §2.5). httparse reads no such request line.
#[cold]
fn later_minor<'a>(
    head: &'a [u8],
    skipped: usize,
    limits: &HeadLimits,
) -> Result<Option<RequestHead<'a>>, Refusal> {
    let Some(line_bytes) = memchr::memmem::find(head, b"\r\n") else { return Ok(None) };
    let (line, lines) = (&head[..line_bytes], &head[line_bytes + CRLF_BYTES..]);
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let mut places = [httparse::EMPTY_HEADER; FIELDS_MAX];
    match httparse::parse_headers(lines, &mut places[..limits.fields]) {
        Ok(Complete((bytes, fields))) => {
            let method = str::from_utf8(method).unwrap_or_default();
            let line = RequestLine { method, target, version: Version::Http11 };
            let head = &head[..line_bytes + CRLF_BYTES + bytes];
            judge(head, &line, fields, skipped, limits).map(Some)
        }
        Ok(Partial) | Err(_) => Ok(None),
    }
}

/// Whether [`parse`] may say more about `input` than that it is incomplete, which is what it said
/// about its first `seen` bytes.
///
/// Only a line's end can complete a head, and only a line's end or a limit must be answered at
/// once; a fault within a line may wait for either. So a head that comes byte by byte is parsed
/// once a line, and a dozen times more around [`HeadLimits::request_line_bytes`].
pub fn worth_parsing(input: &[u8], seen: usize, limits: &HeadLimits) -> bool {
    let fresh = input.get(seen..).unwrap_or(input);
    // Around the end of the longest request line every byte counts: its CRLF may be under way, and
    // skipped empty lines move it.
    let skipped_bytes_max = CRLF_BYTES * LEADING_LINES_MAX;
    let line_end_max = limits.request_line_bytes.saturating_add(CRLF_BYTES + skipped_bytes_max);
    seen == 0
        || memchr::memchr(b'\n', fresh).is_some()
        || input.len() >= limits.head_bytes
        || (seen <= line_end_max && input.len() > limits.request_line_bytes)
}

/// Whether a request of the method HEAD begins at the start of `input`, be it faulty or cut off: what
/// refuses it has no content either (RFC 9110 §9.3.2).
#[cold]
pub fn begins_with_head_method(input: &[u8]) -> bool {
    matches!(leading_lines(input), Ok(Some(skipped)) if input[skipped..].starts_with(b"HEAD "))
}

/// Bytes of the empty lines in front of a request line; `None` while it has not begun.
fn leading_lines(input: &[u8]) -> Result<Option<usize>, Refusal> {
    for skipped in (0..=CRLF_BYTES * LEADING_LINES_MAX).step_by(CRLF_BYTES) {
        match input[skipped..] {
            [] | [b'\r'] => return Ok(None),
            [b'\r', b'\n', ..] => {}
            [b'\r', _, ..] => return Err(Refusal::BareCr),
            [b'\n', ..] => return Err(Refusal::BareLf),
            _ => return Ok(Some(skipped)),
        }
    }
    Err(Refusal::EmptyLines)
}

/// The words of a request line.
struct RequestLine<'a> {
    method: &'a str,
    target: &'a [u8],
    version: Version,
}

/// Judges a complete `head` that httparse has accepted, and of which these are the parts.
#[inline]
fn judge<'a>(
    head: &'a [u8],
    &RequestLine { method, target, version }: &RequestLine<'a>,
    field_lines: &[Header<'a>],
    skipped: usize,
    limits: &HeadLimits,
) -> Result<RequestHead<'a>, Refusal> {
    let method = Method::from_token(method);
    let request_line_bytes = match field_lines.first() {
        Some(field) => offset_in(head, field.name),
        // Not by what the empty line has at most: its CR may be missing, which is a later fault.
        None => memchr::memchr(b'\n', head).map_or(head.len(), |line_feed| line_feed + 1),
    };
    if request_line_bytes > limits.request_line_bytes.saturating_add(CRLF_BYTES) {
        return Err(Refusal::RequestLineTooLong);
    }
    let mut fields = Fields::default();
    for field in field_lines {
        // httparse takes a bare LF for a line's end; where the next line begins shows it.
        if !head[..offset_in(head, field.name)].ends_with(b"\r\n") {
            return Err(Refusal::BareLf);
        }
        fields.add(field.name.as_bytes(), field.value)?;
    }
    if !head.ends_with(b"\r\n\r\n") {
        return Err(Refusal::BareLf);
    }

    let lines = &head[request_line_bytes..head.len() - CRLF_BYTES];
    let host = fields.host(version)?;
    let body = fields.body(version)?;
    let Target { target, scheme, authority } = target_form::split(method, target)?;
    Ok(RequestHead {
        method,
        target,
        scheme,
        version,
        host: authority.or(host),
        persistence: fields.persistence(version),
        body,
        expects_continue: fields.expects_continue(version)? && body != RequestBody::None,
        fields: FieldLines::new(lines, fields.selecting()),
        bytes: skipped + head.len(),
    })
}

/// Where `part`, a piece of `whole`, begins in it.
fn offset_in(whole: &[u8], part: &str) -> usize {
    let offset = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    // Costs nothing and keeps a broken promise of the parser from becoming a panic.
    offset.min(whole.len())
}

#[cfg(test)]
mod tests;
