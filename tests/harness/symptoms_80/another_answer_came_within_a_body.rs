//! A file became shorter while it was sent: the server took that for its end, kept the connection, and
//! the next head came within the body that was promised.

use std::fs;
use std::io::Write;

use nix::sys::signal::Signal;

use crate::support::{Client, Server, Site};

const MIB: usize = 1 << 20;

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn a_file_that_becomes_shorter_ends_the_connection_early() {
    let site = Site::with("file", vec![b'x'; 64 * MIB]);
    let server = Server::start(site.serve().cpus("0"));
    for new_bytes in [0, 2 * MIB] {
        let mut client = Client::narrow(server.address(), 65_536);
        client.send(request("/file"));
        let head = client.head();
        assert_eq!(head.field("content-length"), Some("67108864"));
        client.take(MIB);
        let file = fs::File::options().write(true).open(site.path("file"));
        file.and_then(|file| file.set_len(new_bytes as u64)).expect("the file is ours");
        // A second answer must not be taken for the rest of the first. The reset may be here already.
        let _ = client.stream().write_all(request("/file").as_bytes());
        let rest = client.until_the_end();
        assert!(rest.len() < 63 * MIB, "{} bytes more", rest.len());
        assert!(rest.iter().all(|&byte| byte == b'x'), "something else within the body");
        site.write("file", vec![b'x'; 64 * MIB]);
    }
    // The server goes on.
    let whole = Client::connect(server.address()).get("/file");
    assert_eq!((whole.status, whole.body.len()), (200, 64 * MIB));
    server.signal(Signal::SIGTERM);
    let (stats, log) = server.finish_and_say();
    assert_eq!(stats.total("truncated_files"), 2);
    // As often as it happens, it is said once.
    assert_eq!(log.matches("became shorter").count(), 1, "{log}");
}
