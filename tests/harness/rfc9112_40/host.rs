//! RFC 9112 §3.2, RFC 9110 §7.2: one `Host`, which is `uri-host [ ":" port ]`.

use crate::conformance_40::{Case, case, get, hold, index};

fn presence() -> Vec<Case> {
    let get = |version: &str, fields: &str| format!("GET / HTTP/{version}\r\n{fields}\r\n");
    let two = "Host: localhost\r\nHost: localhost\r\n";
    vec![
        case("none", get("1.1", "")).refused(400),
        case("none, but another field", get("1.1", "Hosts: localhost\r\n")).refused(400),
        case("none, of 1.0", get("1.0", "")).gets_last(index()),
        case("an empty one", get("1.1", "Host:\r\n")).gets(index()),
        case("an empty one with spaces", get("1.1", "Host: \t \r\n")).gets(index()),
        case("two equal ones", get("1.1", two)).refused(400),
        case("two different ones", get("1.1", "Host: a\r\nHost: b\r\n")).refused(400),
        case("two of different case", get("1.1", "Host: a\r\nhOST: a\r\n")).refused(400),
        case("an empty one and another", get("1.1", "Host:\r\nHost: a\r\n")).refused(400),
        case("two, far apart", get("1.1", "Host: a\r\nX: 1\r\nY: 2\r\nHost: a\r\n")).refused(400),
        case("two, of 1.0", get("1.0", two)).refused(400),
        case("an invalid one, of 1.0", get("1.0", "Host: a b\r\n")).refused(400),
    ]
}

fn values() -> Vec<Case> {
    let with = |host: &[u8]| [b"GET / HTTP/1.1\r\nHost: ", host, b"\r\n\r\n"].concat();
    let mut cases = Vec::new();
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "localhost:80",
        "localhost:",
        "localhost:0",
        "localhost:99999",
        "a_b",
        "a-b.example",
        "127.0.0.1",
        "127.0.0.1:81",
        "1.2.3.4.5",
        "[::1]",
        "[::1]:8080",
        "[::ffff:127.0.0.1]:80",
        "[v1.a:b]",
        "xn--hst-sna.example",
        "a%20b",
        "!$&'()*+;=,~",
        "\tlocalhost\t ",
    ] {
        cases.push(case("a host", with(host.as_bytes())).gets(index()));
    }
    for host in [
        &b"a b"[..],
        b"a\tb",
        b"user@localhost",
        b"user:pass@localhost",
        b"@localhost",
        b"http://localhost",
        b"//localhost",
        b"localhost/",
        b"localhost/path",
        b"localhost?x",
        b"localhost#x",
        b"../../etc",
        b"a\\b",
        b"a\0b",
        b"a\x01b",
        b"a\x7fb",
        b"a\rb",
        b"h\xc3\xb6st",
        b"h\xf6st",
        b"\"localhost\"",
        b"localhost, other",
        b"<localhost>",
        b"{localhost}",
        b"a|b",
        b"a^b",
        b"a`b",
        b"a%zz",
        b"a%4",
        b"a%",
        b"::1",
        b"2001:db8::1",
        b"[::1",
        b"::1]",
        b"[]",
        b"[::1]x",
        b"[::1]:8x",
        b"[::1%25eth0]",
        b"[localhost]",
        b"[1.2.3.4]",
        b"[v.a]",
        b"[v1.]",
        b"localhost:80:80",
        b"localhost:8x",
        b"localhost:-1",
        b"localhost:+80",
        b"localhost: 80",
        b":80",
        b":",
    ] {
        cases.push(case("no host", with(host)).refused(400));
    }
    cases.push(
        case("a host that a list would be", get("/", ["X-Forwarded-Host: a, b"])).gets(index()),
    );
    cases
}

#[test]
fn cases() {
    hold([presence(), values()].into_iter().flatten().collect());
}
