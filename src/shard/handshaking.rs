//! Handshakes: how many, when, and for how long.
//!
//! A handshake is the dearest thing that a peer can ask for: some hundred microseconds of a CPU, against
//! some for a request. So in one turn of the loop at most `handshakes_per_turn` flights are worked on, in
//! the order in which they came, and requests are served in between. A peer that begins and does not go
//! on costs memory only, and once there are too many of its kind its place goes to a newcomer: the oldest
//! has had the longest time. Keys that take milliseconds are a worker's business.

use std::collections::VecDeque;

use crate::files::Channel;
use crate::ring::Token;
use crate::tls::{Fault, Handshake, Progress};

use super::Shard;
use super::closing::due_ms;
use super::kernel::Kernel;
use super::transport::{Sending, Stage, Tls, Transport, Turn};
use super::worker::Job;

/// The handshakes of a shard.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    /// Connections whose first flight has come, the oldest first; among them such as are done.
    begun: VecDeque<Token>,
    /// How many of them are not.
    in_progress: usize,
    /// Connections whose flight waits to be worked on.
    waiting: VecDeque<Token>,
    /// Flights that may still be worked on in this turn.
    left: usize,
}

impl Handshakes {
    /// Whether there is work for the next turn.
    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl<K: Kernel> Shard<K> {
    /// What carries the bytes of a connection that came in by a listener.
    pub(super) fn transport(&self, listener: usize) -> Transport {
        let Some(context) = self.contexts.of_listener(listener) else {
            return Transport::Plain;
        };
        Transport::Tls(Box::new(Tls::new(listener, context.handshake(), context.is_slow())))
    }

    /// A flight of the peer's is here, or a part of one: it is worked on now, or when there is time.
    pub(super) fn handshake(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return };
        let Stage::Handshaking { turn, .. } = &mut tls.stage else { return };
        *turn = Turn::Ours;
        if !std::mem::replace(&mut tls.is_counted, true) {
            self.handshakes.begun.push_back(token);
            self.handshakes.in_progress += 1;
        }
        if self.handshakes.waiting.is_empty() && self.handshakes.left > 0 {
            self.work_flight(token);
        } else {
            self.assignment.counters.handshakes_delayed.add(1);
            self.handshakes.waiting.push_back(token);
        }
    }

    /// Works on flights that have waited, as many as a turn has time for.
    pub(super) fn work_flights(&mut self) {
        self.handshakes.left = self.config.tls.handshakes_per_turn;
        while self.handshakes.left > 0
            && let Some(token) = self.handshakes.waiting.pop_front()
        {
            if self.is_current(token) {
                self.work_flight(token);
                self.after_flight(token);
            }
        }
        self.make_room_for_handshakes();
    }

    fn work_flight(&mut self, token: Token) {
        self.handshakes.left -= 1;
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return };
        if tls.is_slow
            && matches!(tls.stage, Stage::Handshaking { .. })
            && let Some(worker) = &self.assignment.worker
            && let Stage::Handshaking { handshake, .. } =
                std::mem::replace(&mut tls.stage, Stage::Away)
        {
            self.assignment.counters.handshakes_sent_away.add(1);
            let job = Job { shard: self.assignment.index, token, handshake };
            if let Err(Job { handshake, .. }) = worker.give(job) {
                tls.stage = Stage::Handshaking { handshake, turn: Turn::Ours };
                self.fail(token, Fault::Overloaded);
            }
            return;
        }
        let Stage::Handshaking { handshake, .. } = &mut tls.stage else { return };
        let progress = handshake.advance();
        self.advanced(token, progress);
    }

    /// A worker has done its part.
    pub(super) fn handshake_is_back(
        &mut self,
        token: Token,
        handshake: Box<Handshake>,
        progress: Progress,
    ) {
        if !self.is_current(token) {
            self.assignment.counters.late_completions.add(1);
            return;
        }
        let Transport::Tls(tls) = &mut self.connection(token).transport else { return };
        if let Stage::Away = tls.stage {
            tls.stage = Stage::Handshaking { handshake, turn: Turn::Ours };
            self.advanced(token, progress);
            self.after_flight(token);
        }
    }

    /// Goes on with what has come while a flight waited to be worked on.
    fn after_flight(&mut self, token: Token) {
        if self.is_current(token) {
            self.open_inbound(token);
            self.go_on_with_records(token);
        }
    }

    /// A flight has been worked on.
    fn advanced(&mut self, token: Token, progress: Progress) {
        let now_ms = self.now.monotonic_ms;
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return };
        let Stage::Handshaking { handshake, turn } = &mut tls.stage else { return };
        match progress {
            Progress::More => {
                let mut flight = handshake.outgoing();
                if !flight.is_empty() {
                    // The peer has not had our flight before. There are two in a handshake at most.
                    connection.since_ms = now_ms;
                }
                tls.outbound.append(&mut flight);
                *turn = Turn::Peer;
                if connection.has_ended {
                    self.end_of_handshaker(token);
                }
            }
            Progress::Failed(fault) => self.fail(token, fault),
            Progress::Done => {
                tls.outbound.append(&mut handshake.outgoing());
                let stage = std::mem::replace(&mut tls.stage, Stage::Failed);
                let Stage::Handshaking { handshake, .. } = stage else { return };
                match handshake.finish(&self.session_options) {
                    Ok(session) => {
                        let info = session.info();
                        let counters = &self.assignment.counters;
                        let kind = match info.is_resumed() {
                            true => &counters.handshakes_resumed,
                            false => &counters.handshakes_full,
                        };
                        kind.add(1);
                        if let Some(context) = self.contexts.of_listener(tls.listener) {
                            let admission = context.admission(info.server_name.as_deref());
                            connection.channel = Channel::Tls(admission);
                        }
                        let sending = Sending::Records { kernel_may: self.session_options.ktls };
                        tls.stage = Stage::Open { session: Box::new(session), sending };
                        // From here on the first request is waited for.
                        connection.since_ms = now_ms;
                        self.wheel.schedule(token.slot, due_ms(&self.config, connection));
                        self.handshake_over(token);
                    }
                    Err(fault) => self.fail(token, fault),
                }
            }
        }
    }

    /// A peer has ended its side before the end of the handshake. What it has sent before may still be
    /// worked on; if more is needed then, that was all.
    pub(super) fn end_of_handshaker(&mut self, token: Token) {
        if self.connection(token).transport.takes_more() {
            self.assignment.counters.handshakes_abandoned.add(1);
            self.shut(token);
        }
    }

    /// A connection's handshake, if that was in progress, is so no more.
    pub(super) fn handshake_over(&mut self, token: Token) {
        if let Transport::Tls(tls) = &mut self.connections[token.slot as usize].transport
            && std::mem::take(&mut tls.is_counted)
        {
            self.handshakes.in_progress -= 1;
        }
    }

    /// Ends the oldest handshakes in progress, down to as many as there may be.
    fn make_room_for_handshakes(&mut self) {
        while let Some(&token) = self.handshakes.begun.front() {
            let is_in_progress =
                self.is_current(token) && self.connection(token).transport.is_handshaking();
            if is_in_progress {
                if self.handshakes.in_progress <= self.config.tls.handshakes {
                    break;
                }
                self.assignment.counters.handshakes_evicted.add(1);
                self.shut(token);
            }
            self.handshakes.begun.pop_front();
        }
    }
}
