//! The configuration: as written, then checked and resolved.
//!
//! [`Config`] is immutable. Every limit has a name, a default ([`defaults`], each with its reason)
//! and a documented behaviour when it is reached. [`resolve`] makes one from the file, the command
//! line and the host's facts; it reports every problem at once, each with its place and the fix.
//!
//! Nothing here asks the kernel for anything but whether a document root can be reached: facts come in.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

pub mod defaults;
mod file;
mod problem;
mod resolve;
mod site;
mod table;
mod tls;
pub mod units;

#[cfg(test)]
mod tests;

pub use problem::{ConfigError, Fault, Origin, Place, Problem};
pub use resolve::{Facts, File, Overrides, resolve};
pub use site::{Answers, Dotfiles, ERRORS, HeaderRule, Modes, Root, Site, Symlinks};
pub use tls::{
    Admission, CertificateFiles, Certificates, ClientAuth, Ktls, ListenerTls, Policies, PolicyId,
    Redirect, SiteTls, Tls, Version,
};

/// Everything a server is told, resolved: no value is missing and none contradicts another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen, in the order given.
    pub listeners: Vec<Listener>,
    /// The CPUs that serve, one shard each, in this order. Never empty.
    pub cpus: Vec<usize>,
    /// How new connections find their shard.
    pub steer: Steer,
    /// The sites; the first is the default one. Never empty.
    pub sites: Vec<Site>,
    /// What a peer may ask of us.
    pub limits: Limits,
    /// How long we wait for a peer.
    pub timeouts: Timeouts,
    /// TLS, for all listeners that have it.
    pub tls: Tls,
    /// What a shard keeps in memory of the files.
    pub cache: Cache,
    /// How bodies are sent.
    pub transfer: Transfer,
    /// Sizes of a shard's ring and its buffers.
    pub ring: Ring,
    /// Where all counters are written as JSON at exit.
    pub stats: Option<PathBuf>,
}

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// TLS on it; `None`: plain HTTP.
    pub tls: Option<ListenerTls>,
}

impl Listener {
    /// One of plain HTTP.
    pub fn plain(endpoint: Endpoint) -> Self {
        Self { endpoint, tls: None }
    }

    /// One of TLS, with nothing of its own.
    pub(super) fn with_tls(endpoint: Endpoint) -> Self {
        let tls =
            ListenerTls { certificates: Certificates::SelfSigned, client_auth: ClientAuth::Off };
        Self { endpoint, tls: Some(tls) }
    }
}

/// One place to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// An address: one socket for each shard, in one SO_REUSEPORT group.
    Address(SocketAddr),
    /// An inherited listening socket, shared by all shards.
    Descriptor(RawFd),
}

/// How new connections find their shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// `Cpu` where every serving CPU is seen to take a NIC queue's interrupts, else `Hash`.
    Auto,
    /// The shard of the CPU that ran the SYN.
    Cpu,
    /// The kernel's hash over addresses and ports.
    Hash,
}

/// What a peer may ask of us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request line, without its CRLF (RFC 9112 §3 asks for 8000 at least). Beyond: 414.
    pub request_line_bytes: usize,
    /// Bytes of a request head. Beyond: 431.
    pub head_bytes: usize,
    /// Field lines of a request head, [`defaults::FIELDS_MAX`] at most. Beyond: 431.
    pub fields: usize,
    /// Bytes of a request body's data, in whatever coding it is transferred. Beyond: 413.
    pub body_bytes: u64,
    /// Bytes per second of a request body. Each so many bytes that come extend its time,
    /// [`Timeouts::body`], by a second.
    pub body_rate_bytes: u64,
    /// Connections of one shard. Beyond: accepting pauses; the backlog holds newcomers.
    pub connections_per_shard: usize,
    /// Pipelined requests that one connection may have answered in one turn of the loop.
    pub requests_per_turn: usize,
    /// Bytes of unread pipelined requests kept for a connection. Beyond: it is not read from.
    pub pipeline_bytes: usize,
    /// Length of a listener's accept queue; the kernel clamps it to `net.core.somaxconn`.
    pub backlog: i32,
}

/// How long we wait for a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From a request's first byte to the end of its head. Beyond: 408.
    pub head: Duration,
    /// From the end of a request's head to the end of its body, extended by what has come of it
    /// ([`Limits::body_rate_bytes`]). Beyond: 408.
    pub body: Duration,
    /// For each flight of a peer's in a TLS handshake, of which there are two or three. Beyond: closed.
    pub handshake: Duration,
    /// Between a response and the next request's first byte. Beyond: closed without a word.
    pub idle: Duration,
    /// Without one byte acknowledged while a response is being sent. Beyond: reset.
    pub write_stall: Duration,
    /// For a peer to close its side after we closed ours. Beyond: closed.
    pub linger: Duration,
    /// For running responses after SIGTERM. Beyond: they are cut off.
    pub grace: Duration,
    /// How long the kernel may hold a connection that has not sent a byte (TCP_DEFER_ACCEPT);
    /// whole seconds, zero switches it off.
    pub defer_accept: Duration,
}

/// What a shard keeps in memory of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Entries, negative ones counted.
    pub entries: usize,
    /// Bytes of all inline answers of one shard.
    pub bytes: usize,
    /// Open descriptors of one shard's entries.
    pub descriptors: usize,
    /// For how long an entry is served without a look at the file system.
    pub valid: Duration,
    /// Largest body that is kept in memory together with its head.
    pub inline_bytes: usize,
    /// Largest file that is sent with an error. Beyond: the built-in page.
    pub error_page_bytes: usize,
    /// Names of a directory that are looked at for its listing, hidden ones too. Beyond: it says that
    /// there are more.
    pub listing_entries: usize,
    /// What the strong ETag is made of.
    pub etag: ETag,
}

/// What an ETag is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ETag {
    /// Modification time in ns and size: equal across a fleet.
    MtimeSize,
    /// Inode, modification time in ns and size.
    Inode,
    /// No ETag.
    Off,
}

/// How bodies are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes of a body that one connection may send in one turn of the loop, by one sendfile(2).
    pub quantum_bytes: usize,
    /// The same on a connection whose records we seal ourselves. One that the kernel seals is as a plain
    /// one.
    pub sealed_quantum_bytes: usize,
    /// Bytes of a cold file that one read brings in; also the size of a registered buffer.
    pub cold_window_bytes: usize,
}

/// Sizes of a shard's ring and its buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Submission entries; the completion queue has four times as many.
    pub entries: u32,
    /// Provided receive buffers of a shard; a power of two.
    pub recv_buffers: u16,
    /// Bytes of one of them.
    pub recv_buffer_bytes: u32,
    /// Registered buffers of a shard for cold reads.
    pub fixed_buffers: u16,
    /// How long a wait may gather completions under load; zero switches it off (needs 6.12).
    pub min_wait: Duration,
}
