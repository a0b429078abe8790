//! The server had stood still for longer than a deadline: it closed connections whose requests had
//! come in time, since its first turn brought but some of them.

use std::time::{Duration, Instant};

use crate::support::{Client, Server, Site};

const REQUEST: &str = "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// More than one turn brings.
const CLIENTS: usize = 200;

/// The clients have sent `before`; while the server stands still they send the rest of a request, and
/// every deadline passes.
fn all_are_answered(before: &str) {
    let site = Site::with("small", "small\n");
    // Before the pause no deadline may pass, however slow the machine is.
    let start = Instant::now();
    connect_all(&Server::start(site.serve()), before);
    let deadline = Duration::from_millis(300) + 8 * start.elapsed();
    let millis = deadline.as_millis();
    let settings =
        format!("[timeouts]\nhead = \"{millis}ms\"\nidle = \"{millis}ms\"\ndefer_accept = \"0s\"");
    let server = Server::start(site.serve_with(&settings));
    let mut clients = connect_all(&server, before);
    server.pause();
    for client in &mut clients {
        client.send(&REQUEST[before.len()..]);
    }
    std::thread::sleep(deadline + Duration::from_millis(200));
    server.resume();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response().status, 200, "client {number}");
    }
    assert_eq!(server.stop().total("timeouts_head"), 0);
}

/// Clients that have had one answer and have sent `before`.
fn connect_all(server: &Server, before: &str) -> Vec<Client> {
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/small").status, 200);
        client.send(before);
    }
    clients
}

#[test]
fn on_idle_connections() {
    all_are_answered("");
}

#[test]
fn whose_heads_were_coming_in() {
    all_are_answered(&REQUEST[..10]);
}
