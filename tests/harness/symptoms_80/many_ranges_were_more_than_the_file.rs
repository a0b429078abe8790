//! The same range asked for again and again made an answer many times as large as the file.

use crate::support::{Client, Server, Site, pattern};

#[test]
fn that_overlap() {
    const BYTES: usize = 100_000;
    let site = Site::with("file", pattern(BYTES));
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    let each: Vec<_> = (0..1000).map(|first| format!("{first}-")).collect();
    let ones: Vec<_> = (0..1000).map(|n| format!("{}-{}", 2 * n, 2 * n)).collect();
    for ranges in ["0-,0-,0-".to_owned(), each.join(","), ones.join(",")] {
        let response = client.get_with("/file", &format!("Range: bytes={ranges}\r\n"));
        assert!([200, 206, 416].contains(&response.status), "{}", response.status);
        assert!(response.body.len() <= 2 * BYTES, "{} bytes", response.body.len());
    }
}
