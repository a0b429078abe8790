//! Deadlines, lingering, the end of a connection.
//!
//! The order of an end: our FIN by shutdown(2), the peer's FIN as the last receive completion,
//! then close. A receive that is in flight pins the socket, so that close alone would send
//! nothing. That is why a connection's first receive is for once: when the peer has asked for the
//! end with its first request, nothing is pending and one close does it all, which saves 30 % of
//! the CPU time of a connection with one request. And a close while the peer still sends would be
//! a reset, which can overtake the answer (RFC 9112 §9.6).

use std::time::Duration;

use crate::config::Config;
use crate::http::{Awaiting, Persistence, Status};
use crate::ring::Token;

use super::Shard;
use super::connection::{Connection, Phase, Receiving, Stall, Step, Writing};
use super::kernel::Kernel;
use super::transport::Transport;

/// Looks for progress in the time in which a peer must take something.
const STALL_LOOKS: u8 = 4;

/// After how long the kernel is asked again whether it has sealed and sent everything.
const FLUSH_AGAIN_MS: u64 = 16;

/// Bytes that a peer may still send after our last answer before it is cut off.
const LINGER_BYTES: usize = 16 << 20;

/// When a connection's wait for the present thing is over.
///
/// Every byte of a body extends its time: one that keeps up the least rate is never cut off, and one
/// that dribbles in is, whatever it brings at a time.
pub(super) fn due_ms<S>(config: &Config, connection: &Connection<S>) -> u64 {
    let timeouts = &config.timeouts;
    let limit: Duration = match connection.awaiting {
        _ if connection.transport.is_handshaking() => timeouts.handshake,
        Awaiting::FirstHead | Awaiting::Head => timeouts.head,
        Awaiting::Body => {
            let extension_ms =
                connection.body_bytes.saturating_mul(1000) / config.limits.body_rate_bytes;
            timeouts.body.saturating_add(Duration::from_millis(extension_ms))
        }
        Awaiting::NextRequest => timeouts.idle,
        Awaiting::Answer => timeouts.write_stall / u32::from(STALL_LOOKS),
        Awaiting::Close => timeouts.linger,
    };
    connection.since_ms.saturating_add(limit.as_millis() as u64)
}

impl<K: Kernel> Shard<K> {
    /// After anything has happened to a connection: what does it wait for now, and until when?
    pub(super) fn settle(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        if connection.phase != Phase::Open {
            return;
        }
        if let Transport::Tls(_) = connection.transport {
            self.flush(token);
        }
        let connection = &mut self.connections[token.slot as usize];
        let awaiting = match connection.writing {
            Writing::Idle => connection.http.awaiting(connection.has_input()),
            Writing::Answers { .. } | Writing::Body { .. } | Writing::Flushing => Awaiting::Answer,
        };
        if awaiting == Awaiting::Close {
            return self.linger(token);
        }
        // A head that is coming in is bounded by its own limits; what comes ahead of its turn is
        // kept until half of it is worked off.
        let room = awaiting != Awaiting::Answer
            || connection.input.len() <= self.config.limits.pipeline_bytes / 2;
        let takes_more = connection.http.takes_more() && connection.transport.takes_more();
        if connection.receiving == Receiving::Stopped && takes_more && room {
            self.receive(token);
        }
        let connection = &mut self.connections[token.slot as usize];
        if connection.transport.is_handshaking() {
            // It has one deadline for each of its flights.
            return;
        }
        if awaiting != connection.awaiting {
            connection.awaiting = awaiting;
            connection.since_ms = self.now.monotonic_ms;
            connection.stall = Stall::default();
            self.wheel.schedule(token.slot, due_ms(&self.config, connection));
        }
    }

    /// Has the ring receive: for once until a request has been answered, so that a connection with a
    /// single one can be closed at once.
    pub(super) fn receive(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        connection.receiving = if connection.exchanges == 0 {
            self.kernel.recv_once(&connection.socket, token);
            Receiving::First
        } else {
            Receiving::Armed(self.kernel.recv(&connection.socket, token))
        };
    }

