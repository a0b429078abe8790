//! The connections of one thread: what is asked on which, when, and what becomes of it.
//!
//! | a connection awaits | and then |
//! |---|---|
//! | its start | is opened, spread over the ramp |
//! | the next sweep | is opened: it was refused, or could not be made |
//! | a planned start | is opened for it (open loop; it carries no more requests than it has) |
//! | that it stands | sends, or is free for a planned start |
//! | responses | counts them, sends the next |
//! | the server's FIN | is opened again |
//!
//! In a closed loop a connection sends whenever it may. In an open loop a planned start is given to
//! the connection that has been free for longest; if there is none it waits in line, and its time
//! runs. With a line ([`crate::line`]) a connection receives no faster than the line carries, and
//! does not go on before its operation is over.

use super::exchanges::{Arrival, Exchanges};
use super::network::{Event, Network, Secured};
use super::schedule::Schedule;
use super::timers::Timers;
use crate::line::{Line, Pace};
use crate::tally::{Errors, Tally};
use crate::workload::Workload;
use onering::ring::Token;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How often connections are looked over, and how long the ring waits at most.
pub(super) const SWEEP: Duration = Duration::from_millis(100);

/// What a thread's connections are to do.
pub(super) struct Orders {
    /// How many there are.
    pub(super) connections: usize,
    /// Requests in flight on each.
    pub(super) pipeline: usize,
    /// The planned starts, in an open loop.
    pub(super) schedule: Option<Schedule>,
    /// No start is planned from here on.
    pub(super) until: Instant,
    /// Whether service time counts from the beginning of the connection.
    pub(super) from_connect: bool,
    /// Whether connections outlast a request.
    pub(super) kept: bool,
    /// How fast the lines of the users are, if they are not as fast as they go.
    pub(super) pace: Option<Pace>,
    /// How long it takes until all are open.
    pub(super) ramp: Duration,
    /// How long a server may let a connection stand still.
    pub(super) timeout: Duration,
}

/// What a connection awaits. See the head of this file.
#[derive(Debug)]
pub(super) enum Awaits<S> {
    Start,
    Sweep,
    Plan,
    Connect(Rc<S>),
    Responses(Rc<S>),
    End(Rc<S>),
}

#[derive(Debug)]
pub(super) struct Connection<S, A> {
    /// Raised whenever the socket is given up: what happens on former ones is dropped.
    pub(super) generation: u32,
    pub(super) awaits: Awaits<S>,
    pub(super) exchanges: Exchanges<A>,
    /// When something last happened.
    pub(super) since: Instant,
    /// When it began to be opened.
    pub(super) opened: Instant,
    /// In an open loop: the planned start that it was given, until it is sent.
    pub(super) planned: Option<Instant>,
    /// In an open loop: whether it is among the free.
    pub(super) free: bool,
    pub(super) operation: Operation,
    pub(super) paced: Option<Paced>,
}

/// What a user's operation has come to: from when it might begin until the next one may.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) began: Instant,
    pub(super) received_bytes: u64,
}

/// A connection's line.
#[derive(Debug)]
pub(super) struct Paced {
    pub(super) line: Line,
    /// When bytes were last asked for.
    pub(super) asked: Instant,
    /// When the operation is over, once its last byte has come.
    pub(super) over: Option<Instant>,
}

/// What has become of a user's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UserTally {
    /// Operations that are over.
    pub(super) operations: u64,
    /// What they took together.
    pub(super) busy: Duration,
    /// Bytes received by them, and by the one that is under way.
    pub(super) received_bytes: u64,
    /// What passed meanwhile: `busy`, what was lost, and what the one that is under way has taken.
    pub(super) elapsed: Duration,
    /// Operations that failed or were not right.
    pub(super) errors: u64,
}

/// The schedule and who may follow it.
pub(super) struct OpenLoop {
    pub(super) schedule: Schedule,
    pub(super) until: Instant,
    /// Planned starts for which no connection has come free. They are not kept: those that wait are
    /// the last of the schedule, so many of them, in its order.
    pub(super) waiting: u64,
    /// The same schedule, at the first that waits, or the next one where none does.
    pub(super) line: Schedule,
    /// Connections that may take one, as long as they may.
    pub(super) free: VecDeque<usize>,
}

