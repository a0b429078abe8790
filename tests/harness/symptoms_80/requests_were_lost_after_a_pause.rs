//! The server had stood still for longer than a deadline: it closed connections whose requests had
//! come in time, since its first turn brought but some of them.

use std::time::Duration;

use crate::support::{Client, Server, Site};

const REQUEST: &str = "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The clients have sent `before`; while the server stands still they send the rest of a request, and
/// every deadline passes. That it does not pass before, the clients must be few and quick: enough for
/// several turns of one shard.
fn all_are_answered(before: &str) {
    let site = Site::with("small", "small\n");
    let settings = "[timeouts]\nhead = \"3s\"\nidle = \"3s\"\ndefer_accept = \"0s\"";
    let server = Server::start(site.serve_with(settings).cpus("0"));
    let mut clients: Vec<_> = (0..100).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/small").status, 200);
        client.send(before);
    }
    server.pause();
    for client in &mut clients {
        client.send(&REQUEST[before.len()..]);
    }
    std::thread::sleep(Duration::from_millis(3500));
    server.resume();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response().status, 200, "client {number}");
    }
    assert_eq!(server.stop().total("timeouts_head"), 0);
}

#[test]
fn on_idle_connections() {
    all_are_answered("");
}

#[test]
fn whose_heads_were_coming_in() {
    all_are_answered(&REQUEST[..10]);
}
