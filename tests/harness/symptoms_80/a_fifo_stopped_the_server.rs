//! Opening a FIFO waited for whoever would write into it; nobody was served meanwhile.

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Client, Server, Site};

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn what_is_no_file_is_not_found_and_stops_nobody() {
    let site = Site::with("file", "content");
    mkfifo(&site.path("fifo"), Mode::from_bits_truncate(0o644)).expect("the root is ours");
    let _socket = std::os::unix::net::UnixListener::bind(site.path("socket")).expect("it is ours");
    std::os::unix::fs::symlink("/dev/zero", site.path("device")).expect("the root is ours");
    let server = Server::start(site.serve().cpus("0"));
    let mut client = Client::connect(server.address());
    for path in ["/fifo", "/socket", "/device"] {
        client.send([request(path), request("/file")].concat());
        assert_eq!(client.response().status, 404, "{path}");
        assert_eq!(client.response().body, b"content");
    }
    let threads = server.threads();
    assert!(!threads.iter().any(|name| name.starts_with("iou-wrk")), "{threads:?}");
}
