//! One call moves 2 GiB at most, and lengths were kept in 32 bits: larger files ended early, or had
//! another length for HEAD than for GET.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::support::{Client, Server, Site, repeats, skip};

/// Nothing but holes, save at `at` and at the very end.
fn holes(bytes: u64, at: u64) -> Site {
    let site = Site::with("small", "small");
    let file = File::create(site.path("huge")).expect("the root is ours");
    file.set_len(bytes).expect("holes take no room");
    file.write_all_at(b"12345678", at).expect("there is room");
    file.write_all_at(b"end", bytes - 3).expect("there is room");
    site
}

#[test]
fn by_its_head_and_its_parts() {
    const BYTES: u64 = (4 << 30) + 100;
    let site = holes(BYTES, (1 << 32) - 4);
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    client.send("HEAD /huge HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.head().field("content-length"), Some(&*BYTES.to_string()));
    for (range, expected, body) in [
        ("4294967292-4294967299", "4294967292-4294967299", "12345678"),
        ("-3", "4294967393-4294967395", "end"),
        ("2147483647-2147483648", "2147483647-2147483648", "\0\0"),
    ] {
        let response = client.get_with("/huge", &format!("Range: bytes={range}\r\n"));
        assert_eq!(response.status, 206);
        let content_range = format!("bytes {expected}/{BYTES}");
        assert_eq!(response.field("content-range"), Some(&*content_range));
        assert_eq!(response.body, body.as_bytes());
    }
    // Pulled in many pieces, of which one ends where 32 bits do.
    let before = 50 << 20;
    let head = client.head_with("/huge", &format!("Range: bytes={}-\r\n", (1 << 32) - 4 - before));
    assert_eq!(head.field("content-length"), Some(&*(before + 4 + 100).to_string()));
    client.discard(before);
    assert_eq!(client.take(8), b"12345678");
    client.discard(96 - 3);
    assert_eq!(client.take(3), b"end");
    assert_eq!(client.get("/small").body, b"small");
}

#[test]
fn by_the_whole_of_it() {
    if repeats(2) == 1 {
        return skip("two gibibytes take too long here");
    }
    /// The most that one call moves (MAX_RW_COUNT), and a little more than 31 bits count.
    const ONE_CALL: u64 = 0x7fff_f000;
    const BYTES: u64 = (2 << 30) + 100;
    let site = holes(BYTES, ONE_CALL - 4);
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    let request = |path| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.send([request("/huge"), request("/small")].concat());
    assert_eq!(client.head().field("content-length"), Some(&*BYTES.to_string()));
    client.discard(ONE_CALL - 4);
    assert_eq!(client.take(8), b"12345678");
    client.discard(BYTES - ONE_CALL - 4 - 3);
    assert_eq!(client.take(3), b"end");
    // Not a byte more: the next answer begins here.
    assert_eq!(client.response().body, b"small");
    let stats = server.stop();
    assert_eq!((stats.total("requests"), stats.total("truncated_files")), (2, 0));
}
