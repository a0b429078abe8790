//! No memory is allocated on the warm path: shards in this process, under an allocator that counts
//! what their threads ask of it.
//!
//! A program of its own, since a program has one allocator.

#[path = "../support/counting.rs"]
mod counting;
#[path = "../support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use counting::{Counting, count_here};
use support::in_process::InProcess;
use support::{Client, Site, pattern, repeats};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A shard, and the number of its allocations.
struct Counted {
    shard: InProcess,
    count: &'static AtomicU64,
}

impl Counted {
    fn start(site: &Site) -> Counted {
        Counted::told(site, "")
    }

    /// The same of a site with these settings.
    fn told(site: &Site, settings: &str) -> Counted {
        let count: &AtomicU64 = Box::leak(Box::default());
        // Revalidation looks at the file system once for each file, which is not this path.
        let settings = format!("{settings}\n[cache]\nvalid = \"1h\"");
        Counted { shard: InProcess::start(site, &settings, || count_here(count)), count }
    }

    /// Allocations of the shard while a client does `work` again and again, having done so as often
    /// before.
    fn while_warm(&self, times: usize, mut work: impl FnMut(&mut Client)) -> u64 {
        let mut client = Client::connect(self.shard.address());
        let mut allocations = 0;
        for _ in ["cold", "warm"] {
            let before = self.count.load(Ordering::Relaxed);
            (0..times).for_each(|_| work(&mut client));
            allocations = self.count.load(Ordering::Relaxed) - before;
        }
        allocations
    }

