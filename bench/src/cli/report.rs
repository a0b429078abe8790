//! `onering-bench report`.

use super::output::Outputs;
use super::{CommandError, Verdict};
use crate::result::{RunResult, html};
use std::fmt;
use std::path::PathBuf;

/// Show results again, as text or as a page with charts.
///
/// A file is taken only if this version's run or merge wrote it and nothing in it contradicts itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onering-bench report result.json
  onering-bench report result.json --html result.html
  onering-bench report nginx.json onering.json --html both.html
  onering-bench report result.json --json -

The page is one file with its charts in it: it needs no network and no script. The form of the files
is onering-bench/run/2, described by bench/schema/run-2.json. Exit codes: see onering-bench --help;
a file that is refused is 2.")]
pub(super) struct Arguments {
    /// What run --json or merge wrote; - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write the page; - for standard output
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Write the results as checked, a list if there are several; - for standard output
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

impl Arguments {
    pub(super) fn execute(&self) -> Result<Verdict, CommandError> {
        let outputs = Outputs::new(self.json.as_deref(), self.html.as_deref())?;
        let results = read_all(&self.files)?;
        let page = || html::report(&results);
        let text = Shown(&results);
        match &results[..] {
            [(_, result)] => outputs.write(&text, result, page)?,
            several => {
                let several: Vec<&RunResult> = several.iter().map(|(_, result)| result).collect();
                outputs.write(&text, &several, page)?;
            }
        }
        Ok(Verdict::Clean)
    }
}

/// The results one after the other, named if there are several.
struct Shown<'r>(&'r [(String, RunResult)]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, result) in self.0 {
            if self.0.len() > 1 {
                writeln!(f, "== {name}")?;
            }
            writeln!(f, "{result}")?;
        }
        Ok(())
    }
}

/// Each file's result with the file's name.
pub(super) fn read_all(files: &[PathBuf]) -> Result<Vec<(String, RunResult)>, CommandError> {
    let read = |path: &PathBuf| Ok((path.display().to_string(), RunResult::read(path)?));
    files.iter().map(read).collect()
}