    /// Acts on the deadlines that have come.
    pub(super) fn fire_deadlines(&mut self) {
        if self.accept_again_ms() == Some(0) {
            self.accept_again(false);
        }
        let now_ms = self.now.monotonic_ms;
        self.wheel.advance(now_ms, &mut self.fired);
        let mut fired = std::mem::take(&mut self.fired);
        for slot in fired.drain(..) {
            let Some(connection) = self.connections.get_mut(slot as usize) else { continue };
            let token = Token { slot, generation: connection.generation };
            match &mut connection.writing {
                Writing::Body { step: step @ Step::AwaitMemory, .. } => {
                    *step = Step::Ready;
                    self.ready.push_back(token);
                }
                Writing::Flushing => self.ready.push_back(token),
                Writing::Idle | Writing::Answers { .. } | Writing::Body { .. } => {}
            }
            // Deadlines move ahead without the wheel's knowledge.
            let due_ms = due_ms(&self.config, connection);
            if due_ms > now_ms {
                self.wheel.schedule(slot, due_ms);
            } else {
                self.expired(token);
            }
        }
        self.fired = fired;
    }

    fn expired(&mut self, token: Token) {
        let connection = &self.connections[token.slot as usize];
        let counters = &self.assignment.counters;
        match (connection.phase, connection.awaiting) {
            // The ring has it in hand.
            (Phase::Shut, _) => {}
            // What came in time counts although the ring has yet to bring it: a turn brings but some
            // of what has come, which after a pause of the process is much. It ends with the largest
            // size of a head or a body, however a peer times its bytes.
            (
                Phase::Open,
                Awaiting::FirstHead | Awaiting::Head | Awaiting::Body | Awaiting::NextRequest,
            ) if self.kernel.has_unread(&connection.socket) || connection.transport.is_ours() => {
                counters.deadlines_put_off.add(1);
                self.wheel.schedule(token.slot, self.now.monotonic_ms + 1);
            }
            // However slowly the records of a flight come in, they have the same time.
            (Phase::Open, _) if connection.transport.is_handshaking() => {
                counters.timeouts_handshake.add(1);
                self.shut(token);
            }
            (Phase::Lingering { .. }, _) | (Phase::Open, Awaiting::Close) => {
                counters.timeouts_linger.add(1);
                self.shut(token);
            }
            (Phase::Open, Awaiting::FirstHead) => {
                counters.timeouts_head.add(1);
                self.part(token);
            }
            (Phase::Open, Awaiting::Head) => {
                counters.timeouts_head.add(1);
                self.refuse(token, Status::REQUEST_TIMEOUT);
            }
            (Phase::Open, Awaiting::Body) => {
                counters.timeouts_body.add(1);
                self.refuse(token, Status::REQUEST_TIMEOUT);
            }
            (Phase::Open, Awaiting::NextRequest) => {
                counters.timeouts_idle.add(1);
                self.part(token);
            }
            (Phase::Open, Awaiting::Answer) => self.look_for_progress(token),
        }
    }

    /// Answers with an error although no request is whole, and closes.
    fn refuse(&mut self, token: Token, status: Status) {
        let connection = &mut self.connections[token.slot as usize];
        connection.http.refuse(&connection.input);
        let head_only = connection.http.head_only();
        connection.http.answered();
        connection.input.clear();
        connection.held = None;
        let site = self.files.default_site(connection.channel);
        let reply = self.files.status(site, status, Persistence::Close, head_only, &self.now);
        self.assignment.counters.count_response(status.code());
        self.answers.push(reply.head);
        self.send_answers(token, None);
        self.settle(token);
    }

