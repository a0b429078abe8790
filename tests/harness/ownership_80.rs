//! Layer 80: bytes and descriptors have one owner at a time, however a peer goes.

use std::net::SocketAddr;
use std::thread;

use crate::support::in_process::InProcess;
use crate::support::{Client, Server, Site, pattern, repeats, wait_until};

const MIB: usize = 1 << 20;

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

fn kernel_workers(server: &Server) -> usize {
    server.threads().iter().filter(|name| name.starts_with("iou-wrk")).count()
}

/// Begins a request and ends it with a reset, in one of several places.
fn cut_off(address: SocketAddr, kind: usize) {
    let mut client = Client::connect(address);
    match kind % 4 {
        0 => client.send(get("/small")),
        1 => client.send(get("/large")),
        2 => {
            client.send(get("/large"));
            client.take(MIB / 2);
        }
        _ => client.send("GET /large HTT"),
    }
    client.reset();
}

#[test]
fn requests_cut_off_by_a_reset_leave_nothing_behind() {
    let site = Site::with("small", "small\n");
    site.write("large", pattern(MIB));
    // Few buffers, so that soon each of them has been used and its memory is there.
    let server = Server::start(site.serve_with("[ring]\nrecv_buffers = 16").cpus("0"));
    let cut_off_many = |count: usize| {
        thread::scope(|scope| {
            for worker in 0..4 {
                let address = server.address();
                scope.spawn(move || {
                    (0..count / 4).for_each(|request| cut_off(address, request + worker));
                });
            }
        });
        // A connection that is whole and answered comes after all that were cut off.
        assert_eq!(Client::connect(server.address()).get("/small").body, b"small\n");
    };
    let idle = server.descriptors();
    cut_off_many(repeats(2000).max(200));
    // The cache holds a file open from here on.
    wait_until("the connections are closed", || server.descriptors() <= idle + 1);
    let (descriptors, kib) = (server.descriptors(), server.memory_kib("RssAnon"));
    cut_off_many(repeats(20_000));
    wait_until("the connections are closed", || server.descriptors() <= descriptors);
    assert_eq!(kernel_workers(&server), 0);
    let grown_kib = server.memory_kib("RssAnon").saturating_sub(kib);
    assert!(grown_kib <= 512, "{grown_kib} KiB more than before");
    let stats = server.stop();
    assert_eq!(stats.total("accepted"), stats.total("closed"));
    assert_eq!(stats.total("connections"), 0);
    assert_eq!(stats.total("unexpected_errors"), 0);
}

/// Numbers that look random and are the same each time (Knuth's MMIX).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }
}

/// One connection of a client that sends half a request and then vanishes, or goes on, at random;
/// what it is answered must be its own file.
fn one_of_the_churn(address: SocketAddr, name: &str, dice: &mut Dice) {
    let mut client = Client::connect(address);
    let request = get(&format!("/{name}"));
    let (begun, rest) = request.split_at(dice.roll(request.len()));
    client.send(begun);
    match dice.roll(6) {
        0 => client.reset(),
        1 => drop(client),
        2 => client.end_sending(),
        _ => {
            client.send(rest);
            if dice.roll(4) == 0 {
                return client.reset();
            }
            // More of the same, pipelined, with an end that is missing.
            client.send(&request);
            client.send(begun);
            for _ in 0..2 {
                let response = client.response();
                assert_eq!(response.status, 200);
                let body = String::from_utf8_lossy(&response.body);
                assert!(body.split(' ').all(|word| word == name), "{name}: {body}");
            }
        }
    }
}

#[test]
fn clients_that_vanish_never_leave_their_bytes_to_others() {
    let site = Site::new();
    for client in 0..8 {
        for file in 0..8 {
            // Half of them are small enough to be kept in memory, and half are not.
            let name = format!("file-{client}-{file}");
            site.write(&name, vec![&*name; if file % 2 == 0 { 10 } else { 8000 }].join(" "));
        }
    }
    let server = Server::start(site.serve());
    thread::scope(|scope| {
        for client in 0..8 {
            let address = server.address();
            scope.spawn(move || {
                let mut dice = Dice(client);
                for _ in 0..repeats(20_000) / 8 {
                    let file = dice.roll(8);
                    one_of_the_churn(address, &format!("file-{client}-{file}"), &mut dice);
                }
            });
        }
    });
    let stats = server.stop();
    assert_eq!(stats.total("connections"), 0);
    assert_eq!(stats.total("unexpected_errors"), 0);
}

