//! Bodies, a quantum at a time.
//!
//! Before each quantum the shard asks whether its last byte is in memory. Warm: head with
//! MSG_MORE, then a non-blocking sendfile(2), here on this thread, and a poll when the socket is
//! full. Cold: the ring reads a window into a leased buffer and sends it from there, so that the
//! thread never waits for a disk.

use crate::ring::{Lease, ReadError, SendBuf, SendError, Token};
use crate::sys::file::{self, Residency};
use crate::sys::socket;

use super::Shard;
use super::connection::{Connection, Phase, Step, Writing};
use super::exchange::{Exchange, Piece};

/// What a quantum has come to.
enum Quantum {
    /// All of it is with the kernel.
    Sent,
    /// The socket's buffer is full.
    Full,
    /// The file must be read first.
    Cold,
    /// The file has become shorter than was promised.
    Truncated,
    /// The peer is gone.
    Gone,
}

impl Shard {
    /// Moves one quantum of the body under way.
    pub(super) fn pump(&mut self, token: Token) {
        let quantum_bytes = self.config.transfer.quantum_bytes;
        let connection = &mut self.connections[token.slot as usize];
        let Writing::Body { exchange, step } = &mut connection.writing else { return };
        if !exchange.pull(quantum_bytes) {
            return self.body_sent(token);
        }
        let counters = &self.assignment.counters;
        let before = exchange.piece.as_ref().map_or(0, |piece| piece.bytes);
        let outcome = send_quantum(&connection.socket, exchange);
        let after = exchange.piece.as_ref().map_or(0, |piece| piece.bytes);
        counters.sendfile_calls.add(1);
        counters.bytes_sent.add((before - after) as u64);
        match outcome {
            Quantum::Sent if exchange.pull(quantum_bytes) => {
                *step = Step::Ready;
                self.ready.push_back(token);
                counters.turn_bytes_capped.add(1);
                self.settle(token);
            }
            Quantum::Sent => self.body_sent(token),
            Quantum::Full => {
                counters.sendfile_would_block.add(1);
                *step = Step::AwaitWritable;
                self.ring.poll_writable(&connection.socket, token);
                connection.in_flight += 1;
                self.settle(token);
            }
            Quantum::Cold => {
                counters.residency_cold.add(1);
                self.read_cold(token);
            }
            Quantum::Truncated => {
                counters.truncated_files.add(1);
                tracing::warn!(exchange = %exchange.name, "file became shorter while it was sent");
                self.reset(token);
            }
            Quantum::Gone => {
                counters.resets.add(1);
                self.shut(token);
            }
        }
    }

    /// The body is with the kernel, whole.
    fn body_sent(&mut self, token: Token) {
        let connection = self.connection(token);
        connection.writing = Writing::Idle;
        connection.http.answered();
        if !connection.input.is_empty() || !connection.is_receiving() {
            // Requests wait, or the peer's end does: their turn is the next.
            self.ready.push_back(token);
        }
        self.settle(token);
    }

    /// The socket says that it has room.
    pub(super) fn writable(&mut self, token: Token) {
        let connection = self.connection(token);
        connection.in_flight -= 1;
        match connection.phase {
            Phase::Shut => self.end_if_over(token),
            _ => self.pump(token),
        }
    }

    /// Has the ring read the piece's next window, as soon as a buffer is free.
    fn read_cold(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        let Writing::Body { exchange: Exchange { piece: Some(piece), .. }, step } =
            &mut connection.writing
        else {
            return;
        };
        match self.ring.arena().lease() {
            Some(lease) => {
                *step = Step::AwaitRead;
                let Piece { file, offset, bytes } = piece;
                self.ring.read(file, *offset, lease, *bytes, token);
                connection.in_flight += 1;
                self.assignment.counters.cold_reads.add(1);
            }
            None => {
                *step = Step::AwaitLease;
                self.wanting_lease.push_back(token);
            }
        }
        self.settle(token);
    }

