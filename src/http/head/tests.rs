//! Heads by the section of the RFC that judges them, then properties.

mod bodies;

use proptest::prelude::*;

use super::*;

const LIMITS: HeadLimits = HeadLimits { request_line_bytes: 8192, head_bytes: 16384, fields: 100 };

/// Limits that generated heads reach.
const TIGHT: HeadLimits = HeadLimits { request_line_bytes: 40, head_bytes: 120, fields: 3 };

fn read(input: &[u8]) -> RequestHead<'_> {
    match parse(input, &LIMITS) {
        Ok(Some(head)) => head,
        other => panic!("{:?} gives {other:?}", String::from_utf8_lossy(input)),
    }
}

fn refused(input: impl AsRef<[u8]>) -> Refusal {
    let input = input.as_ref();
    match parse(input, &LIMITS) {
        Err(refusal) => refusal,
        other => panic!("{:?} gives {other:?}", String::from_utf8_lossy(input)),
    }
}

/// A request for `/` with these field lines after `Host`.
fn with_fields(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

/// A request with this request line.
fn with_request_line(line: &str) -> String {
    format!("{line}\r\nHost: localhost\r\n\r\n")
}

#[test]
fn a_head_is_read_in_place() {
    let input = b"GET /a?b HTTP/1.1\r\nHost: localhost:80\r\nAccept: */*\r\n\r\nGET /next";
    assert_eq!(
        read(input),
        RequestHead {
            method: Method::Get,
            target: b"/a?b",
            scheme: None,
            version: Version::Http11,
            host: Some(b"localhost:80"),
            persistence: Persistence::KeepAlive,
            body: RequestBody::None,
            expects_continue: false,
            fields: FieldLines::of("Host: localhost:80\r\nAccept: */*\r\n"),
            bytes: input.len() - "GET /next".len(),
        }
    );
}

/// RFC 9112 §2.2
#[test]
fn line_ends() {
    for (head, refusal) in [
        ("GET / HTTP/1.1\nHost: a\nX: b\n\n", Refusal::BareLf),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", Refusal::BareLf),
        ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", Refusal::BareLf),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\n\r\n", Refusal::BareLf),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", Refusal::BareLf),
        ("GET / HTTP/1.0\n\n", Refusal::BareLf),
        ("GET / HTTP/1.0\n\r\n", Refusal::BareLf),
        ("GET / HTTP/1.0\r\n\n", Refusal::BareLf),
        ("\nGET / HTTP/1.0\r\n\r\n", Refusal::BareLf),
        ("GET / HTTP/1.1\r\nX-A\nHost: a\r\n\r\n", Refusal::BareLf),
        ("GET / HTTP/1.1\rHost: localhost\r\r", Refusal::BareCr),
        ("GET /\rindex.html HTTP/1.1\r\n", Refusal::BareCr),
        ("\rGET / HTTP/1.1\r\n\r\n", Refusal::BareCr),
        ("GET / HTTP/1.1\r\nX\rA: 1\r\n\r\n", Refusal::BareCr),
        ("GET / HTTP/1.1\r\nX-A: a\r\r\n\r\n", Refusal::BareCr),
        ("GET / HTTP/1.1\r\nX-A:\ra\r\n\r\n", Refusal::BareCr),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\r\n", Refusal::BareCr),
        ("POST / HTTP/1.1\r\nContent-Length: 5\r0\r\n\r\n", Refusal::BareCr),
        ("POST / HTTP/1.1\r\nX-A: b\rTransfer-Encoding: chunked\r\n\r\n", Refusal::BareCr),
    ] {
        assert_eq!(refused(head), refusal, "{head:?}");
    }
}

