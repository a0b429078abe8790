//! HEAD was answered with the body of GET, which the client took for the next answer.

use crate::support::{Client, Server, Site, pattern};

#[test]
fn of_whatever_kind() {
    let site = Site::with("small", pattern(100));
    site.write("large", pattern(100_000));
    site.write("listed/file", "x");
    let server = Server::start(site.serve_with("listing = true"));
    let mut client = Client::connect(server.address());
    for path in ["/small", "/large", "/absent", "/listed", "/listed/", "/%zz"] {
        let request = |method| format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.send([request("HEAD"), request("GET")].concat());
        let head = client.head();
        let get = client.response();
        assert_eq!(
            (head.status, &head.reason, &head.fields),
            (get.status, &get.reason, &get.fields)
        );
        assert!(!get.body.is_empty(), "{path}");
    }
}

/// A request that is refused before all of it is understood, or has come, is one to HEAD all the same.
#[test]
fn also_where_it_was_refused() {
    let site = Site::with("small", pattern(100));
    let server = Server::start(site.serve_with("[timeouts]\nhead = \"500ms\"\nbody = \"500ms\""));
    for (status, request) in [
        (400, "HEAD /small HTTP/1.1\r\n\r\n"),
        (417, "HEAD /small HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\n\r\n"),
        (408, "HEAD /small HTTP/1.1\r\nHost: local"),
        (408, "HEAD /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhell"),
    ] {
        let mut client = Client::connect(server.address());
        client.send(request);
        assert_eq!(client.head().status, status, "{request:?}");
        assert_eq!(client.rest(), b"", "{request:?}");
    }
}
