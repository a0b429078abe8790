//! Layer 60: how long the server waits for a peer, with times short enough for a test.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::support::{Client, Server, Site, pattern, wait_until};

const MIB: usize = 1 << 20;

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn a_head_that_dribbles_in_is_given_its_time_and_no_more() {
    let site = Site::with("file", "content");
    let server = Server::start(site.serve_with("[timeouts]\nhead = \"300ms\""));
    let mut client = Client::connect(server.address());
    let mut stream = client.stream().try_clone().expect("there are descriptors");
    let dribbler = thread::spawn(move || {
        // Never as long without a byte as the whole head may take.
        let endless = b"GET /file HTTP/1.1\r\nx: ".iter().copied().chain(std::iter::repeat(b'x'));
        for byte in endless {
            if stream.write_all(&[byte]).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    let response = client.response();
    assert_eq!((response.status, response.field("connection")), (408, Some("close")));
    assert_eq!(client.rest(), b"");
    drop(client);
    let stats = server.stop();
    assert_eq!(stats.total("timeouts_head"), 1);
    dribbler.join().expect("the connection has ended");
}

#[test]
fn a_connection_that_says_nothing_is_closed_without_a_word() {
    let site = Site::with("file", "content");
    let settings = "[timeouts]\nhead = \"200ms\"\ndefer_accept = \"0s\"";
    let server = Server::start(site.serve_with(settings));
    let mut silent = Client::connect(server.address());
    assert_eq!(silent.rest(), b"");
    assert_eq!(server.stop().total("timeouts_head"), 1);
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let site = Site::with("file", "content");
    let server = Server::start(site.serve_with("[timeouts]\nidle = \"200ms\""));
    let mut client = Client::connect(server.address());
    assert_eq!(client.get("/file").status, 200);
    assert_eq!(client.rest(), b"");
    let stats = server.stop();
    assert_eq!((stats.total("timeouts_idle"), stats.total("timeouts_head")), (1, 0));
}

#[test]
fn a_second_head_has_a_time_of_its_own() {
    let site = Site::with("file", "content");
    let settings = "[timeouts]\nhead = \"300ms\"\nidle = \"1h\"";
    let server = Server::start(site.serve_with(settings));
    let mut client = Client::connect(server.address());
    assert_eq!(client.get("/file").status, 200);
    client.send("GET /fi");
    assert_eq!(client.response().status, 408);
    assert_eq!(client.rest(), b"");
    drop(client);
    assert_eq!(server.stop().total("timeouts_head"), 1);
}

#[test]
fn a_slow_reader_is_served_as_long_as_it_reads() {
    let body = pattern(4 * MIB);
    let site = Site::with("file", &body);
    let server = Server::start(site.serve_with("[timeouts]\nwrite_stall = \"400ms\""));
    let mut client = Client::narrow(server.address(), 32_768);
    client.send(request("/file"));
    assert_eq!(client.head().status, 200);
    // The whole takes many times as long as it may stand still.
    for (number, part) in body.chunks(64 * 1024).enumerate() {
        assert!(client.take(part.len()) == part, "part {number}");
        thread::sleep(Duration::from_millis(50));
    }
    drop(client);
    let stats = server.stop();
    assert_eq!(stats.total("timeouts_write_stall"), 0);
    assert_eq!(stats.total("requests"), 1);
}

#[test]
fn readers_that_stop_are_reset_and_leave_nothing_behind() {
    let site = Site::with("pulled", pattern(16 * MIB));
    site.write("inline", pattern(10_000));
    let settings = "[timeouts]\nwrite_stall = \"300ms\"";
    let server = Server::start(site.serve_with(settings).cpus("0"));
    let idle = server.descriptors();
    let mut clients = Vec::new();
    for number in 0..100 {
        let mut client = Client::narrow(server.address(), 32_768);
        // Whole answers are with the ring, not with the shard: as many as make the socket full.
        client.send(match number % 2 {
            0 => request("/pulled"),
            _ => request("/inline").repeat(2000),
        });
        clients.push(client);
    }
    // In this order: before they are accepted the server has no descriptors for them either, and a
    // client that is read from before its reset goes on being served.
    wait_until("all are answered", || clients.iter().all(Client::has_something));
    // One file may stay in the cache.
    wait_until("the server has closed them all", || server.descriptors() <= idle + 1);
    // A descriptor is gone a little before its socket is. With the process, both are.
    assert_eq!(server.stop().total("timeouts_write_stall"), 100);
    for client in &mut clients {
        assert!(client.ends_by_reset(), "what is not whole must not look whole");
    }
}

#[test]
fn a_peer_that_does_not_close_is_left_after_a_while() {
    let site = Site::with("file", "content");
    let settings = "[timeouts]\nlinger = \"200ms\"\nidle = \"1h\"\nhead = \"1h\"";
    let server = Server::start(site.serve_with(settings));
    let idle = server.descriptors();
    let mut client = Client::connect(server.address());
    client.send("no request\r\n\r\n");
    assert_eq!(client.response().status, 400);
    assert_eq!(client.rest(), b"");
    // Ours is still open.
    wait_until("the connection is gone", || server.descriptors() <= idle);
    assert_eq!(server.stop().total("timeouts_linger"), 1);
}

#[test]
fn a_peer_that_sends_on_and_on_after_the_end_is_cut_off() {
    let site = Site::with("file", "content");
    let settings = "[timeouts]\nlinger = \"1h\"\nidle = \"1h\"\nhead = \"1h\"";
    let server = Server::start(site.serve_with(settings));
    let client = Client::connect(server.address());
    let mut writer = client.stream().try_clone().expect("there are descriptors");
    writer.write_all(b"no request\r\n\r\n").expect("the server listens");
    let mut sent = 0;
    while writer.write_all(&[0; 65_536]).is_ok() {
        sent += 65_536;
        assert!(sent < 64 * MIB, "it is not cut off");
    }
    drop(client);
    assert!(sent >= 16 * MIB, "cut off after {sent} bytes");
    let stats = server.stop();
    assert_eq!((stats.total("linger_cut_off"), stats.total("timeouts_linger")), (1, 0));
}
