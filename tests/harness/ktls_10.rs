//! Layer 10: sending through the kernel's TLS, with receiving left to us.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use onering::ring::{Event, Ring, SendBuf, Setup, Socket, Token, Wait};
use onering::sys::file;
use onering::sys::ktls::{self, Sealing};
use onering::sys::socket::{self, SendError};
use rustls::{ClientConnection, ContentType, StreamOwned, SupportedCipherSuite};

use crate::support::tls::{self, Opener, SUITES};
use crate::support::{PATIENCE, pattern, skip, wait_until};

const TOKEN: Token = Token { slot: 1, generation: 1 };

/// The content type of an alert, and the alert that ends a connection in good order.
const ALERT: u8 = 21;
const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// So little that a body of some ten thousand bytes is taken in many pieces.
const NARROW_BYTES: usize = 16 << 10;

fn is_available() -> bool {
    ktls::available().inspect_err(|why| skip(&why.to_string())).is_ok()
}

fn ring() -> Ring {
    let setup = Setup { entries: 64, recv_buffers: 16, fixed_buffers: 2, ..Setup::default() };
    Ring::new(&setup).expect("there is io_uring")
}

/// Enters until something comes back.
#[track_caller]
fn next(ring: &mut Ring) -> Event {
    let mut event = None;
    wait_until("a completion", || {
        ring.enter(Wait::AtMost(Duration::from_millis(100))).expect("the ring works");
        event = ring.completion().map(|completion| completion.event);
        event.is_some()
    });
    event.expect("it was waited for")
}

type Client = StreamOwned<ClientConnection, TcpStream>;

/// The server's side of a connection, and how far it has got.
struct Server {
    socket: Socket,
    opener: Opener,
    keys: ktls::Keys,
    sealing: Option<Sealing>,
    plain_bytes: u64,
}

/// A connection whose handshake is over, with queues of about `queue_bytes` if told; the client goes on
/// with `script` on a thread of its own.
fn connect<T: Send + 'static>(
    suite: SupportedCipherSuite,
    queue_bytes: Option<usize>,
    script: impl FnOnce(Client) -> T + Send + 'static,
) -> (Server, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let limit = |stream: &dyn AsFd| {
        if let Some(bytes) = queue_bytes {
            let fd = stream.as_fd();
            setsockopt(&fd, sockopt::RcvBuf, &bytes).expect("an option of a socket");
            setsockopt(&fd, sockopt::SndBuf, &bytes).expect("an option of a socket");
        }
    };
    limit(&listener);
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    limit(&peer);
    peer.set_read_timeout(Some(PATIENCE)).expect("an option of a socket");
    let (ours, _) = listener.accept().expect("it is connected");
    ours.set_nodelay(true).expect("an option of a socket");
    let client = thread::spawn(move || {
        let mut stream = StreamOwned::new(tls::client(suite), peer);
        stream.conn.complete_io(&mut stream.sock).expect("a handshake");
        script(stream)
    });
    let tls::Accepted { keys, opener } = tls::accept(&ours, suite);
    ours.set_nonblocking(true).expect("an option of a socket");
    let socket = Rc::new(OwnedFd::from(ours));
    (Server { socket, opener, keys, sealing: None, plain_bytes: 0 }, client)
}

impl Server {
    fn hand_over(&mut self) {
        self.sealing = Some(ktls::attach(&self.socket, &self.keys).expect("it is available"));
    }

    fn await_room(&self) {
        socket::push(&self.socket).expect("it is connected");
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
        let ready = poll(&mut polled, PollTimeout::from(30_000_u16)).expect("a descriptor");
        assert_eq!(ready, 1, "no room for {PATIENCE:?}");
    }

    /// Does `send`, which says how many bytes it has got rid of, until `bytes` are.
    fn send(
        &mut self,
        bytes: usize,
        mut send: impl FnMut(&Self, usize) -> Result<usize, SendError>,
    ) {
        let mut sent = 0;
        while sent < bytes {
            match send(self, sent) {
                Ok(taken) => {
                    assert_ne!(taken, 0, "after {sent} of {bytes}");
                    sent += taken;
                }
                Err(SendError::WouldBlock) => self.await_room(),
                Err(error) => panic!("{error:?} after {sent} of {bytes}"),
            }
        }
        self.plain_bytes += bytes as u64;
    }

    /// A head that announces a body, and the body from a file.
    fn send_answer(&mut self, head: &[u8], file: &File, offset: usize, bytes: usize) {
        self.send(head.len(), |server, sent| socket::send_more(&server.socket, &head[sent..]));
        self.send(bytes, |server, sent| {
            let mut offset = (offset + sent) as u64;
            file::sendfile(&server.socket, file, &mut offset, bytes - sent)
        });
    }

