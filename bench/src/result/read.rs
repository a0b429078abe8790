//! Results from files: nothing is taken that another version wrote, that is not whole, or that
//! cannot be.

use super::check::Absurd;
use super::window::Window;
use super::{RUN_SCHEMA, RunResult};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longest file that is read: twelve hours at 2.5 kB a second need half of it.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// Why a file is refused.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a file, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is longer than any result.
    #[error("longer than {} MiB, so not a result\n  fix: name a file that run --json wrote", FILE_BYTES_MAX >> 20)]
    Huge,
    /// It ends before the result does.
    #[error("ends before the result does\n  fix: copy it again, or repeat the run")]
    Truncated,
    /// It is something else.
    #[error("not a result of onering-bench run: {0}\n  fix: name a file that run --json wrote")]
    Foreign(serde_json::Error),
    /// Another command wrote it.
    #[error(
        "it is a result of onering-bench {command}, not of run\n  fix: name a file that run --json or \
         merge wrote; compare has an --html of its own"
    )]
    Command {
        /// Which.
        command: String,
    },
    /// Another version wrote it.
    #[error(
        "its schema is {found:?}, and this version reads {RUN_SCHEMA:?}\n  \
         fix: read it with the version that wrote it, or repeat the run"
    )]
    Schema {
        /// What it says.
        found: String,
    },
    /// A field is missing, unknown or of another form.
    #[error(
        "not of the form {RUN_SCHEMA:?}: {0}\n  fix: repeat the run; the form is in bench/schema"
    )]
    Form(serde_json::Error),
    /// What it says cannot be.
    #[error("says what cannot be: {0}\n  fix: it was changed after it was written; repeat the run")]
    Absurd(#[from] Absurd),
}

/// The one field that every version has.
#[derive(Deserialize)]
struct AnyVersion {
    schema: String,
}

impl RunResult {
    /// Reads a file, or standard input if `path` is `-`.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let result = contents(path).and_then(|text| Self::parse(&text));
        result.map_err(|problem| ReadError { path: path.to_owned(), problem })
    }

    /// Takes in the contents of a file.
    pub fn parse(text: &[u8]) -> Result<Self, Problem> {
        let AnyVersion { schema } = serde_json::from_slice(text).map_err(|error| {
            if is_at_end(&error, text) { Problem::Truncated } else { Problem::Foreign(error) }
        })?;
        if schema != RUN_SCHEMA {
            return Err(match command_of(&schema) {
                Some(command) if command_of(RUN_SCHEMA) != Some(command) => {
                    Problem::Command { command: command.to_owned() }
                }
                _ => Problem::Schema { found: schema },
            });
        }
        let mut result: Self = serde_json::from_slice(text).map_err(Problem::Form)?;
        result.check()?;
        // What follows from counts is reckoned from them: decimals are not always read back exactly.
        let windows = result.windows.iter();
        result.windows = windows
            .map(|window| Window::merged(window.counts().clone(), window.common()))
            .collect();
        Ok(result)
    }
}

/// The command that writes results of a schema, which is named `onering-bench/COMMAND/VERSION`.
fn command_of(schema: &str) -> Option<&str> {
    let (command, _) = schema.strip_prefix("onering-bench/")?.split_once('/')?;
    Some(command)
}

/// Whether an error is that there is no more text, or where a number or a word is cut off.
fn is_at_end(error: &serde_json::Error, text: &[u8]) -> bool {
    let last = text.iter().rev().position(|&byte| byte == b'\n').unwrap_or(text.len());
    let lines = text.iter().filter(|&&byte| byte == b'\n').count() + 1;
    error.is_eof() || (error.is_syntax() && error.line() == lines && error.column() >= last)
}