    fn stop(self) {
        assert!(self.count.load(Ordering::Relaxed) > 0, "the allocator counts nothing");
        self.shard.stop();
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n")
}

#[test]
fn warm_requests_allocate_nothing() {
    let site = Site::with("small", "small\n");
    let counted = Counted::start(&site);
    let (small, missing) = (get("/small"), get("/missing"));
    let warm = counted.while_warm(repeats(10_000), |client| {
        client.send(&small);
        assert_eq!(client.response().body, b"small\n");
    });
    assert_eq!(warm, 0, "a file in memory");
    let warm = counted.while_warm(repeats(1000), |client| {
        client.send(small.repeat(16));
        (0..16).for_each(|_| assert_eq!(client.response().body, b"small\n"));
    });
    assert_eq!(warm, 0, "a file in memory, pipelined");
    let warm = counted.while_warm(repeats(1000), |client| {
        client.send(&missing);
        assert_eq!(client.response().status, 404);
    });
    assert_eq!(warm, 0, "no file");
    let warm = counted.while_warm(repeats(1000), |client| {
        let (begun, rest) = small.split_at(20);
        client.send(begun);
        client.send(rest);
        assert_eq!(client.response().body, b"small\n");
    });
    assert_eq!(warm, 0, "a head in two pieces");
    counted.stop();
}

/// What is said of files is worked out when an entry is made.
#[test]
fn what_a_site_is_told_allocates_nothing() {
    let site = Site::with("directory/file.html", "small\n");
    site.write("absent.html", "not here\n");
    site.settle("directory/file.html");
    let settings = "listing = true
        symlinks = \"owner\"
        mode_allowed = \"0444\"
        error_pages = { 404 = \"/absent.html\" }
        [[site.headers]]
        match = \"*.html\"
        set = { Cache-Control = \"no-cache\", Vary = \"Origin\" }
        [[site.headers]]
        always = true
        set = { X-Always = \"yes\" }";
    let counted = Counted::told(&site, settings);
    for (path, status) in
        [("/directory/file.html", 200), ("/absent", 404), ("/directory/", 200), ("/directory", 301)]
    {
        let request = get(path);
        let warm = counted.while_warm(repeats(1000), |client| {
            client.send(&request);
            let response = client.response();
            assert_eq!((response.status, response.field("x-always")), (status, Some("yes")));
        });
        assert_eq!(warm, 0, "{path}");
    }
    let warm = counted.while_warm(repeats(1000), |client| {
        let response = client.head_with("/directory/file.html", "If-None-Match: *\r\n");
        assert_eq!((response.status, response.field("cache-control")), (304, Some("no-cache")));
    });
    assert_eq!(warm, 0, "a 304");
    counted.stop();
}

#[test]
fn warm_requests_with_bodies_allocate_little() {
    let site = Site::with("small", "small\n");
    let counted = Counted::start(&site);
    let head = "GET /small HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = "5;a=b\r\nhello\r\n".repeat(10) + "0\r\nX: y\r\n\r\n";
    let whole = head.to_owned() + &body;
    let times = repeats(1000);
    let warm = counted.while_warm(times, |client| {
        client.send(&whole);
        assert_eq!(client.response().body, b"small\n");
    });
    assert_eq!(warm, 0, "a body with its head");
    let warm = counted.while_warm(times, |client| {
        let (begun, rest) = body.split_at(50);
        for piece in [head, begun, rest] {
            client.send(piece);
        }
        assert_eq!(client.response().body, b"small\n");
    });
    // The answer that is held until the body's end.
    assert!(warm <= times as u64, "{warm} allocations for {times} bodies in three pieces");
    counted.stop();
}

#[test]
fn warm_downloads_allocate_nothing() {
    let site = Site::new();
    let counted = Counted::start(&site);
    for (path, bytes) in [("/100k", 100 << 10), ("/1m", 1 << 20)] {
        site.write(&path[1..], pattern(bytes));
        let warm = counted.while_warm(repeats(1000), |client| {
            client.send(get(path));
            assert_eq!(client.response().body.len(), bytes);
        });
        assert_eq!(warm, 0, "{path}");
    }
    counted.stop();
}

/// A client that speaks TLS, and believes whom it is told to.
fn secure(address: SocketAddr, certificate: CertificateDer<'static>) -> Secure {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("it is a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("there are suites")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().expect("it is a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("it can be made");
    StreamOwned::new(connection, TcpStream::connect(address).expect("it listens"))
}

type Secure = StreamOwned<ClientConnection, TcpStream>;

/// What is sent once is allocated once: the count of a buffer that is used again and again.
#[test]
fn warm_requests_over_tls_allocate_once_for_each_send() {
    let site = Site::with("small", "small\n");
    site.write("100k", pattern(100 << 10));
    let key =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("keys can be made");
    let directory = tempfile::tempdir().expect("there is room");
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("c.pem"), key.cert.pem()).expect("there is room");
    std::fs::write(path("k.pem"), key.signing_key.serialize_pem()).expect("there is room");
    let (chain, private) = (path("c.pem"), path("k.pem"));
    let settings = format!(
        "[tls]\nktls = \"off\"\ncertificates = [{{ cert = {chain:?}, key = {private:?} }}]"
    );
    let counted = Counted::told(&site, &settings);
    let mut client = secure(counted.shard.tls_address(), key.cert.der().clone());
    // The most that a send of the body brings, and how often it is asked for.
    for (path, bytes, sends) in [("/small", 6, 1), ("/100k", 100 << 10, 3)] {
        let times = repeats(1000);
        let request = get(path);
        let mut fetch = || {
            client.write_all(request.as_bytes()).expect("it is connected");
            let mut answer = Vec::new();
            let end = loop {
                let mut piece = [0; 16 << 10];
                let count = client.read(&mut piece).expect("it answers");
                answer.extend_from_slice(&piece[..count]);
                if let Some(end) = answer.windows(4).position(|end| end == b"\r\n\r\n") {
                    break end + 4;
                }
            };
            while answer.len() < end + bytes {
                let mut piece = [0; 16 << 10];
                let count = client.read(&mut piece).expect("it answers");
                answer.extend_from_slice(&piece[..count]);
            }
        };
        (0..times).for_each(|_| fetch());
        let before = counted.count.load(Ordering::Relaxed);
        (0..times).for_each(|_| fetch());
        let allocations = counted.count.load(Ordering::Relaxed) - before;
        let most = (times * sends) as u64;
        assert!(allocations <= most, "{path}: {allocations} allocations, {most} sends");
    }
    counted.stop();
}

#[test]
fn warm_connections_with_one_request_allocate_little() {
    let site = Site::with("small", "small\n");
    let counted = Counted::start(&site);
    let address = counted.shard.address();
    let times = repeats(1000);
    let warm = counted.while_warm(times, |_| {
        let mut client = Client::connect(address);
        client.send("GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_eq!(client.response().body, b"small\n");
    });
    // The socket's reference count.
    assert!(warm <= times as u64, "{warm} allocations for {times} connections");
    counted.stop();
}