    fn flush(&self) -> bool {
        let sealing = self.sealing.as_ref().expect("it was handed over");
        ktls::flush(&self.socket, sealing, self.plain_bytes).expect("a connection")
    }

    /// Ends the connection in good order.
    fn part(mut self) {
        self.send(2, |server, _| ktls::send_record(&server.socket, ALERT, &CLOSE_NOTIFY));
        wait_until("all has left for TCP", || self.flush());
        socket::shutdown_write(&self.socket).expect("it is connected");
    }
}

fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(content).expect("a temporary file");
    file
}

/// A receive that was armed before the hand-over brings what the client sends after it, whichever keys
/// the client has come to by then.
#[test]
fn receiving_goes_on_where_it_was() {
    if !is_available() {
        return;
    }
    for suite in SUITES {
        let updates = suite.tls13().is_some();
        let (go, told) = mpsc::channel::<()>();
        let (mut server, client) = connect(suite, None, move |mut stream| {
            let refresh = |stream: &mut Client| {
                if updates {
                    stream.conn.refresh_traffic_keys().expect("TLS 1.3");
                }
            };
            stream.write_all(b"one ").expect("a connection");
            refresh(&mut stream);
            stream.write_all(b"two ").expect("a connection");
            told.recv().expect("the server goes on");
            stream.write_all(b"three ").expect("a connection");
            refresh(&mut stream);
            stream.write_all(b"four").expect("a connection");
            let mut answer = [0; 6];
            stream.read_exact(&mut answer).expect("an answer");
            answer
        });
        let mut ring = ring();
        ring.recv(&server.socket, TOKEN);
        let mut received = Vec::new();
        while received != b"one two three four" {
            let Event::Received(bytes) = next(&mut ring) else { panic!("the receive has ended") };
            for (content_type, content) in server.opener.open(&bytes) {
                if content_type == ContentType::ApplicationData {
                    received.extend(content);
                }
            }
            if received == b"one two " {
                server.hand_over();
                go.send(()).expect("the client waits");
            }
        }
        assert_eq!(socket::send_now(&server.socket, b"answer"), Ok(6));
        assert_eq!(&client.join().expect("the client does not fail"), b"answer");
    }
}

/// The second of two hand-overs, and other keys before Linux 6.14, are refused without harm.
#[test]
fn it_is_handed_over_once() {
    if !is_available() {
        return;
    }
    let (mut server, client) = connect(SUITES[0], None, |mut stream| {
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).expect("an answer");
        answer
    });
    server.hand_over();
    let again = ktls::attach(&server.socket, &server.keys).expect_err("it is done");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    if !ktls::available().expect("it is").rekey {
        let other = ktls::set_transmit(&server.socket, &server.keys).expect_err("no rekeying");
        assert_eq!(other.kind(), ErrorKind::ResourceBusy);
    }
    assert_eq!(socket::send_now(&server.socket, b"once"), Ok(4));
    assert_eq!(&client.join().expect("the client does not fail"), b"once");
}

/// Answers one after another, of sizes around that of a record, by every cipher, to a peer that takes
/// them at once and to one that takes little at a time: no byte is missing, none comes twice, and the end
/// is in good order.
#[test]
fn answers_by_sendfile_are_whole() {
    if !is_available() {
        return;
    }
    let content = pattern(100 << 10);
    let file = file(&content);
    let sizes = [0, 1, 100, 1369, (16 << 10) - 1, 16 << 10, (16 << 10) + 1, 40_000];
    let mut expected = Vec::new();
    for (offset, bytes) in sizes.into_iter().enumerate() {
        expected.extend_from_slice(b"head;");
        expected.extend_from_slice(&content[offset..][..bytes]);
    }
    for suite in SUITES {
        for queue_bytes in [None, Some(NARROW_BYTES)] {
            let (mut server, client) = connect(suite, queue_bytes, |mut stream| {
                let mut received = Vec::new();
                stream.read_to_end(&mut received).expect("an end in good order");
                received
            });
            server.hand_over();
            for (offset, bytes) in sizes.into_iter().enumerate() {
                server.send_answer(b"head;", &file, offset, bytes);
            }
            server.part();
            let received = client.join().expect("the client does not fail");
            assert!(received == expected, "{:?}, {queue_bytes:?}", suite.suite());
        }
    }
}

