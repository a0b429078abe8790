//! What is due when, of a thread's connections.

use onering::ring::Token;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Moments and the connections that they are for. A connection that is given up leaves its own
/// behind: their generation tells.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Instant, u32, u32)>>);

impl Timers {
    /// `token` is due at `at`.
    pub(super) fn set(&mut self, at: Instant, token: Token) {
        self.0.push(Reverse((at, token.slot, token.generation)));
    }

    /// When the next is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, ..))| *at)
    }

    /// One that is due, with the moment that it was set for.
    pub(super) fn due(&mut self, now: Instant) -> Option<(Instant, Token)> {
        if self.next()? > now {
            return None;
        }
        let Reverse((at, slot, generation)) = self.0.pop()?;
        Some((at, Token { slot, generation }))
    }
}
