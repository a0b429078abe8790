//! What the fuzz targets check: plain functions of bytes, which panic at what must not be.
//!
//! | target | reads | holds it against |
//! |---|---|---|
//! | [`head`] | a request head | a parser of its own ([`reference`]), and httparse |
//! | [`chunked`] | a chunked body | a decoder of its own, which needs all of it, and httparse |
//! | [`target`] | a request target | percent-encoding, and a stack of segments |
//! | [`range`] | a length in the first line, and a `Range` | a set of bytes |
//! | [`conditional`] | validators in the first line, and field lines | RFC 9110 §13.2.2, step by step |
//! | [`negotiation`] | field lines | the table of the module, by exhaustion |
//! | [`date`] | a date, or a number of seconds | httpdate, and a calendar of its own |
//! | [`response`] | choices | httparse, which reads it back |
//! | [`connection`] | bytes with events among them | the same bytes in other pieces |
//! | [`hello`] | what a TLS client sends first | the same bytes in other pieces, and rustls's reading of the name |
//! | [`records`] | steps of a TLS session | a client of rustls |
//!
//! Inputs are text as far as possible, so that a seed or a crasher can be read. The fuzzer makes them
//! up (`fuzz/run`); the ordinary tests replay those that are kept.
//!
//! Nothing here is shared with the code that is checked, and nothing is fast for its own sake.

pub mod chunked;
pub mod conditional;
pub mod connection;
pub mod date;
pub mod head;
pub mod hello;
pub mod negotiation;
pub mod range;
pub mod records;
pub mod reference;
pub mod response;
pub mod target;
pub mod tls;

use onering::http::{HeadLimits, RequestHead, head as http_head};

/// A target's name, which is that of its directories, and what it checks.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("chunked", chunked::check),
    ("conditional", conditional::check),
    ("connection", connection::check),
    ("date", date::check),
    ("head", head::check),
    ("hello", hello::check),
    ("negotiation", negotiation::check),
    ("range", range::check),
    ("records", records::check),
    ("response", response::check),
    ("target", target::check),
];

/// The limits of the server's defaults.
const LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 8 * 1024, head_bytes: 32 * 1024, fields: 100 };

/// The first line of an input, and the rest.
fn first_line(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, b""),
    }
}

/// Makes a request head of field lines that end in LF, for they are read from its fields; `None` if
/// they make up no head that is accepted, which is not the caller's concern.
fn with_head<T>(lines: &[u8], then: impl FnOnce(&RequestHead<'_>) -> T) -> Option<T> {
    let mut input = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        input.extend_from_slice(line);
        input.extend_from_slice(b"\r\n");
    }
    input.extend_from_slice(b"\r\n");
    match http_head::parse(&input, &LIMITS) {
        Ok(Some(head)) => Some(then(&head)),
        _ => None,
    }
}

/// The values of a field in such lines, by a reading of its own.
fn values_of<'a>(lines: &'a [u8], name: &str) -> Vec<&'a [u8]> {
    lines
        .split(|&byte| byte == b'\n')
        .filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| trim(&line[colon + 1..]))
        })
        .collect()
}

/// Without spaces and tabs around it.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
