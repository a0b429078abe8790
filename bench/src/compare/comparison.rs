//! The result of a comparison: what was measured, and what follows from it.
//!
//! The JSON of a file is [`Comparison`] as it stands; [`COMPARE_SCHEMA`] names its version, and any
//! change takes a new one. What follows from the measurements is in it too, so that readers need no
//! statistics of their own.

use super::analysis::CellResult;
use super::contender::Contender;
use super::figure::Figures;
use super::options::Settings;
use crate::fingerprint::Fingerprint;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The name and version of the form.
pub const COMPARE_SCHEMA: &str = "onering-bench/compare/2";

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A result of onering-bench compare")]
pub struct Comparison {
    /// [`COMPARE_SCHEMA`].
    pub schema: SchemaName,
    /// What was asked for.
    pub settings: Settings,
    /// Where it was measured, with the clients' versions.
    pub fingerprint: Fingerprint,
    /// The servers that took part.
    pub contenders: Vec<Contender>,
    /// What follows from the measurements, a cell and client after the other.
    pub cells: Vec<CellResult>,
    /// The measurements in the order in which they were taken.
    pub measurements: Vec<Measurement>,
    /// What is missing.
    pub skipped: Vec<Skipped>,
    /// A signal ended it before it was complete.
    pub interrupted: bool,
}

/// The name of the one form that is read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SchemaName {
    /// [`COMPARE_SCHEMA`].
    #[default]
    #[serde(rename = "onering-bench/compare/2")]
    Compare2,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Which one.
    pub place: Place,
    /// What was found.
    pub figures: Figures,
    /// Right responses that were counted.
    pub requests: u64,
    /// What went wrong, by kind.
    pub errors: BTreeMap<String, u64>,
    /// How many answers were compared with what is right byte for byte, before and during the
    /// measurement, besides those that the client itself looks at.
    pub sampled: u64,
    /// Whether the client had no time left, so that it may have held the server back; wrk does not
    /// say.
    pub client_is_the_limit: bool,
}

/// Where in the comparison a measurement is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Counted from 0.
    pub round: u32,
    /// Name of the cell.
    pub cell: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
}

/// What was not measured, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// The server or client, and where.
    pub what: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { round, cell, client, server } = self;
        // People count from one; records, from zero.
        write!(f, "{server} {cell} {client}, round {}", u64::from(*round) + 1)
    }
}

impl Measurement {
    /// What went wrong, all kinds together.
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// The JSON Schema of [`Comparison`].
pub fn schema() -> Schema {
    schemars::schema_for!(Comparison)
}
