//! One connection's two directions: what is under way, what has arrived, and how it ends.
//!
//! A [`Pipe`] is a sender's buffer, a network and a receiver's buffer in one queue. Bytes move only when
//! they are carried, so either side may be told to wait, or be ahead of what the other has seen.

use std::collections::VecDeque;
use std::fmt;

/// Both directions of a connection, and what the server's kernel keeps of its socket.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) to_server: Pipe,
    pub(super) to_client: Pipe,
    /// The server's program has it.
    pub(super) accepted: bool,
    /// The server's program has closed it.
    pub(super) closed: bool,
    /// The server takes nothing any more.
    reads_shut: bool,
    /// Something has failed that no server can make good.
    pub(super) is_damaged: bool,
    /// Bytes for the client that were lost to a reset by the server.
    pub(super) lost_bytes: usize,
}

/// One direction.
pub(super) struct Pipe {
    /// The first `arrived` are with the receiver's kernel, the rest is with the sender's.
    bytes: VecDeque<u8>,
    arrived: usize,
    /// Bytes that either kernel holds at most.
    capacity: usize,
    /// The most bytes that one step moves.
    piece_bytes: usize,
    end: Progress,
    reset: Progress,
    /// Bytes that were written, and bytes that have arrived, ever.
    pub(super) written: u64,
    pub(super) acked: u64,
}

/// How far a sender's word has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Unsaid,
    Said,
    Arrived,
}

impl Link {
    /// `is_roomy`: whatever a client asks has room.
    pub(super) fn new(is_roomy: bool, random: &mut fastrand::Rng) -> Self {
        Self {
            to_server: Pipe::new(is_roomy, random),
            to_client: Pipe::new(is_roomy, random),
            accepted: false,
            closed: false,
            reads_shut: false,
            is_damaged: false,
            lost_bytes: 0,
        }
    }

    /// Moves what is under way in both directions by a piece; says whether anything has moved.
    pub(super) fn carry(&mut self, random: &mut fastrand::Rng) -> bool {
        let mut has_moved = self.to_client.carry(random);
        if (self.closed || self.reads_shut) && self.to_server.is_under_way() {
            // Nobody takes these bytes: the answer is a reset.
            self.to_server.discard();
            if !self.is_gone() {
                self.reset_client();
                self.to_server.reset = Progress::Arrived;
            }
            return true;
        }
        has_moved |= self.to_server.carry(random);
        if self.is_gone() {
            // Nobody waits for what is under way to a client that has broken it.
            has_moved |= self.to_client.discard() > 0;
        }
        has_moved
    }

    /// The client breaks it.
    pub(super) fn reset_by_client(&mut self) {
        self.to_server.discard();
        self.to_server.reset = Progress::Said;
        self.to_client.reset = Progress::Arrived;
    }

    /// The server breaks it; false if it is broken already.
    pub(super) fn reset_by_server(&mut self) -> bool {
        if self.is_gone() {
            return false;
        }
        self.reset_client();
        self.to_server.discard();
        self.to_server.reset = Progress::Arrived;
        true
    }

    /// The server's kernel breaks it: what is under way is lost.
    fn reset_client(&mut self) {
        self.lost_bytes += self.to_client.discard();
        if self.to_client.reset == Progress::Unsaid {
            self.to_client.reset = Progress::Said;
        }
    }

    /// The server's kernel has heard that it is broken.
    pub(super) fn is_gone(&self) -> bool {
        self.to_server.reset == Progress::Arrived
    }

    /// The client has heard that it is broken, or has broken it.
    pub(super) fn is_broken(&self) -> bool {
        self.to_client.reset == Progress::Arrived
    }

    /// Whether the server's kernel takes nothing more to send.
    pub(super) fn is_send_shut(&self) -> bool {
        self.is_gone() || self.to_client.end != Progress::Unsaid
    }

    /// Whether the server's kernel says that the other side has ended.
    pub(super) fn is_recv_over(&self) -> bool {
        self.to_server.arrived == 0 && (self.reads_shut || self.to_server.end == Progress::Arrived)
    }

    /// Whether it says that at once, although bytes are left.
    pub(super) fn has_client_ended(&self) -> bool {
        self.to_server.end == Progress::Arrived
    }

