//! RFC 9110 §6.6.1, §8 and §15: what is said of a response and of what it carries. What every response
//! must say is looked at wherever there is one; here is what differs.

use crate::conformance_40::{
    Answer, Case, MODIFIED, alpha, case, empty, get, hold, index, large, page, request, tag,
};

fn files() -> Vec<Case> {
    let octets = "application/octet-stream";
    vec![
        // §8.3, §8.6, §8.8: type, length, both validators.
        case("HTML", get("/", [])).gets(index().with("Content-Length", "36")),
        case("text", get("/alpha.txt", [])).gets(alpha().with("Content-Length", "26")),
        case("no known type", get("/large.bin", []))
            .gets(large().with("Content-Type", octets).with("Content-Length", "1000000")),
        case("an empty file", get("/empty.txt", []))
            .gets(empty().with("Content-Length", "0").with("ETag", tag(b""))),
        // §8.8.2: of the file, not of the answer.
        case("a date", get("/empty.txt", [])).gets(empty().with("Last-Modified", MODIFIED)),
        // §14.3
        case("that parts can be had", get("/", [])).gets(index().with("Accept-Ranges", "bytes")),
        // §12.5.5: nothing was negotiated, so nothing is said to vary.
        case("that nothing varies", get("/", ["Accept-Encoding: gzip"]))
            .gets(index().lacking("Vary").lacking("Content-Encoding")),
        // What a client is free to send and a file has no use for.
        case(
            "fields that change nothing",
            get(
                "/",
                [
                    "Accept: application/json",
                    "Accept-Language: tlh",
                    "Accept-Charset: x",
                    "Authorization: Basic YTpi",
                    "Cookie: a=b",
                    "Cache-Control: no-cache",
                    "Pragma: no-cache",
                    "Referer: http://localhost/",
                    "User-Agent: x",
                    "From: a@b.example",
                    "Max-Forwards: 0",
                    "Via: 1.1 x",
                    "Forwarded: for=a",
                    "Content-Type: text/plain",
                    "Trailer: X",
                    "Origin: null",
                ],
            ),
        )
        .gets(index()),
        // §7.6.2 is about TRACE and OPTIONS that are forwarded; this is their end.
        case("Max-Forwards", request("OPTIONS * HTTP/1.1", ["Max-Forwards: 0"]))
            .gets(Answer::no_content()),
    ]
}

/// §15: errors have a page, its length and a date, and no validators: see [`page`].
fn errors() -> Vec<Case> {
    vec![
        case("not found", get("/none", [])).gets(page(404)),
        case("not found, for HEAD", request("HEAD /none HTTP/1.1", [])).gets(page(404).for_head()),
        case("not found, of 1.0", request("GET /none HTTP/1.0", [])).gets_last(page(404)),
        case("not found and close", get("/none", ["Connection: close"])).gets_last(page(404)),
        case("a bad target", get("/%zz", [])).gets(page(400).lacking("Allow")),
        case("refused", request("GET / HTTP/1.1", ["X A: 1"])).refused(400),
    ]
}

#[test]
fn cases() {
    hold([files(), errors()].into_iter().flatten().collect());
}
