//! Bodies, a quantum at a time.
//!
//! Before each quantum the shard asks whether its first byte, its last and some between are in
//! memory. Warm: head with MSG_MORE, then a non-blocking sendfile(2), here on this thread, and a
//! poll when the socket is full. Cold: the ring reads a window into a leased buffer, so that the
//! thread does not wait for a disk, and as much of it is sent from there as the socket takes. It
//! stays so to the body's end: what is in memory of a file that was evicted has holes, and what the
//! kernel reads ahead (8 MiB at a time, on a fast disk) arrives in any order. So are pieces
//! that are in memory from the start.

use std::os::fd::OwnedFd;

use crate::ring::{Lease, ReadError, SendError, Token};
use crate::sys::file::Residency;
use crate::sys::socket;

use super::Shard;
use super::connection::{Phase, Step, Writing};
use super::exchange::{Exchange, ExchangeName, Piece};
use super::kernel::Kernel;
use super::transport::Transport;

/// How far apart the bytes are that are asked for, from a quantum's first on, and besides its last.
const PROBE_BYTES: usize = 256 * 1024;

/// After how long another try is made to send where the kernel had no memory.
const MEMORY_AGAIN_MS: u64 = 32;

/// What a quantum has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantum {
    /// All of it is with the kernel.
    Sent,
    /// The socket's buffer is full.
    Full,
    /// The kernel has no memory for it.
    NoMemory,
    /// The file must be read first.
    Cold,
    /// The file has become shorter than was promised.
    Truncated,
    /// The peer is gone.
    Gone,
}

impl<K: Kernel> Shard<K> {
    /// Moves one quantum of the body under way.
    pub(super) fn pump(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        if let Transport::Tls(_) = connection.transport
            && !self.kernel_seals(token)
        {
            return self.pump_records(token);
        }
        let connection = &mut self.connections[token.slot as usize];
        let Writing::Body { exchange, .. } = &mut connection.writing else { return };
        if !exchange.pull(self.config.transfer.quantum_bytes) {
            return self.body_sent(token);
        }
        let left_bytes = exchange.left_bytes();
        let outcome = match exchange.piece.clone() {
            Some(Piece::File { .. }) if exchange.by_ring => return self.read_cold(token),
            Some(Piece::File { file, offset, bytes }) => {
                let outcome =
                    send_file(&self.kernel, &connection.socket, exchange, &file, offset, bytes);
                if outcome != Quantum::Cold {
                    self.assignment.counters.sendfile_calls.add(1);
                }
                outcome
            }
            Some(Piece::Memory { buffer, sent }) => {
                send_bytes(&self.kernel, &connection.socket, exchange, &buffer.as_slice()[sent..])
            }
            None => Quantum::Sent,
        };
        self.go_on_after(token, outcome, left_bytes);
    }

