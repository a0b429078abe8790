//! RFC 9110 §12.5.3 and §8.4: a file that is there in a coding too is sent in it to those who accept
//! it, with a tag of its own, and says to everybody that it varies.

use crate::conformance_40::{
    Answer, CSS, CSS_GZIP, Case, case, css, css_gzip, css_gzip_tag, get, hold, page, request, tag,
};

fn codings() -> Vec<Case> {
    let with = |value: &str| get("/style.css", [&*format!("Accept-Encoding: {value}")]);
    let mut cases = vec![case("nothing is said", get("/style.css", [])).gets(css())];
    for value in [
        "gzip",
        "GZIP",
        "x-gzip",
        "br, gzip",
        "gzip, deflate, br, zstd",
        "*",
        "*;q=0.1",
        "gzip;q=1",
        "gzip;q=0.001",
        "gzip; q=0.5",
        "gzip ;q=0.5",
        "gzip;Q=0.5",
        "br;q=1, gzip;q=0.1",
        "identity;q=0.5, gzip;q=0.8",
        "identity;q=0, gzip",
        ", gzip ,",
        "identity, gzip",
        "*;q=0, gzip",
        "gzip;q=0.333",
    ] {
        cases.push(case("gzip is accepted", with(value)).gets(css_gzip()));
    }
    for value in [
        "",
        "identity",
        "br",
        "br, zstd, deflate",
        "compress",
        "gzip;q=0",
        "gzip;q=0.0",
        "gzip;q=0.000",
        "*;q=0",
        "gzip;q=0, *",
        "identity;q=1, gzip;q=0.5",
        "identity, *;q=0.5",
        "gzip;q=2",
        "gzip;q=x",
        "gzip;q=",
        "gzip;q=0.1234",
        "gzip;q=-1",
        "gzip;x=1",
        "gzipped",
        "gzip x",
        "\"gzip\"",
        "identity;q=0",
        "br;q=0, *;q=0",
    ] {
        cases.push(case("gzip is not accepted", with(value)).gets(css()));
    }
    cases.push(
        case(
            "a list in lines",
            get("/style.css", ["Accept-Encoding: br", "Accept-Encoding: gzip"]),
        )
        .gets(css_gzip()),
    );
    cases
}

/// §8.8.3.3: the two have different tags; §15.4.5: a 304 says what the 200 would vary by.
fn tags() -> Vec<Case> {
    let coded = "Accept-Encoding: gzip";
    let is = |tag: &str| format!("If-None-Match: {tag}");
    let (plain_tag, coded_tag) = (tag(CSS), css_gzip_tag());
    let not_modified =
        |tag: &str| Answer::unchanged(tag.to_owned()).with("Vary", "Accept-Encoding");
    vec![
        case("the coding is there already", get("/style.css", [coded, &is(&coded_tag)]))
            .gets(not_modified(&coded_tag)),
        case("the other is there already", get("/style.css", [&*is(&plain_tag)]))
            .gets(not_modified(&plain_tag)),
        case("the tag of the other", get("/style.css", [coded, &is(&plain_tag)])).gets(css_gzip()),
        case("the tag of the coding for the other", get("/style.css", [&*is(&coded_tag)]))
            .gets(css()),
        case("a part of the coding", get("/style.css", [coded, "Range: bytes=4-8"])).gets(
            Answer::part(CSS_GZIP, 4, 8)
                .with("ETag", coded_tag)
                .with("Vary", "Accept-Encoding")
                .with("Content-Encoding", "gzip"),
        ),
        // Several parts could not say what coding they are of.
        case("parts of the coding", get("/style.css", [coded, "Range: bytes=0-0,9-9"]))
            .gets(css_gzip()),
        case("a part of the other", get("/style.css", ["Range: bytes=0-3"])).gets(
            Answer::part(CSS, 0, 3)
                .with("ETag", plain_tag)
                .with("Vary", "Accept-Encoding")
                .lacking("Content-Encoding"),
        ),
        case("HEAD", request("HEAD /style.css HTTP/1.1", [coded])).gets(css_gzip().for_head()),
        case("a condition that fails", get("/style.css", [coded, "If-Match: \"x\""]))
            .gets(page(412)),
        // It is a file of its own, too.
        case("by its own name", get("/style.css.gz", [coded])).gets(
            Answer::file(CSS_GZIP, "application/gzip").lacking("Content-Encoding").lacking("Vary"),
        ),
    ]
}

#[test]
fn cases() {
    hold([codings(), tags()].into_iter().flatten().collect());
}
