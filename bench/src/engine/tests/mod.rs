//! The engine over sockets, and in virtual time.

mod played;
pub(super) mod sockets;
mod virtual_time;
