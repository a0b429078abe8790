//! RFC 9110 §13.1.5: a part, if the client's is a part of the same; else the whole. Strong comparison
//! only, and a date only if it is exactly the one.

use crate::conformance_40::{
    ALPHA, Answer, Case, alpha, case, get, hold, large, large_file, page, request, tag,
};

fn cases_of_one_part() -> Vec<Case> {
    let tag = tag(ALPHA);
    let asks = |value: &str| get("/alpha.txt", ["Range: bytes=0-4", &format!("If-Range: {value}")]);
    let mut cases = Vec::new();
    for value in [
        &*tag,
        "Mon, 01 Jan 2024 00:00:00 GMT",
        "Monday, 01-Jan-24 00:00:00 GMT",
        "Mon Jan  1 00:00:00 2024",
    ] {
        cases.push(case("the same", asks(value)).gets(Answer::part(ALPHA, 0, 4)));
    }
    for value in [
        "\"x\"",
        &format!("W/{tag}"),
        &format!("{tag}, \"x\""),
        &format!("\"x\", {tag}"),
        tag.trim_matches('"'),
        &tag[..tag.len() - 1],
        "*",
        "\"\"",
        "",
        "what",
        "Mon, 01 Jan 2024 00:00:01 GMT",
        "Tue, 02 Jan 2024 00:00:00 GMT",
        "Sun, 31 Dec 2023 23:59:59 GMT",
        "Mon, 32 Jan 2024 00:00:00 GMT",
    ] {
        cases.push(case("another", asks(value)).gets(alpha()));
    }
    cases
}

fn cases_beside_others() -> Vec<Case> {
    let is = format!("If-Range: {}", tag(ALPHA));
    let is_large = format!("If-Range: {}", tag(large_file()));
    vec![
        case("no range", get("/alpha.txt", [&*is])).gets(alpha()),
        case("no range, and another", get("/alpha.txt", ["If-Range: \"x\""])).gets(alpha()),
        case("twice", get("/alpha.txt", ["Range: bytes=0-4", &is, &is])).gets(alpha()),
        case("a part that is not there", get("/alpha.txt", ["Range: bytes=26-", &is]))
            .gets(page(416)),
        // §14.2: it is not looked at where the range is not to be.
        case("not there of another", get("/alpha.txt", ["Range: bytes=26-", "If-Range: \"x\""]))
            .gets(alpha()),
        case("several parts", get("/large.bin", ["Range: bytes=0-9,20-29", &is_large]))
            .gets(Answer::parts(large_file(), [(0, 9), (20, 29)])),
        case("several of another", get("/large.bin", ["Range: bytes=0-9,20-29", &is]))
            .gets(large()),
        case("of HEAD", request("HEAD /alpha.txt HTTP/1.1", ["Range: bytes=0-4", &is]))
            .gets(alpha().for_head()),
        case("of nothing", get("/none", ["Range: bytes=0-4", &is])).gets(page(404)),
        case(
            "with a condition that fails",
            get("/alpha.txt", ["Range: bytes=0-4", &is, "If-Match: \"x\""]),
        )
        .gets(page(412)),
    ]
}

#[test]
fn cases() {
    hold([cases_of_one_part(), cases_beside_others()].into_iter().flatten().collect());
}
