//! TLS as the client of a load: handshakes full and resumed, and records, by rustls.
//!
//! Knows no socket: a [`TlsConnection`] takes ciphertext in and hands plaintext and ciphertext out.
//! [`TlsOptions`] are what a user asks for; [`TlsSettings`] the same, checked; a [`TlsClient`] makes
//! the connections of one thread and keeps the sessions they may resume.
//!
//! Certificates are verified only where the user says who may vouch for them; otherwise every one is
//! accepted, as wrk, h2load and `oha --insecure` do, and results say so.

mod client;
mod connection;
mod error;
mod options;
mod sessions;
mod suites;
mod verify;

#[cfg(test)]
mod tests;

pub use client::TlsClient;
pub use connection::{Handshake, Negotiated, TlsConnection};
pub use error::{CertificateFault, TlsError};
pub use options::{Dialer, ResumeBy, TlsOptions, TlsOptionsError, TlsSettings};
pub use sessions::Intent;
pub use suites::{Cipher, Group, TlsVersion, UnknownName};