/// At most [`FILE_BYTES_MAX`] bytes, whatever the path names.
fn contents(path: &Path) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::new();
    let limit = FILE_BYTES_MAX + 1;
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut text)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut text)?;
    }
    if text.len() as u64 > FILE_BYTES_MAX { Err(Problem::Huge) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::sample;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn text(result: &RunResult) -> Vec<u8> {
        serde_json::to_vec(result).unwrap()
    }

    #[test]
    fn a_file_reads_back_as_it_was_and_names_its_schema_first() {
        for result in [sample::closed(), sample::open(), sample::web99(), sample::web96()] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text(&result)).unwrap();
            assert_eq!(RunResult::read(file.path()).unwrap(), result);
        }
        let text = String::from_utf8(text(&sample::closed())).unwrap();
        assert!(text.starts_with(r#"{"schema":"onering-bench/run/2","#), "{text}");
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let refusal = |text: &[u8]| RunResult::parse(text).unwrap_err().to_string();
        assert!(refusal(b"").starts_with("ends before"));
        assert!(refusal(b"{\"schema\":\"onering-bench/run/1\"}").contains("run/1"));
        assert!(refusal(b"{\"schema\":\"another/3\"}").contains("\"another/3\""));
        for command in ["compare", "sweep"] {
            let schema = format!("{{\"schema\":\"onering-bench/{command}/1\"}}");
            let reason = refusal(schema.as_bytes());
            assert!(reason.contains(&format!("onering-bench {command}, not of run")), "{reason}");
        }
        assert!(refusal(b"{}").contains("missing field `schema`"));
        assert!(refusal(b"GIF89a; and so on").starts_with("not a result"));
        assert!(refusal(b"[1]").starts_with("not a result"));
        let mut more: Value = serde_json::from_slice(&text(&sample::closed())).unwrap();
        more["later"] = json!(1);
        assert!(refusal(more.to_string().as_bytes()).contains("unknown field `later`"));
        let error = RunResult::read(Path::new("/nowhere/x.json")).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/x.json: cannot be read: "), "{error}");
        let endless = RunResult::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(endless.contains("longer than 256 MiB"), "{endless}");
    }

    /// Changes one place of a result's JSON and says why it is then refused.
    fn changed(result: &RunResult, pointer: &str, value: Value) -> String {
        let mut json: Value = serde_json::from_slice(&text(result)).unwrap();
        *json.pointer_mut(pointer).unwrap() = value;
        RunResult::parse(json.to_string().as_bytes()).expect_err(pointer).to_string()
    }

    #[test]
    fn what_cannot_be_is_refused_and_named() {
        for (pointer, value, reason) in [
            ("/windows", json!([]), "windows: there is none"),
            ("/generators", json!([]), "generators: there is none"),
            ("/load/status", json!(99), "the status is none of HTTP's"),
            ("/load/pipeline", json!(0), "nothing is asked for"),
            ("/generators/0/model/rate_per_s", json!(-1.0), "a rate is not above zero"),
            ("/generators/0/model/rate_per_s", json!(null), "not of the form"),
            ("/windows/0/counts/duration_ns", json!(0), "no believable duration"),
            ("/windows/0/counts/duration_ns", json!(u64::MAX), "no believable duration"),
            ("/windows/0/counts/begin_unix_ns", json!(1), "common to all"),
            ("/windows/0/counts/requests", json!(7), "not all requests"),
            ("/windows/0/counts/requests", json!(-7), "not of the form"),
            ("/windows/0/counts/connects", json!(1), "not every connect has a latency"),
            ("/windows/0/counts/handshakes/full", json!(1), "not every TLS handshake"),
            ("/windows/0/counts/handshakes/refused", json!(1), "more sessions were not resumed"),
            ("/windows/0/counts/classes/0/response", json!(null), "needs the response time"),
            ("/windows/0/counts/errors", json!({"Reset!": 1}), "a kind has no name"),
            ("/windows/0/counts/errors", json!({"reset": 0}), "did not occur"),
            ("/windows/0/counts/seconds/0/unix_s", json!(9), "outside of the window"),
            ("/windows/0/counts/seconds/0/requests", json!(9), "not every request of one"),
            ("/windows/0/counts/seconds/0/errors", json!(9999), "more than the window"),
            ("/windows/0/counts/schedule", json!(null), "an open loop needs one"),
            ("/windows/0/counts/schedule/never_sent", json!(u64::MAX), "missed than planned"),
            ("/windows/0/counts/client/usage/cpu_ns", json!(u64::MAX), "so much CPU time"),
            ("/windows/0/counts/client/busiest_thread_ns", json!(u64::MAX), "more than all"),
            ("/windows/0/counts/server/cost/resident/end_bytes", json!(u64::MAX), "its peak"),
            ("/windows/0/figures/requests_per_s", json!(1.0), "do not follow from the counts"),
            ("/windows/0/figures/server_cpus_busy", json!(null), "do not follow"),
            ("/windows/0/counts/classes/0/service/hdr", json!("AAAA"), "inflated"),
            ("/windows/0/counts/classes/0/service/summary/p99_us", json!(1.0), "summary beside"),
            ("/windows/0/counts/classes/0/requests", json!(u64::MAX), "not all requests"),
        ] {
            let refusal = changed(&sample::open(), pointer, value);
            assert!(refusal.contains(reason), "{pointer}: {refusal}");
        }
        let conforming = "/windows/0/counts/conformity/conforming_connections";
        assert!(changed(&sample::web99(), conforming, json!(9999)).contains("more conform"));
        let schedule = json!({"kind": "closed", "connections": 4});
        let refusal = changed(&sample::open(), "/generators/0/model", schedule);
        assert!(refusal.contains("no response time of its own"), "{refusal}");
    }

    /// With large files as much is on its way when a window begins as when it ends.
    #[test]
    fn responses_that_began_before_the_window_may_bring_more_than_it_received() {
        let mut result = sample::closed();
        let mut counts = result.windows[0].counts().clone();
        counts.classes[0].received_bytes = counts.received_bytes + 1;
        result.windows[0] = Window::new(counts);
        assert!(RunResult::parse(&text(&result)).unwrap() == result);
    }

    #[test]
    fn answers_that_an_open_loop_awaited_when_its_window_was_over_are_taken() {
        let late = |mut result: RunResult, s: u64| {
            let mut counts = result.windows[0].counts().clone();
            counts.seconds.last_mut().unwrap().unix_s += s;
            result.windows[0] = Window::new(counts);
            RunResult::parse(&text(&result)).map(|read| assert!(read == result))
        };
        assert!(late(sample::open(), 5).is_ok() && late(sample::closed(), 0).is_ok());
        assert!(late(sample::closed(), 5).is_err() && late(sample::open(), 1 << 40).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_truncated_file_is_refused(at in any::<prop::sample::Index>()) {
            let mut text = text(&sample::open());
            text.truncate(at.index(text.len()));
            let problem = RunResult::parse(&text).unwrap_err();
            prop_assert!(matches!(problem, Problem::Truncated), "{}", problem);
        }

        #[test]
        fn a_damaged_file_is_refused_or_still_a_result(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut text = text(&sample::web99());
            for (at, byte) in damage {
                let at = at.index(text.len());
                text[at] = byte;
            }
            if let Ok(result) = RunResult::parse(&text) {
                prop_assert!(result.check().is_ok());
                prop_assert!(!result.to_string().is_empty());
            }
        }
    }
}
