//! TLS connections of a shard that came to be kept longer than they should be.

use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;

use nix::errno::Errno;
use nix::sys::socket::sockopt::SndBuf;
use nix::sys::socket::{MsgFlags, send, setsockopt};
use rustls::{ClientConnection, StreamOwned};

use super::super::Shard;
use super::super::simulation::secure::CONFIGS;
use super::*;
use crate::tls::Contexts;

/// A shard of which one listener speaks TLS.
fn secure_shard(change: impl FnOnce(&mut Config)) -> Shard {
    let mut shard = shard(Vec::new(), change);
    shard.contexts = Contexts::of_config(Arc::clone(&CONFIGS[1].0));
    shard
}

type Peer = StreamOwned<ClientConnection, TcpStream>;

/// A client of TLS 1.3 that has not sent anything yet.
fn client(peer: TcpStream) -> Peer {
    let name = "a".try_into().unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(&CONFIGS[1].1), name).unwrap(), peer)
}

/// What it had sent looked like a request to come, which was waited for.
#[test]
fn a_peer_that_ends_within_a_record_is_not_waited_for() {
    let mut shard = secure_shard(|config| config.timeouts.head = 100 * GUARD);
    let (peer, socket) = pair();
    shard.adopt(socket, 0);
    let peer = thread::spawn(move || {
        let mut peer = client(peer);
        peer.flush().unwrap();
        peer.conn.send_close_notify();
        let mut last = Vec::new();
        peer.conn.write_tls(&mut last).unwrap();
        last.extend_from_slice(&[23, 3, 3]);
        peer.sock.write_all(&last).unwrap();
        peer.read(&mut [0]).unwrap()
    });
    turn_until(&mut shard, |shard| shard.assignment.counters.closed.value() == 1);
    assert_eq!(peer.join().unwrap(), 0, "it is told of the end");
}

/// The last record waited for room in the socket's buffer, and had no deadline.
#[test]
fn an_idle_peer_that_reads_nothing_is_not_kept_for_its_close_notify() {
    let mut shard = secure_shard(|config| {
        config.timeouts.idle = Duration::from_millis(200);
        config.timeouts.write_stall = Duration::from_millis(200);
    });
    let (peer, socket) = pair();
    setsockopt(&socket, SndBuf, &16_384).unwrap();
    shard.adopt(socket, 0);
    let peer = thread::spawn(move || {
        let mut peer = client(peer);
        peer.write_all(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        peer.read_exact(&mut [0; 12]).unwrap();
        peer
    });
    turn_until(&mut shard, |shard| {
        shard.connections.iter().all(|(_, connection)| connection.awaiting == Awaiting::NextRequest)
    });
    let peer = peer.join().unwrap();
    for (_, connection) in &shard.connections {
        // What TCP has passed on to the peer has left room again.
        for _ in 0..5 {
            while send(connection.socket.as_raw_fd(), &[0; 4096], MsgFlags::MSG_DONTWAIT).is_ok() {}
            thread::sleep(Duration::from_millis(20));
        }
        let more = send(connection.socket.as_raw_fd(), &[0], MsgFlags::MSG_DONTWAIT);
        assert_eq!(more, Err(Errno::EAGAIN));
    }
    turn_until(&mut shard, |shard| shard.connections.is_empty());
    drop(peer);
}
