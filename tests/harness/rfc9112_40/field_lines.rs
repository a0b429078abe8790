//! RFC 9112 §5, RFC 9110 §5.1, §5.3 and §5.5: a name that is a token, a colon at once, a value of
//! visible bytes.

use crate::conformance_40::{Case, case, get, hold, index};

/// §5.1: no whitespace between name and colon: MUST be refused with 400.
fn names() -> Vec<Case> {
    let mut cases = vec![
        case("every character of a token", get("/", ["!#$%&'*+-.^_`|~0aZ: 1"])).gets(index()),
        case("a name of one letter", get("/", ["X: 1"])).gets(index()),
        // RFC 9110 §5.1: names are equal whatever their case.
        case("another case", "GET / HTTP/1.1\r\nhOSt: localhost\r\ncONNECTION: cLOSE\r\n\r\n")
            .gets_last(index()),
        case("names that begin like others", get("/", ["Connections: close", "Connectio: close"]))
            .gets(index()),
    ];
    for line in [
        "X-A : 1",
        "X-A\t: 1",
        "X-A \t : 1",
        "Connection : close",
        "X-Forwarded-Host : a",
        "Content-Length : 0",
        "Transfer-Encoding : chunked",
        "Host : localhost",
    ] {
        cases.push(case("whitespace before the colon", get("/", [line])).refused(400));
    }
    for line in [
        ": 1",
        ":",
        "X A: 1",
        "X(A): 1",
        "X/A: 1",
        "X\"A: 1",
        "X@A: 1",
        "X=A: 1",
        "X,A: 1",
        "X;A: 1",
        "X[A]: 1",
        "X{A}: 1",
        "X\\A: 1",
        "X<A>: 1",
        "X?A: 1",
        "X\0A: 1",
        "X\rA: 1",
        "X\u{1}A: 1",
        "X\u{7f}A: 1",
        "X-\u{e9}: 1",
        "X",
        "X 1",
        "GET / HTTP/1.1",
        "\u{b}X: 1",
    ] {
        cases.push(case("no name", get("/", [line])).refused(400));
    }
    cases
}

/// §5.2: a line that begins with whitespace would go on the one before: refused, as MAY be done.
fn folding() -> Vec<Case> {
    let mut cases = Vec::new();
    for lines in [
        "X-A: one\r\n two",
        "X-A: one\r\n\ttwo",
        "X-A:\r\n one",
        "X-A: one\r\n ",
        "X-A: one\r\n \r\n two",
        "Connection:\r\n close",
        "Content-Length: 1\r\n 0",
        "Transfer-Encoding:\r\n chunked",
        "X-A: 1\r\n Transfer-Encoding: chunked",
        "X-A: 1\r\n\tHost: other",
    ] {
        cases.push(case("a folded line", get("/", [lines])).refused(400));
    }
    cases
}

/// RFC 9110 §5.5: whitespace around a value is none of it; CR, LF and NUL are dangerous, and other
/// control bytes are no text.
fn values() -> Vec<Case> {
    let with =
        |value: &[u8]| [b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A:", value, b"\r\n\r\n"].concat();
    let mut cases = Vec::new();
    for value in [
        &b""[..],
        b" ",
        b" \t ",
        b"1",
        b"\t1\t",
        b" a:b::c",
        b" a  b\tc",
        b" \"quoted, with; all=of it\"",
        b" (a comment)",
        b" \xc3\xa9\xff\x80",
        b" ,,,",
        b" \\",
        b" %00%0d%0a",
        b" GET / HTTP/1.1",
    ] {
        cases.push(case("a value", with(value)).gets(index()));
    }
    for byte in (0..0x20).chain([0x7f]).filter(|byte| !b"\t\n".contains(byte)) {
        cases.push(case("a control byte in a value", with(&[b'a', byte, b'b'])).refused(400));
        cases.push(case("a control byte for a value", with(&[b' ', byte])).refused(400));
    }
    cases.push(
        case(
            "no space behind the colon",
            "GET / HTTP/1.1\r\nHost:localhost\r\nConnection:close\r\n\r\n",
        )
        .gets_last(index()),
    );
    cases
}

/// RFC 9110 §5.3: a field that comes more often than it should is not our business, unless it is one
/// that decides something.
fn repetition() -> Vec<Case> {
    vec![
        case("a field that should come once", get("/", ["User-Agent: a", "User-Agent: b"]))
            .gets(index()),
        case("a list in lines", get("/", ["Accept: text/html", "Accept: */*"])).gets(index()),
        case("the same line many times", get("/", ["X-A: 1"; 60])).gets(index()),
    ]
}

#[test]
fn cases() {
    hold([names(), folding(), values(), repetition()].into_iter().flatten().collect());
}
