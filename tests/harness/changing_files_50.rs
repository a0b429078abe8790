//! Layer 50: files that change while they are served. What was seen of servers that fail at it is in
//! layer 80.

use std::fs;

use crate::support::{Client, Server, Site, wait_until};

#[test]
fn a_replaced_file_is_seen_once_its_time_is_over() {
    let site = Site::with("file", "old");
    let server = Server::start(site.serve_with("[cache]\nvalid = \"10ms\""));
    let mut client = Client::connect(server.address());
    assert_eq!(client.get("/file").body, b"old");
    for content in ["new", "newer"] {
        site.write("file.new", content);
        fs::rename(site.path("file.new"), site.path("file")).expect("the root is ours");
        wait_until("the new file is served", || client.get("/file").body == content.as_bytes());
    }
    fs::remove_file(site.path("file")).expect("the root is ours");
    wait_until("the file is gone", || client.get("/file").status == 404);
}
