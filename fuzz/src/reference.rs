//! A second parser of request heads, written from the grammar and from the policy that the
//! documentation of `http::head` states, and from nothing else.
//!
//! It knows only "a whole head that is accepted" and "not so". It is slow and plain: it looks at
//! every line again for each thing that it wants to know.

use std::net::Ipv6Addr;

/// A head that is accepted.
#[derive(Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The first word.
    pub method: &'a [u8],
    /// The second, as it is written.
    pub written_target: &'a [u8],
    /// What it names: path and query, `*`, or an authority.
    pub target: &'a [u8],
    /// HTTP/1.1 or later, not 1.0.
    pub is_http11: bool,
    /// HTTP/1.2 or later.
    pub is_later_minor: bool,
    /// The target's authority, or else that of `Host`.
    pub host: Option<&'a [u8]>,
    /// The connection is to end; or, of HTTP/1.0, is not asked to go on.
    pub closes: bool,
    /// What follows.
    pub body: Body,
    /// The body is not sent before the server has said something.
    pub expects_continue: bool,
    /// Names and values.
    pub fields: Vec<(&'a [u8], &'a [u8])>,
    /// Bytes of the request line without its end.
    pub request_line_bytes: usize,
    /// Bytes of all.
    pub bytes: usize,
}

/// What follows a head.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    /// Another head.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// Reads the head that `input` begins with, if it is whole and accepted.
pub fn read(input: &[u8]) -> Option<Head<'_>> {
    let mut rest = input;
    let mut empty_lines = 0;
    while let Some(after) = rest.strip_prefix(b"\r\n") {
        rest = after;
        empty_lines += 1;
    }
    if empty_lines > 4 {
        return None;
    }
    let (request_line, mut rest) = line(rest)?;
    let mut fields = Vec::new();
    loop {
        let (line, after) = line(rest)?;
        rest = after;
        if line.is_empty() {
            break;
        }
        fields.push(field(line)?);
    }
    let bytes = input.len() - rest.len();
    if fields.len() > 100 {
        return None;
    }

    let words: Vec<_> = request_line.split(|&byte| byte == b' ').collect();
    let [method, written_target, version] = words[..] else { return None };
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'0'..=b'9'] = version else {
        return None;
    };
    let (is_http11, is_later_minor) = (*minor > b'0', *minor > b'1');
    if !is_token(method) || written_target.is_empty() || str::from_utf8(written_target).is_err() {
        return None;
    }
    if written_target.iter().any(u8::is_ascii_control) {
        return None;
    }
    let (target, authority) = target_of(method, written_target)?;

    let values = |name: &str| {
        let is_it = |field: &&(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
        fields.iter().filter(is_it).map(|field| field.1).collect::<Vec<_>>()
    };
    let host = match values("host")[..] {
        [] if is_http11 => return None,
        [] => None,
        [host] if is_authority(host) => Some(host).filter(|host| !host.is_empty()),
        _ => return None,
    };
    let body = match (&values("content-length")[..], &values("transfer-encoding")[..]) {
        ([], []) => Body::None,
        ([length], []) => match decimal(length)? {
            0 => Body::None,
            bytes => Body::Length(bytes),
        },
        ([], [coding]) if is_http11 && coding.eq_ignore_ascii_case(b"chunked") => Body::Chunked,
        _ => return None,
    };
    let expectations = values("expect").join(&b',');
    let mut expectations: Vec<_> =
        expectations.split(|&byte| byte == b',').map(super::trim).collect();
    expectations.retain(|expectation| !expectation.is_empty());
    let is_known = |expectation: &&[u8]| expectation.eq_ignore_ascii_case(b"100-continue");
    if is_http11 && !expectations.iter().all(is_known) {
        return None;
    }
    let asks = |option: &str| {
        let is_it = |member: &[u8]| super::trim(member).eq_ignore_ascii_case(option.as_bytes());
        values("connection").iter().any(|value| value.split(|&byte| byte == b',').any(is_it))
    };
    Some(Head {
        method,
        written_target,
        target,
        is_http11,
        is_later_minor,
        host: authority.or(host),
        closes: asks("close") || (!is_http11 && !asks("keep-alive")),
        expects_continue: is_http11 && !expectations.is_empty() && body != Body::None,
        body,
        request_line_bytes: request_line.len(),
        bytes,
        fields,
    })
}

/// A line that ends in CRLF and has no other CR, and what follows it.
pub(super) fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let line = bytes[..end].strip_suffix(b"\r")?;
    (!line.contains(&b'\r')).then_some((line, &bytes[end + 1..]))
}

pub(super) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = (&line[..colon], super::trim(&line[colon + 1..]));
    let is_text = |&byte: &u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    (is_token(name) && value.iter().all(is_text)).then_some((name, value))
}

/// RFC 9110 §5.6.2
pub(super) fn is_token(word: &[u8]) -> bool {
    let is_tchar = |&byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte);
    !word.is_empty() && word.iter().all(is_tchar)
}

/// RFC 9112 §3.2: what a target names, and its authority if it has one.
fn target_of<'a>(method: &[u8], target: &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let text = str::from_utf8(target).ok()?;
    if method == b"CONNECT" {
        let has_port =
            text.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.contains(']'));
        return (has_port && is_authority(target)).then_some((target, Some(target)));
    }
    if target[0] == b'/' || (method == b"OPTIONS" && target == b"*") {
        return Some((target, None));
    }
    let (scheme, rest) = text.split_once("://")?;
    // Whether it is the connection's is not the head's affair.
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.as_bytes().split_at(end);
    if authority.is_empty() || !is_authority(authority) {
        return None;
    }
    let path = match path {
        [] if method == b"OPTIONS" => b"*",
        [] => b"/",
        path => path,
    };
    Some((path, Some(authority)))
}

/// `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2), or nothing: no port without a host
/// (RFC 9110 §4.2.1).
fn is_authority(authority: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(authority) else { return false };
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte);
    let (is_host, port) = match text.strip_prefix('[') {
        Some(literal) => {
            let Some((literal, port)) = literal.split_once(']') else { return false };
            let is_future = literal.strip_prefix(['v', 'V']).is_some_and(|future| {
                future.split_once('.').is_some_and(|(version, address)| {
                    !version.is_empty()
                        && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                        && !address.is_empty()
                        && address.bytes().all(|byte| is_of_host(byte) || byte == b':')
                })
            });
            (is_future || literal.parse::<Ipv6Addr>().is_ok(), port)
        }
        None => {
            let colon = text.find(':').unwrap_or(text.len());
            // After a `%`, two digits come first; what is left are pieces without one.
            let mut pieces = text[..colon].split('%');
            let first = pieces.next().is_some_and(|piece| piece.bytes().all(is_of_host));
            let encoded = pieces.all(|piece| {
                piece.len() >= 2
                    && piece.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())
                    && piece.bytes().skip(2).all(is_of_host)
            });
            (first && encoded && (colon > 0 || text.is_empty()), &text[colon..])
        }
    };
    let is_port = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    is_host && is_port
}

/// A number of 64 bits, without a sign.
fn decimal(digits: &[u8]) -> Option<u64> {
    let is_decimal = digits.iter().all(u8::is_ascii_digit);
    is_decimal.then(|| str::from_utf8(digits).ok()?.parse().ok()).flatten()
}