/// RFC 9112 §2.2
#[test]
fn empty_lines_before_a_request_are_skipped() {
    let head = "GET / HTTP/1.0\r\n\r\n";
    for lines in 0..=LEADING_LINES_MAX {
        let input = "\r\n".repeat(lines) + head;
        assert_eq!(read(input.as_bytes()).bytes, input.len());
    }
    assert_eq!(refused("\r\n".repeat(LEADING_LINES_MAX + 1)), Refusal::EmptyLines);
    assert_eq!(parse(b"", &LIMITS), Ok(None));
    assert_eq!(parse(b"\r", &LIMITS), Ok(None));
    assert_eq!(parse(b"\r\n\r\n", &LIMITS), Ok(None));
}

/// RFC 9112 §3
#[test]
fn request_lines() {
    for (line, refusal) in [
        ("GET", Refusal::RequestLine),
        ("BAD ", Refusal::RequestLine),
        ("GET  / HTTP/1.1", Refusal::RequestLine),
        ("GET /", Refusal::SimpleRequest),
        ("GET HTTP/1.1", Refusal::SimpleRequest),
        ("POST /", Refusal::SimpleRequest),
        ("GET / ", Refusal::Version),
        ("GET /  HTTP/1.1", Refusal::Version),
        ("GET / HTTP/1.1 ", Refusal::Version),
        ("GET /sp ace.txt HTTP/1.1", Refusal::Version),
        (" / HTTP/1.1", Refusal::Method),
        (" GET / HTTP/1.1", Refusal::Method),
        ("GE(T / HTTP/1.1", Refusal::Method),
        ("GET\u{b}/ HTTP/1.1", Refusal::Method),
        ("GET\t/ HTTP/1.1", Refusal::Method),
        ("G\u{c9}T / HTTP/1.1", Refusal::Method),
        ("GE\0T / HTTP/1.1", Refusal::Nul),
        ("GET /\0 HTTP/1.1", Refusal::Nul),
        ("GET / HTTP/1.1\0", Refusal::Nul),
        ("GET /\u{1} HTTP/1.1", Refusal::Target),
        ("GET /\u{7f} HTTP/1.1", Refusal::Target),
        ("GET /\t HTTP/1.1", Refusal::Target),
    ] {
        assert_eq!(refused(with_request_line(line)), refusal, "{line:?}");
    }
    assert_eq!(refused(b"GET /\xff HTTP/1.1\r\n\r\n"), Refusal::Target);
}

/// RFC 9112 §2.3
#[test]
fn versions() {
    assert_eq!(read(b"GET / HTTP/1.0\r\n\r\n").version, Version::Http10);
    // RFC 9110 §2.5: a later minor version is read as the highest that is known, limits included.
    for minor in 2..=9 {
        let line = format!("GET /a HTTP/1.{minor}");
        let fields = "Host: h\r\nConnection: close\r\n";
        let later = format!("\r\n{line}\r\n{fields}\r\nGET /b HTTP/1.1\r\n");
        let known = later.replace(&line, "GET /a HTTP/1.1");
        assert_eq!(read(later.as_bytes()), read(known.as_bytes()));
        assert_eq!(refused(later.replace("Host", "Hosts")), Refusal::HostMissing);
        assert_eq!(refused(later.replace("e\r\n\r\n", "e\r\n\n")), Refusal::BareLf);
        assert_eq!(refused(later.replace(&line, &format!("{line} "))), Refusal::Version);
        let many = later.replace("Host: h", &format!("Host: h{}", "\r\nX: y".repeat(FIELDS_MAX)));
        assert_eq!(refused(many), Refusal::TooManyFields);
    }
    for (version, refusal) in [
        ("HTTP/2.0", Refusal::VersionUnsupported),
        ("HTTP/3.0", Refusal::VersionUnsupported),
        ("HTTP/0.9", Refusal::VersionUnsupported),
        ("HTTP/2", Refusal::VersionUnsupported),
        ("HTTP/x.y", Refusal::Version),
        ("HTTP/1.x", Refusal::Version),
        ("HTTP/1", Refusal::Version),
        ("HTTP/1.", Refusal::Version),
        ("HTTP/11", Refusal::Version),
        ("HTTP/10.1", Refusal::Version),
        ("HTTP/1.1x", Refusal::Version),
        ("HTTP/1.10", Refusal::Version),
        ("HTTP1.1", Refusal::Version),
        ("http/1.1", Refusal::Version),
        ("ICY/1.1", Refusal::Version),
        ("H", Refusal::Version),
    ] {
        assert_eq!(refused(with_request_line(&format!("GET / {version}"))), refusal, "{version}");
    }
    assert_eq!(refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Refusal::VersionUnsupported);
}

