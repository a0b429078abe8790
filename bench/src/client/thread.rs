//! One thread of the client: its ring and its connections.

use super::connection::{Batch, Exchanges, Scripts, TargetMemory};
use super::interval::{Interval, Measured};
use super::{Plan, RunError, Share};
use crate::request::{Persistence, Script};
use crate::tally::Tally;
use onering::ring::{Completion, Event, Ring, SendBuf, Setup, Socket, Token, Wait};
use onering::sys::{affinity, socket};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How often connections are looked over, and how long the ring waits at most.
const SWEEP: Duration = Duration::from_millis(100);

/// Bounds of a receive buffer: it shall hold a whole response, and not evict the caches.
const RECV_BUFFER_BYTES: std::ops::RangeInclusive<u64> = 2048..=64 * 1024;

/// Bounds of the number of receive buffers: one for each connection.
const RECV_BUFFERS: std::ops::RangeInclusive<usize> = 64..=4096;

/// Runs one thread's share: `answer_bytes` is the size of a response, `begin` the end of the
/// warm-up.
pub(super) fn run(
    plan: &Plan,
    share: &Share,
    answer_bytes: u64,
    begin: Instant,
) -> Result<Measured, RunError> {
    affinity::pin(share.cpu)?;
    let mut client = Client::new(plan, share, Ring::new(&setup(share.connections, answer_bytes))?);
    let mut interval = Interval::new(begin, plan.duration, share.server);
    let mut swept = Instant::now();
    client.sweep(swept);
    loop {
        client.ring.enter(Wait::AtMost(SWEEP))?;
        while let Some(completion) = client.ring.completion() {
            client.complete(completion);
        }
        let now = Instant::now();
        if now - swept >= SWEEP {
            client.sweep(now);
            swept = now;
        }
        let enters = client.ring.counters().enters;
        if let Some(measured) = interval.turn(now, enters, &mut client.tally)? {
            return Ok(measured);
        }
    }
}

fn setup(connections: usize, answer_bytes: u64) -> Setup {
    let (smallest, largest) = RECV_BUFFER_BYTES.into_inner();
    let (fewest, most) = RECV_BUFFERS.into_inner();
    let power = connections.next_power_of_two();
    Setup {
        entries: (2 * power).clamp(fewest, most) as u32,
        recv_buffers: power.clamp(fewest, most) as u16,
        recv_buffer_bytes: answer_bytes.clamp(smallest, largest).next_power_of_two() as u32,
        ..Setup::default()
    }
}

/// What a connection awaits.
#[derive(Debug)]
enum Awaits {
    /// The next sweep, which opens it.
    Sweep,
    /// That the connection stands.
    Connect(Socket),
    /// Responses.
    Responses(Socket),
    /// The server's FIN after the last response.
    End(Socket),
}

#[derive(Debug)]
struct Connection {
    /// Raised whenever the socket is given up: completions of former ones are dropped.
    generation: u32,
    awaits: Awaits,
    exchanges: Exchanges,
    /// When something last happened.
    since: Instant,
}

struct Client {
    ring: Ring,
    address: SocketAddr,
    scripts: Scripts,
    /// The bytes of the scripts, as the ring takes them.
    persist_bytes: Rc<[u8]>,
    close_bytes: Rc<[u8]>,
    requests_per_connection: u64,
    timeout: Duration,
    /// The target of the next request.
    cursor: usize,
    targets: Vec<TargetMemory>,
    connections: Vec<Connection>,
    tally: Tally,
}

impl Client {
    fn new(plan: &Plan, share: &Share, ring: Ring) -> Self {
        let list = &plan.targets.list;
        let script = |persistence| Script::new(list, &plan.wording, persistence, plan.pipeline);
        let scripts =
            Scripts { persist: script(Persistence::Persist), close: script(Persistence::Close) };
        let connection = || Connection {
            generation: 0,
            awaits: Awaits::Sweep,
            exchanges: Exchanges::new(plan.pipeline),
            since: Instant::now(),
        };
        Self {
            ring,
            address: plan.targets.address,
            persist_bytes: scripts.persist.bytes().into(),
            close_bytes: scripts.close.bytes().into(),
            scripts,
            requests_per_connection: plan.requests_per_connection.unwrap_or(u64::MAX),
            timeout: plan.timeout,
            cursor: share.first_target,
            targets: vec![TargetMemory::new(plan.status); list.len()],
            connections: std::iter::repeat_with(connection).take(share.connections).collect(),
            tally: Tally::new(),
        }
    }

