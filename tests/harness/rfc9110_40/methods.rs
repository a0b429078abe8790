//! RFC 9110 §9: GET, HEAD and OPTIONS; what others get, and `Allow` (§10.2.1, §15.5.6).

use crate::conformance_40::{
    Answer, Case, INDEX, alpha, case, dir, empty, get, hold, index, large, page, request,
};

/// §9.3.2: the head is that of GET, and nothing follows it: the next answer begins at once.
fn head() -> Vec<Case> {
    let mut cases = Vec::new();
    for (target, answer) in [
        ("/", index()),
        ("/alpha.txt", alpha()),
        ("/large.bin", large()),
        ("/empty.txt", empty()),
        ("/dir/", dir()),
        ("/none", page(404)),
        ("/%zz", page(400)),
        ("/..", page(400)),
        ("/dir", page(301).with("Location", "/dir/")),
    ] {
        let head = request(&format!("HEAD {target} HTTP/1.1"), []);
        cases.push(
            case("HEAD and GET", [head, get("/alpha.txt", [])].concat())
                .gets([answer.for_head(), alpha()]),
        );
    }
    cases.push(case("HEAD of 1.0", request("HEAD / HTTP/1.0", [])).gets_last(index().for_head()));
    cases.push(
        case("HEAD and close", request("HEAD / HTTP/1.1", ["Connection: close"]))
            .gets_last(index().for_head()),
    );
    cases.push(
        case("HEAD with a range", request("HEAD / HTTP/1.1", ["Range: bytes=0-4"]))
            .gets(index().for_head()),
    );
    cases.push(
        case("HEAD with a condition that is met", request("HEAD / HTTP/1.1", ["If-None-Match: *"]))
            .gets(Answer::not_modified(INDEX)),
    );
    cases.push(
        case("HEAD with one that fails", request("HEAD / HTTP/1.1", ["If-Match: \"x\""]))
            .gets(page(412).for_head()),
    );
    cases
}

/// §9.3.2: nothing follows the head of a refusal either, as soon as the method has come.
fn head_refused() -> Vec<Case> {
    let mut cases = Vec::new();
    for (sends, status) in [
        (&b"HEAD / HTTP/1.1\r\n\r\n"[..], 400),
        (b"HEAD / HTTP/1.1\n\n", 400),
        (b"HEAD /\r\n", 400),
        (b"\r\nHEAD * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n", 400),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n", 413),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx", 400),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417),
        (b"HEAD https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 421),
        (b"HEAD / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    ] {
        cases.push(case("HEAD that is refused", sends).gets_last(page(status).for_head()));
    }
    let long = [&b"HEAD /"[..], &[b'a'; 9000]].concat();
    cases.push(case("HEAD of a long line", long).gets_last(page(414).for_head()));
    let wide = ["X: 1"; 200].join("\r\n");
    let wide = format!("HEAD / HTTP/1.1\r\nHost: a\r\n{wide}\r\n\r\n");
    cases.push(case("HEAD of many fields", wide).gets_last(page(431).for_head()));
    let cut = "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell";
    let cut = case("HEAD with a body that is cut off", cut).then_ends();
    cases.push(cut.gets_last(page(400).for_head()));
    cases
}

/// §9.3.7, and §15.5.6: `Allow` says what there is.
fn allowed() -> Vec<Case> {
    let allow = "GET, HEAD, OPTIONS";
    let mut cases = Vec::new();
    for target in ["/", "*", "/alpha.txt", "/none", "/dir"] {
        let line = format!("OPTIONS {target} HTTP/1.1");
        cases.push(
            case("OPTIONS", request(&line, [])).gets(Answer::no_content().with("Allow", allow)),
        );
    }
    cases.push(
        case("OPTIONS of 1.0", request("OPTIONS / HTTP/1.0", []))
            .gets_last(Answer::no_content().with("Allow", allow)),
    );
    cases.push(
        case(
            "OPTIONS before a request",
            [request("OPTIONS * HTTP/1.1", []), get("/", [])].concat(),
        )
        .gets([Answer::no_content(), index()]),
    );
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        for target in ["/alpha.txt", "/", "/none"] {
            let line = format!("{method} {target} HTTP/1.1");
            cases.push(
                case("a method that no file has", request(&line, []))
                    .gets(page(405).with("Allow", allow)),
            );
        }
        let line = format!("{method} / HTTP/1.0");
        cases.push(case("the same of 1.0", request(&line, [])).gets_last(page(405)));
    }
    cases.push(
        case("a POST of nothing", request("POST / HTTP/1.1", ["Content-Length: 0"]))
            .gets(page(405)),
    );
    // §9.3.8: what TRACE would send back may be a secret.
    cases.push(
        case("TRACE with a secret", request("TRACE / HTTP/1.1", ["Cookie: secret"]))
            .gets(page(405)),
    );
    // §9.3.6: nothing is tunnelled, and what would come through the tunnel is another request.
    cases.push(
        case("CONNECT", [request("CONNECT a:9 HTTP/1.1", []), get("/", [])].concat())
            .gets([page(405), index()]),
    );
    cases
}

/// §9.1, §15.6.2: a method that is not known anywhere here is not implemented.
fn unknown() -> Vec<Case> {
    let mut cases = Vec::new();
    for method in [
        "FROB", "get", "head", "Options", "PROPFIND", "MKCOL", "LOCK", "PURGE", "BREW", "LINK",
        "QUERY", "SEARCH", "PRI", "M-SEARCH", "X",
    ] {
        let line = format!("{method} / HTTP/1.1");
        cases.push(case("an unknown method", request(&line, [])).gets(page(501)));
    }
    cases
}

#[test]
fn cases() {
    hold([head(), head_refused(), allowed(), unknown()].into_iter().flatten().collect());
}
