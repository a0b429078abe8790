//! RFC 9112 §3.2: the four forms of a request target. What a path is, is in `rfc3986_40`.

use crate::conformance_40::{Answer, Case, alpha, case, dir, get, hold, index, page, request};

/// §3.2.1: an absolute path and perhaps a query; what has no form is refused.
fn origin_form() -> Vec<Case> {
    let mut cases = vec![
        case("a path", get("/alpha.txt", [])).gets(alpha()),
        case("a path and a query", get("/alpha.txt?a=b", [])).gets(alpha()),
    ];
    for target in [
        "index.html",
        "./index.html",
        "../index.html",
        "?x",
        "#",
        "localhost",
        "localhost/",
        ":80",
        "\\index.html",
        "%2Findex.html",
        "*x",
        "**",
        "~",
        "http:",
        "http:/",
        "http:/index.html",
        "//", // Of these, the last alone has a form: an empty segment.
    ] {
        let case = case("a target without a form", get(target, []));
        cases.push(if target == "//" { case.gets(index()) } else { case.refused(400) });
    }
    for target in ["/#", "/alpha.txt#part", "/alpha.txt?a#part"] {
        cases.push(case("a fragment, which is never sent", get(target, [])).gets(page(400)));
    }
    for target in ["/\0", "/a\0b", "/\u{1}", "/\u{1f}", "/\u{7f}", "/\rindex.html", "/\t"] {
        cases.push(case("a control byte", get(target, [])).refused(400));
    }
    for target in [&b"/\xff"[..], b"/\xc3", b"/\xc0\xaf", b"/\xed\xa0\x80"] {
        let sends = [b"GET ", target, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat();
        cases.push(case("bytes that are no UTF-8", sends).refused(400));
    }
    cases
}

/// §3.2.2: a server MUST accept it; its authority wins over `Host`, which must be there all the same.
fn absolute_form() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in [
        "http://localhost/alpha.txt",
        "http://localhost:80/alpha.txt",
        "http://localhost:/alpha.txt",
        "HTTP://LocalHost/alpha.txt",
        "hTtP://localhost/alpha.txt?a=b",
        "http://[::1]/alpha.txt",
        "http://[::1]:8080/alpha.txt",
        "http://127.0.0.1:9/alpha.txt",
        "http://elsewhere.example/alpha.txt",
        "http://a_b.example/alpha.txt",
        "http://localhost/dir/../alpha.txt",
    ] {
        cases.push(case("an absolute URI", get(target, [])).gets(alpha()));
    }
    for target in ["http://localhost", "http://localhost/", "http://localhost?", "http://a?b=c/d"] {
        cases.push(case("an absolute URI without a path", get(target, [])).gets(index()));
    }
    for target in [
        "://localhost/",
        "//localhost:80:80",
        "http://",
        "http:///index.html",
        "http://?x",
        "http://:80/",
        "http://u@localhost/",
        "http://u:p@localhost/",
        "http://@localhost/",
        "http://local host/",
        "http://localhost:8x/",
        "http://localhost:-1/",
        "http://localhost:80:80/",
        "http://[::1/",
        "http://::1/",
        "http://[::1]x/",
        "http://a%zz/",
        "http://a\\b/",
        "http://\"a\"/",
        "ftp://localhost/index.html",
        "file:///etc/passwd",
        "ws://localhost/",
        "httpx://localhost/",
        "http ://localhost/",
        "http:\\\\localhost\\",
        "urn:isbn:0",
        "javascript:alert(1)",
    ] {
        let case = case("an absolute URI that is none of ours", get(target, []));
        // An origin form, if an odd one.
        let has_form = target == "//localhost:80:80";
        cases.push(if has_form { case.gets(page(404)) } else { case.refused(400) });
    }
    // RFC 9110 §7.4: MUST be rejected where the connection is not secured.
    for target in ["https://localhost/", "https://localhost", "HTTPS://localhost:443/alpha.txt"] {
        cases.push(case("an absolute URI of https", get(target, [])).refused(421));
    }
    cases.push(
        case("an absolute URI without Host", "GET http://localhost/ HTTP/1.1\r\n\r\n").refused(400),
    );
    cases.push(
        case("an absolute URI without Host, of 1.0", "GET http://localhost/ HTTP/1.0\r\n\r\n")
            .gets_last(index()),
    );
    cases.push(
        case(
            "an absolute URI beside an invalid Host",
            "GET http://localhost/ HTTP/1.1\r\nHost: a b\r\n\r\n",
        )
        .refused(400),
    );
    cases.push(
        case("an absolute URI of a directory", get("http://a.example:81/dir/", [])).gets(dir()),
    );
    cases.push(
        case(
            "an absolute URI of a directory without its slash",
            get("http://a.example:81/dir", []),
        )
        .gets(page(301).with("Location", "/dir/")),
    );
    cases
}

/// §3.2.3: for CONNECT alone, which this server does not do (RFC 9110 §9.3.6).
fn authority_form() -> Vec<Case> {
    let connect = |target: &str| request(&format!("CONNECT {target} HTTP/1.1"), []);
    let mut cases = Vec::new();
    for target in ["localhost:80", "127.0.0.1:9", "[::1]:443", "a.example:1"] {
        cases.push(case("a tunnel", connect(target)).gets(page(405)));
    }
    for target in [
        "localhost",
        "localhost:",
        ":80",
        "/",
        "*",
        "/alpha.txt",
        "http://localhost:80",
        "http://localhost:80/",
        "u@localhost:80",
        "localhost:80/",
        "localhost:8x",
        "[::1]",
    ] {
        cases.push(case("a tunnel to nowhere", connect(target)).refused(400));
    }
    for target in ["localhost:80", "127.0.0.1:80", "[::1]:80", "a.example:443"] {
        cases.push(case("an authority for GET", get(target, [])).refused(400));
    }
    cases
}

/// §3.2.4: for OPTIONS alone; so is an absolute URI without path and query.
fn asterisk_form() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in ["*", "http://localhost", "http://localhost:8080", "/", "/none", "/dir?x"] {
        let line = format!("OPTIONS {target} HTTP/1.1");
        cases.push(
            case("OPTIONS about the server, or a part of it", request(&line, []))
                .gets(Answer::no_content().with("Allow", "GET, HEAD, OPTIONS")),
        );
    }
    for line in ["GET * HTTP/1.1", "PUT * HTTP/1.1", "POST * HTTP/1.1", "DELETE * HTTP/1.1"] {
        cases.push(case("an asterisk for another method", request(line, [])).refused(400));
    }
    for line in ["OPTIONS ** HTTP/1.1", "OPTIONS *? HTTP/1.1", "OPTIONS x HTTP/1.1"] {
        cases.push(case("OPTIONS about nothing", request(line, [])).refused(400));
    }
    cases
}

#[test]
fn cases() {
    let forms = [origin_form(), absolute_form(), authority_form(), asterisk_form()];
    hold(forms.into_iter().flatten().collect());
}
