//! What a shard keeps of one connection.
//!
//! | dimension | enum | says |
//! |---|---|---|
//! | TLS, or none | [`Transport`] | what carries the bytes |
//! | HTTP | [`http::Connection`](crate::http::Connection) | whose turn it is |
//! | socket, inward | [`Receiving`] | whether the ring receives |
//! | socket, outward | [`Writing`] | what is on its way |
//! | life | [`Phase`] | whether it is being closed, and how |

use std::rc::Rc;

use crate::files::{Channel, Reply};
use crate::http;
use crate::ring::OperationId;

use super::exchange::Exchange;
use super::transport::Transport;

/// One connection of a shard, over a socket of type `S`.
#[derive(Debug)]
pub(super) struct Connection<S> {
    pub(super) generation: u32,
    pub(super) socket: Rc<S>,
    pub(super) transport: Transport,
    /// What is known of the peer by the way it came.
    pub(super) channel: Channel,
    pub(super) http: http::Connection,
    /// Bytes that were received and that no request has consumed. Empty, and without memory of
    /// its own, unless a head came in pieces or a request before its turn.
    pub(super) input: Vec<u8>,
    pub(super) receiving: Receiving,
    /// The peer has ended its side: its FIN has come, or its close_notify.
    pub(super) has_ended: bool,
    pub(super) writing: Writing,
    pub(super) phase: Phase,
    /// The answer to a request whose body is still coming: it is sent when that has ended, so that
    /// a body that breaks a rule is refused in its place, and a peer that writes before it reads is
    /// not waited for.
    pub(super) held: Option<Box<Reply>>,
    /// Bytes of data that have come of that body.
    pub(super) body_bytes: u64,
    /// Whether the peer has asked for the end, and has sent nothing after that.
    pub(super) parted: bool,
    /// What it waits for, since when.
    pub(super) awaiting: http::Awaiting,
    pub(super) since_ms: u64,
    pub(super) stall: Stall,
    /// Exchanges so far.
    pub(super) exchanges: u32,
    /// Operations that the ring has in flight for it, but for the receive.
    pub(super) in_flight: u8,
}

/// The receiving half of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// The ring receives the first bytes, for once: many a connection has but one request, and
    /// can be closed at once if nothing is pending on it.
    First,
    /// The ring receives.
    Armed(OperationId),
    /// Too much is waiting: the receive is being cancelled.
    Stopping,
    /// The peer is not read from: too much is waiting, or nothing more is wanted.
    Stopped,
    /// The peer has ended, or the connection has failed.
    Over,
}

/// The sending half of the socket.
#[derive(Debug)]
pub(super) enum Writing {
    /// Nothing is on its way.
    Idle,
    /// The ring sends whole answers; then follows one whose body must be pulled, if any.
    Answers { then: Option<Exchange> },
    /// All is with the kernel, which has yet to seal some of it.
    Flushing,
    /// A body is being pulled.
    Body { exchange: Exchange, step: Step },
}

/// What the body's next step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its turn.
    Ready,
    /// Room in the socket's buffer.
    AwaitWritable,
    /// A moment in which the kernel has memory again.
    AwaitMemory,
    /// A buffer for a cold part of the file.
    AwaitLease,
    /// A cold part of the file.
    AwaitRead,
    /// The end of the records that the ring is sending.
    AwaitSent,
}

/// A connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Requests are taken and answered.
    Open,
    /// We have sent our FIN; what still comes is thrown away until the peer's.
    Lingering {
        /// Bytes thrown away.
        discarded: usize,
    },
    /// Shut down in both directions: only what the ring has in flight keeps it.
    Shut,
}

/// Whether the peer takes what is sent to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stall {
    /// Bytes that the peer's TCP had acknowledged at the last look.
    pub(super) acked: Option<u64>,
    /// Looks in a row that found no more.
    pub(super) looks: u8,
}

impl<S> Connection<S> {
    /// Whether neither we nor the ring have anything more to do with it.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Shut && self.in_flight == 0 && !self.is_receiving()
    }

    /// Whether bytes have come of a request that is not whole.
    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty() || self.transport.has_inbound()
    }

    /// Whether the ring holds a receive for it.
    pub(super) fn is_receiving(&self) -> bool {
        match self.receiving {
            Receiving::First | Receiving::Armed(_) | Receiving::Stopping => true,
            Receiving::Stopped | Receiving::Over => false,
        }
    }
}