    /// Sees what comes after a quantum; `left_bytes` were left before it.
    fn go_on_after(&mut self, token: Token, outcome: Quantum, left_bytes: usize) {
        let quantum_bytes = self.config.transfer.quantum_bytes;
        let connection = &mut self.connections[token.slot as usize];
        let Writing::Body { exchange, .. } = &connection.writing else { return };
        let moved_bytes = left_bytes - exchange.left_bytes();
        if let Transport::Tls(_) = connection.transport {
            self.given_to_kernel(token, moved_bytes);
        }
        let connection = &mut self.connections[token.slot as usize];
        let counters = &self.assignment.counters;
        counters.bytes_sent.add(moved_bytes as u64);
        let Writing::Body { exchange, step } = &mut connection.writing else {
            // The kernel may seal no more.
            return self.settle(token);
        };
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
                if let Transport::Tls(_) = connection.transport {
                    // The kernel's TLS may hold part of a segment back, and then there is never room
                    // (6.1). An error means that the connection is gone: the poll says so.
                    let _ = self.kernel.push(&connection.socket);
                }
                self.kernel.poll_writable(&connection.socket, token);
                connection.in_flight += 1;
                self.settle(token);
            }
            Quantum::NoMemory => {
                // A poll would say at once that the socket has room, and again, and again.
                counters.send_no_memory.add(1);
                *step = Step::AwaitMemory;
                self.wheel.schedule(token.slot, self.now.monotonic_ms + MEMORY_AGAIN_MS);
                self.settle(token);
            }
            Quantum::Cold => {
                counters.residency_cold.add(1);
                exchange.by_ring = true;
                self.read_cold(token);
            }
            Quantum::Truncated => {
                let name = exchange.name;
                self.truncated(token, name);
            }
            Quantum::Gone => {
                counters.resets.add(1);
                self.shut(token);
            }
        }
    }

    /// The body is with the kernel, whole.
    pub(super) fn body_sent(&mut self, token: Token) {
        let now_ms = self.now.monotonic_ms;
        let connection = self.connection(token);
        connection.writing = Writing::Idle;
        connection.http.answered();
        // It may have begun in this very turn, so that nobody has seen what was waited for change.
        connection.since_ms = now_ms;
        if !connection.input.is_empty() || !connection.is_receiving() || connection.has_ended {
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

    /// Has the ring read the piece's next window, as soon as a buffer is free and whoever came
    /// before has had one.
    pub(super) fn read_cold(&mut self, token: Token) {
        let free = self.wanting_lease.is_empty().then(|| self.kernel.lease()).flatten();
        match free {
            Some(lease) => self.read_window(token, lease),
            None => {
                if let Writing::Body { step, .. } = &mut self.connection(token).writing {
                    *step = Step::AwaitLease;
                }
                self.assignment.counters.cold_reads_waited.add(1);
                self.wanting_lease.push_back(token);
            }
        }
        self.settle(token);
    }

    fn read_window(&mut self, token: Token, lease: Lease) {
        let connection = &mut self.connections[token.slot as usize];
        let Writing::Body { exchange, step } = &mut connection.writing else { return };
        let Some(Piece::File { file, offset, bytes }) = &exchange.piece else { return };
        *step = Step::AwaitRead;
        self.kernel.read(file, *offset, lease, *bytes, token);
        connection.in_flight += 1;
        self.assignment.counters.cold_reads.add(1);
    }

    /// Gives the buffers for cold reads that have come back to those who wait for one.
    pub(super) fn lend_leases(&mut self) {
        while let Some(&token) = self.wanting_lease.front() {
            let Some(lease) = self.kernel.lease() else { return };
            self.wanting_lease.pop_front();
            if self.is_current(token) {
                self.read_window(token, lease);
            }
        }
    }

    /// A window has been read: send it.
    pub(super) fn cold_read(&mut self, token: Token, result: Result<(Lease, usize), ReadError>) {
        let connection = &mut self.connections[token.slot as usize];
        connection.in_flight -= 1;
        if connection.phase == Phase::Shut {
            return self.end_if_over(token);
        }
        let Writing::Body { exchange, .. } = &mut connection.writing else { return };
        let (counters, name) = (&self.assignment.counters, exchange.name);
        match result {
            Ok((lease, bytes @ 1..)) if connection.transport.seals() => {
                self.send_body(token, &lease[..bytes]);
            }
            Ok((lease, bytes @ 1..)) => {
                let left_bytes = exchange.left_bytes();
                let outcome =
                    send_bytes(&self.kernel, &connection.socket, exchange, &lease[..bytes]);
                drop(lease);
                self.go_on_after(token, outcome, left_bytes);
            }
            Ok(_) => self.truncated(token, name),
            Err(error) => {
                counters.read_errors.add(1);
                // As many requests as a peer likes may meet it: said once.
                if counters.read_errors.value() == 1 {
                    tracing::warn!(
                        exchange = %name,
                        %error,
                        "a file cannot be read, and its response is cut off. Counted as read_errors, \
                         not logged again"
                    );
                }
                self.reset(token);
            }
        }
    }

    /// The file ends before what was promised of it. As many requests as a peer likes may meet that:
    /// said once.
    pub(super) fn truncated(&mut self, token: Token, name: ExchangeName) {
        let counters = &self.assignment.counters;
        counters.truncated_files.add(1);
        if counters.truncated_files.value() == 1 {
            tracing::warn!(
                exchange = %name,
                "a file became shorter while it was sent, and its response is cut off. Counted as \
                 truncated_files, not logged again"
            );
        }
        self.reset(token);
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

/// Sends what is left of the head, then as much of the piece, a range of a file, as the socket takes.
fn send_file<K: Kernel>(
    kernel: &K,
    socket: &K::Socket,
    exchange: &mut Exchange,
    file: &OwnedFd,
    mut offset: u64,
    bytes: usize,
) -> Quantum {
    let last_byte = offset + bytes as u64 - 1;
    for byte in (offset..last_byte).step_by(PROBE_BYTES).chain([last_byte]) {
        match kernel.residency(file, byte) {
            Residency::Warm => {}
            Residency::Memory => break,
            Residency::Cold | Residency::Unknown => return Quantum::Cold,
        }
    }
    if let Err(error) = send_head(kernel, socket, exchange) {
        return failed(error);
    }
    match kernel.sendfile(socket, file, &mut offset, bytes) {
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

/// Sends what is left of the head, then as much of the piece's first `bytes` as the socket takes.
///
/// Of a window that was read, what it does not take is in the page cache by now and need not be kept:
/// a slow peer holds no buffer that others wait for.
fn send_bytes<K: Kernel>(
    kernel: &K,
    socket: &K::Socket,
    exchange: &mut Exchange,
    bytes: &[u8],
) -> Quantum {
    if let Err(error) = send_head(kernel, socket, exchange) {
        return failed(error);
    }
    match kernel.send_now(socket, bytes) {
        Ok(taken) => {
            exchange.advance(taken);
            if taken == bytes.len() { Quantum::Sent } else { Quantum::Full }
        }
        Err(error) => failed(error),
    }
}

/// Sends what is left of the head.
fn send_head<K: Kernel>(
    kernel: &K,
    socket: &K::Socket,
    exchange: &mut Exchange,
) -> Result<(), socket::SendError> {
    while !exchange.head_rest().is_empty() {
        exchange.head_sent += kernel.send_more(socket, exchange.head_rest())?;
    }
    Ok(())
}

fn failed(error: socket::SendError) -> Quantum {
    match error {
        socket::SendError::WouldBlock => Quantum::Full,
        socket::SendError::NoMemory => Quantum::NoMemory,
        socket::SendError::Unsupported | socket::SendError::FileFailed => Quantum::Cold,
        socket::SendError::Closed | socket::SendError::Other(_) => Quantum::Gone,
    }
}