/// Two entries, which may be large.
const SMALL_CACHE: &str = "[cache]\nentries = 2\ninline = \"8MiB\"\nvalid = \"0s\"
    [timeouts]\nwrite_stall = \"1h\"\ngrace = \"1h\"";

/// More than the sockets between take: its send is under way when this returns.
fn begin_large_answer(address: SocketAddr) -> Client {
    let mut client = Client::narrow(address, 4096);
    client.send(get("/old"));
    assert_eq!(client.head().status, 200);
    client
}

/// Evicts the entry that is being sent, and replaces the file.
fn evict_and_replace(site: &Site, address: SocketAddr, new: &[u8]) {
    let mut client = Client::connect(address);
    for name in ["a", "b", "c"] {
        assert_eq!(client.get(&format!("/{name}")).body, name.as_bytes());
    }
    site.write("old", new);
    assert!(client.get("/old").body == new);
}

fn site_with_large_old() -> (Site, Vec<u8>, Vec<u8>) {
    let site = Site::new();
    for name in ["a", "b", "c"] {
        site.write(name, name);
    }
    let old = pattern(8 * MIB);
    let new = old.iter().map(|byte| !byte).collect();
    site.write("old", &old);
    (site, old, new)
}

/// Under the address sanitizer, memory that was given back is filled with other bytes: those would
/// arrive here.
#[test]
fn an_answer_outlives_its_cache_entry_and_its_file() {
    let (site, old, new) = site_with_large_old();
    let shard = InProcess::start(&site, SMALL_CACHE, || {});
    let mut peer = begin_large_answer(shard.address());
    let evictions = || shard.counters.cache_evictions.value();
    let before = evictions();
    evict_and_replace(&site, shard.address(), &new);
    wait_until("the entry is evicted", || evictions() >= before + 3);
    assert!(peer.take(8 * MIB) == old, "other bytes than were promised");
    drop(peer);
    shard.stop();
}

#[test]
fn a_connection_may_go_while_an_evicted_entry_is_sent_to_it() {
    let (site, old, new) = site_with_large_old();
    let shard = InProcess::start(&site, SMALL_CACHE, || {});
    for round in 0..repeats(60) {
        let (now, then) = if round % 2 == 0 { (&old, &new) } else { (&new, &old) };
        site.write("old", now);
        let peers = [(); 4].map(|()| begin_large_answer(shard.address()));
        for (place, peer) in peers.into_iter().enumerate() {
            match place {
                0 => evict_and_replace(&site, shard.address(), then),
                1 => drop(peer),
                _ => peer.reset(),
            }
        }
    }
    assert_eq!(Client::connect(shard.address()).get("/a").body, b"a");
    let peers = [(); 4].map(|()| begin_large_answer(shard.address()));
    shard.cut();
    for mut peer in peers {
        peer.until_the_end();
    }
}

/// A kernel worker would run beside the shard, on its CPU.
#[test]
fn a_warm_load_raises_no_kernel_worker() {
    let site = Site::with("small", "small\n");
    let sizes = [("small", 6), ("100k", 100 << 10), ("1m", MIB)];
    site.write("100k", pattern(100 << 10));
    site.write("1m", pattern(MIB));
    let server = Server::start(site.serve().cpus("0"));
    for (name, bytes) in sizes {
        let path = format!("/{name}");
        let mut kept = Client::connect(server.address());
        for _ in 0..repeats(500) {
            assert_eq!(kept.get(&path).body.len(), bytes);
            let mut closed = Client::connect(server.address());
            closed.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
            assert_eq!(closed.response().body.len(), bytes);
            kept.send(get(&path).repeat(4));
            for _ in 0..4 {
                assert_eq!(kept.response().body.len(), bytes);
            }
        }
        assert_eq!(kernel_workers(&server), 0, "{:?}", server.threads());
    }
    assert_eq!(server.stop().total("unexpected_errors"), 0);
}
