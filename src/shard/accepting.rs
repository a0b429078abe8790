//! Listeners, pauses, hand-off to other shards.
//!
//! While a whole accept queue would fit below the limit of connections, the ring accepts by itself.
//! Closer to the limit that would overshoot it, since a multishot accept brings whatever is queued
//! before it can be cancelled, until no descriptor is left for a file: there the ring accepts one
//! connection at a time.

use std::rc::Rc;
use std::sync::Arc;

use crate::files::Channel;
use crate::http::{self, Scheme};
use crate::ring::{AcceptError, OperationId, Token};

use super::Shard;
use super::closing::due_ms;
use super::connection::{Connection, Phase, Receiving, Stall, Writing};
use super::draining::Draining;
use super::inbox::{Letter, relief};
use super::kernel::Kernel;
use super::transport::Transport;

/// How long accepting pauses when there is no descriptor or memory for a newcomer, unless a
/// connection closes before.
const PAUSE_MS: u64 = 100;

/// One listener, as the shard sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepting {
    /// The ring accepts, until it is told otherwise.
    Armed(OperationId),
    /// The ring accepts one connection.
    ArmedOnce(OperationId),
    /// The accept is being cancelled. One connection may still come, or many.
    Stopping { once: bool },
    /// There are as many connections as may be, or the shard drains.
    Stopped,
    /// Nothing could be accepted: try again then.
    Paused { until_ms: u64 },
}

impl<K: Kernel> Shard<K> {
    pub(super) fn start_accepting(&mut self) {
        for index in 0..self.accepting.len() {
            self.accept(index);
        }
    }

    /// Has the ring accept from a listener, if there is room.
    fn accept(&mut self, index: usize) {
        let token = Token { slot: index as u32, generation: 0 };
        let listener = &self.assignment.listeners[index];
        self.accepting[index] = match self.room() {
            0 => {
                self.assignment.counters.accept_paused_limit.add(1);
                Accepting::Stopped
            }
            room if room > self.config.limits.backlog as usize => {
                Accepting::Armed(self.kernel.accept(listener, token))
            }
            _ => Accepting::ArmedOnce(self.kernel.accept_once(listener, token)),
        };
    }

    /// How many connections may still be accepted, besides those that the ring has been told to.
    fn room(&self) -> usize {
        let armed = |accepting: &&Accepting| matches!(accepting, Accepting::ArmedOnce(_));
        let taken = self.connections.len() + self.accepting.iter().filter(armed).count();
        self.config.limits.connections_per_shard.saturating_sub(taken)
    }

    pub(super) fn stop_accepting(&mut self) {
        for accepting in &mut self.accepting {
            *accepting = match *accepting {
                Accepting::Armed(operation) => {
                    self.kernel.cancel(operation);
                    Accepting::Stopping { once: false }
                }
                Accepting::ArmedOnce(operation) => {
                    self.kernel.cancel(operation);
                    Accepting::Stopping { once: true }
                }
                Accepting::Stopping { once } => Accepting::Stopping { once },
                Accepting::Stopped | Accepting::Paused { .. } => Accepting::Stopped,
            };
        }
    }

    pub(super) fn accepted(&mut self, token: Token, connection: K::Socket) {
        let counters = &self.assignment.counters;
        counters.accepted.add(1);
        if self.assignment.steered
            && self.kernel.incoming_cpu(&connection) != Some(self.assignment.cpu as u32)
        {
            counters.wrong_cpu.add(1);
        }
        let index = token.slot as usize;
        let relief = relief(&self.inboxes, self.assignment.index, self.connections.len());
        match relief {
            Some(shard) if self.draining == Draining::No => {
                counters.handed_off.add(1);
                let letter = Letter::Connection { socket: connection, listener: index };
                self.inboxes[shard].send(letter, &mut self.kernel);
            }
            _ => self.adopt(connection, index),
        }
        match self.accepting[index] {
            Accepting::Armed(operation) if self.room() <= self.config.limits.backlog as usize => {
                self.kernel.cancel(operation);
                self.accepting[index] = Accepting::Stopping { once: false };
            }
            Accepting::ArmedOnce(_) => {
                self.accepting[index] = Accepting::Stopped;
                self.accept(index);
            }
            // It was quicker than its cancellation.
            Accepting::Stopping { once: true } => self.accepting[index] = Accepting::Stopped,
            _ => {}
        }
    }

