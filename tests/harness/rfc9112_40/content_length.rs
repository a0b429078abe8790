//! RFC 9112 §6.2 and §6.3, RFC 9110 §8.6: a body that is as long as `Content-Length` says. It is taken
//! off, and what follows is the next request: never a byte earlier or later.

use crate::conformance_40::{Case, alpha, case, get, hold, index, page, request};

/// A POST with these fields, followed by these bytes.
fn post<const N: usize>(fields: [&str; N], body: &[u8]) -> Vec<u8> {
    [&*request("POST / HTTP/1.1", fields), body].concat()
}

fn lengths() -> Vec<Case> {
    let next = get("/alpha.txt", []);
    let hello = [b"hello", &*next].concat();
    let both = || [page(405), alpha()];
    let zeros = format!("Content-Length: {}5", "0".repeat(200));
    let mut cases = vec![
        case("of 5", post(["Content-Length: 5"], &hello)).gets(both()),
        case("of 0", post(["Content-Length: 0"], &next)).gets(both()),
        case("none", post([], &next)).gets(both()),
        case("with zeros in front", post([&*zeros], &hello)).gets(both()),
        case("in another case", post(["cONTENT-lENGTH: 5"], &hello)).gets(both()),
        case("without a space", post(["Content-Length:5"], &hello)).gets(both()),
        case("with more spaces", post(["Content-Length: \t5 \t"], &hello)).gets(both()),
        case("of another name", post(["Content-Lengths: 5", "X-Content-Length: 5"], &next))
            .gets(both()),
        case("of a body that looks like a request", post([&*length(&next)], &next.repeat(2)))
            .gets(both()),
        case(
            "named by Connection",
            post(["Connection: Content-Length", "Content-Length: 5"], &hello),
        )
        .gets(both()),
        case(
            "of 1 MiB",
            post(["Content-Length: 1048576"], &[&*vec![b'b'; 1 << 20], &next].concat()),
        )
        .gets(both()),
        case("with a type", post(["Content-Type: text/plain", "Content-Length: 5"], &hello))
            .gets(both()),
        case("and close", post(["Connection: close", "Content-Length: 5"], &hello))
            .gets_last(page(405)),
    ];
    // RFC 9110 §9.3.1: a body of GET means nothing, and is framed all the same.
    for (line, answer) in [
        ("GET / HTTP/1.1", index()),
        ("HEAD / HTTP/1.1", index().for_head()),
        ("DELETE / HTTP/1.1", page(405)),
        ("TRACE / HTTP/1.1", page(405)),
        ("FROB / HTTP/1.1", page(501)),
        ("GET /none HTTP/1.1", page(404)),
        ("GET /%zz HTTP/1.1", page(400)),
    ] {
        let sends = [request(line, ["Content-Length: 5"]), hello.clone()].concat();
        cases.push(case("of another method", sends).gets([answer, alpha()]));
    }
    let of_1_0 = request("POST / HTTP/1.0", ["Connection: keep-alive", "Content-Length: 5"]);
    cases.push(
        case("of 1.0", [of_1_0, hello.clone()].concat())
            .gets([page(405).with("Connection", "keep-alive"), alpha()]),
    );
    let of_1_0 = request("POST / HTTP/1.0", ["Content-Length: 5"]);
    cases.push(case("of 1.0, to its end", [of_1_0, hello].concat()).gets_last(page(405)));
    let three = [post(["Content-Length: 5"], b"hello"), next.clone(), next].concat();
    cases.push(case("and two behind it", three).gets([page(405), alpha(), alpha()]));
    cases
}

fn length(body: &[u8]) -> String {
    format!("Content-Length: {}", body.len())
}

/// §6.3 item 5: what is no length, or more than one, MUST be refused and the connection closed. A list
/// of equal numbers MAY be taken for one of them, and is not.
fn no_lengths() -> Vec<Case> {
    let hello = [b"hello", &*get("/alpha.txt", [])].concat();
    let with = |value: &[u8]| {
        let head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length:";
        [head, value, b"\r\n\r\n", &hello].concat()
    };
    let mut cases = Vec::new();
    for value in [
        &b""[..],
        b" ",
        b"-5",
        b"+5",
        b"5.0",
        b"5,",
        b",5",
        b"5, 5",
        b"5,5",
        b"5, 6",
        b"5e0",
        b"0x5",
        b"5 5",
        b"5\t5",
        b"5a",
        b"a",
        b"5;",
        b"5;x",
        b"1_0",
        b"\"5\"",
        b"'5'",
        b"(5)",
        b"5 (bytes)",
        b"5\x0b",
        b"\x0b5",
        b"5\r0",
        b"5\0",
        b"\xd9\xa5",
        b"\xa05",
        b"\xef\xbc\x95",
        b"five",
        b"-0",
        b"5%",
        b"*",
        b"18446744073709551616",
        b"18446744073709551621",
        b"36893488147419103237",
        b"99999999999999999999999999999999",
    ] {
        cases.push(case("no length", with(value)).refused(400));
    }
    for fields in [
        ["Content-Length: 5", "Content-Length: 5"],
        ["Content-Length: 0", "Content-Length: 5"],
        ["Content-Length: 5", "Content-Length: 0"],
        ["Content-Length: 5", "content-length: 6"],
        ["Content-Length: 5", "Content-Length:"],
        ["Content-Length: 0", "Content-Length: 0"],
    ] {
        cases.push(case("two lengths", post(fields, &hello)).refused(400));
    }
    for field in ["Content-Length : 5", "Content-Length\t: 5", "Content Length: 5"] {
        cases.push(case("no name", post([field], &hello)).refused(400));
    }
    cases.push(case("a folded length", post(["Content-Length: 1\r\n 0"], &hello)).refused(400));
    cases
}

/// RFC 9110 §15.5.14: what is too much is refused before it comes.
fn too_long() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in ["1048577", "3000000", "4294967301", "9223372036854775807", "18446744073709551615"]
    {
        let field = format!("Content-Length: {value}");
        cases.push(case("too long", post([&*field], b"hello")).refused(413));
        cases.push(case("too long, cut off", post([&*field], b"hello")).then_ends().refused(413));
    }
    let much = post(["Content-Length: 3000000"], &vec![b'b'; 3_000_000]);
    cases.push(case("too long, and all of it comes", much).refused(413));
    cases
}

#[test]
fn cases() {
    hold([lengths(), no_lengths(), too_long()].into_iter().flatten().collect());
}
