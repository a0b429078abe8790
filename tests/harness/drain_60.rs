//! Layer 60: the end that SIGTERM asks for. Whoever was queued or is being answered gets all of it.

use nix::sys::signal::Signal;

use crate::support::peer::two_cpus;
use crate::support::server::unused_address;
use crate::support::{Args, Client, Server, Site, pattern, skip, wait_until};

const MIB: usize = 1 << 20;

/// Without TCP_DEFER_ACCEPT a connection is accepted before its request is there.
const NOT_DEFERRED: &str = "[timeouts]\ndefer_accept = \"0s\"";

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// 200 clients have connected and sent their request to a server that stands still; it is told to
/// end, and goes on.
fn queued_requests_are_answered(args: impl Fn(&Site) -> Args) {
    let body = pattern(20_000);
    let site = Site::with("file", &body);
    for round in 0..3 {
        let server = Server::start(args(&site));
        server.pause();
        let mut clients: Vec<_> = (0..200).map(|_| Client::connect(server.address())).collect();
        for client in &mut clients {
            client.send(request("/file"));
        }
        server.signal(Signal::SIGTERM);
        server.resume();
        // A client that has read the end closes: the server would linger for it.
        for (number, mut client) in clients.into_iter().enumerate() {
            let response = client.response();
            assert_eq!(response.status, 200, "round {round}, client {number}");
            assert_eq!(response.body, body, "round {round}, client {number}");
            assert_eq!(client.rest(), b"");
        }
        let stats = server.finish();
        assert_eq!(stats.total("accepted"), 200);
        assert_eq!(stats.total("closed"), 200);
        assert_eq!(stats.total("drain_cut_off"), 0);
    }
}

#[test]
fn queued_requests_are_answered_by_one_shard() {
    queued_requests_are_answered(|site| site.serve().cpus("0"));
}

#[test]
fn queued_requests_are_answered_by_two_shards() {
    if two_cpus().is_none() {
        return skip("needs two CPUs");
    }
    queued_requests_are_answered(|site| site.serve());
}

#[test]
fn queued_requests_are_answered_where_accepting_is_not_deferred() {
    queued_requests_are_answered(|site| site.serve_with(NOT_DEFERRED));
}

#[test]
fn requests_on_idle_connections_are_answered_if_they_came_first() {
    let site = Site::with("file", "content");
    let server = Server::start(site.serve());
    let mut clients: Vec<_> = (0..200).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/file").body, b"content");
    }
    server.pause();
    for client in &mut clients {
        client.send(request("/file"));
    }
    server.signal(Signal::SIGTERM);
    server.resume();
    for mut client in clients {
        assert_eq!(client.response().body, b"content");
        assert_eq!(client.rest(), b"");
    }
    assert_eq!(server.finish().total("requests"), 400);
}

#[test]
fn idle_connections_close_at_once_and_in_good_order() {
    let site = Site::with("file", "content");
    // Had it to wait until they are idle no more, the test would not end in time.
    let timeouts = "[timeouts]\nidle = \"1h\"\ngrace = \"1h\"\nlinger = \"100ms\"";
    let server = Server::start(site.serve_with(timeouts));
    let mut clients: Vec<_> = (0..50).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/file").field("connection"), None);
    }
    let stats = server.stop();
    for client in &mut clients {
        assert_eq!(client.rest(), b"");
    }
    assert_eq!(stats.total("closed"), 50);
    assert_eq!(stats.total("timeouts_idle"), 0);
}

#[test]
fn a_download_that_is_under_way_completes() {
    let body = pattern(16 * MIB);
    let site = Site::with("file", &body);
    let server = Server::start(site.serve());
    let mut client = Client::narrow(server.address(), 65_536);
    client.send(request("/file"));
    let response = client.head();
    assert_eq!((response.status, response.field("connection")), (200, None));
    server.signal(Signal::SIGTERM);
    // Much more than the kernel would keep for us by itself.
    assert!(client.take(16 * MIB) == body);
    assert_eq!(client.rest(), b"");
    drop(client);
    let (stats, said) = server.finish_and_say();
    assert_eq!(stats.total("drain_cut_off"), 0);
    assert!(said.contains("ending: 1 connection, at most 30s;"), "{said}");
    assert!(said.ends_with("ended; no connection was cut off\n"), "{said}");
}

