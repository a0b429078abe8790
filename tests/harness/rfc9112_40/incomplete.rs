//! RFC 9112 §8: a message that its sender has cut off. Half a head is no request, and nobody is told;
//! a request whose body is cut off is refused, for it is not what was meant.

use crate::conformance_40::{Case, alpha, case, get, hold, index, page, request};

fn heads() -> Vec<Case> {
    let mut cases = Vec::new();
    for begun in [
        "",
        "G",
        "GET ",
        "GET /alpha.txt HT",
        "GET / HTTP/1.1",
        "GET / HTTP/1.1\r",
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHo",
        "GET / HTTP/1.1\r\nHost: localhost\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n",
    ] {
        cases.push(case("half a head", begun).then_ends().gets_nothing());
        let behind = [&*get("/", []), begun.as_bytes()].concat();
        cases.push(case("half a head behind a request", behind).then_ends().gets(index()));
    }
    cases
}

fn bodies() -> Vec<Case> {
    let mut cases = Vec::new();
    let of_length = request("POST / HTTP/1.1", ["Content-Length: 5"]);
    for begun in ["", "h", "hell"] {
        let sends = [&*of_length, begun.as_bytes()].concat();
        cases.push(case("half a body", sends).then_ends().refused(400));
    }
    let chunked = request("POST / HTTP/1.1", ["Transfer-Encoding: chunked"]);
    for begun in [
        "",
        "5",
        "5\r",
        "5\r\n",
        "5\r\nhe",
        "5\r\nhello",
        "5\r\nhello\r",
        "5\r\nhello\r\n",
        "5\r\nhello\r\n0",
        "5\r\nhello\r\n0\r\n",
        "5\r\nhello\r\n0\r\n\r",
        "5\r\nhello\r\n0\r\nX: 1",
        "5\r\nhello\r\n0\r\nX: 1\r\n",
        "5;a=\"b",
    ] {
        let sends = [&*chunked, begun.as_bytes()].concat();
        cases.push(case("half a chunked body", sends).then_ends().refused(400));
    }
    for line in ["GET / HTTP/1.1", "PUT / HTTP/1.1", "POST / HTTP/1.0"] {
        let sends = [&*request(line, ["Content-Length: 5"]), b"hel"].concat();
        cases.push(case("half a body of another request", sends).then_ends().refused(400));
    }
    let behind = [&*get("/alpha.txt", []), &of_length, b"hel"].concat();
    cases.push(
        case("half a body behind a request", behind).then_ends().gets_last([alpha(), page(400)]),
    );
    let whole = [&*of_length, b"hello"].concat();
    cases.push(case("a whole body", whole).then_ends().gets(page(405)));
    let whole = [&*chunked, b"5\r\nhello\r\n0\r\n\r\n"].concat();
    cases.push(case("a whole chunked body", whole).then_ends().gets(page(405)));
    cases
}

#[test]
fn cases() {
    hold([heads(), bodies()].into_iter().flatten().collect());
}