    /// A window has been read: send it.
    pub(super) fn cold_read(&mut self, token: Token, result: Result<(Lease, usize), ReadError>) {
        let connection = &mut self.connections[token.slot as usize];
        connection.in_flight -= 1;
        if connection.phase == Phase::Shut {
            drop(result);
            self.lease_is_back();
            return self.end_if_over(token);
        }
        let Writing::Body { exchange, step } = &mut connection.writing else { return };
        let (lease, bytes) = match result {
            Ok((lease, bytes @ 1..)) => (lease, bytes),
            result => {
                let (counters, name) = (&self.assignment.counters, exchange.name);
                if let Err(error) = result {
                    counters.read_errors.add(1);
                    tracing::warn!(exchange = %name, %error, "file cannot be read");
                } else {
                    counters.truncated_files.add(1);
                    tracing::warn!(exchange = %name, "file became shorter while it was sent");
                }
                self.lease_is_back();
                return self.reset(token);
            }
        };
        *step = Step::AwaitSent { piece_bytes: bytes };
        let window = SendBuf::Leased(lease.into(), 0..bytes as u32);
        connection.in_flight += 1;
        if exchange.head_sent == 0 {
            self.answers.push(exchange.head.clone());
            self.answers.push(window);
            self.ring.send_vectored(&connection.socket, &mut self.answers, token);
        } else {
            self.ring.send(&connection.socket, window, token);
        }
    }

    /// A buffer for cold reads is free again: the first that waits for one gets its turn.
    pub(super) fn lease_is_back(&mut self) {
        while let Some(token) = self.wanting_lease.pop_front() {
            if !self.is_current(token) {
                continue;
            }
            if let Connection { writing: Writing::Body { step, .. }, .. } = self.connection(token)
                && *step == Step::AwaitLease
            {
                *step = Step::Ready;
                return self.ready.push_back(token);
            }
        }
    }

    pub(super) fn send_failed(&mut self, token: Token, error: SendError) {
        let counters = &self.assignment.counters;
        match error {
            SendError::Closed | SendError::TimedOut => counters.resets.add(1),
            _ => counters.send_errors.add(1),
        };
        self.shut(token);
    }
}

/// Sends what is left of the head, then as much of the piece as the socket takes.
fn send_quantum(socket: &crate::ring::Socket, exchange: &mut Exchange) -> Quantum {
    let Some(piece) = exchange.piece.clone() else { return Quantum::Sent };
    let last_byte = piece.offset + piece.bytes as u64 - 1;
    match file::residency(&piece.file, last_byte) {
        Residency::Warm | Residency::Memory => {}
        // Once begun here, the head is finished here.
        Residency::Cold | Residency::Unknown
            if exchange.head_sent == 0 || exchange.head_rest().is_empty() =>
        {
            return Quantum::Cold;
        }
        Residency::Cold | Residency::Unknown => {}
    }
    while !exchange.head_rest().is_empty() {
        match socket::send_more(socket, exchange.head_rest()) {
            Ok(bytes) => exchange.head_sent += bytes,
            Err(error) => return failed(error),
        }
    }
    let mut offset = piece.offset;
    match file::sendfile(socket, &piece.file, &mut offset, piece.bytes) {
        Ok(0) => Quantum::Truncated,
        Ok(bytes) => {
            exchange.advance(bytes);
            match exchange.piece {
                None => Quantum::Sent,
                Some(_) => Quantum::Full,
            }
        }
        Err(error) => failed(error),
    }
}

fn failed(error: socket::SendError) -> Quantum {
    match error {
        socket::SendError::WouldBlock | socket::SendError::NoMemory => Quantum::Full,
        socket::SendError::Unsupported | socket::SendError::FileFailed => Quantum::Cold,
        socket::SendError::Closed | socket::SendError::Other(_) => Quantum::Gone,
    }
}
