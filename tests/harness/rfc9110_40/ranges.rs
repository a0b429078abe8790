//! RFC 9110 §14, §15.3.7 and §15.5.17: parts of a file. What is malformed is as if it were not there; of
//! what is asked for too often or twice no more is sent than there is.

use crate::conformance_40::{
    ALPHA, Answer, Case, MODIFIED, alpha, case, empty, get, hold, large, large_file, page, request,
    tag,
};

fn asks(ranges: &str) -> Vec<u8> {
    get("/alpha.txt", [&*format!("Range: {ranges}")])
}

/// The bytes of the file are 0 to 25.
fn one() -> Vec<Case> {
    let mut cases = Vec::new();
    for (ranges, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=25-25", 25, 25),
        ("bytes=10-15", 10, 15),
        ("bytes=0-25", 0, 25),
        ("bytes=20-", 20, 25),
        ("bytes=0-", 0, 25),
        ("bytes=25-", 25, 25),
        ("bytes=-5", 21, 25),
        ("bytes=-1", 25, 25),
        ("bytes=-26", 0, 25),
        ("bytes=-27", 0, 25),
        ("bytes=-100", 0, 25),
        ("bytes=20-100", 20, 25),
        ("bytes=0-26", 0, 25),
        ("bytes=5-9223372036854775807", 5, 25),
        ("bytes=5-18446744073709551615", 5, 25),
        ("bytes=5-99999999999999999999", 5, 25),
        ("bytes=-99999999999999999999", 0, 25),
        ("bytes=000-004", 0, 4),
        ("bytes= 0-4", 0, 4),
        // §5.6.1.2: empty members of a list.
        ("bytes=,0-4,", 0, 4),
        ("bytes=0-4 , ,", 0, 4),
        // §14.1: units are known in any case.
        ("BYTES=0-4", 0, 4),
        ("Bytes=-2", 24, 25),
        // One of them is there.
        ("bytes=100-,0-4", 0, 4),
        ("bytes=0-4,26-", 0, 4),
        // Together they are one.
        ("bytes=0-4,5-9", 0, 9),
        ("bytes=0-4,3-9", 0, 9),
        ("bytes=5-9,0-4", 0, 9),
        ("bytes=0-,0-,0-", 0, 25),
        ("bytes=0-4,0-4", 0, 4),
    ] {
        let part = Answer::part(ALPHA, first, last)
            .with("Last-Modified", MODIFIED)
            .with("Content-Type", "text/plain; charset=utf-8")
            .with("Content-Length", (last + 1 - first).to_string());
        cases.push(case("a part", asks(ranges)).gets(part));
    }
    for ranges in [
        "bytes=26-",
        "bytes=26-26",
        "bytes=100-200",
        "bytes=100-,200-",
        "bytes=-0",
        "bytes=-0,26-",
        "bytes=9223372036854775808-",
        "bytes=99999999999999999999-",
        "bytes=18446744073709551616-18446744073709551620",
    ] {
        cases.push(
            case("no part", asks(ranges)).gets(page(416).with("Content-Range", "bytes */26")),
        );
    }
    cases
}

