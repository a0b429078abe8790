//! The floor: what answering costs when nothing is done but receive and send.
//!
//! A bare ring per CPU that answers each request with the same canned bytes. It does not parse: a
//! request is whatever ends in an empty line, so that pipelined requests get as many answers. What
//! a server adds to this is its own; what this takes is the ring's and the kernel's TCP.
//!
//! It is no server: no limit, no timeout, no check of what was asked.

use memchr::memmem;
use onering::ring::{Completion, Event, Ring, SendBuf, Setup, SetupError, Socket, Token};
use onering::sys::socket::{self, ListenError, ListenOptions};
use onering::sys::{affinity, limits};
use slab::Slab;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

/// Length asked for the accept queue; the kernel clamps it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// As many as the server has: fewer stay in the CPU's cache.
const RECV_BUFFERS: u16 = onering::config::defaults::RECV_BUFFERS;

/// Bytes of one receive buffer: requests are short.
const RECV_BUFFER_BYTES: u32 = 1024;

/// Answers that are kept ready one behind the other to be sent at once, as far as they fit into
/// [`BURST_BYTES`].
const BURST: usize = 64;

/// Bytes kept ready for a burst; a single answer may be longer.
const BURST_BYTES: usize = 64 * 1024;

/// The token of the accept operation, which no connection has.
const ACCEPT: Token = Token { slot: u32::MAX, generation: 0 };

/// What to answer and how.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// Bytes of each body.
    pub body_bytes: usize,
    /// Answer `Connection: close` and close after the first answer.
    pub close: bool,
    /// Let the kernel hold each connection until its first byte (TCP_DEFER_ACCEPT, 1 s).
    pub defer_accept: bool,
}

