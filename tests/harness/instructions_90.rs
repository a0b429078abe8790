//! Layer 90: what sealing costs, in instructions. Says nothing by itself: `bench/ktls-instructions` runs it
//! where a nanosecond is an instruction.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, recv};
use onering::sys::{file, ktls, socket};
use onering::tls::{Content, Handshake, Options, Progress, Session};
use rustls::{StreamOwned, SupportedCipherSuite};

use crate::support::tls::{self, SUITES};
use crate::support::{pattern, skip};

const BODY_BYTES: usize = 1 << 20;
const BODIES: usize = 8;

/// What a shard moves at a time, by sendfile(2) and sealed by itself (`config::defaults`).
const QUANTUM_BYTES: usize = 256 << 10;
const SEALED_QUANTUM_BYTES: usize = 64 << 10;

/// A connection after its handshake: the peer's end is read raw, and only to be emptied.
fn connect(suite: SupportedCipherSuite) -> (TcpStream, Session, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (mut ours, _) = listener.accept().expect("it is connected");
    ours.set_nodelay(true).expect("an option of a socket");
    let client = thread::spawn(move || {
        let mut stream = StreamOwned::new(tls::client(suite), peer);
        stream.conn.complete_io(&mut stream.sock).expect("a handshake");
        stream.sock
    });
    let mut handshake = Handshake::new(tls::server_config(suite));
    while !matches!(handshake.advance(), Progress::Done) {
        ours.write_all(&handshake.outgoing()).expect("the client reads");
        let mut record = vec![0; 5];
        ours.read_exact(&mut record).expect("the client goes on");
        record.resize(5 + usize::from(u16::from_be_bytes([record[3], record[4]])), 0);
        ours.read_exact(&mut record[5..]).expect("the client goes on");
        handshake.push(&record);
    }
    ours.write_all(&handshake.outgoing()).expect("the client reads");
    let session = handshake.finish(&Options { ktls: true, ..Options::default() });
    ours.set_nonblocking(true).expect("an option of a socket");
    let peer = client.join().expect("the client does not fail");
    peer.set_nonblocking(true).expect("an option of a socket");
    (ours, session.expect("it is done"), peer)
}

/// Takes all that has come, and copies none of it.
fn empty(peer: &TcpStream) {
    let mut room = vec![0; QUANTUM_BYTES];
    while recv(peer.as_raw_fd(), &mut room, MsgFlags::MSG_TRUNC).is_ok() {}
}

/// Instructions per byte of `send`, which is told an offset and how much to send from there on, and sends all of
/// it; what the peer does with it is not counted.
fn per_byte(peer: &TcpStream, quantum_bytes: usize, mut send: impl FnMut(usize, usize)) -> f64 {
    let mut spent = Duration::ZERO;
    for body in 0..=BODIES {
        for offset in (0..BODY_BYTES).step_by(quantum_bytes) {
            let start = Instant::now();
            send(offset, quantum_bytes);
            // The first one warms up.
            spent += if body == 0 { Duration::ZERO } else { start.elapsed() };
            empty(peer);
        }
    }
    spent.as_nanos() as f64 / (BODIES * BODY_BYTES) as f64
}

fn sendfile(socket: &TcpStream, file: &File, offset: usize, bytes: usize) {
    let sent = file::sendfile(socket, file, &mut (offset as u64), bytes);
    assert_eq!(sent, Ok(bytes), "there is room for a quantum");
}

#[test]
#[ignore = "shows figures, and checks nothing"]
fn instructions_per_byte() {
    if let Err(why) = ktls::available() {
        return skip(&why.to_string());
    }
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(&pattern(BODY_BYTES)).expect("a temporary file");

    let (ours, _, peer) = connect(SUITES[0]);
    empty(&peer);
    let plain = per_byte(&peer, QUANTUM_BYTES, |offset, bytes| {
        sendfile(&ours, &file, offset, bytes);
    });
    println!("{plain:6.3} per byte, sendfile(2), plain");
    for suite in SUITES {
        let name = suite.suite();
        let (ours, session, peer) = connect(suite);
        empty(&peer);
        ktls::attach(&ours, &session.transmit_secrets().expect("it is for that")).expect("attach");
        let kernel = per_byte(&peer, QUANTUM_BYTES, |offset, bytes| {
            sendfile(&ours, &file, offset, bytes);
        });

        let (ours, mut session, peer) = connect(suite);
        empty(&peer);
        let (mut read, mut records) = (vec![0; SEALED_QUANTUM_BYTES], Vec::new());
        let own = per_byte(&peer, SEALED_QUANTUM_BYTES, |offset, bytes| {
            records.clear();
            let got = file::read_nowait(&file, &mut read, offset as u64);
            assert_eq!(got, Ok(bytes), "it is in memory");
            session.seal(Content::ApplicationData, &[&read], &mut records).expect("a key");
            assert_eq!(socket::send_now(&ours, &records), Ok(records.len()), "there is room");
        });
        println!("{kernel:6.3} per byte, sendfile(2), sealed by the kernel, {name:?}");
        println!("{own:6.3} per byte, read, sealed by us, send(2), {name:?}");
    }
}