/// RFC 9110 §9
#[test]
fn methods() {
    for (token, method) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("DELETE", Method::Delete),
        ("TRACE", Method::Trace),
        ("PATCH", Method::Patch),
        ("get", Method::Other),
        ("GETS", Method::Other),
        ("PRI", Method::Other),
        ("!#$%&'*+-.^_`|~09az", Method::Other),
    ] {
        assert_eq!(
            read(with_request_line(&format!("{token} / HTTP/1.1")).as_bytes()).method,
            method
        );
    }
}

/// RFC 9112 §3.2
#[test]
fn target_forms() {
    for (line, target, host) in [
        ("GET / HTTP/1.1", "/", "localhost"),
        ("GET //etc/passwd HTTP/1.1", "//etc/passwd", "localhost"),
        ("GET /a?http://b/ HTTP/1.1", "/a?http://b/", "localhost"),
        ("GET /\u{e9} HTTP/1.1", "/\u{e9}", "localhost"),
        ("GET http://h/index.html HTTP/1.1", "/index.html", "h"),
        ("GET HTTP://LocalHost:81/a?b HTTP/1.1", "/a?b", "LocalHost:81"),
        ("GET http://h?q HTTP/1.1", "?q", "h"),
        ("GET http://[::1]:8080/ HTTP/1.1", "/", "[::1]:8080"),
        ("OPTIONS * HTTP/1.1", "*", "localhost"),
        ("OPTIONS http://h HTTP/1.1", "*", "h"),
        ("OPTIONS http://h/ HTTP/1.1", "/", "h"),
        ("CONNECT 127.0.0.1:9 HTTP/1.1", "127.0.0.1:9", "127.0.0.1:9"),
    ] {
        let head = with_request_line(line);
        let head = read(head.as_bytes());
        assert_eq!(head.target, target.as_bytes(), "{line}");
        assert_eq!(head.host, Some(host.as_bytes()), "{line}");
    }
    for (line, refusal) in [
        ("GET * HTTP/1.1", Refusal::TargetForm),
        ("PRI * HTTP/1.1", Refusal::TargetForm),
        ("GET localhost:80 HTTP/1.1", Refusal::TargetForm),
        ("GET index.html HTTP/1.1", Refusal::TargetForm),
        ("GET ../etc/passwd HTTP/1.1", Refusal::TargetForm),
        ("GET ?x HTTP/1.1", Refusal::TargetForm),
        ("GET \\dir HTTP/1.1", Refusal::TargetForm),
        ("GET http:/localhost/ HTTP/1.1", Refusal::TargetForm),
        ("OPTIONS ** HTTP/1.1", Refusal::TargetForm),
        ("CONNECT / HTTP/1.1", Refusal::TargetForm),
        ("CONNECT localhost HTTP/1.1", Refusal::TargetForm),
        ("CONNECT localhost: HTTP/1.1", Refusal::TargetForm),
        ("CONNECT :80 HTTP/1.1", Refusal::TargetForm),
        ("GET ://localhost/ HTTP/1.1", Refusal::TargetScheme),
        ("GET ftp://localhost/index.html HTTP/1.1", Refusal::TargetScheme),
        ("GET file:///etc/passwd HTTP/1.1", Refusal::TargetScheme),
        ("GET http:///index.html HTTP/1.1", Refusal::TargetAuthority),
        ("GET http://:80/index.html HTTP/1.1", Refusal::TargetAuthority),
        ("GET http://u:p@localhost/ HTTP/1.1", Refusal::TargetAuthority),
        ("GET http://u@localhost/ HTTP/1.1", Refusal::TargetAuthority),
        ("GET http://a\\b/ HTTP/1.1", Refusal::TargetAuthority),
    ] {
        assert_eq!(refused(with_request_line(line)), refusal, "{line}");
    }
}

