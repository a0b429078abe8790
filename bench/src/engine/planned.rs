//! The open loop of a client: planned starts and the connections that take them.
//!
//! A start is given to the connection that has been free for longest, so that all are used. If none
//! is free it waits in line, in the order of planning, and its response time runs.

use super::client::{Awaits, Client, Connection};
use super::network::Network;
use crate::workload::Workload;
use std::time::Instant;

impl<N: Network, W: Workload> Client<N, W> {
    /// From when on nothing is planned.
    pub(super) fn last_plan(&self) -> Instant {
        self.open_loop.as_ref().map_or(self.counted_from, |open| open.until)
    }

    /// Whether nothing more is to come that was planned; so it is in a closed loop, which has no plan.
    pub(super) fn drained(&self) -> bool {
        let Some(open) = &self.open_loop else { return true };
        let busy = |connection: &Connection<_, _>| {
            connection.planned.is_some() || connection.exchanges.awaiting()
        };
        open.waiting == 0 && !self.connections.iter().any(busy)
    }

    /// No more is awaited: what is still open is counted as such.
    pub(super) fn end(&mut self) {
        let (Some(open), Some(tally)) = (&self.open_loop, &mut self.tally.schedule) else { return };
        let counts = |planned: &Instant| *planned >= self.counted_from;
        let assigned = self.connections.iter().filter_map(|connection| connection.planned);
        // Those from before it is counted stand at the head of the line.
        let mut line = open.line.clone();
        let uncounted = (0..open.waiting).take_while(|_| {
            let counted = counts(&line.next());
            line.advance();
            !counted
        });
        let unsent = open.waiting - uncounted.count() as u64;
        let unsent = unsent + assigned.filter(counts).count() as u64;
        let sent = self.connections.iter().flat_map(|connection| connection.exchanges.planned());
        tally.unsent += unsent;
        tally.unanswered += sent.filter(counts).count() as u64;
    }

    /// Gives planned starts that are due to free connections; those from `until` on are the next
    /// turn's, which may count them elsewhere.
    pub(super) fn plan(&mut self, now: Instant, until: Instant) {
        while let Some(open) = &mut self.open_loop {
            let planned = open.schedule.next();
            if planned > now || planned >= until || planned >= open.until {
                return;
            }
            open.schedule.advance();
            let counts = planned >= self.counted_from;
            if let Some(tally) = self.tally.schedule.as_mut().filter(|_| counts) {
                tally.planned += 1;
            }
            match self.take_free() {
                Some(slot) => {
                    // Nobody is in front of it, or no connection would be free.
                    if let Some(open) = &mut self.open_loop {
                        open.line.advance();
                    }
                    if let Some(tally) = self.tally.schedule.as_mut().filter(|_| counts) {
                        tally.lag.record(now.saturating_duration_since(planned));
                    }
                    self.follow(slot, planned, now);
                }
                None => {
                    if let Some(open) = &mut self.open_loop {
                        open.waiting += 1;
                    }
                }
            }
        }
    }

    /// Sends at the planned start, or opens a connection for it.
    fn follow(&mut self, slot: usize, planned: Instant, now: Instant) {
        let connection = &mut self.connections[slot];
        connection.planned = Some(planned);
        match connection.awaits {
            Awaits::Plan => self.open(slot, now),
            _ => self.proceed(slot, now),
        }
    }

    /// The connection may take a planned start: the one that has waited longest, or the next.
    pub(super) fn came_free(&mut self, slot: usize, now: Instant) {
        let Some(open) = &mut self.open_loop else { return };
        if open.waiting == 0 {
            return self.set_free(slot);
        }
        let planned = open.line.next();
        open.line.advance();
        open.waiting -= 1;
        self.follow(slot, planned, now);
    }

    pub(super) fn set_free(&mut self, slot: usize) {
        let (Some(open), connection) = (&mut self.open_loop, &mut self.connections[slot]) else {
            return;
        };
        if !std::mem::replace(&mut connection.free, true) {
            open.free.push_back(slot);
        }
    }

    fn take_free(&mut self) -> Option<usize> {
        let open = self.open_loop.as_mut()?;
        while let Some(slot) = open.free.pop_front() {
            let connection = &mut self.connections[slot];
            connection.free = false;
            let is_free = match connection.awaits {
                Awaits::Plan => true,
                Awaits::Responses(_) => connection.exchanges.may_send(),
                _ => false,
            };
            if is_free && connection.planned.is_none() {
                return Some(slot);
            }
        }
        None
    }
}
