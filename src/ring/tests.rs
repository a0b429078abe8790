//! The ring against this kernel's sockets and files.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;

const GUARD: Duration = Duration::from_secs(30);

fn token(slot: u32) -> Token {
    Token { slot, generation: slot + 100 }
}

fn small_ring() -> Ring {
    Ring::new(&Setup {
        entries: 64,
        recv_buffers: 4,
        recv_buffer_bytes: 1024,
        fixed_buffers: 2,
        fixed_buffer_bytes: 8192,
        min_wait: Duration::ZERO,
    })
    .unwrap()
}

/// Enters until something comes back.
fn next(ring: &mut Ring) -> Completion {
    let start = Instant::now();
    loop {
        if let Some(completion) = ring.completion() {
            return completion;
        }
        assert!(start.elapsed() < GUARD, "nothing completes");
        ring.enter(Wait::AtMost(Duration::from_millis(100))).unwrap();
    }
}

fn pair() -> (TcpStream, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    (peer, Rc::new(OwnedFd::from(ours)))
}

#[test]
fn accept_goes_on_and_receive_ends_with_the_peer() {
    let mut ring = small_ring();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Arc::new(OwnedFd::from(listener));
    ring.accept(&listener, token(1));
    for _ in 0..3 {
        let mut peer = TcpStream::connect(address).unwrap();
        let accepted = next(&mut ring);
        assert_eq!(accepted.token, token(1));
        let Event::Accepted(socket) = accepted.event else { panic!("{accepted:?}") };
        let socket = Rc::new(socket);
        ring.recv(&socket, token(2));
        peer.write_all(b"hello").unwrap();
        let received = next(&mut ring);
        assert_eq!(received.token, token(2));
        let Event::Received(bytes) = received.event else { panic!("{:?}", received.event) };
        assert_eq!(&*bytes, b"hello");
        drop(bytes);
        peer.shutdown(Shutdown::Write).unwrap();
        assert!(matches!(next(&mut ring).event, Event::Ended));
        ring.close(socket);
        ring.enter(Wait::No).unwrap();
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
    }
}

#[test]
fn an_accept_for_once_takes_one_connection() {
    let mut ring = small_ring();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Arc::new(OwnedFd::from(listener));
    let _peers = [(); 2].map(|()| TcpStream::connect(address).unwrap());
    for _ in 0..2 {
        ring.accept_once(&listener, token(1));
        assert!(matches!(next(&mut ring).event, Event::Accepted(_)));
        assert_eq!(ring.in_flight(), 0);
    }
    let operation = ring.accept_once(&listener, token(1));
    ring.cancel(operation);
    let cancelled = next(&mut ring).event;
    assert!(matches!(cancelled, Event::AcceptFailed(AcceptError::Cancelled)), "{cancelled:?}");
}

#[test]
fn a_receive_for_once_leaves_nothing_pending() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    peer.write_all(&[7; 1500]).unwrap();
    for (expected, more_waits) in [(1024, true), (476, false)] {
        ring.recv_once(&socket, token(1));
        let Event::Received(bytes) = next(&mut ring).event else { panic!() };
        assert_eq!((bytes.len(), bytes.more_waits()), (expected, more_waits));
        assert_eq!(ring.in_flight(), 0);
    }
    ring.close(socket);
    ring.enter(Wait::No).unwrap();
    assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn a_receive_for_once_waits_for_a_buffer() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    peer.write_all(&[7; 5 * 1024]).unwrap();
    let mut held = Vec::new();
    for _ in 0..4 {
        ring.recv_once(&socket, token(1));
        let Event::Received(bytes) = next(&mut ring).event else { panic!() };
        held.push(bytes);
    }
    ring.recv_once(&socket, token(1));
    ring.enter(Wait::AtMost(Duration::from_millis(50))).unwrap();
    assert!(ring.completion().is_none());
    held.pop();
    let Event::Received(bytes) = next(&mut ring).event else { panic!() };
    assert_eq!(bytes.len(), 1024);
}

#[test]
fn a_receive_without_buffers_goes_on_when_one_comes_back() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    ring.recv(&socket, token(0));
    let mut held = Vec::new();
    peer.write_all(&[7; 6 * 1024]).unwrap();
    for _ in 0..4 {
        let Event::Received(bytes) = next(&mut ring).event else { panic!() };
        held.push(bytes);
    }
    ring.enter(Wait::AtMost(Duration::from_millis(50))).unwrap();
    assert!(ring.completion().is_none());
    assert_eq!(ring.counters().enobufs, 1);
    let mut total: usize = held.drain(..).map(|bytes| bytes.len()).sum();
    while total < 6 * 1024 {
        let Event::Received(bytes) = next(&mut ring).event else { panic!() };
        total += bytes.len();
    }
    assert_eq!(total, 6 * 1024);
    assert!(ring.counters().rearmed_recv >= 1);
}

