//! `onering-bench merge`.

use super::output::Outputs;
use super::report::read_all;
use super::{CommandError, Verdict};
use std::path::PathBuf;

/// Join the results of several generators that loaded one server at the same time.
///
/// Exactly: histograms, counts and sums add up. The order of the files does not matter.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onering-bench merge host1.json host2.json --json all.json
  onering-bench merge host1.json host2.json host3.json --json -

Results of unlike runs are refused, and the first difference is named: another workload, target or
parameter, windows that do not lie upon each other. Start the generators at the same moment. The
server's consumption is taken from the generator that accounted for it. Exit codes: see
onering-bench --help; results that cannot be joined are 2.")]
pub(super) struct Arguments {
    /// What run --json wrote, one file for each generator
    #[arg(value_name = "FILE", num_args = 2.., required = true)]
    files: Vec<PathBuf>,
    /// Write the joint result; - for standard output
    #[arg(long, value_name = "OUT", required = true)]
    json: PathBuf,
}

impl Arguments {
    pub(super) fn execute(&self) -> Result<Verdict, CommandError> {
        let mut results = read_all(&self.files)?.into_iter();
        let Some((_, mut all)) = results.next() else {
            return Err(CommandError::Usage("merge needs at least two files"));
        };
        for (file, result) in results {
            all = all.merge(result).map_err(|reason| CommandError::Unlike { file, reason })?;
        }
        Outputs::new(Some(&self.json), None)?.write(&all, &all, String::new)?;
        Ok(Verdict::Clean)
    }
}
