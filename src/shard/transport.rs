//! What lies between a connection's bytes on the wire and its requests and answers.
//!
//! | transport | bytes that come | bytes that go |
//! |---|---|---|
//! | [`Transport::Plain`] | are requests | are answers |
//! | [`Transport::Tls`], [`Stage::Handshaking`] | the peer's flights | ours |
//! | …, [`Stage::Away`] | are kept until the worker is done | none |
//! | …, [`Stage::Open`], [`Sending::Records`] | are opened where they lie | are sealed by us |
//! | …, [`Stage::Open`], [`Sending::Kernel`] | are opened where they lie | are sealed by the kernel |
//! | …, [`Stage::Failed`] | are thrown away | the alert, then our FIN |
//!
//! Receiving is ours in every stage: the kernel never decrypts.

use std::fmt;
use std::rc::Rc;

use crate::sys::ktls;
use crate::tls::{Handshake, Session};

/// What carries the bytes of one connection.
#[derive(Debug)]
pub(super) enum Transport {
    /// The bytes themselves.
    Plain,
    /// TLS records.
    Tls(Box<Tls>),
}

/// A connection's TLS.
pub(super) struct Tls {
    pub(super) stage: Stage,
    /// Which of the shard's listeners it came in by.
    pub(super) listener: usize,
    /// Its key takes so long that a worker uses it.
    pub(super) is_slow: bool,
    /// It counts among the handshakes in progress.
    pub(super) is_counted: bool,
    /// Bytes that were received and not opened: the start of a record, or all that came while the
    /// handshake waited for its turn.
    pub(super) inbound: Vec<u8>,
    /// Records that are made and not with the ring: they are the first of what is sent next.
    pub(super) outbound: Vec<u8>,
    /// Records that the ring is sending.
    pub(super) in_flight: Option<Rc<Vec<u8>>>,
    /// Our close_notify is made: nothing may follow it.
    pub(super) is_notified: bool,
}

/// How far a connection's TLS has come.
pub(super) enum Stage {
    /// The peer's next flight is waited for, or its turn to be worked on.
    Handshaking {
        handshake: Box<Handshake>,
        turn: Turn,
    },
    /// A worker has the handshake.
    Away,
    Open {
        session: Box<Session>,
        sending: Sending,
    },
    /// A fatal alert was sent or received.
    Failed,
}

/// Whose turn it is in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The peer's.
    Peer,
    /// Ours, as soon as the shard has time for it.
    Ours,
}

/// Who seals what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// We do.
    Records {
        /// Whether the kernel may still be asked to.
        kernel_may: bool,
    },
    /// The kernel does (kTLS), to the connection's end.
    Kernel {
        /// How it was when that began.
        sealing: ktls::Sealing,
        /// Bytes that it was given since, before they are sealed.
        plain_bytes: u64,
    },
}

impl Transport {
    /// Whether answers must be sealed before they are sent.
    #[inline]
    pub(super) fn seals(&self) -> bool {
        match self {
            Transport::Plain => false,
            Transport::Tls(tls) => {
                !matches!(tls.stage, Stage::Open { sending: Sending::Kernel { .. }, .. })
            }
        }
    }

    /// Whether no request can have come yet.
    #[inline]
    pub(super) fn is_handshaking(&self) -> bool {
        match self {
            Transport::Plain => false,
            Transport::Tls(tls) => matches!(tls.stage, Stage::Handshaking { .. } | Stage::Away),
        }
    }

    /// Whether it is we who are waited for in a handshake.
    pub(super) fn is_ours(&self) -> bool {
        self.is_handshaking() && !self.takes_more()
    }

    /// Whether more bytes can be made use of now.
    #[inline]
    pub(super) fn takes_more(&self) -> bool {
        match self {
            Transport::Plain => true,
            Transport::Tls(tls) => !matches!(
                tls.stage,
                Stage::Handshaking { turn: Turn::Ours, .. } | Stage::Away | Stage::Failed
            ),
        }
    }

    /// Whether bytes have come of a record that is not whole.
    #[inline]
    pub(super) fn has_inbound(&self) -> bool {
        match self {
            Transport::Plain => false,
            Transport::Tls(tls) => !tls.inbound.is_empty(),
        }
    }

    /// Its TLS.
    pub(super) fn tls(&mut self) -> Option<&mut Tls> {
        match self {
            Transport::Plain => None,
            Transport::Tls(tls) => Some(tls),
        }
    }
}

impl Tls {
    /// At the first byte.
    pub(super) fn new(listener: usize, handshake: Handshake, is_slow: bool) -> Self {
        Tls {
            listener,
            is_slow,
            is_counted: false,
            stage: Stage::Handshaking { handshake: Box::new(handshake), turn: Turn::Peer },
            inbound: Vec::new(),
            outbound: Vec::new(),
            in_flight: None,
            is_notified: false,
        }
    }

    /// The session, once there is one.
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.stage {
            Stage::Open { session, .. } => Some(session),
            Stage::Handshaking { .. } | Stage::Away | Stage::Failed => None,
        }
    }
}

/// Neither keys nor what was decrypted.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Handshaking { turn: Turn::Peer, .. } => "awaits a flight",
            Stage::Handshaking { turn: Turn::Ours, .. } => "awaits its turn",
            Stage::Away => "is with a worker",
            Stage::Open { sending: Sending::Records { .. }, .. } => "seals records",
            Stage::Open { sending: Sending::Kernel { .. }, .. } => "is sealed by the kernel",
            Stage::Failed => "has failed",
        };
        f.debug_struct("Tls")
            .field("stage", &stage)
            .field("inbound_bytes", &self.inbound.len())
            .field("outbound_bytes", &self.outbound.len())
            .field("in_flight", &self.in_flight.is_some())
            .field("is_notified", &self.is_notified)
            .finish()
    }
}