/// §14.2: what is malformed or of another unit is ignored.
fn ignored() -> Vec<Case> {
    let mut cases = Vec::new();
    for ranges in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=--5",
        "bytes=5",
        "bytes=abc",
        "bytes=a-b",
        "bytes=0-b",
        "bytes=0x0-0x4",
        "bytes=0-4-8",
        "bytes=0 - 4",
        "bytes=0- 4",
        "bytes=0 -4",
        "bytes=4-0",
        "bytes=25-0",
        "bytes=0-4;5-8",
        "bytes=0-4 5-8",
        "bytes=+0-4",
        "bytes=0-+4",
        "bytes=0.0-4",
        "bytes=0-4,x",
        "bytes=0-4,5-3",
        "bytes=100-,x",
        "bytes 0-4",
        "bytes:0-4",
        "bytes =0-4",
        "0-4",
        "=0-4",
        "items=0-4",
        "byte=0-4",
        "bytes2=0-4",
        "none=0-4",
        "bytes=*",
        "bytes=0-*",
        "bytes=0-4/26",
        "bytes=\"0-4\"",
        "bytes=\u{661}-4",
    ] {
        cases.push(case("no range", asks(ranges)).gets(alpha()));
    }
    cases.push(
        case("two lines", get("/alpha.txt", ["Range: bytes=0-1", "Range: bytes=3-4"]))
            .gets(alpha()),
    );
    cases.push(
        case("two equal lines", get("/alpha.txt", ["Range: bytes=0-1", "Range: bytes=0-1"]))
            .gets(alpha()),
    );
    // Of GET alone.
    for method in ["HEAD", "OPTIONS", "DELETE"] {
        let line = format!("{method} /alpha.txt HTTP/1.1");
        let answer = match method {
            "HEAD" => alpha().for_head(),
            "OPTIONS" => Answer::no_content(),
            _ => page(405),
        };
        cases.push(case("another method", request(&line, ["Range: bytes=0-4"])).gets(answer));
    }
    cases.push(case("of nothing", get("/none", ["Range: bytes=0-4"])).gets(page(404)));
    // No range is satisfiable, and the whole is what none of it is.
    for ranges in ["Range: bytes=0-", "Range: bytes=0-0", "Range: bytes=-5", "Range: bytes=1-"] {
        cases.push(case("of an empty file", get("/empty.txt", [ranges])).gets(empty()));
    }
    cases
}

/// §14.6, §15.3.7.2: several parts, each with its own range, in the order asked for; §17.15: no more
/// than there is, and no more than 32.
fn several() -> Vec<Case> {
    let file = large_file();
    let asks = |ranges: &str| get("/large.bin", [&*format!("Range: bytes={ranges}")]);
    let many = |count: usize| {
        let ranges: Vec<_> = (0..count).map(|at| format!("{0}-{0}", at * 1000)).collect();
        ranges.join(",")
    };
    let dense: Vec<_> = (0..1000).map(|last| format!("5-{last}")).collect();
    let mut cases = vec![
        case("two", asks("0-9,100-109")).gets(Answer::parts(file, [(0, 9), (100, 109)])),
        case("backwards", asks("100-109,0-9")).gets(Answer::parts(file, [(100, 109), (0, 9)])),
        case("of all kinds", asks("-10, 500-599 ,,999000-999009"))
            .gets(Answer::parts(file, [(999_990, 999_999), (500, 599), (999_000, 999_009)])),
        case("two that touch, and another", asks("0-9,50-59,10-19"))
            .gets(Answer::parts(file, [(0, 19), (50, 59)])),
        case("one that is not there", asks("0-9,1000000-,20-29"))
            .gets(Answer::parts(file, [(0, 9), (20, 29)])),
        case("large ones", asks("0-69999,80000-"))
            .gets(Answer::parts(file, [(0, 69_999), (80_000, 999_999)])),
        case("and the next answer", [asks("0-9,100-109"), get("/alpha.txt", [])].concat())
            .gets([Answer::parts(file, [(0, 9), (100, 109)]), alpha()]),
        case("too many", asks(&many(33))).gets(large()),
        case("thousands", asks(&many(150)[..])).gets(large()),
        case("a killer", asks(&["0-".to_owned(), dense.join(",")].concat())).gets(large()),
        // Heads of parts would outweigh them.
        case("of a small file", get("/alpha.txt", ["Range: bytes=0-1,5-6"])).gets(alpha()),
    ];
    for (ranges, first, last) in
        [("999999-", 999_999, 999_999), ("65535-131073", 65_535, 131_073), ("-1", 999_999, 999_999)]
    {
        let part = Answer::part(file, first, last).with("ETag", tag(file));
        cases.push(case("one of a large file", asks(ranges)).gets(part));
    }
    cases.push(
        case("none of a large file", asks("1000000-"))
            .gets(page(416).with("Content-Range", "bytes */1000000")),
    );
    cases.push(
        case("of 1.0", request("GET /alpha.txt HTTP/1.0", ["Range: bytes=0-4"]))
            .gets_last(Answer::part(ALPHA, 0, 4)),
    );
    cases
}

#[test]
fn cases() {
    hold([one(), ignored()].into_iter().flatten().collect());
}

#[test]
fn several_parts() {
    hold(several());
}