#[test]
fn a_head_that_is_coming_in_is_waited_for() {
    let site = Site::with("file", "content");
    // Both clients come to one shard.
    let server = Server::start(site.serve().cpus("0"));
    let mut client = Client::connect(server.address());
    client.send("GET /file HTTP/1.1\r\nHo");
    wait_until("the server has read it", || client.unread_by_server() == 0);
    // An idle one shows that the drain has begun.
    let mut idle = Client::connect(server.address());
    assert_eq!(idle.get("/file").status, 200);
    server.signal(Signal::SIGTERM);
    assert_eq!(idle.rest(), b"");
    client.send("st: localhost\r\n\r\n");
    let response = client.response();
    assert_eq!(response.body, b"content");
    assert_eq!(response.field("connection"), Some("close"));
    assert_eq!(client.rest(), b"");
    drop(client);
    server.finish();
}

/// A client that has asked for more than the kernels between will hold, and does not read on.
fn stuck_download(server: &Server) -> Client {
    let mut client = Client::narrow(server.address(), 65_536);
    client.send(request("/large"));
    assert_eq!(client.head().status, 200);
    client
}

#[test]
fn a_second_signal_cuts_off_what_is_left() {
    let site = Site::with("large", pattern(32 * MIB));
    site.write("file", "content");
    let server = Server::start(site.serve_with("[timeouts]\ngrace = \"1h\""));
    let mut stuck = stuck_download(&server);
    let mut idle = Client::connect(server.address());
    assert_eq!(idle.get("/file").status, 200);
    server.signal(Signal::SIGTERM);
    assert_eq!(idle.rest(), b"");
    // As from a terminal.
    server.signal(Signal::SIGINT);
    let (stats, said) = server.finish_and_say();
    let ending = "ending: 2 connections, at most 3600s; SIGTERM or Ctrl-C again to end at once\n";
    assert_eq!(said.matches(ending).count(), 1, "{said}");
    assert_eq!(stats.total("drain_cut_off"), 1);
    assert!(said.ends_with("ended; 1 connection cut off\n"), "{said}");
    assert!(stuck.ends_by_reset(), "what is not whole must not look whole");
}

#[test]
fn the_grace_time_cuts_off_what_is_left() {
    let site = Site::with("large", pattern(32 * MIB));
    let server = Server::start(site.serve_with("[timeouts]\ngrace = \"200ms\""));
    let mut stuck = stuck_download(&server);
    assert_eq!(server.stop().total("drain_cut_off"), 1);
    assert!(stuck.ends_by_reset(), "what is not whole must not look whole");
}

#[test]
fn a_connection_that_says_nothing_delays_the_end_no_longer_than_a_head_may_take() {
    let site = Site::with("file", "content");
    let settings = "[timeouts]\ndefer_accept = \"0s\"\nhead = \"200ms\"\ngrace = \"1h\"";
    let server = Server::start(site.serve_with(settings));
    let mut silent = Client::connect(server.address());
    server.stop();
    assert_eq!(silent.rest(), b"");
}

#[test]
fn a_server_without_clients_ends_and_its_address_is_free_at_once() {
    let site = Site::with("file", "content");
    let address = unused_address();
    for round in 0..50 {
        let server = Server::try_start_on(address, site.serve());
        let server = server.unwrap_or_else(|exit| panic!("round {round}: {exit:#?}"));
        // Every other time something lingers in the kernel.
        if round % 2 == 1 {
            assert_eq!(Client::connect(address).get("/file").body, b"content");
        }
        server.stop();
    }
}

/// Newcomers while a slow download keeps the server from ending: all of them are answered at once,
/// also those that the kernel queued for a shard that has nothing left to do.
#[test]
fn newcomers_do_not_wait_for_the_last_download() {
    let site = Site::with("file", "short");
    let large = pattern(16 * MIB);
    site.write("large", &large);
    let cpus = if two_cpus().is_some() { &["0", "0-1"][..] } else { &["0"] };
    for cpus in cpus {
        let server = Server::start(site.serve().cpus(cpus));
        let mut slow = Client::narrow(server.address(), 65_536);
        slow.send(request("/large"));
        assert_eq!(slow.head().status, 200);
        // An idle connection tells when the drain has begun.
        let mut idle = Client::connect(server.address());
        assert_eq!(idle.get("/file").status, 200);
        server.signal(Signal::SIGTERM);
        assert_eq!(idle.rest(), b"");
        for _ in 0..40 {
            let mut newcomer = Client::connect(server.address());
            newcomer.send(request("/file"));
            let response = newcomer.response();
            assert_eq!(response.body, b"short");
            assert_eq!(response.field("connection"), Some("close"));
            assert_eq!(newcomer.rest(), b"");
        }
        assert!(slow.take(16 * MIB) == large);
        drop(slow);
        assert_eq!(server.finish().total("drain_cut_off"), 0);
    }
}
