//! TLS of a connection, sans-IO: bytes in, bytes out.
//!
//! rustls does the handshake, and nothing after it. Then its secrets are taken out and every
//! connection is served by the record layer here: records are opened where they were received, and
//! made in the buffers that are sent, at any sequence number, so that the kernel can go on with them.
//!
//! ```text
//!            handshake: rustls                     session: ours
//! received ─► record_bytes ─► Handshake ─ finish ─► Session ─ open ─► data
//! sent     ◄─ outgoing ◄──────────┘                  │  └─ seal ◄──── head and body
//!                                                    └─ hand_over ──► the kernel seals
//! ```
//!
//! | file | story |
//! |---|---|
//! | `record` | where a record ends |
//! | `hello` | the name that a client asks for |
//! | `handshake` | rustls, one record at a time |
//! | `session` | what a connection is after that |
//! | `open` | records of the peer |
//! | `seal` | records for the peer |
//! | `fault` | why a connection cannot go on, and the alert that says so |
//! | [`cache`] | sessions that clients resume by an id, for all shards |
//! | [`tickets`] | sessions that clients keep for us, and the keys they are sealed with |
//! | [`secret`] | what those keys are derived from, and the file it is in |
//! | [`context_id`] | what a session may be resumed under |
//! | [`clock`] | the time, as it was last set |
//!
//! Nothing here sees a descriptor, a clock, a thread or a log, and nothing waits; [`secret`] reads its
//! file before that, when the server starts and when it reads its configuration again. What a peer sends
//! never panics, and what it makes us keep is bounded ([`HANDSHAKE_BYTES_MAX`]).

pub mod cache;
pub mod clock;
pub mod context_id;
mod fault;
mod handshake;
mod hello;
mod open;
mod record;
mod seal;
pub mod secret;
mod session;
pub mod tickets;

#[cfg(test)]
mod tests;

pub use fault::{Alert, Fault};
pub use handshake::{Choose, HANDSHAKE_BYTES_MAX, Handshake, Progress};
pub use open::Opened;
pub use record::{Content, HEADER_BYTES, PLAIN_BYTES_MAX, Stage, Version, record_bytes};
pub use session::{Info, Options, RecordSizes, Session};

pub use crate::sys::ktls::Keys;
