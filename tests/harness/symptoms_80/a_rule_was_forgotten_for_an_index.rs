//! A rule for `*.html` was held against `/`, which is what was asked for, and not against the index that
//! was sent.

use crate::support::{Client, Server, Site};

#[test]
fn of_a_directory() {
    let site = Site::with("index.html", "root");
    site.write("a/index.html", "below");
    site.write("a/other", "other");
    let rules = "[[site.headers]]\nmatch = \"*.html\"\nset = { Cache-Control = \"no-cache\" }";
    let server = Server::start(site.serve_with(rules));
    let mut client = Client::connect(server.address());
    for (path, said) in [
        ("/", Some("no-cache")),
        ("/index.html", Some("no-cache")),
        ("/a/", Some("no-cache")),
        ("/a/other", None),
        ("/absent.html", None),
    ] {
        assert_eq!(client.get(path).field("cache-control"), said, "{path}");
    }
}