pub(super) struct Client<N: Network, W: Workload> {
    pub(super) network: N,
    pub(super) workload: W,
    pub(super) open_loop: Option<OpenLoop>,
    pub(super) kept: bool,
    pub(super) from_connect: bool,
    pub(super) timeout: Duration,
    pub(super) connections: Vec<Connection<N::Socket, W::Asked>>,
    pub(super) timers: Timers,
    pub(super) swept: Instant,
    /// Requests planned before are not counted.
    pub(super) counted_from: Instant,
    pub(super) tally: Tally,
    pub(super) users: Vec<UserTally>,
}

impl<N: Network, W: Workload> Client<N, W> {
    /// Nothing is opened before the first turn.
    pub(super) fn new(network: N, workload: W, orders: Orders) -> Self {
        let now = network.now();
        let count = orders.connections;
        let starts = orders.schedule.is_none() || orders.kept;
        let connection = |_| Connection {
            generation: 0,
            awaits: if starts { Awaits::Start } else { Awaits::Plan },
            exchanges: Exchanges::new(orders.pipeline),
            since: now,
            opened: now,
            planned: None,
            free: false,
            operation: Operation { began: now, received_bytes: 0 },
            paced: orders.pace.map(|pace| Paced { line: Line::new(pace), asked: now, over: None }),
        };
        let mut timers = Timers::default();
        for slot in 0..count as u32 {
            timers.set(now + orders.ramp * slot / count as u32, Token { slot, generation: 0 });
        }
        let tally = Tally::new(workload.classes().len(), orders.schedule.is_some());
        let mut client = Self {
            network,
            workload,
            open_loop: orders.schedule.map(|schedule| OpenLoop {
                line: schedule.clone(),
                schedule,
                until: orders.until,
                waiting: 0,
                free: VecDeque::new(),
            }),
            kept: orders.kept,
            from_connect: orders.from_connect,
            timeout: orders.timeout,
            connections: (0..count).map(connection).collect(),
            timers,
            swept: now,
            counted_from: now,
            tally,
            users: vec![UserTally::default(); count],
        };
        if client.open_loop.is_some() && !client.kept {
            (0..count).for_each(|slot| client.set_free(slot));
        }
        client
    }

    pub(super) fn now(&self) -> Instant {
        self.network.now()
    }

    pub(super) fn enters(&self) -> u64 {
        self.network.enters()
    }

    /// What was counted since this was last called.
    pub(super) fn take_tally(&mut self) -> Tally {
        self.tally.take()
    }

    /// What the users have done since this was last called. What they are about counts as far as it
    /// has come: a server that stands still at the end has not been fast.
    pub(super) fn take_users(&mut self) -> Vec<UserTally> {
        let now = self.network.now();
        for (user, connection) in self.users.iter_mut().zip(&self.connections) {
            if !matches!(connection.awaits, Awaits::Start) {
                user.received_bytes += connection.operation.received_bytes;
                user.elapsed += now.saturating_duration_since(connection.operation.began);
            }
        }
        let zero = vec![UserTally::default(); self.users.len()];
        std::mem::replace(&mut self.users, zero)
    }

    /// From here on requests count, by their planned starts in an open loop.
    pub(super) fn count_from(&mut self, at: Instant) {
        self.counted_from = at;
    }

