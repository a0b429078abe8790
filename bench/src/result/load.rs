//! What was asked of the generators: the load that all of them share, and each one's part of it.

use crate::fingerprint::Fingerprint;
use crate::tls::ResumeBy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The load of a run: what must be the same for results to be merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// `get`, `web99`, `web99-ssl`, `web96` or `handshake`.
    pub workload: String,
    /// What only this workload has, such as `load`, `directories`, `mix`: by name.
    pub parameters: BTreeMap<String, Parameter>,
    /// The first URL.
    pub target: String,
    /// How many URLs are asked for in turn; 1 for workloads that make their own.
    pub targets: u64,
    /// Requests in flight on each connection.
    pub pipeline: u64,
    /// After how many requests a connection is ended.
    pub requests_per_connection: RequestsPerConnection,
    /// `1.0` or `1.1`.
    pub http: HttpVersion,
    /// More fields of each request.
    pub fields: Vec<String>,
    /// The status of right responses.
    pub status: u16,
    /// How fast a connection takes in what it receives.
    pub pacing: Pacing,
    /// Absent over plain TCP.
    pub tls: Option<Tls>,
}

/// A parameter of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Parameter {
    /// On or off.
    Flag(bool),
    /// A count.
    Count(u64),
    /// A figure that is no count.
    Figure(f64),
    /// A name.
    Text(String),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Figure(figure) => figure.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// The version of HTTP that requests name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpVersion {
    /// HTTP/1.0.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http11,
}

impl fmt::Display for HttpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        })
    }
}

/// After how many requests a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RequestsPerConnection {
    /// Never.
    Unlimited,
    /// After the same number each.
    Fixed {
        /// The number, at least 1.
        count: u64,
    },
    /// After a number drawn for each connection, as the workload says.
    Drawn,
}

/// How fast a connection takes in what it receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pacing {
    /// As fast as it comes.
    None,
    /// As over a line of limited speed.
    Line {
        /// `calibrated` (an idle server gives 340 kbit/s, WORKLOAD.md §7.3) or `ideal-400`.
        name: String,
        /// The line's speed, bit/s.
        bits_per_s: u64,
        /// How long each operation is held beyond that, µs.
        hold_us: u64,
    },
}

/// TLS as it was spoken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Such as `TLSv1.3`.
    pub protocol: String,
    /// The cipher suite by its IANA name.
    pub cipher: String,
    /// The share of handshakes that were asked to resume a session, 0 to 1.
    pub resumption_share: f64,
    /// By what; absent if none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_by: Option<ResumeBy>,
    /// Whether the server's certificate was verified.
    pub certificate_verified: bool,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Model {
    /// Each connection asks again when it has been answered: the server sets the pace.
    Closed {
        /// Connections held open.
        connections: u64,
    },
    /// Requests are due at planned moments, whether or not earlier ones have been answered.
    Open {
        /// Requests planned per second.
        rate_per_s: f64,
        /// How the moments lie.
        arrivals: Arrivals,
        /// Connections among which requests are shared.
        connections: u64,
    },
}

/// How the planned moments of an open loop lie.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// At distances drawn from an exponential distribution.
    Poisson,
}

/// One process that made load: its part, and where it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// When it began, ns since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// `onering-bench`.
    pub tool: String,
    /// Its version.
    pub version: String,
    /// How it was started, the program's name first.
    pub command_line: Vec<String>,
    /// When it sent requests, and over how many connections.
    pub model: Model,
    /// What its random choices were drawn from; absent where nothing was drawn.
    pub seed: Option<u64>,
    /// The CPUs of its threads.
    pub cpus: Vec<u32>,
    /// The machine that it ran on; absent if that was not asked for.
    pub fingerprint: Option<Fingerprint>,
}

impl Model {
    /// Connections held open.
    pub fn connections(&self) -> u64 {
        match *self {
            Self::Closed { connections } | Self::Open { connections, .. } => connections,
        }
    }

    /// Whether requests are due at planned moments.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}
