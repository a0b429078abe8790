//! Layer 60: many peers that are slow, and one that is not. Nobody waits for another.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::support::{Client, Server, Site, pattern, repeats};

const MIB: usize = 1 << 20;

/// Clients that have asked for more than the kernels between will hold, and do not read on.
fn stopped_readers(server: &Server, path: &str, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> =
        (0..count).map(|_| Client::narrow(server.address(), 32_768)).collect();
    for client in &mut clients {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(client.head().status, 200);
    }
    clients
}

#[test]
fn two_hundred_slow_readers_do_not_stop_a_fast_one() {
    let large = pattern(8 * MIB);
    let site = Site::with("large", &large);
    site.write("small", "small\n");
    let server = Server::start(site.serve().cpus("0"));
    let slow = stopped_readers(&server, "/large", 200);
    let mut fast = Client::connect(server.address());
    for _ in 0..100 {
        assert_eq!(fast.get("/small").body, b"small\n");
    }
    assert!(fast.get("/large").body == large);
    let threads = server.threads();
    assert!(!threads.iter().any(|name| name.starts_with("iou-wrk")), "{threads:?}");
    drop(slow);
    drop(fast);
    let stats = server.stop();
    assert_eq!(stats.total("accepted"), 201);
}

/// Clients that each send the first bytes of `message`, and what each has yet to send.
fn dribblers(server: &Server, message: &str, count: usize) -> Vec<(Client, String)> {
    (0..count).map(|_| (Client::connect(server.address()), message.to_owned())).collect()
}

/// Each sends one byte more; a server may have had enough of one, and have closed.
fn dribble(clients: &mut [(Client, String)]) {
    for (client, message) in clients {
        if !message.is_empty() {
            let byte = message.remove(0);
            let _ = client.stream().write_all(&[byte as u8]);
        }
    }
}

#[test]
fn two_hundred_of_every_slow_kind_at_once_cost_little_memory_and_nobody_else_an_answer() {
    let large = pattern(8 * MIB);
    let site = Site::with("large", &large);
    site.write("small", "small\n");
    let server = Server::start(site.serve().cpus("0"));
    let count = repeats(200);
    let mut fast = Client::connect(server.address());
    assert_eq!(fast.get("/small").body, b"small\n");
    let before_kib = server.memory_kib("RssAnon");

    let readers = stopped_readers(&server, "/large", count);
    let ranges: String = (0..1000).map(|n| format!(",{n}-")).collect();
    let bomb = format!("GET /large HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-{ranges}\r\n\r\n");
    let bombers: Vec<_> = (0..count)
        .map(|_| {
            let mut client = Client::narrow(server.address(), 4096);
            client.send(&bomb);
            client
        })
        .collect();
    let filler = "x".repeat(1000);
    let head = format!("GET /small HTTP/1.1\r\nHost: localhost\r\nX-Filler: {filler}");
    let mut heads = dribblers(&server, &head, count);
    let body =
        format!("POST /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{filler}");
    let mut bodies = dribblers(&server, &body, count);
    for _ in 0..repeats(200) {
        dribble(&mut heads);
        dribble(&mut bodies);
        assert_eq!(fast.get("/small").body, b"small\n");
        assert_eq!(Client::connect(server.address()).get("/small").body, b"small\n");
    }
    assert!(fast.get("/large").body == large);

    let growth_kib = server.memory_kib("RssAnon").saturating_sub(before_kib);
    let clients = 4 * count as u64;
    assert!(growth_kib < 4096 + 16 * clients, "{growth_kib} KiB for {clients} clients");
    drop((readers, bombers, heads, bodies));
    server.stop();
}

/// Evicts a file from the page cache. On a file system in memory that does nothing.
fn evict(site: &Site, name: &str) {
    let file = std::fs::File::open(site.path(name)).expect("the file is there");
    file.sync_all().expect("the disk takes it");
    let advice = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
    nix::fcntl::posix_fadvise(&file, 0, 0, advice).expect("the advice is taken");
}

#[test]
fn slow_readers_of_cold_files_do_not_stop_another_cold_read() {
    let site = Site::new();
    let large = pattern(8 * MIB);
    for n in 0..20 {
        site.write(&format!("large-{n}"), &large);
    }
    site.write("cold", &large);
    let server = Server::start(site.serve().cpus("0"));
    let mut slow = Vec::new();
    // More of them than there are buffers to read cold files into.
    for n in 0..20 {
        evict(&site, &format!("large-{n}"));
        slow.extend(stopped_readers(&server, &format!("/large-{n}"), 1));
    }
    evict(&site, "cold");
    assert!(Client::connect(server.address()).get("/cold").body == large);
    drop(slow);
    server.stop();
}

#[test]
fn slow_senders_of_wide_heads_all_get_an_answer_from_few_buffers() {
    let site = Site::with("file", "content");
    // However slowly the heads are made.
    let settings = "[ring]\nrecv_buffers = 8\nrecv_buffer = \"512B\"\n[timeouts]\nhead = \"1h\"";
    let server = Server::start(site.serve_with(settings).cpus("0"));
    let mut clients: Vec<_> = (0..200).map(|_| Client::connect(server.address())).collect();
    let wide = "y".repeat(1600);
    for client in &mut clients {
        client.send("GET /file HTTP/1.1\r\nHost: localhost\r\n");
    }
    for field in 0..10 {
        // All at once, so that there are never enough.
        server.pause();
        for client in &mut clients {
            client.send(format!("x-{field}: {wide}\r\n"));
        }
        server.resume();
        thread::sleep(Duration::from_millis(10));
    }
    for client in &mut clients {
        client.send("\r\n");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response().body, b"content", "client {number}");
    }
    drop(clients);
    let stats = server.stop();
    assert!(stats.total("enobufs") > 0);
    assert_eq!(stats.total("requests"), 200);
}
