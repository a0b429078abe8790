//! What a simulated ring has in flight.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use crate::ring::{Event, Lease, SendBuf, Token};

use super::world::Socket;

pub(super) struct Operation {
    pub(super) generation: u32,
    pub(super) token: Token,
    pub(super) submitted: bool,
    pub(super) cancelled: bool,
    pub(super) what: Held,
}

pub(super) enum Held {
    Accept {
        once: bool,
    },
    /// Starved while it waits for a provided buffer.
    Recv {
        socket: Rc<Socket>,
        once: bool,
        starved: bool,
    },
    Send {
        socket: Rc<Socket>,
        bufs: Vec<SendBuf>,
        sent: usize,
    },
    Poll {
        socket: Rc<Socket>,
    },
    Read {
        file: Rc<OwnedFd>,
        offset: u64,
        bytes: usize,
        lease: Option<Lease>,
    },
}

/// What an operation comes to.
pub(super) enum Step {
    Nothing,
    /// It got on, without a word.
    Moved,
    More(Event<Socket>),
    Last(Event<Socket>),
}