    pub(super) fn accept_failed(&mut self, token: Token, error: AcceptError) {
        let index = token.slot as usize;
        self.accepting[index] = Accepting::Stopped;
        if self.draining != Draining::No {
            return;
        }
        if error == AcceptError::Cancelled {
            return self.accept(index);
        }
        let counters = &self.assignment.counters;
        // One line in all: a host that is short of descriptors is so again and again.
        counters.accept_paused_descriptors.add(1);
        if counters.accept_paused_descriptors.value() == 1 {
            tracing::warn!(
                %error,
                "no descriptor or memory for a new connection: accepting pauses, the backlog holds \
                 newcomers. Counted as accept_paused_descriptors, not logged again. \
                 fix: LimitNOFILE= in the unit or ulimit -n, and fs.file-max"
            );
        }
        self.accepting[index] = Accepting::Paused { until_ms: self.now.monotonic_ms + PAUSE_MS };
    }

    /// Milliseconds until a paused listener is tried again; without room, a connection's end is
    /// waited for.
    pub(super) fn accept_again_ms(&self) -> Option<u64> {
        if self.room() == 0 {
            return None;
        }
        self.accepting
            .iter()
            .filter_map(|accepting| match accepting {
                Accepting::Paused { until_ms } => {
                    Some(until_ms.saturating_sub(self.now.monotonic_ms))
                }
                _ => None,
            })
            .min()
    }

    /// Tries paused listeners again: those whose time has come, or all if `room` was made.
    pub(super) fn accept_again(&mut self, room: bool) {
        if self.draining != Draining::No || self.room() == 0 {
            return;
        }
        for index in 0..self.accepting.len() {
            let again = match self.accepting[index] {
                Accepting::Paused { until_ms } => room || until_ms <= self.now.monotonic_ms,
                Accepting::Stopped => true,
                Accepting::Armed(_) | Accepting::ArmedOnce(_) | Accepting::Stopping { .. } => false,
            };
            if again {
                self.accept(index);
            }
        }
    }

    /// Takes a connection in, which has come by one of the listeners.
    pub(super) fn adopt(&mut self, socket: K::Socket, listener: usize) {
        if let Draining::Cutting { .. } = self.draining {
            // Nobody would end it any more: the shard would wait for it in vain.
            self.assignment.counters.drain_cut_off.add(1);
            self.assignment.counters.closed.add(1);
            return;
        }
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        let socket = Rc::new(socket);
        let transport = self.transport(listener);
        let entry = self.connections.vacant_entry();
        let token = Token { slot: entry.key() as u32, generation };
        self.kernel.recv_once(&socket, token);
        let mut http = http::Connection::over(match transport {
            Transport::Plain => Scheme::Http,
            Transport::Tls(_) => Scheme::Https,
        });
        if self.draining != Draining::No {
            http.drain();
        }
        entry.insert(Connection {
            generation,
            socket,
            transport,
            channel: Channel::Plain,
            http,
            input: Vec::new(),
            has_ended: false,
            receiving: Receiving::First,
            writing: Writing::Idle,
            phase: Phase::Open,
            parted: false,
            held: None,
            body_bytes: 0,
            awaiting: http::Awaiting::FirstHead,
            since_ms: self.now.monotonic_ms,
            stall: Stall::default(),
            exchanges: 0,
            in_flight: 0,
        });
        let due_ms = due_ms(&self.config, &self.connections[token.slot as usize]);
        self.wheel.schedule(token.slot, due_ms);
        self.show_load();
    }

    /// Tells the other shards how many connections this one has: infinitely many once it drains.
    pub(super) fn show_load(&self) {
        self.inbox.set_load(match self.draining {
            Draining::No => self.connections.len(),
            Draining::Answering { .. } | Draining::Cutting { .. } => usize::MAX,
        });
    }

    /// Takes in whatever the accept queues hold. Says whether that was all: without descriptors the
    /// rest stays queued.
    pub(super) fn sweep_accept_queues(&mut self) -> bool {
        for index in 0..self.assignment.listeners.len() {
            let listener = Arc::clone(&self.assignment.listeners[index]);
            loop {
                match self.kernel.accept_nonblocking(&listener) {
                    Ok(Some(connection)) => {
                        self.assignment.counters.accepted.add(1);
                        self.adopt(connection, index);
                    }
                    Ok(None) => break,
                    Err(_) => return false,
                }
            }
        }
        true
    }
}