/// RFC 9112 §3.2, RFC 9110 §7.2
#[test]
fn hosts() {
    let host = |head: &'static str| read(head.as_bytes()).host;
    assert_eq!(host("GET / HTTP/1.1\r\nhOSt:LOCALHOST. \r\n\r\n"), Some(&b"LOCALHOST."[..]));
    assert_eq!(host("GET / HTTP/1.1\r\nHost:\r\n\r\n"), None);
    assert_eq!(host("GET / HTTP/1.0\r\n\r\n"), None);
    for (head, refusal) in [
        ("GET / HTTP/1.1\r\n\r\n", Refusal::HostMissing),
        ("GET / HTTP/1.1\r\nHosts: a\r\n\r\n", Refusal::HostMissing),
        ("GET http://localhost/ HTTP/1.1\r\n\r\n", Refusal::HostMissing),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Refusal::HostRepeated),
        ("GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", Refusal::HostRepeated),
        ("GET / HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n", Refusal::HostRepeated),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Refusal::HostInvalid),
        ("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", Refusal::HostInvalid),
        ("GET / HTTP/1.0\r\nHost: ../../etc\r\n\r\n", Refusal::HostInvalid),
        ("GET http://a/ HTTP/1.1\r\nHost: a%zz\r\n\r\n", Refusal::HostInvalid),
        ("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", Refusal::Nul),
        ("GET / HTTP/1.1\r\nHost: a\u{1}b\r\n\r\n", Refusal::Control),
    ] {
        assert_eq!(refused(head), refusal, "{head:?}");
    }
}

/// RFC 9112 §5, RFC 9110 §5.5
#[test]
fn field_lines() {
    for fields in [
        "X-A:\r\n",
        "X-A: \t \r\n",
        "X-A:1\r\n",
        "X-A: a:b::c\r\n",
        "X-A: \u{e9}\r\n",
        "X-A: 1\r\nX-A: 1\r\n",
        "!#$%&'*+-.^_`|~09az: 1\r\n",
    ] {
        read(with_fields(fields).as_bytes());
    }
    read(b"GET / HTTP/1.0\r\nX-A: \x80\xff\r\n\r\n");
    for (fields, refusal) in [
        ("X-A : 1\r\n", Refusal::SpaceBeforeColon),
        ("X-A\t: 1\r\n", Refusal::SpaceBeforeColon),
        ("Content-Length : 5\r\n", Refusal::SpaceBeforeColon),
        ("Transfer Encoding: chunked\r\n", Refusal::SpaceBeforeColon),
        ("X-A: one\r\n\ttwo\r\n", Refusal::ObsFold),
        ("Connection:\r\n close\r\n", Refusal::ObsFold),
        (" \r\n", Refusal::ObsFold),
        (": 1\r\n", Refusal::FieldName),
        ("X-A\r\n", Refusal::FieldName),
        ("X(A): 1\r\n", Refusal::FieldName),
        ("X/A: 1\r\n", Refusal::FieldName),
        ("X\"A: 1\r\n", Refusal::FieldName),
        ("X@A: 1\r\n", Refusal::FieldName),
        ("X=A: 1\r\n", Refusal::FieldName),
        ("X-\u{e9}: 1\r\n", Refusal::FieldName),
        ("X\u{1}A: 1\r\n", Refusal::FieldName),
        ("X\0A: 1\r\n", Refusal::Nul),
        ("X-A: \0\r\n", Refusal::Nul),
        ("X-A: a\u{b}\r\n", Refusal::Control),
        ("X-A: a\u{7f}\r\n", Refusal::Control),
    ] {
        assert_eq!(refused(with_fields(fields)), refusal, "{fields:?}");
    }
    for space in [" ", "\t", " Host: a"] {
        let head = format!("GET / HTTP/1.1\r\n{space}\r\nHost: a\r\n\r\n");
        assert_eq!(refused(&head), Refusal::SpaceBeforeFields);
    }
}

