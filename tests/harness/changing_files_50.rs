//! Layer 50: files that change while they are served. What was promised is sent, or the connection
//! ends early for all to see.

use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Client, Server, Site, pattern};

const MIB: usize = 1 << 20;

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn a_file_that_becomes_shorter_ends_the_connection_early() {
    let site = Site::with("file", vec![b'x'; 64 * MIB]);
    let server = Server::start(site.serve());
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
    let stats = server.stop();
    assert_eq!(stats.total("truncated_files"), 2);
}

/// Does `work` again and again in a thread of its own while `meanwhile` runs.
fn during(mut work: impl FnMut() + Send, meanwhile: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                work();
            }
        });
        // Also where it panics, or the scope would never end.
        let _over = Setting(&over);
        meanwhile();
    });
}

struct Setting<'a>(&'a AtomicBool);

impl Drop for Setting<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_file_that_grows_is_sent_as_long_as_was_promised() {
    // One that is answered from memory, and one that is pulled.
    for (name, bytes) in [("small", 1000), ("large", 2 * MIB)] {
        let site = Site::with(name, pattern(bytes));
        let server = Server::start(site.serve());
        let mut file = fs::File::options().append(true).open(site.path(name)).expect("it is ours");
        let grow = || {
            file.write_all(&[b'+'; 100]).expect("there is room");
            thread::yield_now();
        };
        during(grow, || {
            let mut clients: Vec<_> = (0..4).map(|_| Client::connect(server.address())).collect();
            let path = format!("/{name}");
            for _ in 0..10 {
                for client in &mut clients {
                    client.send([request(&path), request(&path)].concat());
                }
                for client in &mut clients {
                    for _ in 0..2 {
                        // The next head begins right where the length has said.
                        let response = client.response();
                        assert_eq!(response.status, 200);
                        let (old, new) = response.body.split_at(bytes);
                        assert!(old == pattern(bytes));
                        assert!(new.iter().all(|&byte| byte == b'+'));
                    }
                }
            }
        });
        server.stop();
    }
}

#[test]
fn a_file_that_is_replaced_is_the_old_one_or_the_new_one() {
    // Both answered from memory, both pulled, and one of each.
    for [old, new] in [[1000, 3000], [MIB, 3 * MIB], [1000, 3 * MIB]] {
        let site = Site::new();
        let put = |letter: u8, bytes: usize| {
            site.write("new", vec![letter; bytes]);
            fs::rename(site.path("new"), site.path("file")).expect("the root is ours");
        };
        put(b'a', old);
        // Looked at with each request, so that every change is met.
        let server = Server::start(site.serve_with("[cache]\nvalid = \"0s\""));
        let replace = || {
            put(b'b', new);
            put(b'a', old);
        };
        during(replace, || {
            let mut client = Client::connect(server.address());
            for _ in 0..200 {
                let response = client.get("/file");
                assert_eq!(response.status, 200);
                let expected = match response.body[0] {
                    b'a' => vec![b'a'; old],
                    letter => vec![letter; new],
                };
                assert!(response.body == expected, "{} bytes", response.body.len());
            }
        });
        server.stop();
    }
}

#[test]
fn a_replaced_file_is_seen_once_its_time_is_over() {
    let site = Site::with("file", "old");
    let server = Server::start(site.serve_with("[cache]\nvalid = \"10ms\""));
    let mut client = Client::connect(server.address());
    assert_eq!(client.get("/file").body, b"old");
    for content in ["new", "newer"] {
        site.write("file.new", content);
        fs::rename(site.path("file.new"), site.path("file")).expect("the root is ours");
        crate::support::wait_until("the new file is served", || {
            client.get("/file").body == content.as_bytes()
        });
    }
    fs::remove_file(site.path("file")).expect("the root is ours");
    crate::support::wait_until("the file is gone", || client.get("/file").status == 404);
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
