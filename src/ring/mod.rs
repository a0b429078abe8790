//! The only place that knows io_uring.
//!
//! A [`Ring`] belongs to the thread that made it. Operations are methods that take what the kernel
//! will look at *by value*: the bytes to send, the buffer to read into, the socket itself. The
//! ring keeps all of it in its table of operations until the last completion, so a safe caller
//! cannot make the kernel read freed memory or act on a reused descriptor number: there is no
//! function here that takes a pointer.
//!
//! What comes back is a [`Completion`]: the caller's own [`Token`] and an [`Event`] whose errors
//! are a closed set for each operation. Multishot operations are re-armed, short sends continued,
//! a full submission queue and an overflown completion queue dealt with here, and counted in
//! [`Counters`].
//!
//! Needs Linux 6.1 or later. What a kernel can do is found by trial ([`Capabilities`]), never
//! read from a version string.

mod arena;
mod completing;
mod counters;
mod error;
mod event;
mod operations;
mod probe;
mod provided;
#[expect(clippy::module_inception, reason = "the type is the module's subject")]
mod ring;
mod send_buf;
mod setup;
mod submitting;
mod token;

#[cfg(test)]
mod tests;

pub use arena::{Arena, Lease};
pub use counters::Counters;
pub(crate) use counters::ring_counters;
pub use error::{AcceptError, ConnectError, PollError, ReadError, RecvError, SendError};
pub use event::{Completion, Event};
pub use operations::OperationId;
pub use probe::Capabilities;
pub use provided::RecvBuf;
pub use ring::{Address, Ring, Socket};
pub use send_buf::SendBuf;
pub use setup::{Setup, SetupError};
pub use submitting::Wait;
pub use token::Token;

#[cfg(test)]
pub(crate) use provided::Provided;
