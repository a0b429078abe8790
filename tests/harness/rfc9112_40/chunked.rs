//! RFC 9112 §7.1: chunks, their extensions and the trailer section. Wherever two readers could see
//! different boundaries, the body is refused and the connection ends.

use crate::conformance_40::{Case, alpha, case, get, hold, page, request};

/// A POST with this body, chunks as they are written here, and the next request.
fn post(body: impl AsRef<[u8]>) -> Vec<u8> {
    let head = request("POST / HTTP/1.1", ["Transfer-Encoding: chunked"]);
    [&*head, body.as_ref(), &get("/alpha.txt", [])].concat()
}

fn taken(name: &'static str, body: impl AsRef<[u8]>) -> Case {
    case(name, post(body)).gets([page(405), alpha()])
}

fn refused(name: &'static str, body: impl AsRef<[u8]>) -> Case {
    case(name, post(body)).refused(400)
}

fn sizes() -> Vec<Case> {
    let large = |digits: &str| format!("{digits}\r\nhello\r\n0\r\n\r\n");
    let mut cases = vec![
        taken("no chunk", "0\r\n\r\n"),
        taken("one chunk", "5\r\nhello\r\n0\r\n\r\n"),
        taken("two chunks", "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"),
        taken("capital digits", "A\r\n0123456789\r\n0\r\n\r\n"),
        taken("small digits", "a\r\n0123456789\r\n0\r\n\r\n"),
        taken("two digits", "1f\r\n0123456789012345678901234567890\r\n0\r\n\r\n"),
        taken("zeros in front", "0005\r\nhello\r\n0\r\n\r\n"),
        taken("a last chunk of zeros", "5\r\nhello\r\n0000\r\n\r\n"),
        taken("many zeros", "000000000000000000000005\r\nhello\r\n00000000000000000000\r\n\r\n"),
        taken("data with line ends", "7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"),
        taken("data that looks like a request", "12\r\nGET / HTTP/1.1\r\n\r\n\r\n0\r\n\r\n"),
        taken("data that looks like a chunk", "a\r\n5\r\nhello\r\n\r\n0\r\n\r\n"),
        taken(
            "every byte",
            [b"100\r\n", &*(0..=255).collect::<Vec<u8>>(), b"\r\n0\r\n\r\n"].concat(),
        ),
        taken("a thousand chunks", ["1\r\nx\r\n".repeat(1000), "0\r\n\r\n".into()].concat()),
    ];
    for line in [
        "", "g", "0x5", "0X5", "x5", "+5", "-5", " 5", "\t5", "5g", "5h", "h", "\\x35", "5,",
        "5.0", "%35", "5_0", "#5", "5 5", "\u{664}", "five", "5\0", "\x005", "5\u{b}", "\u{b}5",
        "-0", "+0", "5 ", "5\t", "5\r", "5 \t ", "0 5",
    ] {
        cases.push(refused("no size", format!("{line}\r\nhello\r\n0\r\n\r\n")));
    }
    for digits in [
        "100001",
        "3fffffff",
        "80000000",
        "ffffffff",
        "100000005",
        "7fffffffffffffff",
        "8000000000000000",
        "8000000000000005",
        "ffffffffffffffff",
        "dddddddddddddddd",
        "fffffffffffffffb",
    ] {
        cases.push(case("a size beyond what is taken", post(large(digits))).refused(413));
    }
    for digits in ["fffffffffffffffff", "10000000000000005", "ddddddddddddddddddddddddd"] {
        cases.push(case("a size beyond what is, too", post(large(digits))).refused(413));
    }
    cases.push(refused("zeros without end", "0".repeat(1_000_000)));
    cases
}

fn boundaries() -> Vec<Case> {
    let mut cases = vec![
        refused("longer than said", "3\r\nhello\r\n0\r\n\r\n"),
        refused("shorter than said", "7\r\nhello\r\n0\r\n\r\n"),
        refused("by one byte longer", "4\r\nhello\r\n0\r\n\r\n"),
        refused("by one byte shorter", "6\r\nhello\r\n0\r\n\r\n"),
        refused("nothing behind the data", "5\r\nhello0\r\n\r\n"),
        refused("two line ends behind the data", "5\r\nhello\r\n\r\n0\r\n\r\n"),
        refused("an empty line in front", "\r\n5\r\nhello\r\n0\r\n\r\n"),
        refused("a last chunk with data", "5\r\nhello\r\n0\r\nx\r\n\r\n"),
    ];
    for body in [
        "5\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5\r\rhello\r\n0\r\n\r\n",
        "5\r\r\nhello\r\n0\r\n\r\n",
        "5\n\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r0\r\n\r\n",
        "5\r\nhello\r\r\n0\r\n\r\n",
        "5\r\nhello\n\r0\r\n\r\n",
        "5\r\nhello\r\n0\n\r\n",
        "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello\r\n0\r\n\r\r\n",
        "5\r\nhello\r\n0\r\r\n\r\n",
        "5\r\nhello\r\n0\n\n",
        "5\nhello\n0\n\n",
    ] {
        cases.push(refused("a line that ends otherwise", body));
    }
    cases
}

