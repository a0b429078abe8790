//! What the ring tells its owner.

use std::os::fd::OwnedFd;

use super::arena::Lease;
use super::error::{AcceptError, ConnectError, PollError, ReadError, RecvError, SendError};
use super::provided::RecvBuf;
use super::token::Token;

/// What came back. An accepted connection is an `S`: a descriptor, save where a test plays the ring.
#[derive(Debug)]
pub struct Completion<S = OwnedFd> {
    /// The token that the operation was given.
    pub token: Token,
    /// What happened.
    pub event: Event<S>,
}

/// What happened. Unless said otherwise the operation is over.
#[derive(Debug)]
pub enum Event<S = OwnedFd> {
    /// A connection, non-blocking and close-on-exec; accepting goes on, unless it was for once.
    Accepted(S),
    /// Accepting has ended.
    AcceptFailed(AcceptError),
    /// Bytes; receiving goes on, unless it was for once.
    Received(RecvBuf),
    /// The peer has sent its FIN, or we have shut the socket down.
    Ended,
    /// Receiving has ended.
    RecvFailed(RecvError),
    /// All bytes are with the kernel, or sending failed somewhere among them.
    Sent(Result<(), SendError>),
    /// The connection stands.
    Connected(Result<(), ConnectError>),
    /// The polled descriptor is ready.
    Polled(Result<(), PollError>),
    /// Bytes read; zero at the end of the file.
    Read(Result<(Lease, usize), ReadError>),
    /// Another ring has sent a wake-up. The token means nothing.
    Woken,
}
