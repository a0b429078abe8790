//! RFC 9112 §11.2: requests that two servers in a row would part in two ways. Each has a request for
//! `/smuggled` where one of the two readings would see one; it is never answered.

use crate::conformance_40::{Case, alpha, case, get, hold, index, page, request};

/// What is to be smuggled.
fn inner() -> Vec<u8> {
    get("/smuggled", [])
}

/// A POST whose length spans a whole chunked body and a request behind it.
fn spanning<const N: usize>(fields: [&str; N]) -> Vec<u8> {
    let body = [b"0\r\n\r\n", &*inner()].concat();
    let length = format!("Content-Length: {}", body.len());
    let head = request("POST / HTTP/1.1", [&*length, &fields.join("\r\n")]);
    [head, body].concat()
}

/// One reading goes by the length, and the other by the coding.
fn length_against_coding() -> Vec<Case> {
    let mut cases = Vec::new();
    for fields in [
        "Transfer-Encoding: chunked",
        "tRANSFER-eNCODING: cHUNKED",
        "Transfer-Encoding:\tchunked",
        "Transfer-Encoding:chunked",
        "Transfer-Encoding: chunked ",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, x",
        "Transfer-Encoding: x, chunked",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
        "Transfer-Encoding: identity",
        "Transfer-Encoding:",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        "Transfer Encoding: chunked",
        " Transfer-Encoding: chunked",
        "X: 1\r\n Transfer-Encoding: chunked",
        "X: 1\r\n\tTransfer-Encoding: chunked",
        "X: 1\rTransfer-Encoding: chunked",
        "X: 1\nTransfer-Encoding: chunked",
        "X: 1\r\r\nTransfer-Encoding: chunked",
        "X: 1\0Transfer-Encoding: chunked",
        "Transfer-Encoding: chunked\u{c}",
        "Transfer-Encoding: \u{b}chunked",
        "Transfer-Encoding: chunked\0",
        "Transfer-Encoding\0: chunked",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding: chunked\r\n x",
        "\u{b}Transfer-Encoding: chunked",
        "Transfer-Encoding;x: chunked",
    ] {
        cases.push(case("a length beside a coding", spanning([fields])).refused(400));
    }
    // Names that only look alike: the length is the one thing that is said.
    for fields in ["Transfer_Encoding: chunked", "X-Transfer-Encoding: chunked", "TE: chunked"] {
        let sends = [spanning([fields]), get("/alpha.txt", [])].concat();
        cases.push(case("a name that is like it", sends).gets([page(405), alpha()]));
    }
    let short = request("POST / HTTP/1.1", ["Transfer-Encoding: chunked", "Content-Length: 4"]);
    let chunk = [b"33\r\n", &*inner(), b"\r\n0\r\n\r\n"].concat();
    cases.push(case("a coding beside a short length", [short, chunk].concat()).refused(400));
    let of_1_0 = request(
        "POST / HTTP/1.0",
        ["Connection: keep-alive", "Content-Length: 5", "Transfer-Encoding: chunked"],
    );
    cases.push(case("of 1.0", [of_1_0, inner()].concat()).refused(400));
    cases
}

/// One reading goes by one length, and the other by another.
fn length_against_length() -> Vec<Case> {
    let inner = inner();
    let bytes = inner.len();
    let with = |fields: &str| [request("POST / HTTP/1.1", [fields]), inner.clone()].concat();
    let mut cases = Vec::new();
    for fields in [
        format!("Content-Length : {bytes}"),
        format!("Content-Length: 0\r\nContent-Length: {bytes}"),
        format!("Content-Length: {bytes}\r\nContent-Length: 0"),
        format!("Content-Length: 0, {bytes}"),
        format!("Content-Length: 0\r\n {bytes}"),
        format!("Content-Length: +{bytes}"),
        format!("Content-Length: {bytes}\u{b}"),
        format!("Content-Length: 0{bytes:x}h"),
        format!("X: 1\rContent-Length: {bytes}"),
        format!("X: 1\nContent-Length: {bytes}"),
        format!("X: 1\r\n Content-Length: {bytes}"),
        format!("Content\u{a0}Length: {bytes}"),
    ] {
        cases.push(case("two readings of a length", with(&fields)).refused(400));
    }
    // One reading only: the request is a body.
    for fields in [
        format!("Content-Length: {bytes}"),
        format!("Content-Length: 000{bytes}"),
        format!("Connection: Content-Length\r\nContent-Length: {bytes}"),
        format!("Connection: Upgrade\r\nUpgrade: foo\r\nContent-Length: {bytes}"),
        format!("Expect: 100-continue\r\nContent-Length: {bytes}"),
    ] {
        let sends = [with(&fields), get("/alpha.txt", [])].concat();
        let case = case("a body", sends).gets([page(405), alpha()]);
        cases.push(if fields.contains("Expect") { case.in_one_piece() } else { case });
        let of_get = [request("GET / HTTP/1.1", [&*fields]), inner.clone()].concat();
        let case = crate::conformance_40::case("a body of GET", of_get).gets(index());
        cases.push(if fields.contains("Expect") { case.in_one_piece() } else { case });
    }
    cases
}

/// One reading finds the end of a chunk elsewhere.
fn chunk_against_chunk() -> Vec<Case> {
    let inner = String::from_utf8(inner()).expect("ASCII");
    let with = |body: String| {
        [request("POST / HTTP/1.1", ["Transfer-Encoding: chunked"]), body.into_bytes()].concat()
    };
    let mut cases = Vec::new();
    for body in [
        format!("2;\nxx\r\n4b\r\n0\r\n\r\n{inner}\r\n0\r\n\r\n"),
        format!("2;a=\"\r\nxx\r\n0\r\n\r\n{inner}\"\r\n"),
        format!("2\nxx\r\n0\r\n\r\n{inner}"),
        format!("2\rxx\r\n0\r\n\r\n{inner}"),
        format!("2\r\nxx\n0\r\n\r\n{inner}"),
        format!("0x2\r\nxx\r\n0\r\n\r\n{inner}"),
        format!("2 2\r\nxx\r\n0\r\n\r\n{inner}"),
        format!("0\r\n\n{inner}"),
        format!("0\n\r\n{inner}"),
        format!("0\r\nX\r\n\r\n{inner}"),
        format!("0\r\nX: 1\n\r\n{inner}"),
        format!("0\r\n X: 1\r\n\r\n{inner}"),
    ] {
        cases.push(case("two readings of a chunk", with(body)).refused(400));
    }
    for body in [
        format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len()),
        format!("0\r\nX: {}\r\n\r\n", "GET /smuggled HTTP/1.1"),
        format!("1;a=\"GET /smuggled HTTP/1.1\"\r\nx\r\n{}", "0\r\n\r\n"),
    ] {
        let sends = [with(body), get("/alpha.txt", [])].concat();
        cases.push(case("a body", sends).gets([page(405), alpha()]));
    }
    cases
}

#[test]
fn cases() {
    let kinds = [length_against_coding(), length_against_length(), chunk_against_chunk()];
    hold(kinds.into_iter().flatten().collect());
}
