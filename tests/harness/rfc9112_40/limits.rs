//! RFC 9112 §3, RFC 9110 §5.4 and §15.5.15, RFC 6585 §5: what is too large is told so. The default
//! limits: 8 KiB of a request line, 32 KiB and 100 lines of a head.

use crate::conformance_40::{Case, alpha, case, get, hold, index, page, request};

fn request_lines() -> Vec<Case> {
    let of = |bytes: usize| {
        let query = "q".repeat(bytes - "GET /? HTTP/1.1".len());
        get(&format!("/?{query}"), [])
    };
    let long = |bytes: usize| ["GET /", &"a".repeat(bytes)].concat();
    vec![
        // §3: at least 8000 octets are RECOMMENDED.
        case("8000 bytes", of(8000)).gets(index()),
        case("as long as may be", of(8192)).gets(index()),
        case("one byte longer", of(8193)).refused(414),
        case("much longer", of(100_000)).refused(414),
        case("without an end", long(9000)).refused(414),
        case("2 MB without an end", long(2_000_000)).refused(414),
        case("a path of 5000 bytes", get(&"/d".repeat(2500), [])).gets(page(404)),
        case("a name of 300 bytes", get(&format!("/{}", "n".repeat(300)), [])).gets(page(404)),
    ]
}

fn heads() -> Vec<Case> {
    let fields = |count: usize| {
        let more: String = (1..count).map(|n| format!("x-{n}: y\r\n")).collect();
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
    };
    let value = |bytes: usize| get("/", [&*format!("X: {}", "y".repeat(bytes))]);
    let rest_bytes = get("/", ["X: "]).len();
    vec![
        case("100 fields", fields(100)).gets(index()),
        case("101 fields", fields(101)).refused(431),
        case("5000 fields", fields(5000)).refused(431),
        case("a value of 4 KiB", value(4096)).gets(index()),
        case("a value of 16 KiB", value(16_384)).gets(index()),
        case("as large as may be", value(32_768 - rest_bytes)).gets(index()),
        case("one byte larger", value(32_769 - rest_bytes)).refused(431),
        case("a value of 100 kB", value(100_000)).refused(431),
        case("a value of 3 MB", value(3_000_000)).refused(431),
        case("a name of 64 KiB", get("/", [&*format!("{}: 1", "n".repeat(65_536))])).refused(431),
        case(
            "a field without an end",
            format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "y".repeat(40_000)),
        )
        .refused(431),
        case("a large one behind another", [get("/alpha.txt", []), value(300_000)].concat())
            .gets_last([alpha(), page(431)]),
        case("all that HTTP/1.0 may send", request("GET / HTTP/1.0", ["Connection: keep-alive"]))
            .gets(index().with("Connection", "keep-alive")),
    ]
}

#[test]
fn cases() {
    hold([request_lines(), heads()].into_iter().flatten().collect());
}
