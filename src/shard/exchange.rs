//! One request and its response.

use std::fmt;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use crate::files::FileBody;
use crate::http::{Body, Pull};
use crate::ring::{SendBuf, Token};

/// Names an exchange for as long as its connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExchangeName {
    /// The connection.
    pub(super) connection: Token,
    /// Which of the connection's exchanges; HTTP/1 has one at a time and counts them.
    pub(super) stream: u32,
}

impl fmt::Display for ExchangeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { slot, generation } = self.connection;
        write!(formatter, "{slot}.{generation}/{}", self.stream)
    }
}

/// A response whose body is being pulled. Answers that are whole from the start are handed to the
/// ring at once and need none.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) name: ExchangeName,
    pub(super) head: SendBuf,
    /// Bytes of the head that are with the kernel.
    pub(super) head_sent: usize,
    pub(super) body: FileBody,
    /// What was pulled from the body and is not with the kernel yet.
    pub(super) piece: Option<Piece>,
    /// The file was found cold: the rest of it is read by the ring, whether it is in memory or not.
    pub(super) by_ring: bool,
}

/// What was pulled from a body.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// A range of a file.
    File { file: Rc<OwnedFd>, offset: u64, bytes: usize },
    /// Bytes in memory, of which some may be with the kernel.
    Memory { buffer: SendBuf, sent: usize },
}

impl Piece {
    /// Bytes that are not with the kernel yet.
    fn left_bytes(&self) -> usize {
        match self {
            Piece::File { bytes, .. } => *bytes,
            Piece::Memory { buffer, sent } => buffer.len() - sent,
        }
    }
}

impl Exchange {
    pub(super) fn new(name: ExchangeName, head: SendBuf, body: FileBody) -> Exchange {
        Exchange { name, head, head_sent: 0, body, piece: None, by_ring: false }
    }

    /// Pulls the next piece if there is none; says whether there is one now.
    pub(super) fn pull(&mut self, max_bytes: usize) -> bool {
        if self.piece.is_none() {
            self.piece = match self.body.next(max_bytes) {
                Pull::File { file, offset, bytes } => Some(Piece::File { file, offset, bytes }),
                Pull::Bytes(buffer) => Some(Piece::Memory { buffer, sent: 0 }),
                Pull::Wait | Pull::End => None,
            };
        }
        self.piece.is_some()
    }

    /// What is left of the head.
    pub(super) fn head_rest(&self) -> &[u8] {
        &self.head.as_slice()[self.head_sent..]
    }

    /// Bytes of the head and of the piece that are not with the kernel yet.
    pub(super) fn left_bytes(&self) -> usize {
        self.head_rest().len() + self.piece.as_ref().map_or(0, Piece::left_bytes)
    }

    /// Notes that `more` bytes of the piece are with the kernel.
    pub(super) fn advance(&mut self, more: usize) {
        if let Some(piece) = &mut self.piece {
            match piece {
                Piece::File { offset, bytes, .. } => {
                    *offset += more as u64;
                    *bytes -= more;
                }
                Piece::Memory { sent, .. } => *sent += more,
            }
            if piece.left_bytes() == 0 {
                self.piece = None;
            }
        }
    }
}
