//! Layer 40: raw bytes over a socket, and what must come back, where it takes more than a case of
//! [`conformance_40`](crate::conformance_40) can tell.

use std::thread;

use crate::support::{Client, Server, Site, pattern, wait_until};

const MIB: usize = 1 << 20;

fn request(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

fn get(path: &str) -> String {
    request("GET", path)
}

/// A small file that is answered from memory, and one that is pulled.
fn site() -> Site {
    let site = Site::with("small", "small\n");
    site.write("large", pattern(MIB));
    site
}

#[test]
fn a_reset_in_mid_answer_hurts_nobody_else() {
    let site = Site::with("large", pattern(8 * MIB));
    site.write("small", "small\n");
    let server = Server::start(site.serve());
    let idle = server.descriptors();
    for round in 0..100 {
        let mut client = Client::narrow(server.address(), 65_536);
        client.send([get("/small"), get("/large"), get("/small")].concat());
        // Some before, some within the large body.
        if round % 2 == 0 {
            assert_eq!(client.response().body, b"small\n");
            client.take(round * 1000);
        }
        client.reset();
    }
    assert_eq!(Client::connect(server.address()).get("/small").body, b"small\n");
    // Files that the cache keeps open, and the last connection perhaps.
    wait_until("the connections are gone", || server.descriptors() <= idle + 3);
    assert_eq!(server.stop().total("drain_cut_off"), 0);
}

#[test]
fn the_answer_to_head_has_no_body() {
    let site = site();
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    for path in ["/small", "/large", "/absent"] {
        // The next head begins where the first one ends.
        client.send([request("HEAD", path), get(path)].concat());
        let head = client.head();
        let mut whole = client.response();
        assert_eq!(whole.body.len().to_string(), head.field("content-length").expect("a length"));
        assert!(!whole.body.is_empty());
        whole.body.clear();
        assert_eq!(head, whole);
    }
}

#[test]
fn ten_thousand_pipelined_requests_wait_for_a_client_that_reads_late() {
    let site = Site::new();
    for n in 0..10 {
        site.write(&n.to_string(), pattern(4000 + n));
    }
    let server = Server::start(site.serve());
    let mut client = Client::narrow(server.address(), 65_536);
    let mut writer = Client::from(client.stream().try_clone().expect("there are descriptors"));
    // 10 MB of requests.
    let field = "x".repeat(1000);
    let request =
        move |n| format!("GET /{} HTTP/1.1\r\nHost: localhost\r\nx: {field}\r\n\r\n", n % 10);
    let writing = thread::spawn(move || writer.send((0..10_000).map(request).collect::<String>()));
    // The server keeps as many as it may: the rest stays in the kernels, ours and its own.
    let mut unread = 0;
    wait_until("the server reads no more", || {
        thread::sleep(std::time::Duration::from_millis(50));
        let before = std::mem::replace(&mut unread, client.unread_by_server());
        unread > 0 && unread == before
    });
    for n in 0..10_000 {
        assert_eq!(client.response().body.len(), 4000 + n % 10, "answer {n}");
    }
    writing.join().expect("all is written");
    drop(client);
    let stats = server.stop();
    assert_eq!(stats.total("requests"), 10_000);
    assert!(stats.total("receives_stopped") > 0);
}

#[test]
fn http_1_0_keeps_a_connection_only_if_asked() {
    let site = site();
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    for path in ["/small", "/large", "/small"] {
        client.send(format!("GET {path} HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
        let response = client.response();
        assert_eq!(response.status, 200);
        assert_eq!(response.field("connection").map(str::to_lowercase), Some("keep-alive".into()));
    }
    client.send("GET /small HTTP/1.0\r\n\r\n");
    assert_eq!(client.response().body, b"small\n");
    assert_eq!(client.rest(), b"");
    drop(client);
    let stats = server.stop();
    assert_eq!((stats.total("accepted"), stats.total("requests")), (1, 4));
}

#[test]
fn a_request_may_come_in_any_two_pieces() {
    let site = site();
    // However slowly the pieces are made.
    let server = Server::start(site.serve_with("[timeouts]\nhead = \"1h\""));
    let mut client = Client::connect(server.address());
    let request = get("/small");
    for split in 1..request.len() {
        let (first, second) = request.as_bytes().split_at(split);
        client.send(first);
        wait_until("the server has the first piece", || client.unread_by_server() == 0);
        client.send(second);
        assert_eq!(client.response().body, b"small\n", "split at {split}");
    }
    // And with the next one right behind it.
    let two = [get("/small"), get("/large")].concat();
    for split in 1..two.len() {
        let (first, second) = two.as_bytes().split_at(split);
        client.send(first);
        wait_until("the server has the first piece", || client.unread_by_server() == 0);
        client.send(second);
        assert_eq!(client.response().body, b"small\n", "split at {split}");
        assert!(client.response().body == pattern(MIB), "split at {split}");
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let site = site();
    // However slowly the pieces are made.
    let server = Server::start(site.serve_with("[timeouts]\nhead = \"1h\""));
    let mut client = Client::connect(server.address());
    for byte in [get("/small"), get("/small")].concat().bytes() {
        client.send([byte]);
        wait_until("the server has it", || client.unread_by_server() == 0);
    }
    assert_eq!(client.response().body, b"small\n");
    assert_eq!(client.response().body, b"small\n");
}

#[test]
fn an_early_answer_arrives_although_the_body_is_sent_first() {
    let site = site();
    let server = Server::start(site.serve());
    let body = vec![b'b'; 3_000_000];
    for (head, status) in [
        ("POST /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n", 413),
        ("POST /small HTTP/1.1\r\nHost: a b\r\nContent-Length: 3000000\r\n\r\n", 400),
        ("GET /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nz", 400),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n100001", 413),
        ("\0", 400),
    ] {
        for _ in 0..10 {
            let mut client = Client::connect(server.address());
            client.send(head);
            client.send(&body);
            assert_eq!(client.response().status, status, "{head:?}");
            assert_eq!(client.rest(), b"", "{head:?}");
        }
    }
    let stats = server.stop();
    assert_eq!((stats.total("resets"), stats.total("timeouts_linger")), (0, 0));
}
