//! RFC 3986 §5.2.4 and §6.2.2.3: `.` and `..` are resolved on the text, encoded or not; above the root
//! there is nothing.

use crate::conformance_40::{Case, alpha, case, dir, get, hold, index, page};

fn within() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in [
        "/dir/../index.html",
        "/dir/%2e%2e/index.html",
        "/dir/%2E%2E/index.html",
        "/dir/.%2e/index.html",
        "/dir/%2e./index.html",
        "/./index.html",
        "/%2e/index.html",
        "/dir/./../index.html",
        "/a/b/c/../../../index.html",
        "/none/../index.html",
        "//index.html",
        "///index.html",
        "/.//./index.html",
        "/dir//../index.html",
        "/",
        "//",
        "/.",
        "/./",
        "/dir/..",
        "/dir/../",
        "/alpha.txt/..",
    ] {
        cases.push(case("the index", get(target, [])).gets(index()));
    }
    for target in ["/alpha.txt", "/dir/../alpha.txt", "/index.html/../alpha.txt", "/bare/alpha.txt"]
    {
        cases.push(case("a file", get(target, [])).gets(alpha()));
    }
    for target in ["/dir/", "/dir//", "/dir/.", "/dir/./", "/dir/x/..", "/dir/../dir/index.html"] {
        cases.push(case("a directory", get(target, [])).gets(dir()));
    }
    for target in ["/bare/", "/bare/.", "/dir/../bare/"] {
        cases.push(case("a directory without an index", get(target, [])).gets(page(403)));
    }
    for target in [
        "/none",
        "/none/",
        "/index.html/",
        "/index.html/.",
        "/index.html/x",
        "/alpha.txt//",
        "/...",
        "/.../index.html",
        "/.. /index.html",
        "/dir/...",
        "/..x",
        "/dir/..;/",
        "/.index.html",
        "/%2eindex.html",
        "/.git/config",
        "/dir/.hidden",
    ] {
        let has_space = target.contains(' ');
        let case = case("nothing", get(target, []));
        cases.push(if has_space { case.refused(400) } else { case.gets(page(404)) });
    }
    cases
}

/// What leads above the root is refused; what only looks as if it did is a name like any other.
fn above() -> Vec<Case> {
    let repeated = |step: &str, end: &str| format!("/{}{end}", step.repeat(12));
    let mut cases = Vec::new();
    for target in [
        repeated("../", "etc/passwd"),
        repeated("%2e%2e/", "etc/passwd"),
        repeated("%2E%2E/", "etc/passwd"),
        repeated(".%2e/", "etc/passwd"),
        repeated("%2e./", "etc/passwd"),
        repeated("./../", "etc/passwd"),
        repeated("//../", "etc/passwd"),
        format!("/dir{}", repeated("../", "etc/passwd")),
        format!("/alpha.txt{}", repeated("../", "etc/passwd")),
        format!("/dir/%2e./.%2e{}", repeated("../", "etc/passwd")),
        format!("http://localhost{}", repeated("../", "etc/passwd")),
        "/..".into(),
        "/../".into(),
        "/../index.html".into(),
        "/%2e%2e/index.html".into(),
        "/../dir/index.html".into(),
        "//../index.html".into(),
        "/./../index.html".into(),
        "/dir/../../index.html".into(),
        "/../root/index.html".into(),
    ] {
        cases.push(case("above the root", get(&target, [])).gets(page(400)));
    }
    for target in [
        repeated("..%2f", "etc/passwd"),
        repeated("%2e%2e%2f", "etc/passwd"),
        repeated("%2e%2e%2F", "etc%2Fpasswd"),
        repeated("..%252f", "etc/passwd"),
        repeated("%252e%252e%252f", "etc/passwd"),
        repeated("..\\", "etc\\passwd"),
        repeated("..%5c", "etc%5cpasswd"),
        repeated("..%c0%af", "etc/passwd"),
        repeated("..%e0%80%af", "etc/passwd"),
        repeated("%c0%ae%c0%ae/", "etc/passwd"),
        repeated("....//", "etc/passwd"),
        repeated(".../", "etc/passwd"),
        repeated("..;/", "etc/passwd"),
        repeated("..%3b/", "etc/passwd"),
        repeated("..%20/", "etc/passwd"),
        repeated("..%0a/", "etc/passwd"),
        repeated("%ef%bc%8e%ef%bc%8e/", "etc/passwd"),
        repeated("..%ef%bc%8f", "etc/passwd"),
        "//etc/passwd".into(),
        "/etc/passwd".into(),
        "/dir/..%2f..%2fetc/passwd".into(),
        "/\\..\\..\\etc\\passwd".into(),
        "/c:/windows/win.ini".into(),
        "/~root/.profile".into(),
    ] {
        cases.push(case("a name", get(&target, [])).gets(page(404)));
    }
    for target in [
        repeated("..%00/", "etc/passwd"),
        repeated("..%u2216", "etc/passwd"),
        repeated("..%%35%63", "etc/passwd"),
        repeated("%%32%65%%32%65/", "etc/passwd"),
    ] {
        cases.push(case("a malformed name", get(&target, [])).gets(page(400)));
    }
    for target in ["../../../../etc/passwd", "file:///etc/passwd", "..\\..\\etc\\passwd"] {
        cases.push(case("no target", get(target, [])).refused(400));
    }
    cases
}

#[test]
fn cases() {
    hold([within(), above()].into_iter().flatten().collect());
}
