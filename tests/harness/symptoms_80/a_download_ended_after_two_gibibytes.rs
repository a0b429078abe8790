//! One call moves 2 GiB at most, and lengths were kept in 32 bits: larger files ended early, or had
//! another length for HEAD than for GET.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::support::{Client, Server, Site, repeats, skip};

const BYTES: u64 = (4 << 30) + 100;

/// Nothing but holes, save at the very end and where 32 bits end.
fn huge() -> Site {
    let site = Site::with("huge", "");
    let file = File::options().write(true).open(site.path("huge")).expect("it was written");
    file.set_len(BYTES).expect("holes take no room");
    file.write_all_at(b"12345678", (1 << 32) - 4).expect("there is room");
    file.write_all_at(b"end", BYTES - 3).expect("there is room");
    site
}

#[test]
fn by_its_head_and_its_parts() {
    let site = huge();
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
}

#[test]
fn by_the_whole_of_it() {
    if repeats(2) == 1 {
        return skip("four gibibytes take too long here");
    }
    let site = huge();
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    let request = "GET /huge HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.send([request, request].concat());
    assert_eq!(client.head().field("content-length"), Some(&*BYTES.to_string()));
    client.discard((1 << 32) - 4);
    assert_eq!(client.take(8), b"12345678");
    client.discard(BYTES - (1 << 32) - 4 - 3);
    assert_eq!(client.take(3), b"end");
    // Not a byte more: the next answer begins here.
    assert_eq!(client.head().status, 200);
    drop(client);
    let stats = server.stop();
    assert_eq!((stats.total("requests"), stats.total("truncated_files")), (2, 0));
}
