//! RFC 9112 §2: lines and versions, and what is no HTTP/1.1 at all: HTTP/0.9 (appendix C.1), the
//! preface of HTTP/2 (RFC 9113 §3.4), and bytes.

use crate::conformance_40::{Case, alpha, case, get, hold, index, page, request};

/// §2.2: a line ends in CRLF. A bare LF MAY be taken for one, and is not: whoever stands between may
/// not take it. A bare CR is refused, as is NUL.
fn line_ends() -> Vec<Case> {
    vec![
        case("every line ends in CRLF", get("/", [])).gets(index()),
        case("every line ends in LF", "GET / HTTP/1.1\nHost: localhost\n\n").refused(400),
        case("the request line ends in LF", "GET / HTTP/1.1\nHost: localhost\r\n\r\n").refused(400),
        case("a field line ends in LF", "GET / HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n")
            .refused(400),
        case("the last field line ends in LF", "GET / HTTP/1.1\r\nHost: localhost\n\r\n")
            .refused(400),
        case("the empty line is LF", "GET / HTTP/1.1\r\nHost: localhost\r\n\n").refused(400),
        // A fault within a line is told of at once where the line's end is there to be looked for,
        // and else when the line or the input has ended.
        case("every line ends in CR", "GET / HTTP/1.1\rHost: localhost\r\r")
            .then_ends()
            .refused(400),
        case("a CR in the request line", "GET / HTTP/1.1\rX: 1\r\nHost: localhost\r\n\r\n")
            .refused(400),
        case("a request line ends in CR CR LF", "GET / HTTP/1.1\r\r\nHost: localhost\r\n\r\n")
            .refused(400),
        case("a field line ends in CR CR LF", get("/", ["X: 1\r"])).refused(400),
        case("the empty line is CR CR LF", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\r\n")
            .refused(400),
        case("LF CR", "GET / HTTP/1.1\n\rHost: localhost\n\r\n\r").refused(400),
        case("NUL in front", "\0GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").refused(400),
        case("NUL for a line's end", "GET / HTTP/1.1\0Host: localhost\r\n\r\n").refused(400),
    ]
}

/// §2.2: at least one empty line in front of a request line SHOULD be ignored; four are.
fn empty_lines() -> Vec<Case> {
    let after = |lines: usize| ["\r\n".repeat(lines).into_bytes(), get("/", [])].concat();
    vec![
        case("one empty line", after(1)).gets(index()),
        case("four empty lines", after(4)).gets(index()),
        case("five empty lines", after(5)).refused(400),
        case("many empty lines", after(10_000)).refused(400),
        case("an empty line of LF", [b"\n", &*get("/", [])].concat()).refused(400),
        case("an empty line of CR", [b"\r", &*get("/", [])].concat()).refused(400),
        case("a line with a space", [b" \r\n", &*get("/", [])].concat()).refused(400),
        case("an empty line between two", [get("/", []), after(1)].concat())
            .gets([index(), index()]),
        case("an empty line behind", [&*get("/", []), b"\r\n"].concat()).then_ends().gets(index()),
        case("nothing but empty lines", "\r\n\r\n").then_ends().gets_nothing(),
        case("nothing but a CR", "\r").then_ends().gets_nothing(),
        case("nothing", "").then_ends().gets_nothing(),
    ]
}

/// §2.2: whitespace between the request line and the first field line: refused.
fn whitespace_before_fields() -> Vec<Case> {
    vec![
        case("a space", "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n").refused(400),
        case("a tab", "GET / HTTP/1.1\r\n\tHost: localhost\r\n\r\n").refused(400),
        case("a line of a space", "GET / HTTP/1.1\r\n \r\nHost: localhost\r\n\r\n").refused(400),
        case(
            "a line that hides a field",
            "GET / HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: localhost\r\n\r\n",
        )
        .refused(400),
    ]
}

/// §2.3: `HTTP/` DIGIT `.` DIGIT, upper case. What is no version is malformed; another major one is
/// not supported (RFC 9110 §15.6.6), and a later minor one is read as 1.1 (RFC 9110 §2.5).
fn versions() -> Vec<Case> {
    let of = |version: &str| request(&format!("GET / {version}"), []);
    let mut cases = vec![
        case("1.1", of("HTTP/1.1")).gets(index()),
        // The answer is of 1.1 all the same.
        case("1.0", of("HTTP/1.0")).gets_last(index()),
        case("1.2", of("HTTP/1.2")).gets(index().lacking("Connection")),
        case("1.9", of("HTTP/1.9")).gets(index()),
        case("1.2 and close", request("GET / HTTP/1.2", ["Connection: close"])).gets_last(index()),
        case("1.2 without a host", "GET / HTTP/1.2\r\n\r\n").refused(400),
        case("1.2 and a fault", request("GET / HTTP/1.2", ["X A: 1"])).refused(400),
        case("1.2 and LF", "GET / HTTP/1.2\nHost: localhost\n\n").refused(400),
        case(
            "1.2 and a body",
            [&*request("POST / HTTP/1.2", ["Content-Length: 5"]), b"hello"].concat(),
        )
        .gets(page(405)),
    ];
    for version in ["HTTP/0.9", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9", "HTTP/01.1"] {
        cases.push(case("a version of another time", of(version)).refused(505));
    }
    for version in [
        "http/1.1",
        "Http/1.1",
        "HTTP/x.y",
        "HTTP1.1",
        "HTTP/1.1x",
        "HTTP/1.10",
        "HTTP/1.20",
        "HTTP/1.2x",
        "HTTP/11",
        "HTTP/1",
        "HTTP/1.",
        "HTTP/.1",
        "HTTP/1,1",
        "HTTP/-1.1",
        "HTTP/ 1.1",
        "HTTP /1.1",
        "HTTP/1 .1",
        "HTTP\\1.1",
        "ICY/1.1",
        "HTTPS/1.1",
        "RTSP/1.0",
        "1.1",
        "/1.1",
        "HTTP/1.1\0",
        "HTTP/\u{661}.1",
    ] {
        cases.push(case("no version", of(version)).refused(400));
    }
    cases
}

/// Appendix C.1: the simple request of HTTP/0.9 has no version, and no head for an answer to have.
fn http_0_9() -> Vec<Case> {
    vec![
        case("a simple request", "GET /\r\n").then_ends().refused(400),
        case("a simple request and an empty line", "GET /\r\n\r\n").refused(400),
        case("a simple request with fields", "GET /\r\nHost: localhost\r\n\r\n").refused(400),
        case("a simple POST", "POST /\r\n\r\n").refused(400),
        case("a simple request, ended in LF", "GET /\n").refused(400),
        case("a simple request with a space behind", "GET / \r\n").refused(400),
    ]
}

/// RFC 9113 §3.4: nobody has agreed on HTTP/2 here; 505 says so in words that its clients log.
fn http_2() -> Vec<Case> {
    vec![
        case("a preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").refused(505),
        case("half a preface", "PRI * HTTP/2.0\r\n\r\n").refused(505),
        case("its first bytes", "PRI * HT").then_ends().gets_nothing(),
        case("a preface and a request", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n")
            .refused(505),
        // RFC 9113 §11.6: the method is reserved, which makes it one that is not known.
        case("its method", request("PRI / HTTP/1.1", [])).gets(page(501)),
        case("its method about the server", request("PRI * HTTP/1.1", [])).refused(400),
    ]
}

/// Whatever comes: it is answered as HTTP, or the connection ends.
fn no_http() -> Vec<Case> {
    let noise: Vec<u8> = (0..600_u32).map(|at| (at.wrapping_mul(167) >> 2) as u8).collect();
    vec![
        case("noise", noise).refused(400),
        case("a hello of TLS", &b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"[..]).refused(400),
        case("a greeting of SSH", "SSH-2.0-OpenSSH_9.6\r\n").refused(400),
        case("a greeting of SMTP", "EHLO localhost\r\n").refused(400),
        case("a PROXY line", "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET / HTTP/1.1\r\n\r\n")
            .refused(400),
        case("a status line", "HTTP/1.1 200 OK\r\n\r\n").refused(400),
        case("bytes beyond ASCII", &b"\xff\xfe\xfd"[..]).refused(400),
        case("JSON", "{\"a\": 1}\r\n").refused(400),
        case("a request behind its answer", [get("/alpha.txt", []), b"}\r\n".to_vec()].concat())
            .gets_last([alpha(), page(400)]),
    ]
}

#[test]
fn lines() {
    hold([line_ends(), empty_lines(), whitespace_before_fields()].into_iter().flatten().collect());
}

#[test]
fn versions_and_other_protocols() {
    hold([versions(), http_0_9(), http_2(), no_http()].into_iter().flatten().collect());
}