#[test]
fn a_starved_receive_can_be_cancelled() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    let operation = ring.recv(&socket, token(0));
    peer.write_all(&[7; 6 * 1024]).unwrap();
    let mut held = Vec::new();
    while ring.counters().enobufs == 0 {
        if let Some(Completion { event: Event::Received(bytes), .. }) = ring.completion() {
            held.push(bytes);
        }
        ring.enter(Wait::AtMost(Duration::from_millis(10))).unwrap();
    }
    ring.cancel(operation);
    assert!(matches!(next(&mut ring).event, Event::RecvFailed(RecvError::Cancelled)));
    assert_eq!(ring.in_flight(), 0);
}

/// The kernel has ended the receive for want of a buffer when the caller cancels it, and the caller
/// has not heard of that yet.
#[test]
fn a_receive_that_starves_while_it_is_cancelled_ends() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    let operation = ring.recv(&socket, token(0));
    peer.write_all(&[7; 6 * 1024]).unwrap();
    let mut held = Vec::new();
    while held.len() < 4 {
        if let Event::Received(bytes) = next(&mut ring).event {
            held.push(bytes);
        }
    }
    ring.cancel(operation);
    assert_eq!(ring.counters().enobufs, 0, "the caller has not heard of it yet");
    assert!(matches!(next(&mut ring).event, Event::RecvFailed(RecvError::Cancelled)));
    drop(held);
    ring.enter(Wait::AtMost(Duration::from_millis(10))).unwrap();
    assert!(ring.completion().is_none());
    assert_eq!(ring.in_flight(), 0);
}

/// The peer has ended and does not read: polls answer at once, and the ring waits on its own. (Where
/// they do not, the kernel is asked to cancel.)
#[test]
fn a_poll_that_the_kernel_does_not_know_of_can_be_cancelled() {
    let mut ring = small_ring();
    let (peer, socket) = pair();
    peer.shutdown(Shutdown::Write).unwrap();
    while nix::unistd::write(&socket, &[0; 65_536]).is_ok() {}
    let operation = ring.poll_writable(&socket, token(1));
    for _ in 0..20 {
        ring.enter(Wait::AtMost(Duration::from_millis(1))).unwrap();
        assert!(ring.completion().is_none());
        if ring.counters().room_retries > 0 {
            break;
        }
    }
    ring.cancel(operation);
    let cancelled = next(&mut ring).event;
    assert!(matches!(cancelled, Event::Polled(Err(PollError::Cancelled))), "{cancelled:?}");
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn a_send_larger_than_the_socket_buffer_arrives_whole() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    let bytes: Rc<[u8]> = (0..8 << 20).map(|index: u32| (index % 251) as u8).collect();
    let buf = SendBuf::Shared(Rc::clone(&bytes), 1..8 << 20);
    ring.send(&socket, buf, token(5));
    drop(bytes);
    let reader = std::thread::spawn(move || {
        let mut received = vec![0; (8 << 20) - 1];
        peer.read_exact(&mut received).unwrap();
        received
    });
    assert!(matches!(next(&mut ring).event, Event::Sent(Ok(()))));
    let received = reader.join().unwrap();
    assert!((1..8 << 20).map(|index: u32| (index % 251) as u8).eq(received));
}

/// The kernel has found room for the rest when the caller cancels, and the ring has not heard of that.
#[test]
fn a_send_that_finds_room_while_it_is_cancelled_sends_no_more() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    let bytes: Rc<[u8]> = vec![7; 32 << 20].into();
    let operation = ring.send(&socket, SendBuf::Shared(bytes, 0..32 << 20), token(1));
    let start = Instant::now();
    while ring.counters().short_sends == 0 {
        ring.enter(Wait::AtMost(Duration::from_millis(10))).unwrap();
        assert!(ring.completion().is_none());
    }
    peer.set_nonblocking(true).unwrap();
    while ring.uring.completion().is_empty() {
        assert!(start.elapsed() < GUARD, "no room is found");
        while peer.read(&mut [0; 65_536]).is_ok() {}
        ring.enter(Wait::AtMost(Duration::from_millis(10))).unwrap();
    }
    ring.cancel(operation);
    let submitted = ring.counters().sqes;
    let cancelled = next(&mut ring).event;
    assert!(matches!(cancelled, Event::Sent(Err(SendError::Cancelled))), "{cancelled:?}");
    assert_eq!((ring.counters().sqes, ring.in_flight()), (submitted, 0));
}