/// The parser looks at many bytes at a time: no control byte may hide in any of its lanes.
#[test]
fn control_bytes_are_seen_wherever_they_are() {
    let controls = (0..=0x1f_u8).chain([0x7f]).filter(|byte| !b"\t\n\r".contains(byte));
    for control in controls.map(char::from) {
        for before in 0..70 {
            let (before, after) = ("a".repeat(before), "a".repeat(70));
            let expected = |otherwise| if control == '\0' { Refusal::Nul } else { otherwise };
            let in_value = with_fields(&format!("X-A: {before}{control}{after}\r\n"));
            assert_eq!(refused(in_value), expected(Refusal::Control));
            let in_name = with_fields(&format!("X{before}{control}{after}: a\r\n"));
            assert_eq!(refused(in_name), expected(Refusal::FieldName));
            let in_target = with_request_line(&format!("GET /{before}{control}{after} HTTP/1.1"));
            assert_eq!(refused(in_target), expected(Refusal::Target));
        }
    }
}

/// RFC 9112 §9.3, RFC 9110 §7.6.1
#[test]
fn persistence() {
    use Persistence::{Close, KeepAlive, KeepAliveExplicit};
    for (version, fields, expected) in [
        ("1.1", "", KeepAlive),
        ("1.1", "Connection: keep-alive\r\n", KeepAlive),
        ("1.1", "Connection: close\r\n", Close),
        ("1.1", "CONNECTION:cLOSE\r\n", Close),
        ("1.1", "Connection: x,close,y\r\n", Close),
        ("1.1", "Connection: ,, \tclose\r\n", Close),
        ("1.1", "Connection: x\r\nConnection: close\r\n", Close),
        ("1.1", "Connection: close\r\nConnection: keep-alive\r\n", Close),
        ("1.1", "Connection: not-close\r\n", KeepAlive),
        ("1.1", "Connection: close d\r\n", KeepAlive),
        ("1.1", "Proxy-Connection: close\r\nX-Conn-ion: close\r\n", KeepAlive),
        ("1.0", "", Close),
        ("1.0", "Connection: Keep-Alive\r\n", KeepAliveExplicit),
        ("1.0", "Connection: x, keep-alive\r\n", KeepAliveExplicit),
        ("1.0", "Connection: keep-alive, close\r\n", Close),
        ("1.0", "Connection: Upgrade\r\n", Close),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(read(head.as_bytes()).persistence, expected, "{version} {fields:?}");
    }
}

#[test]
fn the_request_line_has_its_limit() {
    let line = |bytes: usize| format!("GET /{} HTTP/1.1", "a".repeat(bytes - 14));
    let (longest, too_long) =
        (line(LIMITS.request_line_bytes), line(LIMITS.request_line_bytes + 1));
    read(with_request_line(&longest).as_bytes());
    assert_eq!(refused(with_request_line(&too_long)), Refusal::RequestLineTooLong);
    assert_eq!(refused(format!("{too_long}\r\n")), Refusal::RequestLineTooLong);
    assert_eq!(refused(format!("{too_long}\r")), Refusal::RequestLineTooLong);
    // The first fault is told, and that before the next one has come.
    assert_eq!(refused(format!("{too_long}\r\n\n")), Refusal::RequestLineTooLong);
    assert_eq!(parse(format!("{longest}\r\n").as_bytes(), &LIMITS), Ok(None));
    assert_eq!(parse(format!("{longest}\r").as_bytes(), &LIMITS), Ok(None));
    assert_eq!(refused("A".repeat(9000)), Refusal::RequestLineTooLong);
    assert_eq!(Refusal::RequestLineTooLong.status().code(), 414);
}

