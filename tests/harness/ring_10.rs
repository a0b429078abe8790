//! Layer 10: the ring, where it races with the kernel, is refused memory, or ends with much in flight.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use onering::ring::{
    Completion, Event, ReadError, RecvError, Ring, SendBuf, SendError, Setup, Socket, Token, Wait,
};

use crate::support::cold::{evict, site_on_disk};
use crate::support::{Client, PATIENCE, Server, pattern, repeats, skip};

const TOKEN: Token = Token { slot: 1, generation: 1 };

fn ring() -> Ring {
    let setup = Setup { entries: 64, recv_buffers: 16, fixed_buffers: 2, ..Setup::default() };
    Ring::new(&setup).expect("there is io_uring")
}

/// A connection whose queues stay small: hundreds of megabytes in them, as the kernel would allow
/// them to grow, are more than a small host gives to TCP as a whole (`net.ipv4.tcp_mem`), and whoever
/// closes a socket in that moment sends a reset in place of what is queued.
fn pair() -> (TcpStream, Socket) {
    const QUEUE_BYTES: usize = 64 << 10;
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
    setsockopt(&listener, sockopt::RcvBuf, &QUEUE_BYTES).expect("an option of a socket");
    setsockopt(&listener, sockopt::SndBuf, &QUEUE_BYTES).expect("an option of a socket");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    setsockopt(&peer, sockopt::RcvBuf, &QUEUE_BYTES).expect("an option of a socket");
    let (ours, _) = listener.accept().expect("it is connected");
    ours.set_nonblocking(true).expect("an option of a socket");
    (peer, Rc::new(OwnedFd::from(ours)))
}

/// Compiles only while a ring cannot be given to another thread (IORING_SETUP_SINGLE_ISSUER): if it
/// could, both implementations would be meant.
const _: fn() = || {
    trait NotSend<A> {
        fn holds() {}
    }
    struct IfSend;
    impl<T> NotSend<()> for T {}
    impl<T: Send> NotSend<IfSend> for T {}
    <Ring as NotSend<_>>::holds();
};

/// Enters until something comes back.
#[track_caller]
fn next(ring: &mut Ring) -> Completion {
    let start = Instant::now();
    loop {
        if let Some(completion) = ring.completion() {
            return completion;
        }
        assert!(start.elapsed() < PATIENCE, "nothing completes");
        ring.enter(Wait::AtMost(Duration::from_millis(100))).expect("the ring works");
    }
}

