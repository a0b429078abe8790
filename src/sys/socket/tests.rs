//! Options and calls, on sockets of the loopback network.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;

const OPTIONS: ListenOptions = ListenOptions { reuse_port: true, defer_accept_s: 0, backlog: 16 };

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[test]
fn unread_bytes_are_seen_and_stay() {
    let listener = listen(any_port(), &OPTIONS).expect("listen");
    let mut peer = TcpStream::connect(local_addr(&listener).expect("address")).expect("connect");
    let connection = accept(&listener);
    assert!(!has_unread(&connection));
    peer.write_all(b"x").expect("write");
    while !has_unread(&connection) {
        std::thread::yield_now();
    }
    let mut connection = TcpStream::from(connection);
    connection.read_exact(&mut [0]).expect("it is still there");
    peer.shutdown(std::net::Shutdown::Write).expect("shutdown");
    assert_eq!(
        connection.set_nonblocking(false).and_then(|()| connection.read(&mut [0])).ok(),
        Some(0)
    );
    assert!(!has_unread(&connection), "an end is no bytes");
}

/// Waits until the listener has a connection, then takes it.
fn accept(listener: &OwnedFd) -> OwnedFd {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(30_000_u16)).expect("poll");
    accept_nonblocking(listener).expect("accept").expect("a connection")
}

fn pair() -> (TcpStream, OwnedFd) {
    let listener = listen(any_port(), &OPTIONS).expect("listen");
    let client = TcpStream::connect(local_addr(&listener).expect("address")).expect("connect");
    (client, accept(&listener))
}

#[test]
fn connections_inherit_nodelay_and_are_nonblocking() {
    let (_client, server) = pair();
    assert_eq!(socket::getsockopt(&server, sockopt::TcpNoDelay), Ok(true));
    let mut byte = [0];
    let read = TcpStream::from(server).read(&mut byte);
    assert_eq!(read.expect_err("nothing was sent").kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn listen_says_that_the_port_is_in_use() {
    let holder = TcpListener::bind(any_port()).expect("bind");
    let address = holder.local_addr().expect("address");
    let error = listen(address, &OPTIONS).expect_err("the port is taken");
    assert!(matches!(error, ListenError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("ss -ltnp"), "{error}");
}

#[test]
fn listen_says_that_the_address_is_not_ours() {
    let address = SocketAddr::from(([192, 0, 2, 1], 8080));
    let error = listen(address, &OPTIONS).expect_err("TEST-NET-1 is nobody's");
    assert!(matches!(error, ListenError::NoSuchAddress { .. }), "{error}");
}

#[test]
fn ensure_free_sees_a_listener_that_shares() {
    let first = listen(any_port(), &OPTIONS).expect("listen");
    let address = local_addr(&first).expect("address");
    listen(address, &OPTIONS).expect("a group may grow");
    assert!(matches!(ensure_free(address), Err(ListenError::InUse { .. })));
    drop(first);
}

#[test]
fn an_ipv6_listener_leaves_ipv4_alone() {
    let address = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
    let Ok(v6) = listen(address, &OPTIONS) else {
        eprintln!("skipped: this host has no IPv6");
        return;
    };
    let port = local_addr(&v6).expect("address").port();
    let v4 = SocketAddr::from(([127, 0, 0, 1], port));
    assert!(TcpStream::connect(v4).is_err());
}

#[test]
fn a_listener_is_adopted_with_what_connections_inherit() {
    let theirs = TcpListener::bind(any_port()).expect("bind");
    let ours = adopt_listener(theirs.as_raw_fd()).expect("a listener");
    assert!(accept_nonblocking(&ours).expect("non-blocking").is_none());
    let _client = TcpStream::connect(theirs.local_addr().expect("address")).expect("connect");
    drop(theirs);
    assert_eq!(socket::getsockopt(&accept(&ours), sockopt::TcpNoDelay), Ok(true));
}

#[test]
fn what_is_not_a_listener_is_not_adopted() {
    let idle = tcp_stream_socket(any_port()).expect("socket");
    let file = std::fs::File::open("/dev/null").expect("open");
    let directory = tempfile::tempdir().expect("tempdir");
    let unix = std::os::unix::net::UnixListener::bind(directory.path().join("socket"));
    let unix = unix.expect("bind");
    for fd in [idle.as_raw_fd(), file.as_raw_fd(), unix.as_raw_fd()] {
        assert!(matches!(adopt_listener(fd), Err(AdoptError::NotListening { .. })), "{fd}");
    }
    for fd in [-1, i32::MAX] {
        assert!(matches!(adopt_listener(fd), Err(AdoptError::NotOpen { .. })), "{fd}");
    }
}

#[test]
fn send_more_fills_the_socket_then_would_block() {
    let (_client, server) = pair();
    let bytes = [0; 1 << 16];
    let error = loop {
        if let Err(error) = send_more(&server, &bytes) {
            break error;
        }
    };
    assert_eq!(error, SendError::WouldBlock);
}

#[test]
fn send_more_to_a_closed_socket_is_closed() {
    let (_client, server) = pair();
    shutdown_both(&server).expect("shutdown");
    assert_eq!(send_more(&server, b"late"), Err(SendError::Closed));
}

#[test]
fn shutdown_write_ends_the_response_but_not_the_request() {
    let (mut client, server) = pair();
    shutdown_write(&server).expect("shutdown");
    assert_eq!(client.read(&mut [0]).expect("end of stream"), 0);
    client.write_all(b"still here").expect("the other direction is open");
}

#[test]
fn a_reset_comes_at_once_and_drops_what_is_unsent() {
    let (mut client, server) = pair();
    while send_now(&server, &[7; 65_536]).is_ok() {}
    reset(&server).expect("a reset");
    let error = client.read_to_end(&mut Vec::new()).expect_err("a reset");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(send_now(&server, b"late"), Err(SendError::Closed));
}

#[test]
fn bytes_acked_counts_what_the_peer_took() {
    let (mut client, server) = pair();
    let before = bytes_acked(&server).expect("TCP_INFO");
    let mut stream = TcpStream::from(server);
    stream.write_all(b"0123456789").expect("write");
    client.read_exact(&mut [0; 10]).expect("read");
    client.write_all(b"seen").expect("write");
    stream.set_nonblocking(false).expect("blocking");
    stream.read_exact(&mut [0; 4]).expect("read");
    // The four bytes carry the acknowledgement of the ten.
    assert_eq!(bytes_acked(&stream).expect("TCP_INFO"), before + 10);
}

#[test]
fn incoming_cpu_names_a_cpu_of_this_host() {
    let (_client, server) = pair();
    assert!(incoming_cpu(&server).expect("the handshake came in somewhere") < 4096);
}

#[test]
fn every_call_is_counted() {
    let (_client, server) = pair();
    let before = super::super::calls();
    set_nodelay(&server).expect("option");
    shutdown_both(&server).expect("shutdown");
    assert_eq!(super::super::calls() - before, 2);
}
