//! A range that ended beyond the file was promised whole, and sent as far as there was something; one
//! that began before it was refused.

use crate::support::{Client, Server, Site, pattern};

#[test]
fn for_a_range_that_ends_beyond_the_file() {
    // One that is answered from memory, and one that is pulled.
    for bytes in [26, 100_000] {
        let site = Site::with("file", pattern(bytes));
        let server = Server::start(site.serve());
        let mut client = Client::connect(server.address());
        let last = bytes - 1;
        for (range, first) in [
            (format!("{}-{}", bytes - 6, bytes + 74), bytes - 6),
            (format!("{last}-"), last),
            (format!("0-{}", u64::MAX), 0),
            (format!("-{}", bytes * 4), 0),
            (format!("-{}", u64::MAX), 0),
        ] {
            let response = client.get_with("/file", &format!("Range: bytes={range}\r\n"));
            assert_eq!(response.status, 206, "{range}");
            let expected = format!("bytes {first}-{last}/{bytes}");
            assert_eq!(response.field("content-range"), Some(&*expected), "{range}");
            assert!(response.body == pattern(bytes)[first..], "{range}");
        }
        // The next answer begins where the last one was said to end.
        assert_eq!(client.get("/file").status, 200);
    }
}
