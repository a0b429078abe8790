//! A shard turn by turn, where two things happen between one turn and the next.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{Config, Facts, Overrides, Root, resolve};
use crate::http::Awaiting;
use crate::metrics::Counters;
use crate::ring::{Ring, Setup, Wait};
use crate::tls::clock::Clock;
use crate::tls::{Material, Problems, Resumption};

use super::{Assignment, Letter, Shard};

mod secure;

const GUARD: Duration = Duration::from_secs(30);

/// The material of a configuration in which no listener speaks TLS.
pub(super) fn plain(config: &Config) -> Arc<Material> {
    let tls = crate::config::Tls { session_cache_entries: 0, tickets: false, ..config.tls.clone() };
    let mut problems = Problems::default();
    let clock = Arc::new(Clock::at(0));
    let resumption = Resumption::new(&tls, 1, clock, &mut problems).map(Arc::new);
    let material = resumption
        .and_then(|resumption| Material::load(config, &resumption, None, 0, &mut problems));
    Arc::new(material.expect("nothing of it is in files"))
}

/// A shard with these listeners, and a configuration that `change` has changed.
fn shard(listeners: Vec<OwnedFd>, change: impl FnOnce(&mut Config)) -> Shard {
    let facts = Facts { allowed_cpus: vec![0], nofile: 4096 };
    let mut config = resolve(None, &Overrides::default(), &facts).unwrap();
    change(&mut config);
    let assignment = Assignment {
        index: 0,
        cpu: 0,
        steered: false,
        listeners: listeners.into_iter().map(Arc::new).collect(),
        material: plain(&config),
        kernel_may_seal: false,
        worker: None,
        counters: Arc::new(Counters::default()),
    };
    Shard::new(Arc::new(config), assignment).unwrap()
}

fn turn_until(shard: &mut Shard, condition: impl Fn(&Shard) -> bool) {
    let start = Instant::now();
    while !condition(shard) {
        assert!(start.elapsed() < GUARD, "waited in vain");
        shard.turn(Wait::AtMost(Duration::from_millis(10))).unwrap();
    }
}

fn pair() -> (TcpStream, OwnedFd) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    (peer, ours.into())
}

/// Closes with a reset.
fn reset(peer: TcpStream) {
    let abort = libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&peer, nix::sys::socket::sockopt::Linger, &abort).unwrap();
}

/// Its first bytes come after the turn in which it is shut has looked for them.
#[test]
fn a_connection_that_is_shut_while_its_first_bytes_come_ends() {
    let mut shard = shard(Vec::new(), |_| {});
    let (mut peer, socket) = pair();
    shard.adopt(socket, 0);
    shard.turn(Wait::No).unwrap();
    peer.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    for token in shard.tokens() {
        shard.shut(token);
    }
    assert_eq!(shard.connections.len(), 1, "the ring still receives");
    turn_until(&mut shard, |shard| shard.connections.is_empty());
}

/// The last connection goes while the accept is being cancelled because there were too many.
#[test]
fn accepting_goes_on_although_the_connections_went_before_it_had_stopped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut shard = shard(vec![listener.into()], |config| config.limits.connections_per_shard = 1);
    shard.start_accepting();
    shard.turn(Wait::No).unwrap();
    for count in 1..=20 {
        reset(TcpStream::connect(address).unwrap());
        let counters = Arc::clone(&shard.assignment.counters);
        turn_until(&mut shard, |_| counters.closed.value() == count);
    }
}

/// As one is that has panicked.
#[test]
fn a_shard_that_is_gone_does_not_keep_the_others_from_ending() {
    let (mut shard, gone) = (shard(Vec::new(), |_| {}), shard(Vec::new(), |_| {}));
    shard.inboxes = Arc::from([shard.inbox(), gone.inbox()]);
    shard.drain();
    assert!(!shard.drained(), "the other has not ended");
    drop(gone);
    assert!(shard.drained());
}

/// It was accepted, or handed off, while the others were being cut off.
#[test]
fn a_connection_that_comes_after_the_end_is_not_waited_for() {
    let mut shard = shard(Vec::new(), |_| {});
    shard.cut();
    let (mut peer, socket) = pair();
    shard.adopt(socket, 0);
    assert!(shard.drained());
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
}

/// Its answers were pulled and sent within one turn, so that nothing was ever seen to be waited for
/// but the next request; and since when it had been waited for was the first of them.
#[test]
fn a_connection_that_downloads_without_a_pause_is_not_closed_as_idle() {
    let site = tempfile::tempdir().unwrap();
    std::fs::write(site.path().join("file"), [b'f'; 40_000]).unwrap();
    let mut shard = shard(Vec::new(), |config| {
        config.sites[0].root = Root::Directory(site.path().into());
    });
    let (mut peer, socket) = pair();
    peer.set_nonblocking(true).unwrap();
    shard.adopt(socket, 0);
    let mut waits_since_ms = Vec::new();
    for count in 1..=3 {
        peer.write_all(b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let counters = Arc::clone(&shard.assignment.counters);
        turn_until(&mut shard, |shard| {
            let (_, connection) = shard.connections.iter().next().unwrap();
            counters.requests.value() == count && connection.awaiting == Awaiting::NextRequest
        });
        waits_since_ms.push(shard.connections.iter().next().unwrap().1.since_ms);
        while peer.read(&mut [0; 65_536]).is_ok() {}
        let now_ms = shard.now.monotonic_ms;
        turn_until(&mut shard, |shard| shard.now.monotonic_ms > now_ms);
    }
    assert!(waits_since_ms.is_sorted_by(|earlier, later| earlier < later), "{waits_since_ms:?}");
}

/// The peer had not read it yet when the server was told to end.
#[test]
fn an_answer_is_not_lost_to_a_request_that_crosses_the_end() {
    let mut shard = shard(Vec::new(), |_| {});
    let (mut peer, socket) = pair();
    shard.adopt(socket, 0);
    peer.write_all(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    turn_until(&mut shard, |shard| {
        shard.connections.iter().all(|(_, connection)| connection.awaiting == Awaiting::NextRequest)
    });
    shard.drain();
    shard.turn(Wait::No).unwrap();
    peer.write_all(b"OPTIONS * HTTP/1.1\r\n").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    turn_until(&mut shard, |shard| shard.connections.is_empty());
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("no reset");
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
}

#[test]
fn a_wake_up_that_has_failed_is_not_the_last() {
    let mut shard = shard(Vec::new(), |_| ());
    let inbox = shard.inbox();
    let (mut failing, mut working) =
        (Ring::new(&Setup::default()).unwrap(), Ring::new(&Setup::default()).unwrap());
    // It never enters the kernel: the shard comes upon the letter in a turn of its own.
    inbox.send(Letter::Connection { socket: pair().1, listener: 0 }, &mut failing);
    turn_until(&mut shard, |shard| shard.connections.len() == 1);
    inbox.send(Letter::Connection { socket: pair().1, listener: 0 }, &mut working);
    assert_eq!(working.counters().wakes_sent, 1);
}