/// A peer writes and a receive is cancelled at the same time, so that now this and now that is first.
/// Each receive ends once, as cancelled, and no byte is lost or comes twice.
#[test]
fn receives_that_are_cancelled_while_bytes_come_lose_nothing() {
    let rounds = repeats(5000);
    let mut ring = ring();
    let (mut peer, socket) = pair();
    let (go, told) = mpsc::channel::<()>();
    let writer = thread::spawn(move || {
        for (count, ()) in told.into_iter().enumerate() {
            peer.write_all(&[count as u8]).expect("the ring receives");
        }
        peer
    });
    let mut received = Vec::new();
    let mut bytes_before_the_end = 0;
    for round in 0..rounds {
        let operation = ring.recv(&socket, TOKEN);
        ring.enter(Wait::No).expect("the ring works");
        go.send(()).expect("the writer waits");
        for _ in 0..round % 50 * 20 {
            std::hint::spin_loop();
        }
        ring.cancel(operation);
        loop {
            match next(&mut ring).event {
                Event::Received(bytes) => {
                    received.extend_from_slice(&bytes);
                    bytes_before_the_end += 1;
                }
                Event::RecvFailed(RecvError::Cancelled) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ring.in_flight(), 0);
        ring.enter(Wait::No).expect("the ring works");
        assert!(ring.completion().is_none(), "a receive has ended twice");
    }
    drop(go);
    let peer = writer.join().expect("the writer does not fail");
    peer.shutdown(Shutdown::Write).expect("it is connected");
    ring.recv(&socket, TOKEN);
    while let Event::Received(bytes) = next(&mut ring).event {
        received.extend_from_slice(&bytes);
    }
    assert!(received.into_iter().eq((0..rounds).map(|count| count as u8)));
    assert!((1..rounds).contains(&bytes_before_the_end), "one side won every time");
}

/// The same for sends, of which the peer takes some before they are cancelled.
#[test]
fn sends_that_are_cancelled_end_once_and_give_back_what_they_held() {
    const BYTES: usize = 1 << 20;
    let mut ring = ring();
    let bytes: Rc<[u8]> = vec![7; BYTES].into();
    let mut cancelled = 0;
    for round in 0..repeats(100) {
        let (mut peer, socket) = pair();
        // A peer that takes nothing before: of so much, something is left to be cancelled.
        let stalled = round % 2 == 0;
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let reader = thread::spawn(move || {
            if stalled {
                let _ = wait.recv();
            }
            let mut whole = Vec::new();
            peer.read_to_end(&mut whole).map(|_| whole)
        });
        let piece = SendBuf::Shared(Rc::clone(&bytes), 0..BYTES as u32);
        let mut pieces = vec![piece; if stalled { 32 } else { 4 }];
        let operation = ring.send_vectored(&socket, &mut pieces, TOKEN);
        let mut first = None;
        for _ in 0..round % 10 {
            ring.enter(Wait::No).expect("the ring works");
            first = first.or_else(|| ring.completion());
        }
        ring.cancel(operation);
        let event = first.unwrap_or_else(|| next(&mut ring)).event;
        drop(go);
        match event {
            Event::Sent(Ok(())) => assert!(!stalled, "32 MiB were on their way"),
            Event::Sent(Err(SendError::Cancelled)) => cancelled += 1,
            other => panic!("{other:?}"),
        }
        assert_eq!((ring.in_flight(), Rc::strong_count(&bytes)), (0, 1));
        ring.close(socket);
        ring.enter(Wait::No).expect("the ring works");
        let whole = reader.join().expect("the reader does not fail").expect("a FIN ends it");
        assert!(whole.iter().all(|&byte| byte == 7));
    }
    assert!(cancelled > 0);
}

#[test]
fn a_ring_with_thousands_of_operations_lets_go_of_all_of_them() {
    let bytes: Rc<[u8]> = vec![7; 8 << 20].into();
    let pairs: Vec<_> = (0..100).map(|_| pair()).collect();
    let mut ring = ring();
    for (_, socket) in &pairs {
        ring.recv(socket, TOKEN);
        let len = bytes.len() as u32;
        ring.send(socket, SendBuf::Shared(Rc::clone(&bytes), 0..len), TOKEN);
        for _ in 0..repeats(50) {
            ring.poll_readable(socket, TOKEN);
        }
    }
    ring.enter(Wait::No).expect("the ring works");
    assert!(ring.in_flight() >= 100 * (2 + repeats(50)));
    drop(ring);
    assert_eq!(Rc::strong_count(&bytes), 1);
    assert!(pairs.iter().all(|(_, socket)| Rc::strong_count(socket) == 1));
}

/// Buffers are registered with one ring only. The kernel refuses another's, and nothing is written.
#[test]
fn a_buffer_of_another_ring_is_refused_and_comes_back() {
    let mut ring = ring();
    let other = self::ring();
    if !ring.arena_registered() {
        return skip("buffers cannot be registered: RLIMIT_MEMLOCK is too small");
    }
    let mut file = tempfile::tempfile().expect("temporary files can be made");
    file.write_all(&[7; 4096]).expect("the disk has room");
    let file = Rc::new(OwnedFd::from(file));
    let lease = other.arena().lease().expect("nobody has one");
    ring.read(&file, 0, lease, 4096, TOKEN);
    let refused = next(&mut ring).event;
    assert!(matches!(refused, Event::Read(Err(ReadError::Unexpected(_)))), "{refused:?}");
    let leases = [other.arena().lease(), other.arena().lease()].map(|lease| lease.expect("free"));
    assert!(leases.iter().all(|lease| lease.iter().all(|&byte| byte == 0)));
}

#[test]
fn files_are_read_where_no_memory_for_it_may_be_locked() {
    if !nix::unistd::geteuid().is_root() {
        return skip("needs root, to become a user who may not lock memory without limit");
    }
    let Some(site) = site_on_disk() else { return };
    site.write("large", pattern(8 << 20));
    File::open(site.path("large")).and_then(|file| file.sync_all()).expect("the disk takes it");
    evict(&site.path("large"));
    // Enough for a ring on kernels that charge it to the limit, and not for the buffers besides.
    let server = Server::start(site.serve().cpus("0").unprivileged().ulimit("-l", 1024));
    assert!(Client::connect(server.address()).get("/large").body == pattern(8 << 20));
    let stats = server.stop();
    assert_eq!(stats.total("fixed_reads"), 0);
    assert_eq!(stats.total("unregistered_reads"), stats.total("cold_reads"));
    assert!(stats.total("unregistered_reads") > 0);
}
