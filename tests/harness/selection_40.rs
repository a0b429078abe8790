//! Layer 40: parts and codings of large files over a socket.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{Client, Response, Server, Site, pattern};

const MIB: usize = 1 << 20;

/// A file that is answered from memory and one that is pulled, both long settled.
fn site() -> Site {
    let site = Site::new();
    for (name, bytes) in [("small", 4000), ("large", 3 * MIB)] {
        site.write(name, pattern(bytes));
        settle(&site, name);
    }
    site
}

fn settle(site: &Site, name: &str) {
    let file = File::options().write(true).open(site.path(name)).expect("it was written");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(1_704_067_200)).expect("the file is ours");
}

fn request(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

/// The parts of a multipart response, as `Content-Range` names them, with their bytes.
fn parts(response: &Response) -> Vec<(String, Vec<u8>)> {
    let content_type = response.field("content-type").expect("a type");
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").expect("multipart");
    let delimiter = format!("\r\n--{boundary}");
    let body = [b"\r\n", &*response.body].concat();
    let places: Vec<_> = memchr::memmem::find_iter(&body, delimiter.as_bytes()).collect();
    assert_eq!(places[0], 0);
    assert_eq!(&body[places[places.len() - 1] + delimiter.len()..], b"--\r\n");
    let part = |place: &[usize]| {
        let part = &body[place[0] + delimiter.len()..place[1]];
        let head = memchr::memmem::find(part, b"\r\n\r\n").expect("an empty line");
        let fields = std::str::from_utf8(&part[..head]).expect("ASCII");
        let (_, range) = fields.split_once("\r\nContent-Range: ").expect("a range");
        (range.to_owned(), part[head + 4..].to_vec())
    };
    places.windows(2).map(part).collect()
}

#[test]
fn large_parts_wait_for_a_slow_reader() {
    let site = site();
    let server = Server::start(site.serve());
    let whole = pattern(3 * MIB);
    let mut client = Client::narrow(server.address(), 65_536);
    client.send(request("/large", "Range: bytes=2000000-,1-1000000,1500000-1500009\r\n"));
    let parts = parts(&client.response());
    let bodies: Vec<_> = parts.into_iter().map(|(_, body)| body).collect();
    let expected = [&whole[2_000_000..], &whole[1..=1_000_000], &whole[1_500_000..=1_500_009]];
    assert!(bodies == expected);
    assert_eq!(client.get("/small").status, 200);
}

/// A compressed sibling has a type, a tag and a coding; who does not accept it gets the original.
#[test]
fn a_compressed_sibling_is_one_coding() {
    let site = site();
    for (name, bytes) in [("app.css", 6 * MIB), ("app.css.gz", 2 * MIB)] {
        site.write(name, pattern(bytes));
        settle(&site, name);
    }
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    let mut ask = |fields: &str| {
        client.send(request("/app.css", fields));
        client.response()
    };
    let plain = ask("");
    let coded = ask("Accept-Encoding: gzip, deflate, br\r\n");
    assert!(plain.body == pattern(6 * MIB) && coded.body == pattern(2 * MIB));
    for (response, coding) in [(&plain, None), (&coded, Some("gzip"))] {
        assert_eq!(response.field("content-encoding"), coding);
        assert_eq!(response.field("content-type"), Some("text/css; charset=utf-8"));
        assert_eq!(response.field("vary"), Some("Accept-Encoding"));
    }
    assert_ne!(plain.field("etag"), coded.field("etag"));
}