#[test]
fn the_head_has_its_limit() {
    let head = |bytes: usize| {
        let without_filling = with_fields("X-A: \r\n").len();
        with_fields(&format!("X-A: {}\r\n", "a".repeat(bytes - without_filling)))
    };
    let (longest, too_long) = (head(LIMITS.head_bytes), head(LIMITS.head_bytes + 1));
    assert_eq!(read(longest.as_bytes()).bytes, LIMITS.head_bytes);
    assert_eq!(refused(&too_long), Refusal::HeadTooLong);
    assert_eq!(refused(&too_long[..LIMITS.head_bytes]), Refusal::HeadTooLong);
    assert_eq!(parse(&longest.as_bytes()[..LIMITS.head_bytes - 1], &LIMITS), Ok(None));
    // Skipped lines count.
    assert_eq!(refused(format!("\r\n{longest}")), Refusal::HeadTooLong);
    // What follows a head does not.
    assert_eq!(read(format!("{longest}{longest}").as_bytes()).bytes, LIMITS.head_bytes);
    assert_eq!(Refusal::HeadTooLong.status().code(), 431);
}

#[test]
fn the_fields_have_their_limit() {
    let head = |fields: usize| with_fields(&"X-A: 1\r\n".repeat(fields - 1));
    read(head(LIMITS.fields).as_bytes());
    let too_many = head(LIMITS.fields + 1);
    assert_eq!(refused(&too_many), Refusal::TooManyFields);
    assert_eq!(refused(&too_many[..too_many.len() - 2]), Refusal::TooManyFields);
    assert_eq!(Refusal::TooManyFields.status().code(), 431);

    let generous = HeadLimits { fields: usize::MAX, ..LIMITS };
    assert!(parse(head(FIELDS_MAX).as_bytes(), &generous).is_ok());
    assert_eq!(parse(too_many.as_bytes(), &generous), Err(Refusal::TooManyFields));
}

#[test]
fn a_fault_right_beyond_the_limit_is_worth_parsing() {
    let input = "a".repeat(TIGHT.request_line_bytes) + ":";
    assert_eq!(parse(input.as_bytes(), &TIGHT), Err(Refusal::RequestLineTooLong));
    assert!(worth_parsing(input.as_bytes(), input.len() - 1, &TIGHT));
}

#[test]
fn limits_may_be_anything() {
    let head = b"GET / HTTP/1.0\r\n\r\n";
    let all = |limit| HeadLimits { request_line_bytes: limit, head_bytes: limit, fields: limit };
    assert!(parse(head, &all(usize::MAX)).is_ok_and(|head| head.is_some()));
    assert_eq!(parse(head, &all(0)), Err(Refusal::HeadTooLong));
    assert!(worth_parsing(head, 1, &all(usize::MAX)));
    assert!(worth_parsing(head, 1, &all(0)));
}

/// Heads dense in what matters: joined pieces of the grammar, right and wrong.
fn heads() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
        b"GET",
        b"OPTIONS",
        b"/",
        b"/a",
        b"*",
        b"http://h",
        b" ",
        b" ",
        b"HTTP/1.1",
        b"HTTP/1.0",
        b"HTTP/2.0",
        b"\r\n",
        b"\r\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\r",
        b"\0",
        b"\t",
        b":",
        b"\x7f",
        b"\xff",
        b"Host: a",
        b"Host: a b",
        b"X-A:",
        b"X-A: 1",
        b"Content-Length: 5",
        b"Transfer-Encoding: chunked",
        b"Connection: close",
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"GET / HTTP/1.0\r\n",
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..14).prop_map(|pieces| pieces.concat())
}

