//! What a server is told about TLS: who it says it is, to whom, and what that may cost.
//!
//! Only names of files stand here. What is in them is read and judged where they are used, since it
//! changes while the server runs.

use std::path::PathBuf;
use std::time::Duration;

/// TLS in general, for all listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The oldest version that is spoken. A client that knows only older ones gets the alert
    /// `protocol_version`.
    pub min_version: Version,
    /// Whether the kernel encrypts.
    pub ktls: Ktls,
    /// Bytes of a body from which on its connection is handed to the kernel for encryption.
    pub ktls_from_bytes: u64,
    /// Whether sessions are resumed by tickets, which clients keep; otherwise by the session cache
    /// alone.
    pub tickets: bool,
    /// The file with the secret that ticket keys are made of, for servers that resume each other's
    /// sessions; `None`: a random one, which ends with the process.
    pub ticket_secret: Option<PathBuf>,
    /// For how long tickets are made with one key.
    pub ticket_period: Duration,
    /// Sessions that the cache holds, of all shards together; 0 switches it off. Beyond: one that
    /// has not been asked for lately makes room.
    pub session_cache_entries: usize,
    /// For how long a session may be resumed. Beyond: a full handshake.
    pub session_lifetime: Duration,
    /// Handshakes that a shard has under way. Beyond: the oldest makes room.
    pub handshakes: usize,
    /// Handshakes that a shard takes a step with in one turn of the loop. Beyond: the next turn.
    pub handshakes_per_turn: usize,
    /// Bytes of a connection that are sent in small records, at its start and after a pause, before
    /// they become large.
    pub records_small_bytes: u64,
    /// Bits of an RSA key from which on a thread aside signs with it, so that a shard's other
    /// connections need not wait.
    pub offload_rsa_bits: usize,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// Whether the kernel encrypts what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ktls {
    /// Wherever it can.
    Auto,
    /// It must: without it the server does not start.
    On,
    /// Never.
    Off,
}

/// TLS on one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// Who it is for clients that name no site with certificates of its own.
    pub certificates: Certificates,
    /// Whether its clients have to say who they are, where a site does not say otherwise.
    pub client_auth: ClientAuth,
}

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// Files, in the order of preference; never empty. The first answers for names that none covers.
    Files(Vec<CertificateFiles>),
    /// One that is made in memory at the start, for this host and all sites, and signed by itself.
    SelfSigned,
}

/// A chain of certificates and the key of its first one, both PEM.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateFiles {
    /// The server's certificate, then those that lead to a root.
    pub chain: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Whether clients have to say who they are, and who vouches for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked.
    Off,
    /// They are asked; one without a certificate is served too, one with a wrong one is not.
    Optional {
        /// The certificates, PEM, that must have signed theirs.
        authorities: PathBuf,
    },
    /// Without a right certificate there is no connection.
    Required {
        /// The certificates, PEM, that must have signed theirs.
        authorities: PathBuf,
    },
}

/// TLS of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteTls {
    /// Who the site is, on every listener; empty: whatever the listener says.
    pub certificates: Vec<CertificateFiles>,
    /// Whether its clients have to say who they are; `None`: as on the listener.
    pub client_auth: Option<ClientAuth>,
    /// The value of `Strict-Transport-Security` in answers over TLS (RFC 6797 §6.1).
    pub hsts: Option<String>,
    /// Whether requests without TLS are sent on to the same place with it.
    pub redirect: Redirect,
}

/// What becomes of a request without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirect {
    /// It is answered.
    #[default]
    Off,
    /// It is sent on to `https`, at the port of the first listener with TLS.
    ToListener,
    /// It is sent on to `https`, at this port: the one that visitors use, where something between
    /// changes it.
    ToPort(u16),
}
