//! RFC 9110 §10.2.2 and §15.4.2, RFC 3986 §4.2: a directory without its slash is sent to itself with
//! one. The place is a path: it keeps scheme, host and port, whatever they are, and no name makes it
//! another host or another line.

use crate::conformance_40::{Answer, Case, TEST_INDEX, case, get, hold, page, request};

fn to(place: &str) -> Answer {
    page(301).with("Location", place)
}

fn places() -> Vec<Case> {
    let mut cases = vec![
        case("a directory", get("/dir", [])).gets(to("/dir/")),
        case("HEAD", request("HEAD /dir HTTP/1.1", [])).gets(to("/dir/").for_head()),
        case("a directory without an index", get("/bare", [])).gets(to("/bare/")),
        case("a query", get("/dir?a=%20b&c", [])).gets(to("/dir/?a=%20b&c")),
        case("an empty query", get("/dir?", [])).gets(to("/dir/?")),
        case("a query with another target", get("/dir?//evil.example", []))
            .gets(to("/dir/?//evil.example")),
        case("a host with a port", "GET /dir HTTP/1.1\r\nHost: localhost:12345\r\n\r\n")
            .gets(to("/dir/")),
        case("a host in brackets", "GET /dir HTTP/1.1\r\nHost: [::1]:12345\r\n\r\n")
            .gets(to("/dir/")),
        case("no host", "GET /dir HTTP/1.0\r\n\r\n").gets_last(to("/dir/")),
        case("a condition and a range", get("/dir", ["If-None-Match: *", "Range: bytes=0-0"]))
            .gets(to("/dir/")),
    ];
    for target in ["//dir", "///dir", "/./dir", "/x/../dir", "/d%69r", "//dir/../dir", "/.//dir"] {
        cases.push(case("another spelling", get(target, [])).gets(to("/dir/")));
    }
    for (target, place) in [
        ("/dir?\\evil", "/dir/?%5Cevil"),
        ("/dir?%0d%0aX-Injected:%201", "/dir/?%0d%0aX-Injected:%201"),
        ("/dir?<b>\"", "/dir/?%3Cb%3E%22"),
        ("/dir?\u{e9}", "/dir/?%C3%A9"),
    ] {
        cases.push(case("a query that is encoded", get(target, [])).gets(to(place)));
    }
    cases
}

fn no_places() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in [
        "/\\dir",
        "/%5cdir",
        "/%5C%5Cdir",
        "/dir%0d%0aX-Injected:%201",
        "//evil.example",
        "//evil.example/dir",
        "/\\evil.example",
        "/%09/evil.example",
        "/dir%5c",
        "/%09dir",
    ] {
        cases.push(case("another name", get(target, [])).gets(page(404).lacking("Location")));
    }
    for target in ["//evil.example/..%2f", "//evil.example/%2e%2e%2fdir", "/%2fdir"] {
        cases.push(case("a slash that is none", get(target, [])).gets(page(404)));
    }
    cases.push(case("above", get("//evil.example/%2e%2e/%2e%2e/dir", [])).gets(page(400)));
    // A page does not repeat what was asked for.
    cases.push(case("a script", get("/%3Cscript%3Ealert(1)%3C/script%3E", [])).gets(page(404)));
    cases
}

/// An index is a file of that very name, and is not sent anywhere.
fn indexes() -> Vec<Case> {
    vec![
        case("the index by its name", get("/dir/index.html", []))
            .gets(crate::conformance_40::dir()),
        case("a name that ends like an index", get("/test-index.html", []))
            .gets(Answer::file(TEST_INDEX, "text/html; charset=utf-8")),
        case("what it begins with", get("/test-", [])).gets(page(404)),
        case("a file with a slash", get("/alpha.txt/", [])).gets(page(404)),
    ]
}

#[test]
fn cases() {
    hold([places(), no_places(), indexes()].into_iter().flatten().collect());
}
