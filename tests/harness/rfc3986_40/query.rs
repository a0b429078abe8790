//! RFC 3986 §3.4: the query selects no file, and may have any byte that a query may have.

use crate::conformance_40::{Case, alpha, case, dir, get, hold, index, page};

fn queries() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in [
        "/alpha.txt?",
        "/alpha.txt?x",
        "/alpha.txt??",
        "/alpha.txt?a=b&c=d",
        "/alpha.txt?!$&'()*+,;=:@/?-._~",
        "/alpha.txt?%",
        "/alpha.txt?%zz",
        "/alpha.txt?%00",
        "/alpha.txt?/../../etc/passwd",
        "/alpha.txt?http://localhost/",
        "/alpha.txt?\u{e9}",
        "/alpha.txt?[]{}|\\^`<>\"",
    ] {
        cases.push(case("a query", get(target, [])).gets(alpha()));
    }
    for target in ["/?", "/?x", "/?/../../etc/passwd", "/?index=dir/index.html"] {
        cases.push(case("a query of the root", get(target, [])).gets(index()));
    }
    cases.push(case("a query of a directory", get("/dir/?x", [])).gets(dir()));
    cases.push(case("a query of nothing", get("/none?alpha.txt", [])).gets(page(404)));
    cases.push(
        case("an encoded question mark is of the name", get("/alpha.txt%3Fx", [])).gets(page(404)),
    );
    for target in ["/alpha.txt?#", "/alpha.txt?a#b", "/?#"] {
        cases.push(case("a fragment behind it", get(target, [])).gets(page(400)));
    }
    cases
}

#[test]
fn cases() {
    hold(queries());
}
