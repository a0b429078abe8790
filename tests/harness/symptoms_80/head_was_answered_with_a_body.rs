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
