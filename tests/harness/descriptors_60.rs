//! Layer 60: running out of descriptors. The server neither spins nor floods its log, and serves
//! again when there is room.

use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::server::Stats;
use crate::support::{Client, Server, Site, wait_until};

/// Clients that hold on to what they can get.
const CLIENTS: usize = 200;

/// A spell in which nothing is to be done. What happens in it is counted, not timed: a loop that
/// spins turns a hundred thousand times.
const QUIET: Duration = Duration::from_secs(1);
const TURNS_MAX: u64 = 2000;

fn request() -> &'static str {
    "GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n"
}

fn ask(server: &Server) -> Vec<Client> {
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        client.send(request());
    }
    clients
}

/// Each gets its answer as those before it go.
fn all_are_answered_in_turn(mut waiting: Vec<Client>) {
    wait_until("everyone is answered", || {
        waiting.retain_mut(|client| {
            let answered = client.has_something();
            if answered {
                let response = client.response();
                assert_eq!((response.status, response.body), (200, b"content".to_vec()));
            }
            // One that has its answer goes, and makes room.
            !answered
        });
        waiting.is_empty()
    });
}

fn assert_quiet(stats: &Stats) {
    let turns = stats.total("turns");
    assert!(turns < TURNS_MAX, "{turns} turns");
    let enters = stats.total("enters");
    assert!(enters < TURNS_MAX, "{enters} enters");
}

#[test]
fn at_its_limit_of_connections_the_server_waits_for_room() {
    let site = Site::with("file", "content");
    // 80 descriptors are kept for the process and its shard, a quarter of the rest for the cache.
    let server = Server::start(site.serve().cpus("0").ulimit("-n", 128));
    let clients = ask(&server);
    thread::sleep(QUIET);
    all_are_answered_in_turn(clients);
    assert_eq!(Client::connect(server.address()).get("/file").body, b"content");
    let stats = server.stop();
    assert!(stats.total("accept_paused_limit") > 0);
    assert_eq!(stats.total("accepted") as usize, CLIENTS + 1);
    assert_quiet(&stats);
}

/// A server that finds ten descriptors fewer than it needs for the connections that it may have.
/// (The limit on descriptors counts as it was when accepting began: so that must begin anew.)
fn server_short_of_descriptors(site: &Site) -> Server {
    // The file is looked at once only: that takes a descriptor.
    let settings = "[limits]\nconnections_per_shard = 30\n[cache]\nvalid = \"1h\"";
    let server = Server::start(site.serve_with(settings).cpus("0"));
    let mut clients: Vec<_> = (0..30).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/file").body, b"content");
    }
    server.leave_descriptors(-10);
    server
}

#[test]
fn without_descriptors_the_server_waits_for_some() {
    let site = Site::with("file", "content");
    let server = server_short_of_descriptors(&site);
    let clients = ask(&server);
    thread::sleep(QUIET);
    all_are_answered_in_turn(clients);
    assert_eq!(Client::connect(server.address()).get("/file").body, b"content");
    let (stats, said) = server.stop_and_say();
    assert_eq!(said.matches("no descriptor").count(), 1, "{said}");
    assert!(stats.total("accept_paused_descriptors") > 0);
    assert_eq!(stats.total("accepted") as usize, 30 + CLIENTS + 1);
    assert_quiet(&stats);
}

#[test]
fn without_descriptors_the_end_comes_all_the_same() {
    let site = Site::with("file", "content");
    let server = server_short_of_descriptors(&site);
    let clients = ask(&server);
    wait_until("the server has said so", || server.stderr().contains("no descriptor"));
    server.signal(Signal::SIGTERM);
    all_are_answered_in_turn(clients);
    assert_quiet(&server.finish());
}
