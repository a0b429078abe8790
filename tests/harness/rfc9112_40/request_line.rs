//! RFC 9112 §3 and §3.1: three words with one space between them, of which the first is a method.

use crate::conformance_40::{Case, case, hold, index, page, request};

/// §3: other whitespace MAY be taken for a space, and is not: 400 is what the section advises.
fn words() -> Vec<Case> {
    let mut cases = vec![case("three words", request("GET / HTTP/1.1", [])).gets(index())];
    for line in [
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1\t",
        "GET\t/ HTTP/1.1",
        "GET /\tHTTP/1.1",
        "GET\u{b}/ HTTP/1.1",
        "GET /\u{c}HTTP/1.1",
        "GET\r/ HTTP/1.1",
        "GET\u{a0}/ HTTP/1.1",
        "GET / HTTP/1.1 HTTP/1.1",
        "GET / / HTTP/1.1",
        "GET /sp ace.txt HTTP/1.1",
        "GET HTTP/1.1",
        "GET  HTTP/1.1",
        "GET",
        "GET ",
        "GET /",
        "GET/ HTTP/1.1",
        "GET / HTTP/1.1, GET / HTTP/1.1",
        "/ HTTP/1.1",
        " / HTTP/1.1",
    ] {
        cases.push(case("other than three words", request(line, [])).refused(400));
    }
    cases
}

/// §3.1, RFC 9110 §9.1: a token, in the case in which it is written.
fn methods() -> Vec<Case> {
    let mut cases = Vec::new();
    for method in ["get", "Get", "GEt", "FROB", "G", "!#$%&'*+-.^_`|~0", "GET.", "XGET", "GETX"] {
        let line = format!("{method} / HTTP/1.1");
        cases.push(case("a method that is not known", request(&line, [])).gets(page(501)));
    }
    for method in [
        "GE(T",
        "GE)T",
        "GE<T",
        "GE@T",
        "GE,T",
        "GE;T",
        "GE:T",
        "GE\\T",
        "GE\"T",
        "GE/T",
        "GE[T",
        "GE?T",
        "GE=T",
        "GE{T",
        "GE\0T",
        "GE\u{1}T",
        "GE\u{7f}T",
        "G\u{c9}T",
        "GET\0",
    ] {
        let line = format!("{method} / HTTP/1.1");
        cases.push(case("no token", request(&line, [])).refused(400));
    }
    // §3: longer than any that is implemented; within the limit of the line it is one more that is
    // not known.
    let line = format!("{} / HTTP/1.1", "A".repeat(8000));
    cases.push(case("a long method", request(&line, [])).gets(page(501)));
    let line = format!("{} / HTTP/1.1", "A".repeat(9000));
    cases.push(case("a method longer than a line", request(&line, [])).refused(414));
    cases
}

#[test]
fn cases() {
    hold([words(), methods()].into_iter().flatten().collect());
}