/// The ring's sends, of one buffer and of several, go on where the kernel has taken a part.
#[test]
fn sends_by_the_ring_are_whole() {
    if !is_available() {
        return;
    }
    const BYTES: usize = 150_000;
    let content: Rc<[u8]> = pattern(BYTES).into();
    for pieces in [1, 20] {
        let (mut server, client) = connect(SUITES[0], Some(NARROW_BYTES), |mut stream| {
            let mut received = vec![0; BYTES];
            stream.read_exact(&mut received).expect("all of it");
            received
        });
        server.hand_over();
        let mut ring = ring();
        let piece = (BYTES / pieces) as u32;
        let mut bufs: Vec<SendBuf> = (0..pieces as u32)
            .map(|index| SendBuf::Shared(content.clone(), index * piece..(index + 1) * piece))
            .collect();
        match pieces {
            1 => ring.send(&server.socket, bufs.remove(0), TOKEN),
            _ => ring.send_vectored(&server.socket, &mut bufs, TOKEN),
        };
        assert!(matches!(next(&mut ring), Event::Sent(Ok(()))), "{pieces} pieces");
        assert!(ring.counters().short_sends > 0, "all was taken at once");
        let received = client.join().expect("the client does not fail");
        assert!(received[..] == content[..], "{pieces} pieces");
    }
}

/// What was accepted from us while the peer reads nothing arrives, although TCP has no room for all of
/// it: the end comes after the flush.
#[test]
fn what_was_accepted_arrives_before_the_end() {
    if !is_available() {
        return;
    }
    let content = pattern(1 << 20);
    let file = file(&content);
    let mut held_back = 0;
    for quantum_bytes in [20_000, 40_000, 60_000, 80_000] {
        let (go, told) = mpsc::channel::<()>();
        let (mut server, client) = connect(SUITES[0], Some(NARROW_BYTES), move |mut stream| {
            told.recv().expect("the server goes on");
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("an end in good order");
            received
        });
        server.hand_over();
        assert!(server.flush(), "nothing was sent");
        let error = loop {
            let mut offset = server.plain_bytes;
            match file::sendfile(&server.socket, &file, &mut offset, quantum_bytes) {
                Ok(_) => server.plain_bytes = offset,
                Err(error) => break error,
            }
        };
        assert_eq!(error, SendError::WouldBlock);
        let accepted = server.plain_bytes as usize;
        held_back += usize::from(!server.flush());
        go.send(()).expect("the client waits");
        server.part();
        let received = client.join().expect("the client does not fail");
        assert!(received == content[..accepted], "{} of {accepted}", received.len());
    }
    assert!(held_back > 0, "TCP has had room for all of it");
}

/// Bytes that were sent with more to come are held back until the rest is there.
#[test]
fn bytes_that_wait_for_more_are_not_flushed() {
    if !is_available() {
        return;
    }
    for suite in SUITES {
        let (mut server, client) = connect(suite, None, |mut stream| {
            let mut received = [0; 10];
            stream.read_exact(&mut received).expect("all of it");
            received
        });
        server.hand_over();
        server.send(5, |server, _| socket::send_more(&server.socket, b"hello"));
        assert!(!server.flush());
        server.send(5, |server, _| socket::send_now(&server.socket, b"world"));
        wait_until("nothing is held back", || server.flush());
        assert_eq!(&client.join().expect("the client does not fail"), b"helloworld");
    }
}

/// A reset ends the receive that is pending, and the peer can tell that it is not an end in good order.
#[test]
fn a_reset_is_no_end_in_good_order() {
    if !is_available() {
        return;
    }
    let (mut server, client) = connect(SUITES[0], Some(NARROW_BYTES), |mut stream| {
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect_err("the server has not ended it").kind()
    });
    server.hand_over();
    let mut ring = ring();
    ring.recv(&server.socket, TOKEN);
    ring.enter(Wait::No).expect("the ring works");
    assert_eq!(socket::send_now(&server.socket, b"some"), Ok(4));
    socket::reset(&server.socket).expect("it is connected");
    assert!(!matches!(next(&mut ring), Event::Received(_)), "the receive goes on");
    assert_eq!(ring.in_flight(), 0);
    drop(server);
    let kind = client.join().expect("the client does not fail");
    assert!(matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{kind}");
}

/// A file that has become shorter is found out as it is without TLS.
#[test]
fn a_file_that_shrinks_is_found_out() {
    if !is_available() {
        return;
    }
    let file = file(&pattern(40_000));
    let (mut server, client) = connect(SUITES[0], None, |mut stream| {
        let mut received = vec![0; 20_000];
        stream.read_exact(&mut received).expect("what there is");
        received
    });
    server.hand_over();
    file.set_len(20_000).expect("the file is ours");
    let mut offset = 0;
    assert_eq!(file::sendfile(&server.socket, &file, &mut offset, 40_000), Ok(20_000));
    assert_eq!(file::sendfile(&server.socket, &file, &mut offset, 20_000), Ok(0));
    assert!(client.join().expect("the client does not fail") == pattern(40_000)[..20_000]);
}
