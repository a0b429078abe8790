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
//! | `material` | everything that is read from files, judged as a whole; it is replaced when they change |
//! | `certificate`, `client_auth`, `pem`, `self_signed` | what it is made of |
//! | `names` | what belongs to a server name |
//! | `problem` | what is wrong with a file, and what to do |
//! | `context` | what a shard answers with: a rustls configuration for each listener and policy |
//! | `resumption` | what sessions are resumed from, by all shards |
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
//! Nothing here sees a descriptor, a clock, a thread or a log, and nothing waits; what is in files
//! is read before that, when the server starts and when it reads them again. What a peer sends
//! never panics, and what it makes us keep is bounded ([`HANDSHAKE_BYTES_MAX`]).

pub mod cache;
mod certificate;
mod client_auth;
pub mod clock;
mod context;
pub mod context_id;
mod fault;
mod handshake;
mod hello;
mod material;
mod names;
mod open;
mod pem;
#[cfg(test)]
mod pki;
mod problem;
mod record;
mod resumption;
mod seal;
pub mod secret;
mod self_signed;
mod session;
pub mod tickets;

#[cfg(test)]
mod tests;

pub use context::{Context, Contexts};
pub use fault::{Alert, Fault};
pub use handshake::{Choose, HANDSHAKE_BYTES_MAX, Handshake, Progress};
pub use material::Material;
pub use open::Opened;
pub use problem::{Problem, Problems, Severity};
pub use record::{Content, HEADER_BYTES, PLAIN_BYTES_MAX, Stage, Version, record_bytes};
pub use resumption::Resumption;
pub use session::{Info, Options, RecordSizes, Session};

pub use crate::sys::ktls::Keys;