/// Heads that are accepted.
fn valid_heads() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::collection::vec("[A-Z][a-zA-Z-]{0,12}x: ?[!-~ \t]{0,30}\r\n", 0..6);
    ("(\r\n)?(GET|HEAD|OPTIONS|FROB) /[!-\"$-~]{0,30} HTTP/1[.][01]\r\n", lines)
        .prop_map(|(line, fields)| [line, "Host: a\r\n".into(), fields.concat(), "\r\n".into()])
        .prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_panics(input in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&input, &LIMITS);
        let _ = parse(&input, &TIGHT);
    }

    /// However the bytes come, the outcome is the same, and no later byte changes it.
    #[test]
    fn a_part_of_a_head_is_judged_as_the_whole(input in heads(), limits in prop::sample::select(vec![LIMITS, TIGHT])) {
        let whole = parse(&input, &limits);
        for end in 0..input.len() {
            let part = parse(&input[..end], &limits);
            prop_assert!(part == Ok(None) || part == whole, "{:?} at {}: {:?}, whole {:?}",
                String::from_utf8_lossy(&input), end, part, whole);
        }
    }

    /// What httparse refuses is refused here as soon as it cannot end well: a CR at the end is the
    /// only thing that is waited for.
    #[test]
    fn nothing_is_waited_for_that_httparse_refuses(input in heads()) {
        let mut places = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let theirs = Request::new(&mut places).parse(&input);
        if theirs.is_err() && !input.ends_with(b"\r") {
            prop_assert!(parse(&input, &LIMITS).is_err(), "{:?}", String::from_utf8_lossy(&input));
        }
    }

    /// What is accepted is what httparse has read, and has no byte that a strict head must not.
    #[test]
    fn accepted_heads_are_those_of_httparse(input in prop_oneof![heads(), valid_heads()]) {
        let mut places = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut theirs = Request::new(&mut places);
        let bytes = theirs.parse(&input);
        if let Ok(Some(head)) = parse(&input, &LIMITS) {
            prop_assert_eq!(bytes, Ok(Complete(head.bytes)));
            prop_assert_eq!(Method::from_token(theirs.method.expect("complete")), head.method);
            prop_assert!(theirs.path.expect("complete").as_bytes().ends_with(head.target) || head.target == b"/" || head.target == b"*");
            prop_assert_eq!(theirs.version == Some(1), head.version == Version::Http11);

            let text = &input[..head.bytes];
            prop_assert!(text.ends_with(b"\r\n\r\n"));
            for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                prop_assert_eq!(line.iter().position(|&byte| byte == b'\r'), Some(line.len() - 1));
                prop_assert!(!line.starts_with(b" ") && !line.starts_with(b"\t"));
            }
            prop_assert!(!text.contains(&b'\0'));
        }
    }

    #[test]
    fn valid_heads_are_accepted_and_consumed_exactly(heads in prop::collection::vec(valid_heads(), 1..5)) {
        let input = heads.concat();
        let mut rest = &input[..];
        for expected in &heads {
            let head = parse(rest, &LIMITS).expect("valid").expect("complete");
            prop_assert_eq!(&rest[..head.bytes], &expected[..]);
            rest = &rest[head.bytes..];
        }
        prop_assert!(rest.is_empty());
    }

    /// A caller who parses only when it is worth it hears of every outcome at the same byte as one
    /// who always does, but for faults within a line, of which it hears at the line's end.
    #[test]
    fn it_is_worth_parsing_when_the_outcome_changes(input in heads(), limits in prop::sample::select(vec![LIMITS, TIGHT])) {
        let mut seen = 0;
        for end in 1..=input.len() {
            let part = &input[..end];
            let outcome = parse(part, &limits);
            if worth_parsing(part, seen, &limits) {
                if outcome != Ok(None) { break; }
            } else {
                let decided_by_length = matches!(outcome, Err(Refusal::RequestLineTooLong | Refusal::HeadTooLong));
                prop_assert!(!matches!(outcome, Ok(Some(_))) && !decided_by_length, "{outcome:?}");
            }
            seen = end;
        }
    }
}
