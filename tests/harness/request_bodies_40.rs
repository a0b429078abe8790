//! Layer 40: request bodies. Files want none: each is read to its end, within its limits, and then
//! its request is answered.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Client, Server, Site, pattern};

const MIB: usize = 1 << 20;

/// A small file that is answered from memory, and one that is pulled.
fn site() -> Site {
    let site = Site::with("small", "small\n");
    site.write("large", pattern(8 * MIB));
    site
}

fn request(line: &str, fields: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

fn get(path: &str) -> String {
    request(&format!("GET {path}"), "")
}

/// A POST with a body of this length, which is yet to be sent.
fn post(body_bytes: usize) -> String {
    request("POST /small", &format!("Content-Length: {body_bytes}\r\n"))
}

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";

#[test]
fn what_follows_a_body_is_answered_in_its_turn() {
    let site = site();
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    let smuggled = get("/absent");
    let size = smuggled.len();
    let chunks =
        format!("{size:x};a=\"b\"\r\n{smuggled}\r\n1\r\nx\r\n0\r\nContent-Length: 9\r\n\r\n");
    let upgrade = "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n";
    client.send(
        [
            post(smuggled.len()) + &smuggled,
            get("/small"),
            request("POST /small", CHUNKED) + &chunks,
            request("GET /large", CHUNKED) + &chunks,
            request("OPTIONS *", CHUNKED) + "0\r\n\r\n",
            request("GET /small", upgrade) + "hello",
            get("/small"),
        ]
        .concat(),
    );
    for status in [405, 200, 405, 200, 204, 200, 200] {
        let response = if status == 204 { client.head() } else { client.response() };
        assert_eq!((response.status, response.field("connection")), (status, None));
    }
    assert_eq!(client.get("/small").body, b"small\n");
    drop(client);
    let stats = server.stop();
    assert_eq!((stats.total("requests"), stats.total("bodies")), (8, 5));
    assert_eq!(stats.total("body_bytes"), 3 * smuggled.len() as u64 + 2 + 5);
    assert_eq!(stats.total("refused"), 0);
}

#[test]
fn an_answer_waits_for_the_end_of_the_body() {
    let site = site();
    let server = Server::start(site.serve().cpus("0"));
    let (mut client, mut other) =
        (Client::connect(server.address()), Client::connect(server.address()));
    for line in ["POST /small", "GET /small", "GET /large"] {
        client.send(request(line, CHUNKED));
        for piece in ["5", "\r", "\nhel", "lo\r", "\n0\r\n", "\r"] {
            client.send(piece);
            // By then the server has seen the piece.
            assert_eq!(other.get("/small").status, 200);
            assert!(!client.has_something(), "{line} {piece:?}");
        }
        client.send("\n");
        let status = if line.starts_with("GET") { 200 } else { 405 };
        assert_eq!(client.response().status, status);
    }
    drop((client, other));
    assert_eq!(server.stop().total("bodies"), 3);
}

#[test]
fn a_peer_that_writes_before_it_reads_is_not_waited_for() {
    let site = site();
    let server = Server::start(site.serve());
    let mut client = Client::narrow(server.address(), 32_768);
    for _ in 0..3 {
        client.send(request("GET /large", &format!("Content-Length: {MIB}\r\n")));
        client.send(pattern(MIB));
        assert!(client.response().body == pattern(8 * MIB));
    }
    drop(client);
    assert_eq!(server.stop().total("body_bytes"), 3 * MIB as u64);
}

#[test]
fn a_bad_body_is_answered_in_place_of_its_request() {
    let site = site();
    let server = Server::start(site.serve());
    let bodies = ["5\r\nhello0\r\n\r\n", "5\nhello\r\n", "0\r\nno field\r\n\r\n", "0x5\r\n"];
    for line in ["GET /small", "GET /large", "POST /small"] {
        for body in bodies {
            let mut client = Client::connect(server.address());
            client.send([&get("/small"), &request(line, CHUNKED), body, &get("/small")].concat());
            assert_eq!(client.response().status, 200);
            let response = client.response();
            assert_eq!((response.status, response.field("connection")), (400, Some("close")));
            assert_eq!(client.rest(), b"", "{line} {body:?}");
        }
    }
    let stats = server.stop();
    assert_eq!((stats.total("refused_chunks"), stats.total("bodies")), (12, 0));
}

#[test]
fn a_body_that_is_too_large_is_refused_as_soon_as_that_shows() {
    let site = site();
    let server = Server::start(site.serve_with("[limits]\nbody = \"1KiB\""));
    let mut client = Client::connect(server.address());
    for chunks in ["400\r\n", "1ff\r\n", "200\r\n"] {
        let data = usize::from_str_radix(chunks.trim_end(), 16).expect("a size");
        client.send(request("POST /small", CHUNKED) + chunks + &"a".repeat(data) + "\r\n");
        client.send("0\r\n\r\n");
        assert_eq!(client.response().status, 405);
        client.send(post(data) + &"a".repeat(data));
        assert_eq!(client.response().status, 405);
    }
    let half = format!("200\r\n{}\r\n", "a".repeat(512));
    for begun in [
        post(1025),
        post(usize::MAX),
        request("GET /large", "Content-Length: 1025\r\nExpect: 100-continue\r\n"),
        request("POST /small", CHUNKED) + "401",
        request("POST /small", CHUNKED) + &half + &half + "1",
        request("POST /small", CHUNKED) + "ffffffffffffffff",
    ] {
        let mut client = Client::connect(server.address());
        client.send(&begun);
        let response = client.response();
        assert_eq!((response.status, response.field("connection")), (413, Some("close")));
        assert_eq!(client.rest(), b"");
    }
    drop(client);
    assert_eq!(server.stop().total("refused_body_too_large"), 6);
}

#[test]
fn a_peer_that_waits_to_be_asked_for_a_body_is_answered_at_once() {
    let site = site();
    let server = Server::start(site.serve());
    let expecting =
        |line, framing: &str| request(line, &format!("{framing}Expect: 100-continue\r\n"));
    for (line, status) in [("PUT /small", 405), ("GET /small", 200), ("GET /large", 200)] {
        for framing in ["Content-Length: 5\r\n", CHUNKED] {
            let mut client = Client::connect(server.address());
            client.send(expecting(line, framing));
            let response = client.response();
            assert_eq!((response.status, response.field("connection")), (status, Some("close")));
            // It may send the body, for all that, and take what follows for a request.
            client.send("hello".to_owned() + &get("/small"));
            assert_eq!(client.rest(), b"");
        }
    }
    // Who does not wait is answered like others.
    let mut client = Client::connect(server.address());
    client.send(expecting("PUT /small", "Content-Length: 5\r\n") + "hello" + &get("/small"));
    assert_eq!(client.response().status, 405);
    assert_eq!(client.response().status, 200);
    // There is nothing to wait for.
    client.send(expecting("GET /small", "") + &expecting("GET /small", "Content-Length: 0\r\n"));
    assert_eq!(client.response().status, 200);
    assert_eq!(client.response().field("connection"), None);
    drop(client);
    let stats = server.stop();
    assert_eq!((stats.total("bodies_declined"), stats.total("bodies")), (6, 1));
}

#[test]
fn other_expectations_are_refused_and_those_of_version_1_0_ignored() {
    let site = site();
    let server = Server::start(site.serve());
    for fields in ["Expect: tea\r\n", "Content-Length: 5\r\nExpect: 100-continue, tea\r\n"] {
        let mut client = Client::connect(server.address());
        client.send(request("POST /small", fields) + &get("/small"));
        let response = client.response();
        assert_eq!((response.status, response.field("connection")), (417, Some("close")));
        assert_eq!(client.rest(), b"");
    }
    for expectation in ["100-continue", "tea"] {
        let mut client = Client::connect(server.address());
        let head =
            format!("POST /small HTTP/1.0\r\nContent-Length: 5\r\nExpect: {expectation}\r\n\r\n");
        client.send(head);
        client.send("hello");
        assert_eq!(client.response().status, 405);
        assert_eq!(client.rest(), b"");
    }
    let stats = server.stop();
    assert_eq!((stats.total("refused_expectation"), stats.total("bodies_declined")), (2, 0));
}

#[test]
fn a_peer_that_half_closes_in_mid_body_is_told() {
    let site = site();
    let server = Server::start(site.serve());
    for begun in [post(5) + "hell", post(1), request("GET /small", CHUNKED) + "5\r\nhello\r\n"] {
        let mut client = Client::connect(server.address());
        client.send(begun);
        client.end_sending();
        let response = client.response();
        assert_eq!((response.status, response.field("connection")), (400, Some("close")));
        assert_eq!(client.rest(), b"");
    }
    // The end comes while another answer is on its way.
    for path in ["/small", "/large"] {
        let mut client = Client::narrow(server.address(), 32_768);
        client.send(get(path) + &post(5) + "hell");
        client.end_sending();
        assert_eq!(client.response().status, 200);
        assert_eq!(client.response().status, 400);
        assert_eq!(client.rest(), b"");
    }
    assert_eq!(server.stop().total("refused_body_cut"), 5);
}

#[test]
fn a_body_that_stops_or_dribbles_in_is_given_its_time_and_no_more() {
    let site = site();
    let settings = "[timeouts]\nbody = \"300ms\"\n[limits]\nbody_rate = \"1MiB\"";
    let server = Server::start(site.serve_with(settings));
    let mut client = Client::connect(server.address());
    client.send(post(5) + "hell");
    let response = client.response();
    assert_eq!((response.status, response.field("connection")), (408, Some("close")));
    assert_eq!(client.rest(), b"");

    let mut client = Client::connect(server.address());
    client.send(request("GET /large", CHUNKED));
    let mut stream = client.stream().try_clone().expect("there are descriptors");
    let dribbler = thread::spawn(move || {
        // Never as long without a byte as the whole body may take.
        for byte in b"1\r\na\r\n".iter().cycle() {
            if stream.write_all(&[*byte]).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(client.response().status, 408);
    assert_eq!(client.rest(), b"");
    drop(client);
    dribbler.join().expect("the connection has ended");
    let stats = server.stop();
    assert_eq!((stats.total("timeouts_body"), stats.total("timeouts_head")), (2, 0));
}

#[test]
fn a_body_that_keeps_coming_may_take_longer() {
    let site = site();
    // A second for each byte: a hundred bytes are time enough for the next hundred.
    let settings = "[timeouts]\nbody = \"300ms\"\n[limits]\nbody_rate = \"1B\"";
    let server = Server::start(site.serve_with(settings));
    let mut client = Client::connect(server.address());
    client.send(post(1000) + &"a".repeat(100));
    for _ in 1..10 {
        thread::sleep(Duration::from_millis(100));
        client.send("a".repeat(100));
    }
    assert_eq!(client.response().status, 405);
    // What has come of one body is no time for the next.
    client.send(post(1000) + "a");
    let response = client.response();
    assert_eq!((response.status, response.field("connection")), (408, Some("close")));
    drop(client);
    assert_eq!(server.stop().total("timeouts_body"), 1);
}

#[test]
fn a_server_that_ends_waits_for_a_body_under_way() {
    let site = site();
    let server = Server::start(site.serve().cpus("0"));
    let (mut client, mut idle) =
        (Client::connect(server.address()), Client::connect(server.address()));
    assert_eq!((client.get("/small").status, idle.get("/small").status), (200, 200));
    client.send(post(10) + "hello");
    // By then it has seen that.
    assert_eq!(idle.get("/small").status, 200);
    server.signal(Signal::SIGTERM);
    assert_eq!(idle.rest(), b"");
    client.send("world".to_owned() + &get("/small"));
    assert_eq!(client.response().status, 405);
    assert_eq!(client.rest(), b"", "no further request is answered");
    drop(client);
    let stats = server.finish();
    assert_eq!((stats.total("bodies"), stats.total("drain_cut_off")), (1, 0));
}