    /// Requests in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.connections.iter().map(|connection| connection.exchanges.in_flight()).sum()
    }

    /// One turn, which lasts until `until` at most: waits until something happens, and acts on it.
    pub(super) fn turn(&mut self, until: Instant) -> io::Result<Instant> {
        let now = self.network.now();
        let wake = self.next_wake(until.min(self.swept + SWEEP));
        self.network.enter(wake.saturating_duration_since(now))?;
        while let Some((token, event)) = self.network.event() {
            self.happened(token, event);
        }
        let now = self.network.now();
        while let Some((at, token)) = self.timers.due(now) {
            self.due(token, at, now);
        }
        self.plan(now, until);
        if now.saturating_duration_since(self.swept) >= SWEEP {
            self.sweep(now);
            self.swept = now;
        }
        Ok(now)
    }

    fn next_wake(&self, until: Instant) -> Instant {
        let timer = self.timers.next().unwrap_or(until);
        let planned = self.open_loop.as_ref().map(|open| open.schedule.next());
        until.min(timer).min(planned.filter(|&at| at < self.last_plan()).unwrap_or(until))
    }

    fn happened(&mut self, token: Token, event: Event<N::Bytes>) {
        let slot = token.slot as usize;
        if self.connections[slot].generation != token.generation {
            return;
        }
        match event {
            Event::Received(bytes) => self.received(slot, &bytes),
            Event::Sent => {
                let connection = &mut self.connections[slot];
                connection.exchanges.sent();
                let held = connection.paced.as_ref().is_some_and(|paced| paced.over.is_some());
                // Mostly not: the clock is left alone then.
                if connection.exchanges.may_send() && !held {
                    self.go_on(slot, self.network.now());
                }
            }
            Event::Connected(Ok(secured)) => self.connected(slot, secured),
            Event::Connected(Err(_)) => {
                self.count(slot, |errors| &mut errors.connect);
                self.fail(slot, Awaits::Sweep);
            }
            Event::TlsFailed(error) => {
                self.tally.tls_failure.get_or_insert(error);
                self.count(slot, |errors| &mut errors.tls);
                // Not at once: what fails now fails a millisecond later.
                self.fail(slot, Awaits::Sweep);
            }
            Event::Ended => {
                let early = self.connections[slot].exchanges.awaiting();
                if early {
                    self.count(slot, |errors| &mut errors.ended);
                }
                self.reopen(slot, early);
            }
            Event::Broken => {
                let connection = &self.connections[slot];
                // Where nothing is awaited, nothing is lost.
                let early = connection.exchanges.awaiting()
                    || matches!(connection.awaits, Awaits::Connect(_) | Awaits::End(_));
                if early {
                    self.count(slot, |errors| &mut errors.reset);
                }
                self.reopen(slot, early);
            }
        }
    }

    fn connected(&mut self, slot: usize, secured: Option<Secured>) {
        let now = self.network.now();
        let connection = &mut self.connections[slot];
        let Awaits::Connect(socket) = std::mem::replace(&mut connection.awaits, Awaits::Sweep)
        else {
            return;
        };
        self.tally.connects += 1;
        let stood = secured.map_or(now, |secured| secured.since);
        self.tally.connect.record(stood.saturating_duration_since(connection.opened));
        if let Some(Secured { since, handshake }) = secured {
            self.tally.secured(handshake, now.saturating_duration_since(since));
            self.workload.secured(slot, handshake);
        }
        connection.since = now;
        if connection.paced.is_none() {
            let token = Token { slot: slot as u32, generation: connection.generation };
            self.network.recv(&socket, token);
        }
        connection.awaits = Awaits::Responses(socket);
        self.go_on(slot, now);
    }

    fn received(&mut self, slot: usize, bytes: &[u8]) {
        let now = self.network.now();
        let connection = &mut self.connections[slot];
        self.tally.received_bytes += bytes.len() as u64;
        connection.since = now;
        connection.operation.received_bytes += bytes.len() as u64;
        let carried = match &mut connection.paced {
            None => now,
            Some(paced) => {
                if connection.exchanges.awaiting_first_byte() {
                    paced.line.begin(now);
                }
                paced.line.took(bytes.len(), paced.asked, now)
            }
        };
        let (tally, user) = (&mut self.tally, &mut self.users[slot]);
        let mut answers = 0;
        let counted_from = self.counted_from;
        let received = connection.exchanges.receive(
            bytes,
            Arrival { at: now, carried },
            &mut self.workload,
            slot,
            |answer| {
                answers += 1;
                user.errors += u64::from(answer.right.is_err());
                if let (Some(schedule), Ok(())) = (&mut tally.schedule, answer.right) {
                    schedule.completed += 1;
                }
                if answer.times.planned.is_none_or(|planned| planned >= counted_from) {
                    answer.count(tally);
                }
            },
        );
        match received {
            Err(_) => {
                self.count(slot, |errors| &mut errors.framing);
                self.reopen(slot, true);
            }
            Ok(()) if self.connections[slot].paced.is_some() => {
                self.received_at_pace(slot, answers > 0, carried, now);
            }
            Ok(()) => {
                if answers > 0 {
                    self.over(slot, now);
                }
                self.go_on(slot, now);
            }
        }
    }

    /// A moment that was waited for has come.
    fn due(&mut self, token: Token, at: Instant, now: Instant) {
        let slot = token.slot as usize;
        let connection = &mut self.connections[slot];
        if connection.generation != token.generation {
            return;
        }
        if let Some(paced) = &mut connection.paced
            && paced.over.take_if(|over| *over <= at).is_some()
        {
            // That this moment is met late is the generator's; whatever passes from here on, a connect
            // among it, is the server's.
            paced.line.ask(now);
            self.over(slot, at);
            match self.connections[slot].awaits {
                Awaits::Responses(_) => self.go_on(slot, now),
                Awaits::Sweep => self.open(slot, now),
                // The next begins when the server has closed.
                _ => {}
            }
            return;
        }
        match &connection.awaits {
            Awaits::Start => {
                connection.operation.began = now;
                self.open(slot, now);
            }
            Awaits::Responses(_) => self.ask_for_bytes(slot, now),
            _ => {}
        }
    }

    /// An operation of the user is over, and the next may begin.
    pub(super) fn over(&mut self, slot: usize, at: Instant) {
        let (connection, user) = (&mut self.connections[slot], &mut self.users[slot]);
        let took = at.saturating_duration_since(connection.operation.began);
        user.operations += 1;
        user.busy += took;
        user.received_bytes += connection.operation.received_bytes;
        user.elapsed += took;
        connection.operation = Operation { began: at, received_bytes: 0 };
    }

    /// The connection stands and nothing holds it back: sends, awaits the end, or is free.
    fn go_on(&mut self, slot: usize, now: Instant) {
        let connection = &self.connections[slot];
        if connection.exchanges.finished() {
            self.await_end(slot, now);
        } else if self.open_loop.is_none() || connection.planned.is_some() {
            self.proceed(slot, now);
        } else if !connection.exchanges.awaiting() {
            self.came_free(slot, now);
        }
    }

    /// Sends what may be sent.
    pub(super) fn proceed(&mut self, slot: usize, now: Instant) {
        let connection = &mut self.connections[slot];
        let Awaits::Responses(socket) = &connection.awaits else { return };
        if !connection.exchanges.may_send() {
            return;
        }
        let planned = connection.planned.take();
        let sent = if self.from_connect { connection.opened } else { now };
        let batch = connection.exchanges.next_batch(&mut self.workload, slot, planned, sent);
        let Some(bytes) = batch else { return };
        connection.since = now;
        let token = Token { slot: slot as u32, generation: connection.generation };
        self.tally.sent_bytes += bytes.len() as u64;
        self.network.send(socket, bytes, token);
        if connection.paced.is_some() {
            self.ask_for_bytes(slot, now);
        }
    }

    /// The last response has come: the server is to close.
    pub(super) fn await_end(&mut self, slot: usize, now: Instant) {
        let connection = &mut self.connections[slot];
        match std::mem::replace(&mut connection.awaits, Awaits::Sweep) {
            Awaits::Responses(socket) => {
                connection.awaits = Awaits::End(socket);
                self.ask_for_bytes(slot, now);
            }
            other => connection.awaits = other,
        }
    }

    /// Lets go of the connection's socket; it awaits `next`.
    fn give_up(&mut self, slot: usize, next: Awaits<N::Socket>) {
        let connection = &mut self.connections[slot];
        let token = Token { slot: slot as u32, generation: connection.generation };
        connection.generation = connection.generation.wrapping_add(1);
        connection.exchanges.lose(&mut self.workload, slot);
        match std::mem::replace(&mut connection.awaits, next) {
            Awaits::Start | Awaits::Sweep | Awaits::Plan => {}
            Awaits::Connect(socket) | Awaits::Responses(socket) | Awaits::End(socket) => {
                self.network.close(socket, token);
            }
        }
    }

    /// Counts what goes wrong on a connection, unless the request that it takes along was planned before
    /// requests count.
    fn count(&mut self, slot: usize, kind: impl FnOnce(&mut Errors) -> &mut u64) {
        let connection = &self.connections[slot];
        let mut planned = connection.planned.into_iter().chain(connection.exchanges.planned());
        if planned.all(|planned| planned >= self.counted_from) {
            *kind(&mut self.tally.errors) += 1;
        }
    }

    /// What was under way on the connection is lost, and its planned start with it.
    fn fail(&mut self, slot: usize, next: Awaits<N::Socket>) {
        let now = self.network.now();
        self.give_up(slot, next);
        let (connection, user) = (&mut self.connections[slot], &mut self.users[slot]);
        user.errors += 1;
        // What came of it is worth nothing, and was waited for all the same.
        user.elapsed += now.saturating_duration_since(connection.operation.began);
        connection.planned = None;
        connection.operation = Operation { began: now, received_bytes: 0 };
        if let Some(paced) = &mut connection.paced {
            paced.line.lost();
            paced.over = None;
        }
    }

    /// The connection is over, by a failure or as it should be; another takes its place.
    fn reopen(&mut self, slot: usize, failed: bool) {
        let now = self.network.now();
        if failed {
            self.fail(slot, Awaits::Sweep);
        } else {
            self.give_up(slot, Awaits::Sweep);
        }
        let connection = &mut self.connections[slot];
        if let Some(over) = connection.paced.as_ref().and_then(|paced| paced.over) {
            // The operation is not: the timer opens the next connection.
            let token = Token { slot: slot as u32, generation: connection.generation };
            self.timers.set(over, token);
        } else if self.open_loop.is_none() {
            self.open(slot, now);
        } else {
            connection.awaits = Awaits::Plan;
            self.came_free(slot, now);
        }
    }

    pub(super) fn open(&mut self, slot: usize, now: Instant) {
        let connection = &mut self.connections[slot];
        connection.since = now;
        connection.opened = now;
        connection.exchanges.begin(self.workload.connection(slot));
        let token = Token { slot: slot as u32, generation: connection.generation };
        match self.network.connect(token) {
            Ok(socket) => connection.awaits = Awaits::Connect(socket),
            Err(_) => {
                self.count(slot, |errors| &mut errors.connect);
                self.fail(slot, Awaits::Sweep);
            }
        }
    }

    /// Opens what is to be opened, gives up what stands still.
    fn sweep(&mut self, now: Instant) {
        for slot in 0..self.connections.len() {
            let connection = &self.connections[slot];
            let awaited = match connection.awaits {
                Awaits::Start | Awaits::Plan => false,
                Awaits::Sweep => {
                    if connection.paced.as_ref().is_none_or(|paced| paced.over.is_none()) {
                        self.refused_again(slot, now);
                    }
                    false
                }
                Awaits::Connect(_) | Awaits::End(_) => true,
                Awaits::Responses(_) => connection.exchanges.awaiting(),
            };
            let connection = &self.connections[slot];
            if awaited && now.saturating_duration_since(connection.since) >= self.timeout {
                self.count(slot, |errors| &mut errors.timeout);
                self.reopen(slot, true);
            }
        }
    }

    /// A connection that was refused may be tried again.
    fn refused_again(&mut self, slot: usize, now: Instant) {
        if self.open_loop.is_none() || self.kept {
            self.open(slot, now);
        } else {
            self.connections[slot].awaits = Awaits::Plan;
            self.came_free(slot, now);
        }
    }
}
