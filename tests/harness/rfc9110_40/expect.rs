//! RFC 9110 §10.1.1: `Expect: 100-continue`. No request to a file wants a body, so that a client which
//! waits before it sends one is not asked for it: it gets its answer at once, and the connection ends,
//! for it may send the body all the same. A body that has come is a body like any other.

use crate::conformance_40::{Case, alpha, case, get, hold, index, page, request};

const EXPECT: &str = "Expect: 100-continue";

fn without_the_body() -> Vec<Case> {
    let post = |fields: [&str; 2]| request("POST / HTTP/1.1", fields);
    vec![
        case("a length", post([EXPECT, "Content-Length: 5"])).in_one_piece().gets_last(page(405)),
        case("a coding", post([EXPECT, "Transfer-Encoding: chunked"]))
            .in_one_piece()
            .gets_last(page(405)),
        case("GET", request("GET / HTTP/1.1", [EXPECT, "Content-Length: 5"]))
            .in_one_piece()
            .gets_last(index()),
        case("too long", post([EXPECT, "Content-Length: 9999999"])).refused(413),
        case("no method", request("FROB / HTTP/1.1", [EXPECT, "Content-Length: 5"]))
            .in_one_piece()
            .gets_last(page(501)),
        case("then no more", post([EXPECT, "Content-Length: 5"]))
            .in_one_piece()
            .then_ends()
            .gets_last(page(405)),
    ]
}

fn with_the_body() -> Vec<Case> {
    let hello = [b"hello", &*get("/alpha.txt", [])].concat();
    let post = |field: &str| {
        [request("POST / HTTP/1.1", [field, "Content-Length: 5"]), hello.clone()].concat()
    };
    let mut cases = Vec::new();
    for field in [
        EXPECT,
        "expect: 100-CONTINUE",
        "Expect:100-continue",
        "Expect: 100-continue,",
        "Expect: ,100-continue",
        "Expect: 100-continue, 100-continue",
        "Expect: 100-continue\r\nExpect: 100-continue",
    ] {
        cases.push(case("it has come", post(field)).in_one_piece().gets([page(405), alpha()]));
    }
    let chunked = [
        &*request("POST / HTTP/1.1", [EXPECT, "Transfer-Encoding: chunked"]),
        b"5\r\nhello\r\n0\r\n\r\n",
        &get("/alpha.txt", []),
    ]
    .concat();
    cases.push(case("it has come in chunks", chunked).in_one_piece().gets([page(405), alpha()]));
    cases
}

/// A server MAY ignore it, and MUST where there is no body or the client is of 1.0.
fn ignored() -> Vec<Case> {
    let body = b"hello";
    vec![
        case("no body", get("/", [EXPECT])).gets(index()),
        case("a body of nothing", get("/", [EXPECT, "Content-Length: 0"])).gets(index()),
        case("an empty one", get("/", ["Expect:"])).gets(index()),
        case(
            "of 1.0",
            [&*request("POST / HTTP/1.0", [EXPECT, "Content-Length: 5"]), body].concat(),
        )
        .gets_last(page(405)),
        case("an unknown one of 1.0", request("GET / HTTP/1.0", ["Expect: teapot"]))
            .gets_last(index()),
        case("of a name that is like it", get("/", ["Expects: teapot"])).gets(index()),
    ]
}

/// An expectation that is not known is not met: 417.
fn unknown() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [
        "teapot",
        "100-continue, teapot",
        "teapot, 100-continue",
        "100-continued",
        "100",
        "continue",
        "100-continue;q=1",
        "100 continue",
        "\"100-continue\"",
        "100-continue=x",
        "200-ok",
    ] {
        let field = format!("Expect: {value}");
        cases.push(case("unknown", get("/", [&*field])).refused(417));
    }
    cases.push(case("unknown in a second line", get("/", [EXPECT, "Expect: teapot"])).refused(417));
    cases.push(
        case(
            "unknown, with a body",
            request("POST / HTTP/1.1", ["Expect: x", "Content-Length: 5"]),
        )
        .refused(417),
    );
    cases
}

#[test]
fn cases() {
    let kinds = [without_the_body(), with_the_body(), ignored(), unknown()];
    hold(kinds.into_iter().flatten().collect());
}
