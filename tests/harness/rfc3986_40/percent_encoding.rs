//! RFC 3986 §2.1, §2.2, §6.2.2 and §7.3, RFC 9110 §4.2.3: encoded bytes are decoded once, and mean what
//! they mean as they are; but an encoded slash parts nothing.

use crate::conformance_40::{Answer, Case, case, get, hold, index, page, spaced};

fn decoded_once() -> Vec<Case> {
    let percent = || Answer::file(b"a percent sign in its name\n", "text/plain; charset=utf-8");
    let beyond_ascii = || Answer::file(b"a name beyond ASCII\n", "text/plain; charset=utf-8");
    let mut cases = Vec::new();
    for target in [
        "/index.html",
        "/index%2Ehtml",
        "/index%2ehtml",
        "/%69ndex.html",
        "/%69%6E%64%65%78%2E%68%74%6D%6C",
    ] {
        cases.push(case("the same name", get(target, [])).gets(index()));
    }
    for target in ["/sp%20ace.txt", "/%73p%20ace%2etxt"] {
        cases.push(case("a space", get(target, [])).gets(spaced()));
    }
    cases.push(case("a percent sign", get("/pct%2541.txt", [])).gets(percent()));
    for target in ["/pct%41.txt", "/pctA.txt", "/pct%252541.txt"] {
        cases.push(case("a name decoded twice, or not at all", get(target, [])).gets(page(404)));
    }
    for target in ["/%C3%A9.txt", "/%c3%a9.txt", "/\u{e9}.txt"] {
        cases.push(case("a name beyond ASCII", get(target, [])).gets(beyond_ascii()));
    }
    for target in [
        "/sp+ace.txt",
        "/index.html%20",
        "/index.html%09",
        "/index.html.",
        "/INDEX.HTML",
        "/INDEX~1.HTM",
        "/index.html::$DATA",
        "/index%2ehtml%2e",
        "/e%CC%81.txt",
        "/%E9.txt",
        "/%C3%A9",
        "/%c0%ae",
        "/index.html;x=y",
        "/%EF%BB%BFindex.html",
        "/%u0069ndex.html%20",
    ] {
        let bad = target.contains("%u");
        let case = case("a name that is only like one", get(target, []));
        cases.push(case.gets(page(if bad { 400 } else { 404 })));
    }
    cases
}

/// A percent sign without two digits is no encoding of anything.
fn malformed() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in [
        "/%", "/%4", "/%zz", "/%4z", "/%z4", "/%%", "/%%41", "/%+1", "/%-1", "/%0x41", "/% 41",
        "/%4/1", "/a%", "/%4?1", "/dir/%", "/%2", "/%u0041", "/%\u{e9}",
    ] {
        let case = case("a cut encoding", get(target, []));
        // The one with a space in it is no target.
        cases.push(if target == "/% 41" { case.refused(400) } else { case.gets(page(400)) });
    }
    cases
}

/// No name has a NUL, and no name has a slash; a NUL is what cuts a name short elsewhere.
fn bytes_of_no_name() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in ["/index.html%00", "/index.html%00.txt", "/dir%00/", "/%00", "/%00index.html"] {
        cases.push(case("an encoded NUL", get(target, [])).gets(page(400)));
    }
    for target in [
        "/dir%2Findex.html",
        "/dir%2findex.html",
        "/%2Findex.html",
        "/index.html%2F",
        "/dir%2F",
        "/%2f",
        "/dir%2F..%2Findex.html",
    ] {
        cases.push(case("an encoded slash", get(target, [])).gets(page(404)));
    }
    for target in ["/%01", "/%0A", "/%0d%0a", "/%7F", "/%80", "/%ff", "/a%0aindex.html"] {
        cases.push(case("an encoded control byte", get(target, [])).gets(page(404)));
    }
    cases
}

#[test]
fn cases() {
    hold([decoded_once(), malformed(), bytes_of_no_name()].into_iter().flatten().collect());
}
