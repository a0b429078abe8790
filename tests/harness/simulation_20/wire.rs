//! The transport: two pipes that hold little, deliver in pieces, and may break.

use std::collections::VecDeque;

/// Both directions of a connection.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) to_server: Pipe,
    pub(super) to_client: Pipe,
    /// Either side has broken it: nothing is delivered any more.
    pub(super) reset: bool,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Pipe {
    bytes: VecDeque<u8>,
    capacity: usize,
    /// The most bytes that one write or one read moves.
    piece_bytes: usize,
    ended: bool,
}

impl Wire {
    pub(super) fn new(random: &mut fastrand::Rng) -> Self {
        Self { to_server: Pipe::new(random), to_client: Pipe::new(random), reset: false }
    }
}

impl Pipe {
    fn new(random: &mut fastrand::Rng) -> Self {
        // Every byte apart, a few at a time, or whatever there is.
        let piece_bytes = [1, 2, 7, 64, 1500, usize::MAX][random.usize(..6)];
        let capacity = [1, 100, 4096, 1 << 20][random.usize(..4)];
        Self { bytes: VecDeque::new(), capacity, piece_bytes, ended: false }
    }

    /// Takes some of `bytes`; says how many.
    pub(super) fn write(&mut self, bytes: &[u8], random: &mut fastrand::Rng) -> usize {
        assert!(!self.ended, "written to after its end");
        let most = bytes.len().min(self.capacity - self.bytes.len()).min(self.piece_bytes);
        let taken = if most == 0 { 0 } else { random.usize(1..=most) };
        self.bytes.extend(&bytes[..taken]);
        taken
    }

    /// Appends some of what there is to `out`; says how many bytes.
    pub(super) fn read(&mut self, out: &mut Vec<u8>, random: &mut fastrand::Rng) -> usize {
        let most = self.bytes.len().min(self.piece_bytes);
        let taken = if most == 0 { 0 } else { random.usize(1..=most) };
        out.extend(self.bytes.drain(..taken));
        taken
    }

    /// No more is written.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// No more is written, and all was read.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.bytes.is_empty()
    }
}
