//! Request heads: `http::head::parse` against [`reference`], httparse, and itself.
//!
//! - A whole head is accepted if and only if the second parser accepts it, and means the same.
//! - What is accepted, httparse reads alike.
//! - A head whose end has been received is decided, and decided once: neither a shorter input nor a
//!   longer one says something else.
//! - Limits decide exactly where they lie.

use httparse::{EMPTY_HEADER, Request};
use onering::http::head::{host_of, parse, worth_parsing};
use onering::http::{Field, HeadLimits, Method, Persistence, RequestBody, RequestHead, Version};

use super::{LIMITS, reference};

const FIELDS: [(Field, &str); 7] = [
    (Field::AcceptEncoding, "accept-encoding"),
    (Field::IfMatch, "if-match"),
    (Field::IfNoneMatch, "if-none-match"),
    (Field::IfModifiedSince, "if-modified-since"),
    (Field::IfUnmodifiedSince, "if-unmodified-since"),
    (Field::IfRange, "if-range"),
    (Field::Range, "range"),
];

const METHODS: [(Method, &[u8]); 9] = [
    (Method::Get, b"GET"),
    (Method::Head, b"HEAD"),
    (Method::Options, b"OPTIONS"),
    (Method::Post, b"POST"),
    (Method::Put, b"PUT"),
    (Method::Delete, b"DELETE"),
    (Method::Trace, b"TRACE"),
    (Method::Connect, b"CONNECT"),
    (Method::Patch, b"PATCH"),
];

/// What may come after a refused head, none of which makes it a good one.
const ENDS: [&[u8]; 4] =
    [b"\r\n\r\n", b"\n\r\n", b": x\r\nHost: a\r\n\r\n", b" HTTP/1.1\r\nHost: a\r\n\r\n"];

/// Checks the head at the start of `input`.
pub fn check(input: &[u8]) {
    // Whoever wants longer heads than the limits' has the small ones.
    let input = &input[..input.len().min(LIMITS.request_line_bytes)];
    let said = parse(input, &LIMITS);
    let expected = reference::read(input);
    match (&said, &expected) {
        (Ok(Some(head)), Some(expected)) => {
            agrees(head, expected);
            agrees_with_httparse(head, expected, input);
        }
        (Ok(Some(head)), None) => panic!("accepted, and should not be: {head:?}"),
        (_, Some(expected)) => panic!("{said:?}, and should be accepted: {expected:?}"),
        (Ok(None), None) => assert!(!is_ended(input), "ended, and not decided"),
        (Err(refusal), None) => {
            for end in ENDS {
                let longer = [input, end].concat();
                assert_eq!(parse(&longer, &LIMITS), Err(*refusal), "more input changes a refusal");
                assert_eq!(reference::read(&longer), None, "refused too early: {refusal:?}");
            }
        }
    }
    is_decided_once(input, &LIMITS);
    small_limits(input, expected.as_ref());
}

fn agrees(head: &RequestHead<'_>, expected: &reference::Head<'_>) {
    let method = METHODS.iter().find(|(_, name)| *name == expected.method);
    assert_eq!(head.method, method.map_or(Method::Other, |(method, _)| *method));
    assert_eq!(head.target, expected.target);
    assert_eq!(head.version == Version::Http11, expected.is_http11);
    assert_eq!(head.host, expected.host);
    assert_eq!(head.bytes, expected.bytes);
    let body = match expected.body {
        reference::Body::None => RequestBody::None,
        reference::Body::Length(bytes) => RequestBody::Length(bytes),
        reference::Body::Chunked => RequestBody::Chunked,
    };
    assert_eq!((head.body, head.expects_continue), (body, expected.expects_continue));
    let persistence = match (expected.closes, expected.is_http11) {
        (true, _) => Persistence::Close,
        (false, true) => Persistence::KeepAlive,
        (false, false) => Persistence::KeepAliveExplicit,
    };
    assert_eq!(head.persistence, persistence);
    for (field, name) in FIELDS {
        let named = |line: &&(&[u8], &[u8])| line.0.eq_ignore_ascii_case(name.as_bytes());
        let values: Vec<_> = expected.fields.iter().filter(named).map(|line| line.1).collect();
        assert_eq!(head.fields.values(field).collect::<Vec<_>>(), values, "{name}");
        assert_eq!(head.fields.has(field), !values.is_empty(), "{name}");
        let single = if let [value] = values[..] { Some(value) } else { None };
        assert_eq!(head.fields.single(field), single, "{name}");
    }
    if let Some(host) = head.host.map(host_of) {
        assert!(!host.is_empty());
    }
}

fn agrees_with_httparse(head: &RequestHead<'_>, expected: &reference::Head<'_>, input: &[u8]) {
    let mut places = [EMPTY_HEADER; 100];
    let mut request = Request::new(&mut places);
    let parsed = request.parse(input);
    if parsed == Err(httparse::Error::Version) {
        // A later minor version, which it does not read.
        return assert!(expected.is_later_minor);
    }
    let status = parsed.expect("httparse accepts what we accept");
    assert_eq!(status, httparse::Status::Complete(head.bytes));
    assert_eq!(request.method.map(str::as_bytes), Some(expected.method));
    assert_eq!(request.path.map(str::as_bytes), Some(expected.written_target));
    assert_eq!(request.version, Some(u8::from(expected.is_http11)));
    let fields = request.headers.iter().map(|field| (field.name.as_bytes(), field.value));
    assert!(fields.eq(expected.fields.iter().copied()));
}

/// Whether an empty line follows any other.
fn is_ended(input: &[u8]) -> bool {
    let mut rest = input;
    while let [b'\r', b'\n', after @ ..] | [b'\n', after @ ..] = rest {
        rest = after;
    }
    rest.windows(2).any(|pair| pair == b"\n\n") || rest.windows(3).any(|three| three == b"\n\r\n")
}

/// However much is received at a time, the head is decided in one way.
fn is_decided_once(input: &[u8], limits: &HeadLimits) {
    let whole = parse(input, limits);
    // What whoever receives it in pieces has seen, and whether that has decided it.
    let mut seen = 0;
    let mut is_decided = false;
    for received in 1..=input.len() {
        // A long one is looked at around its lines' ends only.
        let is_of_interest = input.len() <= 192
            || input[received - 1] == b'\n'
            || input.get(received) == Some(&b'\n')
            || received == input.len();
        if !is_of_interest {
            continue;
        }
        let part = &input[..received];
        let said = parse(part, limits);
        assert!(said == Ok(None) || said == whole, "{said:?} after {received} bytes: {whole:?}");
        is_decided |= worth_parsing(part, seen, limits) && said != Ok(None);
        seen = received;
    }
    assert!(is_decided || !matches!(whole, Ok(Some(_))), "whole, and not looked at");
}

/// With limits that the input reaches, a head is accepted if it is within each of them.
fn small_limits(input: &[u8], expected: Option<&reference::Head<'_>>) {
    let limits = HeadLimits { request_line_bytes: 24, head_bytes: 96, fields: 3 };
    let is_within = expected.is_some_and(|head| {
        head.request_line_bytes <= limits.request_line_bytes
            && head.bytes <= limits.head_bytes
            && head.fields.len() <= limits.fields
    });
    let said = parse(input, &limits);
    assert_eq!(matches!(said, Ok(Some(_))), is_within, "{said:?}");
    if input.len() >= limits.head_bytes {
        assert_ne!(said, Ok(None), "as long as it may be, and not decided");
    }
    is_decided_once(input, &limits);
}
