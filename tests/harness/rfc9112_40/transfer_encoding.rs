//! RFC 9112 §6.1 and §6.3: `chunked`, once and last, is the one transfer coding. With anything else
//! nobody could say where the body ends.

use crate::conformance_40::{Case, alpha, case, get, hold, index, page, request};

const CHUNKS: &[u8] = b"5\r\nhello\r\n0\r\n\r\n";

/// A POST with these fields and a chunked body, and the next request.
fn post<const N: usize>(fields: [&str; N]) -> Vec<u8> {
    [&*request("POST / HTTP/1.1", fields), CHUNKS, &get("/alpha.txt", [])].concat()
}

fn chunked() -> Vec<Case> {
    let both = || [page(405), alpha()];
    let mut cases = Vec::new();
    for field in [
        "Transfer-Encoding: chunked",
        "transfer-encoding: CHUNKED",
        "Transfer-Encoding:chunked",
        "Transfer-Encoding: \tchunked \t",
        "TRANSFER-ENCODING: Chunked",
    ] {
        cases.push(case("chunked", post([field])).gets(both()));
    }
    cases.push(
        case("chunked, announced", post(["TE: chunked", "Transfer-Encoding: chunked"]))
            .gets(both()),
    );
    for (line, answer) in [
        ("GET / HTTP/1.1", index()),
        ("HEAD / HTTP/1.1", index().for_head()),
        ("PUT /x HTTP/1.1", page(405)),
        ("FROB / HTTP/1.1", page(501)),
    ] {
        let head = request(line, ["Transfer-Encoding: chunked"]);
        let sends = [&*head, CHUNKS, &get("/alpha.txt", [])].concat();
        cases.push(case("of another method", sends).gets([answer, alpha()]));
    }
    cases.push(
        case("and close", post(["Connection: close", "Transfer-Encoding: chunked"]))
            .gets_last(page(405)),
    );
    for field in ["Transfer-Encodings: chunked", "X-Transfer-Encoding: chunked"] {
        let sends = [request("POST / HTTP/1.1", [field]), get("/alpha.txt", [])].concat();
        cases.push(case("a name that is like it", sends).gets(both()));
    }
    cases
}

/// §6.1: a coding that is not known SHOULD be told of with 501; §6.3 item 4: a last one other than
/// chunked MUST be refused with 400; and so is what is no coding.
fn other() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [
        "gzip",
        "gzip, chunked",
        "identity",
        "identity, chunked",
        "xchunked",
        "'chunked'",
        "chunk",
        "chunkedx",
        "chunked-x",
        "deflate, gzip, chunked",
        "br",
        "compress",
        "x",
    ] {
        let field = format!("Transfer-Encoding: {value}");
        cases.push(case("an unknown coding", post([&*field])).refused(501));
    }
    for value in [
        "",
        ",",
        ",chunked",
        "chunked,",
        "chunked, chunked",
        "chunked, gzip",
        "chunked, identity",
        "chunked x",
        "chunked;q=1",
        "chunked;",
        "\"chunked\"",
        "chun\u{212a}ed",
        "\u{a0}chunked",
        "chunked\u{a0}",
        "chu nked",
        "chunked, ,gzip",
        "gzip;q=0.5, chunked",
        "chunked, x",
        "(chunked)",
        "chunked:",
    ] {
        let field = format!("Transfer-Encoding: {value}");
        cases.push(case("no coding", post([&*field])).refused(400));
    }
    for value in
        ["\u{b}chunked", "chunked\u{b}", "chunked\u{c}", "chu\rnked", "\0chunked", "chunked\r"]
    {
        let field = format!("Transfer-Encoding: {value}");
        cases.push(case("a control byte", post([&*field])).refused(400));
    }
    for fields in [
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: gzip"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding:"],
        ["Transfer-Encoding:", "Transfer-Encoding: chunked"],
    ] {
        cases.push(case("two lines", post(fields)).refused(400));
    }
    for fields in [
        ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: x", "Transfer-Encoding: chunked"],
    ] {
        cases.push(case("an unknown coding before it", post(fields)).refused(501));
    }
    for field in [
        "Transfer-Encoding : chunked",
        "Transfer Encoding: chunked",
        "Transfer-Encoding\t: chunked",
        "Transfer-Encoding: \r\n chunked",
        "X: 1\r\n Transfer-Encoding: chunked",
        "X: 1\rTransfer-Encoding: chunked",
        "Transfer-Encoding chunked",
    ] {
        cases.push(case("no field line", post([field])).refused(400));
    }
    cases
}

/// §6.1: of HTTP/1.0 it is a fault of framing; beside a length it is the classic of smuggling.
fn beside_others() -> Vec<Case> {
    let mut cases = Vec::new();
    for line in ["POST / HTTP/1.0", "GET / HTTP/1.0"] {
        for connection in ["Connection: keep-alive", "Connection: close"] {
            let head = request(line, [connection, "Transfer-Encoding: chunked"]);
            let sends = [&*head, CHUNKS, &get("/alpha.txt", [])].concat();
            cases.push(case("of 1.0", sends).refused(400));
        }
    }
    for fields in [
        ["Content-Length: 15", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 15"],
        ["Transfer-Encoding: chunked", "Content-Length: 0"],
        ["Transfer-Encoding: gzip", "Content-Length: 5"],
        ["Transfer-Encoding: identity", "Content-Length: 5"],
        ["Transfer-Encoding: xchunked", "Content-Length: 5"],
        ["Transfer-Encoding: chunk", "Content-Length: 5"],
    ] {
        cases.push(case("beside a length", post(fields)).refused(400));
    }
    cases
}

#[test]
fn cases() {
    hold([chunked(), other(), beside_others()].into_iter().flatten().collect());
}
