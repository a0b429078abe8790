//! Bodies for TLS peers: sealed by us, a quantum at a time, or by the kernel.
//!
//! Sealed by us, the bytes of a file are read once into the shard's own memory (in the page cache: at
//! once; elsewhere the ring reads them), sealed into records, and sent by the ring: the next quantum is
//! made when that one is with the kernel. The first is sealed together with the head.
//!
//! Where the kernel can seal (kTLS), a connection goes over to that once, before the first body that is
//! large enough to be worth it, and stays: then bodies go by sendfile(2) as those of plain peers do. That
//! moment is quiet: nothing is being sent, and receiving goes on as before.

use crate::http::Persistence;
use crate::ring::Token;
use crate::tls::Content;

use super::Shard;
use super::connection::{Step, Writing};
use super::exchange::Piece;
use super::kernel::Kernel;
use super::records::records_after;
use super::transport::{Sending, Stage, Transport};

impl<K: Kernel> Shard<K> {
    /// Whether the kernel seals the body under way; has it do so from here on if that is worth it.
    pub(super) fn kernel_seals(&mut self, token: Token) -> bool {
        let connection = &mut self.connections[token.slot as usize];
        let (Transport::Tls(tls), Writing::Body { exchange, .. }) =
            (&mut connection.transport, &connection.writing)
        else {
            return !connection.transport.seals();
        };
        let Stage::Open { session, sending } = &mut tls.stage else { return false };
        match sending {
            Sending::Kernel { .. } => return true,
            Sending::Records { kernel_may: false } => return false,
            Sending::Records { kernel_may: true } => {}
        }
        // What we have sealed goes first, with a quantum of our own.
        let is_quiet = tls.outbound.is_empty() && tls.in_flight.is_none();
        if !is_quiet || exchange.body.left_bytes() < self.config.tls.ktls_from_bytes {
            return false;
        }
        let Some(keys) = session.transmit_secrets() else { return false };
        let attached = self.kernel.attach_tls(&connection.socket, &keys);
        let counters = &self.assignment.counters;
        match attached {
            Ok(sealing) => {
                counters.ktls_connections.add(1);
                session.hand_over();
                *sending = Sending::Kernel { sealing, plain_bytes: 0 };
                true
            }
            Err(error) => {
                counters.ktls_refused.add(1);
                if counters.ktls_refused.value() == 1 {
                    tracing::warn!(
                        %error,
                        "the kernel does not take over a connection's encryption: it goes on without. \
                         Counted as ktls_refused, not logged again. fix: onering doctor says why"
                    );
                }
                *sending = Sending::Records { kernel_may: false };
                false
            }
        }
    }

    /// Counts what the kernel was given, if it seals. A connection whose key is nearly used up ends with
    /// the answer under way, and one whose key is used up with that moment.
    pub(super) fn given_to_kernel(&mut self, token: Token, bytes: usize) {
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return };
        if let Stage::Open { session, sending: Sending::Kernel { plain_bytes, .. } } =
            &mut tls.stage
        {
            *plain_bytes += bytes as u64;
            match session.sent_by_kernel(bytes as u64) {
                Ok(()) if session.is_limit_near() => connection.http.drain(),
                Ok(()) => {}
                Err(fault) => self.fail(token, fault),
            }
        }
    }

    /// Whether all that the kernel was given is with TCP: before that, the end of a connection would cut
    /// it off.
    pub(super) fn is_flushed(&mut self, token: Token) -> bool {
        let connection = &self.connections[token.slot as usize];
        let Transport::Tls(tls) = &connection.transport else { return true };
        match &tls.stage {
            Stage::Open { sending: Sending::Kernel { sealing, plain_bytes }, .. } => {
                // An error means that the connection is gone already.
                let flushed = self.kernel.flush_tls(&connection.socket, sealing, *plain_bytes);
                tls.is_notified && flushed.unwrap_or(true)
            }
            _ => true,
        }
    }

    /// Moves one quantum of the body under way, sealed by us.
    pub(super) fn pump_records(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        let Writing::Body { exchange, .. } = &mut connection.writing else { return };
        if !exchange.pull(self.config.transfer.sealed_quantum_bytes) {
            return self.body_sent(token);
        }
        let name = exchange.name;
        let mut plain = std::mem::take(&mut self.plain);
        match &exchange.piece {
            Some(Piece::Memory { buffer, sent }) => {
                let buffer = buffer.clone();
                let sent = *sent;
                self.send_body(token, &buffer.as_slice()[sent..]);
            }
            Some(Piece::File { .. }) if exchange.by_ring => self.read_cold(token),
            Some(Piece::File { file, offset, bytes }) => {
                if plain.len() < *bytes {
                    plain.resize(*bytes, 0);
                }
                match self.kernel.read_nowait(file, &mut plain[..*bytes], *offset) {
                    Ok(0) => self.truncated(token, name),
                    Ok(bytes) => self.send_body(token, &plain[..bytes]),
                    // The ring meets the error, too, and says so.
                    Err(_) => {
                        self.assignment.counters.residency_cold.add(1);
                        exchange.by_ring = true;
                        self.read_cold(token);
                    }
                }
            }
            None => {}
        }
        self.plain = plain;
    }

    /// Seals what is left of the head, and these bytes of the piece, and hands them to the ring.
    pub(super) fn send_body(&mut self, token: Token, plain: &[u8]) {
        let connection = &mut self.connections[token.slot as usize];
        let (Transport::Tls(tls), Writing::Body { exchange, step }) =
            (&mut connection.transport, &mut connection.writing)
        else {
            return;
        };
        let mut records = records_after(&mut tls.outbound, &mut self.spare_records);
        let Some(session) = tls.session() else { return };
        let slices = [exchange.head_rest(), plain];
        let bytes = slices[0].len() + plain.len();
        let sealed = session.seal(Content::ApplicationData, &slices, &mut records);
        exchange.head_sent = exchange.head.len();
        exchange.advance(plain.len());
        let is_last = !exchange.pull(self.config.transfer.sealed_quantum_bytes);
        if is_last && connection.http.persistence() == Persistence::Close {
            session.close_notify(&mut records);
            tls.is_notified = true;
        }
        *step = Step::AwaitSent;
        self.assignment.counters.bytes_sent.add(bytes as u64);
        self.send_records(token, records);
        if let Err(fault) = sealed {
            self.fail(token, fault);
        }
        self.settle(token);
    }
}
