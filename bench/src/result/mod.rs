//! The result of a run: one versioned form for programs and files, from which text and page follow.
//!
//! | module | what it is |
//! |---|---|
//! | [`load`] | what was asked of the generators |
//! | [`window`] | one measured interval: counts, and figures that follow from them |
//! | [`cost`] | what the interval cost generators and server |
//! | [`latencies`] | a histogram, in memory and in a file |
//! | [`read`] | files, and whether what they say can be |
//! | [`merge`] | results of several generators of one run as one |
//! | [`disclosure`], [`curve`] | SPECweb99-style rows and SPECweb96-style points |
//! | `text`, [`html`] | a result as text, and as one page with its charts |
//!
//! The JSON of a file is [`RunResult`] as it stands; [`RUN_SCHEMA`] names its version, and any change
//! takes a new one, since readers refuse what they do not know. Whatever is counted is an integer,
//! and whatever people read is reckoned from it, so that results of several generators add up
//! exactly and in any order. Nothing here knows how a result was measured.

mod check;
pub mod cost;
pub mod curve;
pub mod disclosure;
pub mod html;
pub mod latencies;
pub mod load;
pub mod merge;
pub mod read;
#[cfg(test)]
mod sample;
mod text;
pub mod window;

use load::{Generator, Load};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use window::Window;

/// The name and version of the form.
pub const RUN_SCHEMA: &str = "onering-bench/run/2";

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A result of onering-bench run")]
pub struct RunResult {
    /// [`RUN_SCHEMA`].
    pub schema: SchemaName,
    /// What was asked of all generators.
    pub load: Load,
    /// Who made the load: one, or several whose results were merged, in the order of their start.
    pub generators: Vec<Generator>,
    /// The measured intervals in the order of their beginning; at least one.
    pub windows: Vec<Window>,
}

/// The name of the one form that is read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SchemaName {
    /// [`RUN_SCHEMA`].
    #[default]
    #[serde(rename = "onering-bench/run/2")]
    Run2,
}

impl RunResult {
    /// Connections held open by all generators together.
    pub fn connections(&self) -> u64 {
        let own = |generator: &Generator| generator.model.connections();
        self.generators.iter().map(own).fold(0, u64::saturating_add)
    }

    /// Whether requests were due at planned moments.
    pub fn is_open_loop(&self) -> bool {
        self.generators.iter().any(|generator| generator.model.is_open())
    }

    /// Right responses of all windows.
    pub fn requests(&self) -> u64 {
        let own = |window: &Window| window.counts().requests;
        self.windows.iter().map(own).fold(0, u64::saturating_add)
    }

    /// What went wrong in all windows, all kinds together.
    pub fn errors(&self) -> u64 {
        let own = |window: &Window| window.counts().errors.total();
        self.windows.iter().map(own).fold(0, u64::saturating_add)
    }

    /// Planned requests of all windows that were never sent, or had no answer at the end.
    pub fn missed(&self) -> u64 {
        let schedules = self.windows.iter().filter_map(|window| window.counts().schedule.as_ref());
        let own = schedules.flat_map(|schedule| [schedule.never_sent, schedule.unanswered]);
        own.fold(0, u64::saturating_add)
    }

    /// Whether a generator had no time left in some window, so that it may have held the server
    /// back.
    pub fn client_is_the_limit(&self) -> bool {
        self.windows.iter().any(|w| w.figures().client_busiest_thread > cost::CLIENT_LIMIT)
    }

    /// Whether something took longer than latencies are told apart.
    pub fn has_latencies_beyond_bounds(&self) -> bool {
        let beyond = |window: &Window| {
            let counts = window.counts();
            let all = [&counts.connect, &counts.tls, &counts.waiting(), &counts.service()];
            all.iter().any(|latencies| latencies.max_us() > crate::histogram::NS_MAX as f64 / 1e3)
        };
        self.windows.iter().any(beyond)
    }

    /// Whether a generator fell behind its own schedule in some window.
    pub fn is_behind_schedule(&self) -> bool {
        let behind = |window: &Window| window.counts().schedule.as_ref().is_some_and(|s| s.behind);
        self.windows.iter().any(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of this crate, and what is to be in it; written out elsewhere if it is not.
    fn expect(file: &str, holds: impl FnOnce(&[u8]) -> bool, contents: &str) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if !holds(&std::fs::read(path).unwrap_or_default()) {
            let found = std::env::temp_dir().join(file.replace('/', "-"));
            std::fs::write(&found, contents).unwrap();
            panic!("bench/{file} is out of date: compare it with {}", found.display());
        }
    }

    #[test]
    fn the_published_schema_is_that_of_the_form() {
        let schema = schemars::schema_for!(RunResult);
        let ours = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        expect("schema/run-2.json", |file| file == ours.as_bytes(), &ours);
        assert!(ours.contains(RUN_SCHEMA) && ours.contains("\"additionalProperties\": false"));
    }

    /// The same form, the same meaning: files of former builds of this version are still read.
    #[test]
    fn files_written_before_are_still_read() {
        for (file, result) in [
            ("tests/data/open.json", sample::open()),
            ("tests/data/web99.json", sample::web99()),
            ("tests/data/web96.json", sample::web96()),
        ] {
            let ours = serde_json::to_string_pretty(&result).unwrap() + "\n";
            let same = |file: &[u8]| RunResult::parse(file).is_ok_and(|read| read == result);
            expect(file, same, &ours);
        }
    }
}