#[test]
fn vectored_sends_keep_their_order() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    for _ in 0..3 {
        let mut bufs = vec![
            SendBuf::Static(b"one "),
            SendBuf::Shared(Rc::from(&b"-two -"[..]), 1..5),
            SendBuf::Static(b"three"),
        ];
        ring.send_vectored(&socket, &mut bufs, token(5));
        assert!(bufs.is_empty());
        assert!(matches!(next(&mut ring).event, Event::Sent(Ok(()))));
        let mut received = [0; 13];
        peer.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"one two three");
    }
}

#[test]
fn more_buffers_than_a_message_may_have_all_arrive() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    let mut bufs: Vec<_> = std::iter::repeat_n(SendBuf::Static(b"abc"), 2500).collect();
    ring.send_vectored(&socket, &mut bufs, token(5));
    assert!(matches!(next(&mut ring).event, Event::Sent(Ok(()))));
    let mut received = [0; 7500];
    peer.read_exact(&mut received).unwrap();
    assert!(received.chunks(3).all(|chunk| chunk == b"abc"));
}

#[test]
fn more_submissions_than_the_queue_holds_all_go_in() {
    let mut ring = small_ring();
    let pairs: Vec<_> = (0..200).map(|_| pair()).collect();
    for (slot, (_, socket)) in pairs.iter().enumerate() {
        ring.send(socket, SendBuf::Static(b"x"), token(slot as u32));
    }
    for _ in 0..200 {
        assert!(matches!(next(&mut ring).event, Event::Sent(Ok(()))));
    }
    assert!(ring.counters().sq_full > 0);
    for (peer, _) in &pairs {
        let mut peer = peer;
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 1);
    }
}

#[test]
fn an_overflown_completion_queue_loses_nothing() {
    let mut ring = Ring::new(&Setup { entries: 1, recv_buffers: 1, ..Setup::default() }).unwrap();
    let pairs: Vec<_> = (0..64).map(|_| pair()).collect();
    for (slot, (_, socket)) in pairs.iter().enumerate() {
        ring.send(socket, SendBuf::Static(b"x"), token(slot as u32));
    }
    let mut seen = [false; 64];
    for _ in 0..64 {
        let completion = next(&mut ring);
        assert!(matches!(completion.event, Event::Sent(Ok(()))));
        assert!(!std::mem::replace(&mut seen[completion.token.slot as usize], true));
    }
}

#[test]
fn reads_fill_leased_buffers_up_to_the_end() {
    let mut ring = small_ring();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[3; 10_000]).unwrap();
    let file = Rc::new(OwnedFd::from(file));
    for (offset, expected) in [(0, 8192), (8192, 1808), (10_000, 0)] {
        let lease = ring.arena().lease().unwrap();
        ring.read(&file, offset, lease, usize::MAX, token(1));
        let Event::Read(Ok((lease, bytes))) = next(&mut ring).event else { panic!() };
        assert_eq!(bytes, expected);
        assert!(lease[..bytes].iter().all(|&byte| byte == 3));
    }
    let counters = ring.counters();
    assert_eq!(counters.fixed_reads + counters.unregistered_reads, 3);
}

#[test]
fn a_wake_up_reaches_a_ring_that_waits() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        let mut ring = small_ring();
        sender.send(ring.address().unwrap()).unwrap();
        matches!(next(&mut ring).event, Event::Woken)
    });
    let address = receiver.recv().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let mut ring = small_ring();
    ring.wake(&address);
    ring.enter(Wait::No).unwrap();
    assert!(sleeper.join().unwrap());
}

#[test]
fn a_wake_up_reaches_the_ring_that_was_meant_although_its_address_is_dropped() {
    let mut target = small_ring();
    let mut ring = small_ring();
    ring.wake(&target.address().unwrap());
    // This one may well have the number that the dropped one had.
    let other = small_ring();
    let _address = other.address().unwrap();
    ring.enter(Wait::No).unwrap();
    assert!(matches!(next(&mut target).event, Event::Woken));
}