/// Why it does not run, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The CPU cannot be used.
    #[error(transparent)]
    Pin(#[from] affinity::PinError),
    /// No ring.
    #[error(transparent)]
    Ring(#[from] SetupError),
    /// The ring became unusable, or the listener did.
    #[error("cannot go on: {0}")]
    Broken(#[from] io::Error),
}

impl Floor {
    /// Opens one listener for each of `shards` threads at `address`, in one SO_REUSEPORT group.
    /// With port 0 the kernel chooses one port for all.
    pub fn listen(
        &self,
        mut address: SocketAddr,
        shards: usize,
    ) -> Result<(SocketAddr, Vec<OwnedFd>), FloorError> {
        let options = ListenOptions {
            reuse_port: true,
            defer_accept_s: u32::from(self.defer_accept),
            backlog: BACKLOG,
        };
        let mut listeners = Vec::new();
        for _ in 0..shards {
            let listener = socket::listen(address, &options)?;
            address = socket::local_addr(&listener)?;
            listeners.push(listener);
        }
        Ok((address, listeners))
    }

    /// Answers on the calling thread, pinned to `cpu` if one is named, until something breaks.
    /// Calls `ready` when nothing is left that could keep it from beginning.
    pub fn answer(
        &self,
        listener: OwnedFd,
        cpu: Option<usize>,
        ready: impl FnOnce(),
    ) -> Result<std::convert::Infallible, FloorError> {
        if let Some(cpu) = cpu {
            affinity::pin(cpu)?;
        }
        limits::raise_nofile()?;
        let setup = Setup {
            recv_buffers: RECV_BUFFERS,
            recv_buffer_bytes: RECV_BUFFER_BYTES,
            ..Setup::default()
        };
        let mut shard = Shard::new(self, Ring::new(&setup)?);
        shard.ring.accept(&Arc::new(listener), ACCEPT);
        ready();
        loop {
            shard.ring.enter(onering::ring::Wait::Completion)?;
            while let Some(completion) = shard.ring.completion() {
                shard.complete(completion)?;
            }
        }
    }

    /// One answer, with the fields that servers usually send.
    fn response(&self) -> Vec<u8> {
        let connection = if self.close { "Connection: close\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\
             Last-Modified: Mon, 30 Nov 2026 09:00:00 GMT\r\nETag: \"17f3a1b2c3d4e5f6-400\"\r\n\
             {connection}Accept-Ranges: bytes\r\n\r\n",
            self.body_bytes
        );
        let mut bytes = head.into_bytes();
        bytes.resize(bytes.len() + self.body_bytes, b'x');
        bytes
    }
}

/// One thread.
struct Shard {
    ring: Ring,
    connections: Slab<Connection>,
    /// For the next connection, so that the completions of a slot's former tenant are told apart.
    next_generation: u32,
    /// `burst` answers of `response_bytes` bytes each.
    answers: Rc<[u8]>,
    response_bytes: usize,
    burst: usize,
    close: bool,
}

struct Connection {
    generation: u32,
    socket: Socket,
    heads: HeadCounter,
    /// Requests not answered yet, those being answered included: `sending <= owed`.
    owed: usize,
    /// Answers in flight.
    sending: usize,
    /// A receive is pending. If none is, close as soon as nothing is owed.
    receiving: bool,
}

impl Shard {
    fn new(floor: &Floor, ring: Ring) -> Self {
        let response = floor.response();
        let burst = if floor.close { 1 } else { (BURST_BYTES / response.len()).clamp(1, BURST) };
        Self {
            ring,
            connections: Slab::new(),
            next_generation: 0,
            answers: response.repeat(burst).into(),
            response_bytes: response.len(),
            burst,
            close: floor.close,
        }
    }

    fn complete(&mut self, completion: Completion) -> io::Result<()> {
        let Completion { token, event } = completion;
        match event {
            Event::Accepted(socket) => {
                self.open(Rc::new(socket));
                return Ok(());
            }
            Event::AcceptFailed(error) => return Err(io::Error::other(error)),
            _ => {}
        }
        let slot = token.slot as usize;
        let Some(connection) = self.connections.get_mut(slot) else { return Ok(()) };
        if connection.generation != token.generation {
            return Ok(());
        }
        match event {
            Event::Received(bytes) => {
                connection.owed += connection.heads.count(&bytes);
                connection.receiving = !self.close;
                if self.close && connection.owed == 0 {
                    self.ring.recv_once(&connection.socket, token);
                    connection.receiving = true;
                }
                self.pump(slot);
            }
            Event::Sent(Ok(())) => {
                connection.owed -= connection.sending;
                connection.sending = 0;
                if self.close {
                    self.drop_connection(slot);
                } else {
                    self.pump(slot);
                }
            }
            Event::Ended => {
                connection.receiving = false;
                self.pump(slot);
            }
            _ => self.drop_connection(slot),
        }
        Ok(())
    }

    fn open(&mut self, socket: Socket) {
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        let entry = self.connections.vacant_entry();
        // A descriptor is at hand for each connection, so that their number fits.
        let token = Token { slot: entry.key() as u32, generation };
        // With one request per connection nothing is left pending, so that a close suffices.
        if self.close {
            self.ring.recv_once(&socket, token);
        } else {
            self.ring.recv(&socket, token);
        }
        entry.insert(Connection {
            generation,
            socket,
            heads: HeadCounter::default(),
            owed: 0,
            sending: 0,
            receiving: true,
        });
    }

    /// Sends what is owed, or closes when there is nothing left to do.
    fn pump(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if connection.sending > 0 {
            return;
        }
        if connection.owed > 0 {
            connection.sending = connection.owed.min(self.burst);
            let bytes = (connection.sending * self.response_bytes) as u32;
            let buf = SendBuf::Shared(Rc::clone(&self.answers), 0..bytes);
            let token = Token { slot: slot as u32, generation: connection.generation };
            self.ring.send(&connection.socket, buf, token);
        } else if !connection.receiving {
            self.drop_connection(slot);
        }
    }

    fn drop_connection(&mut self, slot: usize) {
        let connection = self.connections.remove(slot);
        if connection.receiving {
            // The receive holds the socket: it ends by this, and with it the last hold. A failure
            // means that the peer is gone, which the receive tells as well.
            let _ = socket::shutdown_both(&connection.socket);
        }
        self.ring.close(connection.socket);
    }
}

/// Counts the empty lines that end request heads, wherever the stream is cut.
#[derive(Clone, Copy, Debug, Default)]
struct HeadCounter {
    /// How many bytes of `END` the stream ended with so far: less than its length.
    matched: usize,
}

impl HeadCounter {
    const END: &[u8; 4] = b"\r\n\r\n";

    /// How many heads end in `bytes`.
    fn count(&mut self, bytes: &[u8]) -> usize {
        if self.matched == 0 {
            // The common case: whole requests.
            let ends = memmem::find_iter(bytes, Self::END);
            let (count, last) = ends.fold((0, 0), |(count, _), at| (count + 1, at));
            if count > 0 && last + Self::END.len() == bytes.len() {
                return count;
            }
        }
        let mut ends = 0;
        for &byte in bytes {
            self.matched = match byte {
                _ if byte == Self::END[self.matched] => self.matched + 1,
                b'\r' => 1,
                _ => 0,
            };
            if self.matched == Self::END.len() {
                ends += 1;
                self.matched = 0;
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn heads_are_counted_wherever_the_stream_is_cut(
            heads in prop::collection::vec("(A|\r|\n|\r\n|\r\nB){0,6}", 1..5),
            cut in any::<prop::sample::Index>(),
        ) {
            // Each piece gets an end; the pieces may hold ends of their own.
            let stream = heads.iter().flat_map(|h| [h.as_str(), "\r\n\r\n"]).collect::<String>();
            let whole = memmem::find_iter(stream.as_bytes(), HeadCounter::END).count();
            let (first, second) = stream.as_bytes().split_at(cut.index(stream.len()));
            let mut counter = HeadCounter::default();
            prop_assert_eq!(counter.count(first) + counter.count(second), whole);
            prop_assert_eq!(HeadCounter::default().count(stream.as_bytes()), whole);
        }
    }

    #[test]
    fn the_answer_has_the_length_it_names() {
        let floor = Floor { body_bytes: 10, close: true, defer_accept: false };
        let response = String::from_utf8(floor.response()).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nContent-Length: 10\r\n"), "{head}");
        assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
        assert_eq!(body, "xxxxxxxxxx");
    }
}
