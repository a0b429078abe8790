//! A range of a file came with a Content-Encoding that its bytes were not in, or with `identity`, which
//! is none.

use crate::support::{Client, Response, Server, Site, pattern};

fn asked(server: &Server, path: &str, fields: &str) -> Response {
    let range = format!("Range: bytes=0-\r\n{fields}");
    let response = Client::connect(server.address()).get_with(path, &range);
    assert_eq!(response.status, 206);
    response
}

#[test]
fn whoever_accepts_codings() {
    let site = Site::with("plain", pattern(5000));
    site.write("coded", pattern(5000));
    site.write("coded.gz", pattern(3000));
    for name in ["plain", "coded", "coded.gz"] {
        site.settle(name);
    }
    let server = Server::start(site.serve());
    let accepts = "Accept-Encoding: gzip, br\r\n";
    let plain = asked(&server, "/plain", accepts);
    assert_eq!(plain.field("content-encoding"), None);
    assert!(plain.body == pattern(5000));
    let coded = asked(&server, "/coded", accepts);
    assert_eq!(coded.field("content-encoding"), Some("gzip"));
    assert_eq!(coded.field("content-range"), Some("bytes 0-2999/3000"));
    assert!(coded.body == pattern(3000));
    let original = asked(&server, "/coded", "Accept-Encoding: identity\r\n");
    assert_eq!(original.field("content-encoding"), None);
    assert_ne!(original.field("etag"), coded.field("etag"), "parts of two must not be joined");
}
