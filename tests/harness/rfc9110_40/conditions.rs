//! RFC 9110 §13: preconditions, in the order of §13.2.2; dates in the three forms of §5.6.7, and tags
//! as §8.8.3 has them.

use crate::conformance_40::{
    ALPHA, Answer, Case, INDEX, MODIFIED, alpha, case, get, hold, index, large, large_file, page,
    request, tag,
};

const BEFORE: &str = "Sun, 31 Dec 2023 23:59:59 GMT";
const AFTER: &str = "Mon, 01 Jan 2024 00:00:01 GMT";

/// The index is what the client has already.
fn same() -> Answer {
    Answer::not_modified(INDEX)
}

fn asks(field: &str, value: &str) -> Vec<u8> {
    get("/", [&*format!("{field}: {value}")])
}

/// §13.1.2: weak comparison, with each tag of the list.
fn if_none_match() -> Vec<Case> {
    let tag = tag(INDEX);
    let inner = tag.trim_matches('"');
    let mut cases = Vec::new();
    for value in [
        tag.clone(),
        format!("W/{tag}"),
        format!("\"x\", {tag}"),
        format!("{tag}, \"x\""),
        format!("\"x\",{tag},\"y\""),
        format!(" \"x\" ,\t{tag}"),
        format!(",, {tag}"),
        format!("\"a,b\", {tag}"),
        format!("\"\", {tag}"),
        format!("\"\u{e9}\", {tag}"),
        format!("W/\"x\", W/{tag}"),
        "*".to_owned(),
    ] {
        cases.push(case("the client has it", asks("If-None-Match", &value)).gets(same()));
    }
    for value in [
        "\"x\"".to_owned(),
        "W/\"x\"".to_owned(),
        "\"\"".to_owned(),
        String::new(),
        "x".to_owned(),
        inner.to_owned(),
        format!("\"{inner}"),
        format!("{inner}\""),
        format!("\"{inner}x\""),
        format!("\"x{inner}\""),
        format!("\"{}\"", inner.to_uppercase()),
        format!("'{inner}'"),
        format!("w/{tag}"),
        format!("W/ {tag}"),
        format!("\"x, {tag}"),
        format!("\"a b\", {tag}"),
        "\"*\"".to_owned(),
        "**".to_owned(),
        "W/*".to_owned(),
    ] {
        cases.push(case("the client has it not", asks("If-None-Match", &value)).gets(index()));
    }
    cases.push(
        case(
            "a list in lines",
            get("/", ["If-None-Match: \"x\"", &format!("If-None-Match: {tag}")]),
        )
        .gets(same()),
    );
    cases
}

/// §13.1.1: strong comparison.
fn if_match() -> Vec<Case> {
    let tag = tag(INDEX);
    let mut cases = Vec::new();
    for value in [tag.clone(), format!("\"x\", {tag}"), format!("{tag},\"x\""), "*".to_owned()] {
        cases.push(case("it is the one", asks("If-Match", &value)).gets(index()));
    }
    for value in [
        "\"x\"".to_owned(),
        format!("W/{tag}"),
        format!("\"x\", W/{tag}"),
        String::new(),
        "x".to_owned(),
        tag.trim_matches('"').to_owned(),
    ] {
        cases.push(case("it is another", asks("If-Match", &value)).gets(page(412)));
    }
    cases.push(
        case("a list in lines", get("/", ["If-Match: \"x\"", &format!("If-Match: {tag}")]))
            .gets(index()),
    );
    cases
}

/// §13.1.3 and §13.1.4: dates, in the three forms; what is no date is as if it were not there.
fn dates() -> Vec<Case> {
    let mut cases = Vec::new();
    for date in [
        MODIFIED,
        AFTER,
        "Tue, 02 Jan 2024 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Monday, 01-Jan-24 00:00:00 GMT",
        "Mon Jan  1 00:00:00 2024",
        "Tue Jan  2 00:00:00 2024",
    ] {
        cases.push(case("not since", asks("If-Modified-Since", date)).gets(same()));
        cases.push(case("not since", asks("If-Unmodified-Since", date)).gets(index()));
    }
    for date in [
        BEFORE,
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Sunday, 31-Dec-23 23:59:59 GMT",
        "Sun Dec 31 23:59:59 2023",
        // Of two digits, and more than fifty years ahead: the past.
        "Friday, 31-Dec-99 23:59:59 GMT",
    ] {
        cases.push(case("since", asks("If-Modified-Since", date)).gets(index()));
        cases.push(case("since", asks("If-Unmodified-Since", date)).gets(page(412)));
    }
    for date in [
        "yesterday",
        "",
        "0",
        "1704067200",
        "2024-01-01T00:00:00Z",
        "Mon, 01 Jan 2024 00:00:00",
        "Mon, 01 Jan 2024 00:00:00 UTC",
        "Mon, 01 Jan 2024 00:00:00 +0000",
        "Mon, 01 Jan 2024 00:00:00 gmt",
        "mon, 01 jan 2024 00:00:00 GMT",
        "Mon, 32 Jan 2024 00:00:00 GMT",
        "Mon, 00 Jan 2024 00:00:00 GMT",
        "Mon, 30 Feb 2024 00:00:00 GMT",
        "Mon, 01 Foo 2024 00:00:00 GMT",
        "Mon, 01 Jan 2024 24:00:00 GMT",
        "Mon, 01 Jan 2024 00:60:00 GMT",
        "Mon, 1 Jan 2024 00:00:00 GMT",
        "Mon 01 Jan 2024 00:00:00 GMT",
        "Mon, 01 Jan 2024 00:00:00 GMT; length=36",
        "Mon, 01 Jan 2024 00:00:00 GMT, Tue, 02 Jan 2024 00:00:00 GMT",
        "*",
    ] {
        cases.push(case("no date", asks("If-Modified-Since", date)).gets(index()));
        cases.push(case("no date", asks("If-Unmodified-Since", date)).gets(index()));
    }
    let twice = |field: &str| {
        let line = format!("{field}: {AFTER}");
        get("/", [&*line, &*line])
    };
    cases.push(case("two dates", twice("If-Modified-Since")).gets(index()));
    cases.push(case("two dates", twice("If-Unmodified-Since")).gets(index()));
    cases
}

