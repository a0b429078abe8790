//! A network that is played: one server, which answers one request after the other, and a time that
//! passes only while somebody waits.
//!
//! Nothing takes time but what is said here: a way there and back, and the service of a request.
//! While the server stands still (SIGSTOP), connections are established as usual and requests wait.

use super::super::network::{Event, Network, Refused};
use onering::ring::{SendBuf, Token};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What a server does with its input: an answer and whether the connection goes on, for the first
/// request in it, which is taken off; `None` if there is no whole one.
pub(super) type Answer<'a> = Box<dyn FnMut(&mut Vec<u8>, Instant) -> Option<(Vec<u8>, bool)> + 'a>;

/// A server that is played.
pub(super) struct Server<'a> {
    pub(super) answer: Answer<'a>,
    /// From the send to the server, and from the server to the socket.
    pub(super) way: Duration,
    /// How long a request is served, while no other is.
    pub(super) service: Duration,
    /// When it stands still, from the beginning of time.
    pub(super) stopped: Vec<Range<Duration>>,
    /// Whether it refuses connections.
    pub(super) refuses: bool,
}

impl Server<'_> {
    /// When a service ends that may begin at `at`.
    fn served(&self, at: Duration) -> Duration {
        let mut end = at + self.service;
        for stop in &self.stopped {
            if at < stop.end && end > stop.start {
                end += stop.end - at.max(stop.start);
            }
        }
        end
    }
}

#[derive(Debug, Default)]
struct Connection {
    /// What the server has received and not served.
    requests: Vec<u8>,
    /// What has come back and not been taken.
    inbox: VecDeque<u8>,
    ended: bool,
    receive: Option<Receive>,
}

#[derive(Clone, Copy, Debug)]
struct Receive {
    token: Token,
    once: bool,
}

/// What happens at a moment, in the order of its making.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Tell(u32, u32, Told),
    Request(usize, Vec<u8>),
    Response(usize, Vec<u8>, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Connected,
    Refused,
    Sent,
}

/// See the head of this file.
pub(super) struct Played<'a> {
    beginning: Instant,
    now: Duration,
    server: Server<'a>,
    /// When the server has nothing left to serve.
    idle: Duration,
    agenda: BinaryHeap<Reverse<(Duration, u64, Happening)>>,
    made: u64,
    connections: BTreeMap<usize, Connection>,
    opened: usize,
    events: VecDeque<(Token, Event<Vec<u8>>)>,
    /// The most that is received at once.
    receive_bytes: usize,
}

impl<'a> Played<'a> {
    pub(super) fn new(beginning: Instant, server: Server<'a>, receive_bytes: usize) -> Self {
        Self {
            beginning,
            now: Duration::ZERO,
            server,
            idle: Duration::ZERO,
            agenda: BinaryHeap::new(),
            made: 0,
            connections: BTreeMap::new(),
            opened: 0,
            events: VecDeque::new(),
            receive_bytes,
        }
    }

    fn plan(&mut self, at: Duration, happening: Happening) {
        self.made += 1;
        self.agenda.push(Reverse((at, self.made, happening)));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Tell(slot, generation, told) => {
                let event = match told {
                    Told::Connected => Event::Connected(Ok(None)),
                    Told::Refused => Event::Connected(Err(Refused)),
                    Told::Sent => Event::Sent,
                };
                self.events.push_back((Token { slot, generation }, event));
            }
            Happening::Request(id, bytes) => {
                let Some(connection) = self.connections.get_mut(&id) else { return };
                connection.requests.extend(bytes);
                let mut requests = std::mem::take(&mut connection.requests);
                loop {
                    let begin = self.idle.max(self.now);
                    let at = self.server.served(begin);
                    let answer = (self.server.answer)(&mut requests, self.beginning + at);
                    let Some((bytes, persistent)) = answer else { break };
                    self.idle = at;
                    let response = Happening::Response(id, bytes, !persistent);
                    self.plan(at + self.server.way, response);
                }
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.requests = requests;
                }
            }
            Happening::Response(id, bytes, last) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.inbox.extend(bytes);
                    connection.ended |= last;
                    self.deliver(id);
                }
            }
        }
    }

    /// Gives a connection that receives what there is.
    fn deliver(&mut self, id: usize) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while let Some(Receive { token, once }) = connection.receive {
            if connection.inbox.is_empty() {
                if connection.ended {
                    connection.receive = None;
                    self.events.push_back((token, Event::Ended));
                }
                return;
            }
            let most = connection.inbox.len().min(self.receive_bytes);
            let bytes = connection.inbox.drain(..most).collect();
            self.events.push_back((token, Event::Received(bytes)));
            if once {
                connection.receive = None;
            }
        }
    }
}

impl Network for Played<'_> {
    type Socket = usize;
    type Bytes = Vec<u8>;

    fn now(&self) -> Instant {
        self.beginning + self.now
    }

    fn enter(&mut self, at_most: Duration) -> io::Result<()> {
        let until = self.now + at_most;
        while self.events.is_empty() {
            match self.agenda.peek() {
                Some(Reverse((at, ..))) if *at <= until => {}
                _ => {
                    self.now = until;
                    return Ok(());
                }
            }
            if let Some(Reverse((at, _, happening))) = self.agenda.pop() {
                self.now = self.now.max(at);
                self.happen(happening);
            }
        }
        Ok(())
    }

    fn event(&mut self) -> Option<(Token, Event<Vec<u8>>)> {
        self.events.pop_front()
    }

    fn connect(&mut self, token: Token) -> io::Result<Rc<usize>> {
        let id = self.opened;
        self.opened += 1;
        self.connections.insert(id, Connection::default());
        let told = if self.server.refuses { Told::Refused } else { Told::Connected };
        let at = self.now + 2 * self.server.way;
        self.plan(at, Happening::Tell(token.slot, token.generation, told));
        Ok(Rc::new(id))
    }

    fn send(&mut self, socket: &Rc<usize>, bytes: SendBuf, token: Token) {
        self.plan(self.now, Happening::Tell(token.slot, token.generation, Told::Sent));
        let request = Happening::Request(**socket, bytes.as_slice().to_vec());
        self.plan(self.now + self.server.way, request);
    }

    fn recv(&mut self, socket: &Rc<usize>, token: Token) {
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.receive = Some(Receive { token, once: false });
        }
        self.deliver(**socket);
    }

    fn recv_once(&mut self, socket: &Rc<usize>, token: Token) {
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.receive = Some(Receive { token, once: true });
        }
        self.deliver(**socket);
    }

    fn close(&mut self, socket: Rc<usize>, _: Token) {
        self.connections.remove(&socket);
    }

    fn enters(&self) -> u64 {
        0
    }
}