    /// A slow peer is served for as long as it takes anything; one that takes nothing is reset.
    fn look_for_progress(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        let acked = self.kernel.bytes_acked(&connection.socket).ok();
        let ours = matches!(
            connection.writing,
            Writing::Body { step: Step::AwaitRead | Step::AwaitLease | Step::AwaitMemory, .. }
        );
        let stall = &mut connection.stall;
        if ours || acked != stall.acked {
            // It is our disk or memory that is waited for, or the peer has taken something.
            *stall = Stall { acked, looks: 0 };
        } else {
            stall.looks += 1;
        }
        if stall.looks >= STALL_LOOKS {
            self.assignment.counters.timeouts_write_stall.add(1);
            return self.reset(token);
        }
        connection.since_ms = self.now.monotonic_ms;
        self.wheel.schedule(token.slot, due_ms(&self.config, connection));
    }

    /// Sends our FIN, and waits for the peer's: unless that has come, or the peer has itself asked
    /// for the end (then it may send nothing more, RFC 9112 §9.6) and nothing is pending.
    pub(super) fn linger(&mut self, token: Token) {
        if self.notify(token) {
            // A peer that takes nothing any more does not take this either.
            return self.settle(token);
        }
        if !self.is_flushed(token) {
            // There is no event for it.
            self.connection(token).writing = Writing::Flushing;
            self.settle(token);
            return self.wheel.schedule(token.slot, self.now.monotonic_ms + FLUSH_AGAIN_MS);
        }
        self.connection(token).writing = Writing::Idle;
        let connection = &mut self.connections[token.slot as usize];
        // A TLS peer may still say that it ends, which would meet a closed socket.
        let parted = connection.parted
            && matches!(connection.transport, Transport::Plain)
            && connection.receiving == Receiving::Stopped
            && connection.input.is_empty();
        if parted
            || connection.receiving == Receiving::Over
            || self.kernel.shutdown_write(&connection.socket).is_err()
        {
            return self.shut(token);
        }
        if connection.receiving == Receiving::Stopped {
            connection.receiving = Receiving::Armed(self.kernel.recv(&connection.socket, token));
        }
        connection.phase = Phase::Lingering { discarded: connection.input.len() };
        connection.input = Vec::new();
        connection.awaiting = Awaiting::Close;
        connection.since_ms = self.now.monotonic_ms;
        self.wheel.schedule(token.slot, due_ms(&self.config, connection));
    }

    /// Throws away what a peer sends after our last answer.
    pub(super) fn discard(&mut self, token: Token, bytes: usize) {
        match &mut self.connection(token).phase {
            Phase::Lingering { discarded } => {
                *discarded += bytes;
                if *discarded > LINGER_BYTES {
                    self.assignment.counters.linger_cut_off.add(1);
                    self.shut(token);
                }
            }
            // A receive for once is over with that.
            Phase::Open | Phase::Shut => self.end_if_over(token),
        }
    }

    /// Ends the connection with a reset: what is unsent is dropped, and the peer can tell that
    /// the answer is not whole.
    pub(super) fn reset(&mut self, token: Token) {
        // An error means that the connection is gone already.
        let _ = self.kernel.reset(&self.connections[token.slot as usize].socket);
        self.shut(token);
    }

    /// Ends a connection on which nothing is under way. A plain peer is not waited for, a TLS peer has to
    /// be told.
    fn part(&mut self, token: Token) {
        let connection = self.connection(token);
        if let Transport::Plain = connection.transport {
            return self.shut(token);
        }
        connection.http.give_up();
        self.linger(token);
    }

    /// Ends both directions, and the connection with the last of its operations.
    pub(super) fn shut(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        connection.phase = Phase::Shut;
        connection.writing = Writing::Idle;
        self.handshake_over(token);
        let connection = &mut self.connections[token.slot as usize];
        if connection.is_receiving() || connection.in_flight > 0 {
            // An error means that the connection is gone already, and then they complete as well.
            let _ = self.kernel.shutdown_both(&connection.socket);
        }
        self.end_if_over(token);
    }

    pub(super) fn end_if_over(&mut self, token: Token) {
        if !self.connections[token.slot as usize].is_over() {
            return;
        }
        let connection = self.connections.remove(token.slot as usize);
        self.wheel.remove(token.slot);
        self.kernel.close(connection.socket);
        self.show_load();
        self.assignment.counters.closed.add(1);
        self.accept_again(true);
    }
}