#[test]
fn a_connection_can_be_made_and_refused() {
    let mut ring = small_ring();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (_, socket) = pair();
    let fresh = || {
        let socket = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Inet,
            nix::sys::socket::SockType::Stream,
            nix::sys::socket::SockFlag::SOCK_CLOEXEC,
            None,
        );
        Rc::new(socket.unwrap())
    };
    let socket_to_listener = fresh();
    ring.connect(&socket_to_listener, address, token(1));
    assert!(matches!(next(&mut ring).event, Event::Connected(Ok(()))));
    drop((listener, socket));
    ring.connect(&fresh(), address, token(1));
    assert!(matches!(next(&mut ring).event, Event::Connected(Err(ConnectError::Refused))));
}

#[test]
fn a_socket_stays_open_while_an_operation_holds_it() {
    let mut ring = small_ring();
    let (mut peer, socket) = pair();
    let operation = ring.recv(&socket, token(1));
    ring.close(socket);
    ring.enter(Wait::No).unwrap();
    peer.write_all(b"late").unwrap();
    let Event::Received(bytes) = next(&mut ring).event else { panic!() };
    assert_eq!(&*bytes, b"late");
    drop(bytes);
    ring.cancel(operation);
    assert!(matches!(next(&mut ring).event, Event::RecvFailed(RecvError::Cancelled)));
    assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn dropping_a_ring_lets_go_of_everything_in_flight() {
    let (mut peer, socket) = pair();
    let bytes: Rc<[u8]> = vec![1; 32 << 20].into();
    let watch = Rc::downgrade(&bytes);
    let mut ring = small_ring();
    ring.recv(&socket, token(1));
    ring.send(&socket, SendBuf::Shared(bytes, 0..32 << 20), token(2));
    ring.enter(Wait::No).unwrap();
    assert!(watch.upgrade().is_some());
    drop(ring);
    assert!(watch.upgrade().is_none());
    assert_eq!(Rc::strong_count(&socket), 1);
    drop(socket);
    let mut rest = Vec::new();
    let _ = peer.read_to_end(&mut rest);
    assert!(rest.iter().all(|&byte| byte == 1));
}

/// With many of them, each waits longer: together they are not to take the CPU.
#[test]
fn tries_for_peers_that_have_ended_are_spaced() {
    const SOCKETS: u32 = 350;
    const TRIES: u32 = 20 * SOCKETS;
    let mut ring = Ring::new(&Setup { recv_buffers: 1, ..Setup::default() }).unwrap();
    let full = || {
        let (peer, socket) = pair();
        peer.shutdown(Shutdown::Write).unwrap();
        while nix::unistd::write(&socket, &[0; 65_536]).is_ok() {}
        (peer, socket)
    };
    let sockets: Vec<_> = (0..SOCKETS).map(|_| full()).collect();
    let start = Instant::now();
    for (_, socket) in &sockets {
        ring.poll_writable(socket, token(1));
    }
    while ring.counters().room_retries < u64::from(TRIES) {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", ring.counters());
        ring.enter(Wait::AtMost(Duration::from_millis(10))).unwrap();
        assert!(ring.completion().is_none());
    }
    // None can be quicker than this, however slow the machine is.
    assert!(start.elapsed() >= Duration::from_micros(32) * (TRIES - 2 * SOCKETS));
}

#[test]
fn sends_to_a_peer_that_has_ended_wait_for_room() {
    let mut ring = small_ring();
    for vectored in [false, true] {
        let (mut peer, socket) = pair();
        peer.shutdown(Shutdown::Write).unwrap();
        let bytes: Rc<[u8]> = vec![7; 16 << 20].into();
        let half = SendBuf::Shared(Rc::clone(&bytes), 0..8 << 20);
        let whole = SendBuf::Shared(bytes, 0..16 << 20);
        if vectored {
            ring.send_vectored(&socket, &mut vec![half.clone(), half], token(1));
        } else {
            ring.send(&socket, whole, token(1));
        }
        for _ in 0..20 {
            ring.enter(Wait::AtMost(Duration::from_millis(10))).unwrap();
            assert!(ring.completion().is_none(), "{vectored}");
        }
        let reader = std::thread::spawn(move || {
            let mut received = vec![0; 16 << 20];
            peer.read_exact(&mut received).unwrap();
        });
        let sent = next(&mut ring);
        assert!(matches!(sent.event, Event::Sent(Ok(()))), "{vectored} {sent:?}");
        reader.join().unwrap();
        let counters = ring.counters();
        assert!((1..200).contains(&counters.room_retries), "{counters:?}");
    }
    // A send that waited inside the kernel would occupy a worker. Threads of other tests come and go.
    let worker = format!("iou-wrk-{}", nix::unistd::gettid());
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    assert!(!names.any(|name| name.trim() == worker));
}
