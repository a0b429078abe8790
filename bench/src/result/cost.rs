//! What a window cost the generators and the server, in integers that add up.

use crate::process::Usage as Consumed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Above this share of busy time a client thread is taken for the limit of the run.
pub const CLIENT_LIMIT: f64 = 0.97;

/// Consumed by some processes or threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// User and system time, ns.
    pub cpu_ns: u64,
    /// Context switches because they waited.
    pub voluntary_switches: u64,
    /// Context switches because others were due.
    pub involuntary_switches: u64,
}

impl From<Consumed> for Usage {
    fn from(consumed: Consumed) -> Self {
        Self {
            cpu_ns: u64::try_from(consumed.cpu.as_nanos()).unwrap_or(u64::MAX),
            voluntary_switches: consumed.voluntary_switches,
            involuntary_switches: consumed.involuntary_switches,
        }
    }
}

/// Consumed by the generators' threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCost {
    /// All threads together.
    pub usage: Usage,
    /// CPU time of the busiest thread, ns.
    pub busiest_thread_ns: u64,
    /// Calls of `io_uring_enter(2)`.
    pub enters: u64,
}

/// What is known of the server's consumption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ServerCost {
    /// Its process was not named.
    NotAsked,
    /// Its process was named, but could not be accounted for.
    Unknown {
        /// Why.
        reason: String,
    },
    /// Its process and all descendants, at both ends of the window.
    Known {
        /// The figures.
        cost: ServerUsage,
    },
}

/// Consumed by a server's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerUsage {
    /// All processes together.
    pub usage: Usage,
    /// How many processes.
    pub processes: u64,
    /// Memory; absent if it was not read.
    pub resident: Option<Resident>,
}

/// Resident memory of a server's processes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resident {
    /// At the beginning of the window.
    pub begin_bytes: u64,
    /// The most that was seen.
    pub peak_bytes: u64,
    /// At the end of the window.
    pub end_bytes: u64,
}

impl ServerCost {
    /// The figures, if there are any.
    pub fn known(&self) -> Option<&ServerUsage> {
        match self {
            Self::Known { cost } => Some(cost),
            Self::NotAsked | Self::Unknown { .. } => None,
        }
    }
}