    fn complete(&mut self, completion: Completion) {
        let Completion { token, event } = completion;
        let slot = token.slot as usize;
        let connection = &mut self.connections[slot];
        if connection.generation != token.generation {
            return;
        }
        match event {
            Event::Received(bytes) => {
                let now = Instant::now();
                self.tally.received_bytes += bytes.len() as u64;
                connection.since = now;
                let received =
                    connection.exchanges.receive(&bytes, now, &mut self.targets, &mut self.tally);
                drop(bytes);
                match received {
                    Ok(()) => self.proceed(slot, now),
                    Err(_) => {
                        self.tally.errors.framing += 1;
                        self.reopen(slot, now);
                    }
                }
            }
            Event::Sent(Ok(())) => {
                connection.exchanges.sent();
                // Mostly not: the clock is left alone then.
                if connection.exchanges.may_send() {
                    self.proceed(slot, Instant::now());
                }
            }
            Event::Connected(Ok(())) => {
                let now = Instant::now();
                self.tally.connects += 1;
                connection.since = now;
                if let Awaits::Connect(socket) =
                    std::mem::replace(&mut connection.awaits, Awaits::Sweep)
                {
                    self.ring.recv(&socket, token);
                    connection.awaits = Awaits::Responses(socket);
                }
                self.proceed(slot, now);
            }
            Event::Connected(Err(_)) => {
                self.tally.errors.connect += 1;
                // Not at once: who refuses now refuses a microsecond later.
                self.give_up(slot);
            }
            Event::Ended => {
                self.tally.errors.ended += u64::from(connection.exchanges.awaiting());
                self.reopen(slot, Instant::now());
            }
            Event::Sent(Err(_)) | Event::RecvFailed(_) => {
                self.tally.errors.reset += 1;
                self.reopen(slot, Instant::now());
            }
            // Nothing else was started here.
            Event::Accepted(_)
            | Event::AcceptFailed(_)
            | Event::Polled(_)
            | Event::Read(_)
            | Event::Woken => {}
        }
    }

    /// Sends what may be sent, or awaits the end.
    fn proceed(&mut self, slot: usize, now: Instant) {
        let connection = &mut self.connections[slot];
        let Awaits::Responses(socket) = &connection.awaits else { return };
        let token = Token { slot: slot as u32, generation: connection.generation };
        let batch = connection.exchanges.next_batch(&self.scripts, &mut self.cursor, now);
        if let Some(Batch { persistence, range }) = batch {
            let bytes = match persistence {
                Persistence::Persist => &self.persist_bytes,
                Persistence::Close => &self.close_bytes,
            };
            let buf = SendBuf::Shared(Rc::clone(bytes), range.start as u32..range.end as u32);
            self.ring.send(socket, buf, token);
        } else if connection.exchanges.finished() {
            connection.awaits = Awaits::End(Rc::clone(socket));
        }
    }

    /// Lets go of the connection's socket.
    fn give_up(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        connection.generation = connection.generation.wrapping_add(1);
        match std::mem::replace(&mut connection.awaits, Awaits::Sweep) {
            Awaits::Sweep => {}
            Awaits::Connect(socket) | Awaits::Responses(socket) | Awaits::End(socket) => {
                if Rc::strong_count(&socket) > 1 {
                    // An operation holds it: this ends the operation, and with it the hold. It
                    // fails only where the connection is gone already.
                    let _ = socket::shutdown_both(&socket);
                }
                self.ring.close(socket);
            }
        }
    }

    fn reopen(&mut self, slot: usize, now: Instant) {
        self.give_up(slot);
        self.open(slot, now);
    }

    fn open(&mut self, slot: usize, now: Instant) {
        let connection = &mut self.connections[slot];
        connection.since = now;
        connection.exchanges.begin(self.requests_per_connection);
        match new_socket(self.address) {
            Ok(socket) => {
                let socket = Rc::new(socket);
                let token = Token { slot: slot as u32, generation: connection.generation };
                self.ring.connect(&socket, self.address, token);
                connection.awaits = Awaits::Connect(socket);
            }
            Err(_) => self.tally.errors.connect += 1,
        }
    }

    /// Opens what is to be opened, gives up what stands still.
    fn sweep(&mut self, now: Instant) {
        for slot in 0..self.connections.len() {
            let connection = &self.connections[slot];
            match connection.awaits {
                Awaits::Sweep => self.open(slot, now),
                _ if now.saturating_duration_since(connection.since) >= self.timeout => {
                    self.tally.errors.timeout += 1;
                    self.reopen(slot, now);
                }
                _ => {}
            }
        }
    }
}

/// Pipelined requests must not wait for the acknowledgement of those before them.
fn new_socket(address: SocketAddr) -> io::Result<std::os::fd::OwnedFd> {
    let socket = socket::tcp_stream_socket(address)?;
    socket::set_nodelay(&socket)?;
    Ok(socket)
}