    /// shutdown(2) of one direction or of both; false if there is nothing to be shut.
    pub(super) fn shut(&mut self, reads_too: bool) -> bool {
        if self.is_gone() {
            return false;
        }
        self.to_client.end();
        self.reads_shut |= reads_too;
        true
    }

    /// close(2): a FIN after what is under way, or a reset if something was not read.
    pub(super) fn close(&mut self) {
        assert!(!self.closed, "closed twice");
        self.closed = true;
        if self.is_gone() {
            return;
        }
        if self.to_server.arrived > 0 {
            self.reset_client();
        } else {
            self.to_client.end();
        }
    }
}

impl Pipe {
    fn new(is_roomy: bool, random: &mut fastrand::Rng) -> Self {
        // Every byte apart, a few at a time, or whatever there is.
        let piece_bytes = [1, 2, 7, 64, 1500, usize::MAX][random.usize(..6)];
        let capacity = [1, 100, 4096, 1 << 20][random.usize(if is_roomy { 3 } else { 0 }..4)];
        Self {
            bytes: VecDeque::new(),
            arrived: 0,
            capacity,
            piece_bytes,
            end: Progress::Unsaid,
            reset: Progress::Unsaid,
            written: 0,
            acked: 0,
        }
    }

    /// Bytes that the sender's kernel takes now.
    pub(super) fn room(&self) -> usize {
        self.capacity - (self.bytes.len() - self.arrived)
    }

    /// Bytes that have arrived and were not read.
    pub(super) fn unread(&self) -> usize {
        self.arrived
    }

    fn is_under_way(&self) -> bool {
        self.bytes.len() > self.arrived
    }

    /// Takes all of `bytes`, for which there must be room.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        assert!(self.end == Progress::Unsaid, "written to after its end");
        assert!(bytes.len() <= self.room(), "more than there is room for");
        self.bytes.extend(bytes);
        self.written += bytes.len() as u64;
    }

    /// Takes some of `bytes`; says how many.
    pub(super) fn write(&mut self, bytes: &[u8], random: &mut fastrand::Rng) -> usize {
        let most = bytes.len().min(self.room()).min(self.piece_bytes);
        let taken = if most == 0 { 0 } else { random.usize(1..=most) };
        self.put(&bytes[..taken]);
        taken
    }

    /// Moves a piece; says whether anything has moved.
    fn carry(&mut self, random: &mut fastrand::Rng) -> bool {
        if self.reset == Progress::Said {
            self.reset = Progress::Arrived;
            return true;
        }
        let under_way = self.bytes.len() - self.arrived;
        let most = under_way.min(self.capacity - self.arrived).min(self.piece_bytes);
        if most > 0 {
            let moved = random.usize(1..=most);
            self.arrived += moved;
            self.acked += moved as u64;
            return true;
        }
        let ends = self.end == Progress::Said && under_way == 0;
        if ends {
            self.end = Progress::Arrived;
        }
        ends
    }

    /// Takes up to `max` of the bytes that have arrived.
    pub(super) fn take(&mut self, max: usize) -> impl Iterator<Item = u8> {
        let taken = self.arrived.min(max);
        self.arrived -= taken;
        self.bytes.drain(..taken)
    }

    /// Appends some of what has arrived to `out`; says how many bytes.
    pub(super) fn read(&mut self, out: &mut Vec<u8>, random: &mut fastrand::Rng) -> usize {
        let most = self.arrived.min(self.piece_bytes);
        let taken = if most == 0 { 0 } else { random.usize(1..=most) };
        out.extend(self.take(taken));
        taken
    }

    /// Loses what is under way; says how many bytes.
    fn discard(&mut self) -> usize {
        let under_way = self.bytes.len() - self.arrived;
        self.bytes.truncate(self.arrived);
        under_way
    }

    /// No more is written.
    pub(super) fn end(&mut self) {
        if self.end == Progress::Unsaid {
            self.end = Progress::Said;
        }
    }

    /// The end has arrived, and all was read.
    pub(super) fn is_over(&self) -> bool {
        self.end == Progress::Arrived && self.arrived == 0
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { capacity, piece_bytes, end, reset, written, acked, arrived, .. } = self;
        write!(f, "{written} bytes written, {acked} arrived, {arrived} unread, end {end:?}, ")?;
        write!(f, "reset {reset:?}; {capacity} at most, {piece_bytes} at a time")
    }
}