/// §7.1.1: extensions that nobody knows MUST be ignored, and bounded.
fn extensions() -> Vec<Case> {
    let mut cases = Vec::new();
    for extension in [
        ";a",
        ";a=b",
        ";a=b;c=d",
        ";a;b",
        ";a=\"b\"",
        ";a=\"b c;d=e\"",
        ";a=\"\\\"\"",
        ";a=\"\"",
        " ;a=b",
        "; a=b",
        " ; a = b",
        ";a =b",
        ";a= b",
        "\t;\ta\t=\tb",
        ";a=\"\u{e9}\"",
        ";!#$%&'*+-.^_`|~=1",
        ";a=\"\t\"",
        " ; a ; b",
    ] {
        cases.push(taken("an extension", format!("5{extension}\r\nhello\r\n0{extension}\r\n\r\n")));
    }
    for extension in [
        ";",
        ";;a",
        ";a;",
        ";=b",
        ";a=",
        ";a=b c",
        ";a=\"b",
        ";a=b\"",
        ";a=\"b\"c",
        ";a=\"\\",
        ",a",
        " a",
        ";a b",
        ";a=(b)",
        ";a=b=c",
        ";\u{e9}",
        ";a=\u{e9}",
        ";a\0",
        ";a=\"\0\"",
        ";a\u{1}",
        ";a ",
        ";a=b ",
        ";a=b\t",
        " ;",
        "=a",
    ] {
        cases.push(refused("no extension", format!("5{extension}\r\nhello\r\n0\r\n\r\n")));
    }
    for line in
        ["5;a\nb\r\n", "5;a\rb\r\n", "5;\nxx\r\n", "5;a=\"\n\"\r\n", "5;a=\"\r\n\"\r\n", "5;a\n"]
    {
        cases
            .push(refused("a line that ends in an extension", format!("{line}hello\r\n0\r\n\r\n")));
    }
    let long = |bytes: usize| format!("5;a={}\r\nhello\r\n0\r\n\r\n", "b".repeat(bytes));
    cases.push(taken("an extension of 4000 bytes", long(4000)));
    cases.push(refused("an extension of 64 KiB", long(65_536)));
    let dense = format!("1;{}\r\nx\r\n", "e".repeat(100));
    cases.push(refused(
        "much extension of little data",
        [dense.repeat(3000), "0\r\n\r\n".into()].concat(),
    ));
    cases
}

/// §7.1.2, §6.5 of RFC 9110: a trailer section is read and thrown away; nothing of it is merged.
fn trailers() -> Vec<Case> {
    let with = |lines: &str| format!("5\r\nhello\r\n0\r\n{lines}\r\n");
    let mut cases = Vec::new();
    for lines in [
        "X: 1\r\n",
        "X:\r\n",
        "X: 1\r\nY: 2\r\n",
        "X: \u{e9}\r\n",
        "Host: evil\r\n",
        "Content-Length: 100\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "Expect: x\r\n",
        "Range: bytes=0-0\r\n",
        "Trailer: X\r\nX: 1\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
    ] {
        cases.push(taken("trailers", with(lines)));
    }
    for lines in [
        "broken\r\n",
        ": 1\r\n",
        "X : 1\r\n",
        " X: 1\r\n",
        "X: 1\r\n y\r\n",
        "X\0: 1\r\n",
        "X: \0\r\n",
        "X: 1\n",
        "X: 1\r",
        "X: a\rY: b\r\n",
        "X(: 1\r\n",
        "\u{e9}: 1\r\n",
        "X: \u{1}\r\n",
    ] {
        cases.push(refused("no trailers", with(lines)));
    }
    cases.push(taken("100 trailers", with(&"A: b\r\n".repeat(100))));
    let too_many = with(&"A: b\r\n".repeat(101));
    cases.push(case("101 trailers", post(too_many)).refused(431));
    let far_too_many = with(&"A: b\r\n".repeat(20_000));
    cases.push(case("20 000 trailers", post(far_too_many)).refused(431));
    let long = with(&format!("A: {}\r\n", "b".repeat(100_000)));
    cases.push(case("a trailer of 100 kB", post(long)).refused(431));
    cases
}

/// RFC 9110 §15.5.14: what is too much is told so with the chunk that makes it so.
fn too_long() -> Vec<Case> {
    let mib = "x".repeat(1 << 20);
    vec![
        taken("1 MiB in one chunk", format!("100000\r\n{mib}\r\n0\r\n\r\n")),
        taken(
            "1 MiB in many chunks",
            [format!("1000\r\n{}\r\n", &mib[..4096]).repeat(256), "0\r\n\r\n".into()].concat(),
        ),
        case("a byte more", post(format!("100000\r\n{mib}\r\n1\r\nx\r\n0\r\n\r\n"))).refused(413),
    ]
}

#[test]
fn cases() {
    hold([sizes(), boundaries(), trailers(), too_long()].into_iter().flatten().collect());
}

#[test]
fn with_extensions() {
    hold(extensions());
}
