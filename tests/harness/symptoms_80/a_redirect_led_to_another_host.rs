//! A directory was redirected to what was asked for with a slash behind it: `//host/..` led to another
//! host, and a port or a query was lost.

use std::net::SocketAddr;

use crate::support::{Client, Server, Site};

fn location(address: SocketAddr, target: &str, host: &str) -> Option<String> {
    let mut client = Client::connect(address);
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let response = client.response();
    let location = response.field("location").map(str::to_owned);
    assert_eq!(location.is_some(), response.status == 301, "{target}");
    location
}

#[test]
fn by_whatever_spelling() {
    let site = Site::new();
    for name in ["dir", "\\dir", "evil.example/dir", "d:", "\u{e9} ?#%"] {
        std::fs::create_dir_all(site.path(name)).expect("the root is ours");
    }
    let server = Server::start(site.serve());
    for target in [
        "/dir",
        "//dir",
        "///dir",
        "/\\dir",
        "/%5cdir",
        "/%5C%5Cdir",
        "/./dir",
        "/x/..//dir",
        "//evil.example",
        "//evil.example/dir",
        "//evil.example/..%2f",
        "//evil.example/%2e%2e",
        "/%5C%5Cevil.example/%252e%252e",
        "/d:",
        "/%C3%A9%20%3F%23%25",
        "/.//dir",
        "/%2e//%2e//dir",
    ] {
        for query in ["", "?", "?a=%2F/&b=//c", "?//evil.example"] {
            for host in ["localhost:12345", "[::1]:12345", "evil.example"] {
                let target = format!("{target}{query}");
                let Some(location) = location(server.address(), &target, host) else { continue };
                let path = location.strip_suffix(query).expect("the query is kept");
                let rest = path.strip_prefix('/').expect("a path, so that host and port are kept");
                assert!(!rest.starts_with(['/', '\\']), "{target}: {location}");
                assert!(path.ends_with('/'), "{target}: {location}");
                let (_, there) = (&location, self::location(server.address(), path, host));
                assert_eq!(there, None, "{target}: {location} leads on");
            }
        }
    }
    assert_eq!(location(server.address(), "//dir?q", "localhost:1").as_deref(), Some("/dir/?q"));
}
