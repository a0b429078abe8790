//! The end of a shard: nothing that was begun, or queued, is lost.
//!
//! Accepting stops and the accept queues are emptied; idle connections close; answers under way
//! and those to requests that are coming in are the last of their connections. The listeners stay
//! open all the while, since closing one resets what the kernel has queued on it; so the queues
//! are swept again and again, and newcomers have one answer too, until no shard has anything left.

use crate::http::Awaiting;
use crate::ring::Token;

use super::Shard;
use super::accepting::Accepting;
use super::connection::{Phase, Writing};
use super::kernel::Kernel;

/// How long the ring may take to let go of connections that were cut off.
const CUT_MS: u64 = 1000;

/// How often the accept queues are looked at meanwhile.
const SWEEP_MS: u64 = 8;

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Draining {
    No,
    /// The last answers are being sent; whoever has not got his by then is cut off.
    Answering {
        ends_ms: u64,
    },
    /// The time is over: connections have been reset.
    Cutting {
        ends_ms: u64,
    },
}

impl Draining {
    pub(super) fn ends_ms(self) -> Option<u64> {
        match self {
            Draining::No => None,
            Draining::Answering { ends_ms } | Draining::Cutting { ends_ms } => Some(ends_ms),
        }
    }
}

impl<K: Kernel> Shard<K> {
    /// Begins to end.
    pub(super) fn drain(&mut self) {
        if self.draining != Draining::No {
            return;
        }
        let grace_ms = self.config.timeouts.grace.as_millis() as u64;
        let ends_ms = self.now.monotonic_ms + grace_ms;
        self.draining = Draining::Answering { ends_ms };
        self.show_load();
        self.stop_accepting();
        for token in self.tokens() {
            let connection = &mut self.connections[token.slot as usize];
            connection.http.drain();
            let idle = matches!(connection.writing, Writing::Idle)
                && connection.http.awaiting(connection.has_input()) == Awaiting::Close;
            // A request that came before the end was told is answered: the ring has yet to bring it.
            if idle
                && connection.phase == Phase::Open
                && !self.kernel.has_unread(&connection.socket)
            {
                // Its last answer may be unread, and another request on its way: a close would answer
                // that with a reset, which takes the answer along.
                self.linger(token);
            }
        }
    }

    /// Ends now, without regard to what is under way.
    pub(super) fn cut(&mut self) {
        // Whoever asks again must not make it take longer.
        if matches!(self.draining, Draining::Cutting { .. }) {
            return;
        }
        self.draining = Draining::Cutting { ends_ms: self.now.monotonic_ms + CUT_MS };
        self.stop_accepting();
        for token in self.tokens() {
            match self.connection(token).phase {
                Phase::Open => {
                    self.assignment.counters.drain_cut_off.add(1);
                    self.reset(token);
                }
                // It has its answer: the kernel goes on delivering what it has of it.
                Phase::Lingering { .. } => self.shut(token),
                Phase::Shut => {}
            }
        }
    }

    /// Whether the shard has ended; takes the next step towards it.
    pub(super) fn drained(&mut self) -> bool {
        let now_ms = self.now.monotonic_ms;
        match self.draining {
            Draining::No => false,
            Draining::Cutting { ends_ms } if now_ms >= ends_ms => {
                let left = self.connections.len() as u64;
                self.assignment.counters.drain_abandoned.add(left);
                true
            }
            Draining::Cutting { .. } => self.connections.is_empty(),
            Draining::Answering { ends_ms } if now_ms >= ends_ms => {
                self.cut();
                self.connections.is_empty()
            }
            Draining::Answering { .. } => {
                let stopped = |accepting: &Accepting| *accepting == Accepting::Stopped;
                if !self.accepting.iter().all(stopped) {
                    return false;
                }
                let swept = self.sweep_accept_queues();
                let done = swept && self.connections.is_empty() && self.inbox.is_empty();
                self.inbox.set_done(done);
                // One that ended before the others would leave its newcomers without an answer.
                done && self.inboxes.iter().all(|inbox| inbox.is_done())
            }
        }
    }

    /// Milliseconds until the accept queues are looked at again.
    pub(super) fn sweep_again_ms(&self) -> Option<u64> {
        matches!(self.draining, Draining::Answering { .. }).then_some(SWEEP_MS)
    }

    pub(super) fn tokens(&self) -> Vec<Token> {
        self.connections
            .iter()
            .map(|(slot, connection)| Token {
                slot: slot as u32,
                generation: connection.generation,
            })
            .collect()
    }
}

impl<K: Kernel> Drop for Shard<K> {
    /// However it ends, by a panic too, the others need not wait for it any more.
    fn drop(&mut self) {
        self.inbox.set_done(true);
    }
}
