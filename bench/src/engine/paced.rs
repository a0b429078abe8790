//! The lines of a client's users: a connection receives no faster than its line carries.
//!
//! Bytes are asked for a piece at a time, when the line says so; what the server has sent meanwhile
//! waits in the socket, and holds the server back when that is full.

use super::client::{Awaits, Client};
use super::network::Network;
use crate::workload::Workload;
use onering::ring::Token;
use std::time::Instant;

impl<N: Network, W: Workload> Client<N, W> {
    /// What follows where there is a line.
    pub(super) fn received_at_pace(
        &mut self,
        slot: usize,
        answered: bool,
        carried: Instant,
        now: Instant,
    ) {
        let connection = &mut self.connections[slot];
        let token = Token { slot: slot as u32, generation: connection.generation };
        let Some(paced) = &mut connection.paced else { return };
        if !answered {
            self.timers.set(carried, token);
            return;
        }
        let over = paced.line.done(now);
        paced.over = Some(over);
        self.timers.set(over, token);
        if connection.exchanges.finished() {
            self.await_end(slot, now);
        }
    }

    pub(super) fn ask_for_bytes(&mut self, slot: usize, now: Instant) {
        let connection = &mut self.connections[slot];
        let token = Token { slot: slot as u32, generation: connection.generation };
        let (Awaits::Responses(socket) | Awaits::End(socket), Some(paced)) =
            (&connection.awaits, &mut connection.paced)
        else {
            return;
        };
        paced.asked = now;
        self.network.recv_once(socket, token);
    }
}
