//! The engine over sockets, and in virtual time.

mod played;
mod sockets;
mod virtual_time;
