//! What a client asks of the kernel: the seam at which it runs in virtual time.
//!
//! [`Network`] is a ring and a clock. A client is compiled for the real one; its other implementor is
//! the test that plays servers and lets time pass as it likes. Nothing here decides anything.

use crate::tls::{Handshake, TlsError};
use onering::ring::{Completion, Event as RingEvent, RecvBuf, Ring, SendBuf, Socket, Token, Wait};
use onering::sys::socket;
use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Connections to one server, and a clock.
pub(super) trait Network {
    /// A connection; operations in flight hold it as well.
    type Socket: Debug;
    /// Bytes received; to be let go of within the turn.
    type Bytes: Deref<Target = [u8]>;

    /// What the time is.
    fn now(&self) -> Instant;
    /// Submits what is queued and waits until something has happened, or so long.
    fn enter(&mut self, at_most: Duration) -> io::Result<()>;
    /// The next thing that has happened.
    fn event(&mut self) -> Option<(Token, Event<Self::Bytes>)>;
    /// Begins a connection.
    fn connect(&mut self, token: Token) -> io::Result<Rc<Self::Socket>>;
    /// Sends all of `bytes`.
    fn send(&mut self, socket: &Rc<Self::Socket>, bytes: SendBuf, token: Token);
    /// Receives whatever comes, until the end.
    fn recv(&mut self, socket: &Rc<Self::Socket>, token: Token);
    /// Receives once, at most a buffer.
    fn recv_once(&mut self, socket: &Rc<Self::Socket>, token: Token);
    /// Lets go of the connection, and ends whatever is in flight on it.
    fn close(&mut self, socket: Rc<Self::Socket>, token: Token);
    /// Calls of the kernel so far.
    fn enters(&self) -> u64;
}

/// What has happened on a connection.
#[derive(Debug)]
pub(super) enum Event<B> {
    /// It stands, or does not; what its TLS handshake has come to, where there was one.
    Connected(Result<Option<Secured>, Refused>),
    /// Bytes.
    Received(B),
    /// All bytes of a send are with the kernel.
    Sent,
    /// The server has closed it.
    Ended,
    /// It broke.
    Broken,
    /// TLS has failed on it, in the handshake or later.
    TlsFailed(TlsError),
}

/// A TLS handshake that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Secured {
    /// When TCP stood.
    pub(super) since: Instant,
    pub(super) handshake: Handshake,
}

/// A connection that was not established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

/// The ring of a thread, and the server that it leads to.
pub(super) struct RingNetwork {
    ring: Ring,
    server: SocketAddr,
}

impl RingNetwork {
    pub(super) fn new(ring: Ring, server: SocketAddr) -> Self {
        Self { ring, server }
    }
}

impl Network for RingNetwork {
    type Socket = OwnedFd;
    type Bytes = RecvBuf;

    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }

    #[inline]
    fn enter(&mut self, at_most: Duration) -> io::Result<()> {
        self.ring.enter(Wait::AtMost(at_most))
    }

    #[inline]
    fn event(&mut self) -> Option<(Token, Event<RecvBuf>)> {
        loop {
            let Completion { token, event } = self.ring.completion()?;
            let event = match event {
                RingEvent::Received(bytes) => Event::Received(bytes),
                RingEvent::Sent(Ok(())) => Event::Sent,
                RingEvent::Sent(Err(_)) | RingEvent::RecvFailed(_) => Event::Broken,
                RingEvent::Ended => Event::Ended,
                RingEvent::Connected(result) => {
                    Event::Connected(result.map(|()| None).map_err(|_| Refused))
                }
                // Nothing of the kind is started here.
                RingEvent::Accepted(_)
                | RingEvent::AcceptFailed(_)
                | RingEvent::Polled(_)
                | RingEvent::Read(_)
                | RingEvent::Woken => continue,
            };
            return Some((token, event));
        }
    }

    fn connect(&mut self, token: Token) -> io::Result<Socket> {
        let socket = socket::tcp_stream_socket(self.server)?;
        // Pipelined requests must not wait for the acknowledgement of those before them.
        socket::set_nodelay(&socket)?;
        let socket = Rc::new(socket);
        self.ring.connect(&socket, self.server, token);
        Ok(socket)
    }

    #[inline]
    fn send(&mut self, socket: &Socket, bytes: SendBuf, token: Token) {
        self.ring.send(socket, bytes, token);
    }

    #[inline]
    fn recv(&mut self, socket: &Socket, token: Token) {
        self.ring.recv(socket, token);
    }

    #[inline]
    fn recv_once(&mut self, socket: &Socket, token: Token) {
        self.ring.recv_once(socket, token);
    }

    fn close(&mut self, socket: Socket, _: Token) {
        if Rc::strong_count(&socket) > 1 {
            // An operation holds it: this ends the operation, and with it the hold. It fails only
            // where the connection is gone already.
            let _ = socket::shutdown_both(&socket);
        }
        self.ring.close(socket);
    }

    fn enters(&self) -> u64 {
        self.ring.counters().enters
    }
}
