//! RFC 9112 §9, RFC 9110 §7.6.1: whether a connection lives on, pipelining, and its end.

use crate::conformance_40::{Case, alpha, case, get, hold, index, large, page, request};

/// §9.3: 1.1 keeps a connection unless told otherwise; 1.0 if asked to. `close` wins, and options are
/// members of a list, in any case (RFC 9110 §7.6.1).
fn persistence() -> Vec<Case> {
    let mut cases = vec![
        case("of 1.1", get("/", [])).gets(index().lacking("Connection")),
        case("of 1.0", request("GET / HTTP/1.0", [])).gets_last(index()),
    ];
    for options in [
        "close",
        "CLOSE",
        "Close",
        "x,close,y",
        ",,close",
        "close,,",
        "close , x",
        "x\t,\tclose",
        "close, close",
        "keep-alive, close",
        "close, keep-alive",
        "close, upgrade",
        "\"x\", close",
    ] {
        let field = format!("Connection: {options}");
        cases.push(case("close", get("/", [&*field])).gets_last(index()));
        cases.push(case("close, of 1.0", request("GET / HTTP/1.0", [&field])).gets_last(index()));
    }
    cases.push(
        case("close in a second line", get("/", ["Connection: x", "Connection: close"]))
            .gets_last(index()),
    );
    cases.push(
        case("close in a first line", get("/", ["Connection: close", "Connection: keep-alive"]))
            .gets_last(index()),
    );
    for options in [
        "",
        "keep-alive",
        "not-close",
        "closed",
        "close-not",
        "close x",
        "close;q=1",
        "\"close\"",
        "clo se",
        "x",
        ",",
        "Host",
        "Content-Length",
        "TE",
        "\u{17f}close",
    ] {
        let field = format!("Connection: {options}");
        cases.push(case("no close", get("/", [&*field])).gets(index().lacking("Connection")));
    }
    for options in ["keep-alive", "Keep-Alive", "x, keep-alive", "keep-alive,,", ",keep-alive"] {
        let field = format!("Connection: {options}");
        cases.push(
            case("keep-alive, of 1.0", request("GET / HTTP/1.0", [&*field]))
                .gets(index().with("Connection", "keep-alive")),
        );
    }
    for field in ["Connection: keep-alives", "Keep-Alive: 300", "Connection: x", "Connection:"] {
        cases.push(
            case("no keep-alive, of 1.0", request("GET / HTTP/1.0", [field])).gets_last(index()),
        );
    }
    // Of 1.0 and not to be believed where a proxy stands between: but nobody can know that here.
    cases.push(
        case("Proxy-Connection", request("GET / HTTP/1.0", ["Proxy-Connection: keep-alive"]))
            .gets_last(index()),
    );
    cases
}

/// §9.3.2: answers come in the order of the requests, whatever they are.
fn pipelining() -> Vec<Case> {
    let hundred = [get("/alpha.txt", []).repeat(99), get("/", [])].concat();
    let mut to_hundred: Vec<_> = (0..99).map(|_| alpha()).collect();
    to_hundred.push(index());
    vec![
        case("two", [get("/", []), get("/alpha.txt", [])].concat()).gets([index(), alpha()]),
        case("a hundred", hundred).gets(to_hundred),
        case("large ones", get("/large.bin", []).repeat(4)).gets([
            large(),
            large(),
            large(),
            large(),
        ]),
        case(
            "small ones around a large one",
            [get("/", []), get("/large.bin", []), get("/alpha.txt", [])].concat(),
        )
        .gets([index(), large(), alpha()]),
        case("one that is not found", [get("/", []), get("/none", []), get("/", [])].concat())
            .gets([index(), page(404), index()]),
        case(
            "one of another version",
            [
                get("/", []),
                request("GET / HTTP/1.0", ["Connection: keep-alive"]),
                get("/alpha.txt", []),
            ]
            .concat(),
        )
        .gets([index(), index().with("Connection", "keep-alive"), alpha()]),
        case("one that is refused", [get("/", []), b"BAD\r\n\r\n".to_vec(), get("/", [])].concat())
            .gets_last([index(), page(400)]),
        // §9.6: what follows the last request is not looked at.
        case(
            "one behind the last",
            [get("/", ["Connection: close"]), get("/alpha.txt", [])].concat(),
        )
        .gets_last(index()),
        case(
            "bytes behind the last",
            [get("/", ["Connection: close"]), b"\0\r\n\r\n".to_vec()].concat(),
        )
        .gets_last(index()),
        case(
            "one behind the last of 1.0",
            [request("GET / HTTP/1.0", []), get("/alpha.txt", [])].concat(),
        )
        .gets_last(index()),
    ]
}

/// §9.6: a peer that ends its side has not ended ours.
fn half_close() -> Vec<Case> {
    vec![
        case("after a request", get("/", [])).then_ends().gets(index()),
        case("after one for much", get("/large.bin", [])).then_ends().gets(large()),
        case("after three", [get("/", []), get("/large.bin", []), get("/alpha.txt", [])].concat())
            .then_ends()
            .gets([index(), large(), alpha()]),
        case("after the last", get("/", ["Connection: close"])).then_ends().gets(index()),
        case("in a request line", "GET /alpha.txt HT").then_ends().gets_nothing(),
        case("in a head", "GET / HTTP/1.1\r\nHost: localhost\r\n").then_ends().gets_nothing(),
        case("before the last byte", "GET / HTTP/1.1\r\nHost: localhost\r\n\r")
            .then_ends()
            .gets_nothing(),
        case("in a second head", [get("/", []), b"GET / HTTP/1.1\r\n".to_vec()].concat())
            .then_ends()
            .gets(index()),
        case("after a bad one", "GET / HTTP/1.1\r\n\r\n").then_ends().refused(400),
    ]
}

#[test]
fn cases() {
    hold([persistence(), pipelining(), half_close()].into_iter().flatten().collect());
}