/// §13.2.2: first `If-Match`, or else `If-Unmodified-Since`; then `If-None-Match`, or else
/// `If-Modified-Since`; then `Range`.
fn order() -> Vec<Case> {
    let tag = tag(INDEX);
    let is = format!("If-Match: {tag}");
    let is_not = format!("If-None-Match: {tag}");
    let other = "If-None-Match: \"x\"";
    let no_match = "If-Match: \"x\"";
    let modified = format!("If-Modified-Since: {MODIFIED}");
    let modified_before = format!("If-Modified-Since: {BEFORE}");
    let unmodified = format!("If-Unmodified-Since: {MODIFIED}");
    let unmodified_before = format!("If-Unmodified-Since: {BEFORE}");
    let part = "Range: bytes=0-4";
    vec![
        case("a tag wins over a date", get("/", [other, &modified])).gets(index()),
        case("a tag wins over a date", get("/", [&*is_not, &modified_before])).gets(same()),
        case("a tag wins over a date", get("/", [&*is, &unmodified_before])).gets(index()),
        case("a tag wins over a date", get("/", [no_match, &unmodified])).gets(page(412)),
        case("a malformed tag wins over a date", get("/", ["If-None-Match: x", &modified]))
            .gets(index()),
        case("both hold", get("/", [&*is, other])).gets(index()),
        case("the second does not", get("/", [&*is, &is_not])).gets(same()),
        case("the first does not", get("/", [no_match, &is_not])).gets(page(412)),
        case("neither date holds", get("/", [&*unmodified_before, &modified])).gets(page(412)),
        case("the second date does not", get("/", [&*unmodified, &modified])).gets(same()),
        case("written the other way round", get("/", [&*is_not, no_match])).gets(page(412)),
        case("and no part", get("/", [&*is_not, part])).gets(same()),
        case("and a part", get("/", [other, part])).gets(Answer::part(INDEX, 0, 4)),
        case("and a part of what is the one", get("/", [&*is, part]))
            .gets(Answer::part(INDEX, 0, 4)),
        case("and no part of what is another", get("/", [no_match, part])).gets(page(412)),
    ]
}

/// §13.2.1: conditions are of what would be a 200; §15.4.5: a 304 has no content, and the next answer
/// begins at once.
fn answers() -> Vec<Case> {
    let is_not = format!("If-None-Match: {}", tag(INDEX));
    let is_not_large = format!("If-None-Match: {}", tag(large_file()));
    vec![
        case("of nothing", get("/none", ["If-None-Match: *"])).gets(page(404)),
        case("of nothing", get("/none", ["If-Match: *"])).gets(page(404)),
        case("of a bad target", get("/%zz", ["If-Match: \"x\""])).gets(page(400)),
        case("of another method", request("DELETE / HTTP/1.1", ["If-Match: \"x\""]))
            .gets(page(405)),
        case("of OPTIONS", request("OPTIONS / HTTP/1.1", ["If-Match: \"x\""]))
            .gets(Answer::no_content()),
        case("a 304 and a 200", [get("/", [&*is_not]), get("/alpha.txt", [])].concat())
            .gets([same().lacking("Content-Length"), alpha()]),
        case("a 304 of a large file", [get("/large.bin", [&*is_not_large]), get("/", [])].concat())
            .gets([Answer::not_modified(large_file()), index()]),
        case("a large file", get("/large.bin", ["If-None-Match: \"x\""])).gets(large()),
        case("a 412 and a 200", [get("/", ["If-Match: \"x\""]), get("/", [])].concat())
            .gets([page(412), index()]),
        case("of HEAD", request("HEAD / HTTP/1.1", [&*is_not])).gets(same()),
        case("of 1.0", request("GET / HTTP/1.0", [&*is_not])).gets_last(same()),
        case("and close", get("/", [&*is_not, "Connection: close"])).gets_last(same()),
        case("of another file", get("/alpha.txt", [&*is_not])).gets(alpha()),
        case(
            "of the file asked for",
            get("/alpha.txt", [&*format!("If-None-Match: {}", tag(ALPHA))]),
        )
        .gets(Answer::not_modified(ALPHA)),
    ]
}

#[test]
fn tags() {
    hold([if_none_match(), if_match()].into_iter().flatten().collect());
}

#[test]
fn dates_and_order() {
    hold([dates(), order(), answers()].into_iter().flatten().collect());
}
