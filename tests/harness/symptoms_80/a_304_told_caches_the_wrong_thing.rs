//! A 304 lacked what the 200 had said of caching, or said that the length was 0: caches then forgot the
//! one, or believed the other.

use crate::support::{Client, Server, Site, pattern};

#[test]
fn by_what_it_lacks_and_by_what_it_has() {
    let site = Site::with("small", pattern(100));
    site.write("large", pattern(100_000));
    for name in ["small", "large"] {
        site.write(&format!("{name}.gz"), "coded");
        site.settle(name);
    }
    let rules = "[[site.headers]]\nmatch = \"*\"\nset = { Cache-Control = \"max-age=60\", Vary = \"Origin\" }";
    let server = Server::start(site.serve_with(rules));
    let mut client = Client::connect(server.address());
    for path in ["/small", "/large"] {
        let whole = client.get(path);
        let tag = whole.field("etag").expect("a tag");
        let not_modified = client.head_with(path, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!(not_modified.status, 304);
        for name in ["etag", "vary", "cache-control"] {
            assert!(whole.field(name).is_some(), "{name}");
            assert_eq!(not_modified.field(name), whole.field(name), "{name}");
        }
        assert!(not_modified.field("date").is_some());
        assert_eq!(not_modified.field("content-length"), None);
    }
}
