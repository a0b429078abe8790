//! `onering fileset verify`: compares every byte of a set with what it must be.

use std::fmt::Write;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use onering_fileset::store::{self, Control, Fault, Manifest, Verified};
use serde::Serialize;

use super::progress::Watch;
use super::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  onering fileset verify /srv/web99
  onering fileset verify /srv/web99 --json --quiet

Names every file that is missing, short, long or altered, a line each; a flipped bit anywhere is found.
What does not belong to the set is named as `extra`, and does not count as damage. Damaged files can be
removed and generated again. The JSON's first field names its version.

Exit codes: 0 when the set is whole, 1 when it is damaged, 2 when there is none or it is not finished,
3 when something failed, 4 when a permission is missing.";

/// Name every file of a set that is not as it should be.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The directory that the set was generated in.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// The answer, for a program.
#[derive(Debug, Serialize)]
struct Report {
    format: &'static str,
    whole: bool,
    seed: u64,
    directories: u32,
    files: u64,
    bytes: u64,
    damaged: Vec<Damaged>,
    extra: Vec<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Damaged {
    path: String,
    #[serde(flatten)]
    fault: Fault,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let root = args.directory.as_path();
    let total_bytes = Manifest::read(root).map_err(super::failure)?.directories().bytes();
    let readers = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let control = Control::default();
    let watch = Watch {
        control: &control,
        total_bytes,
        moved_bytes: Control::done_bytes,
        quiet: args.quiet,
    };
    let (verified, read) = watch.over(|| (), || store::verify(root, readers, &control));
    let report = Report::new(verified.map_err(super::failure)?);

    let directory = root.display();
    let text = if args.json {
        let json = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::new(Exit::Environment, error))?;
        json + "\n"
    } else {
        report.as_text(&format!("{directory}"), &read)
    };
    crate::cli::print(&text)?;
    if report.whole {
        return Ok(());
    }
    let message = format!(
        "{} of {} files are damaged; remove them, then: onering fileset generate {directory} --dirs {}",
        report.damaged.len(),
        report.files,
        report.directories
    );
    Err(Failure::new(Exit::NotWhole, message))
}

impl Report {
    fn new(verified: Verified) -> Self {
        let Verified { manifest, findings, extra } = verified;
        let directories = manifest.directories();
        let damaged = |finding: store::Finding| Damaged {
            path: finding.name.to_string(),
            fault: finding.fault,
        };
        Self {
            format: "onering-fileset-verify/1",
            whole: findings.is_empty(),
            seed: manifest.seed(),
            directories: directories.count(),
            files: directories.files(),
            bytes: directories.bytes(),
            damaged: findings.into_iter().map(damaged).collect(),
            extra,
        }
    }

    fn as_text(&self, directory: &str, read: &str) -> String {
        let mut text = String::new();
        let mut line = |line: std::fmt::Arguments<'_>| {
            writeln!(text, "{line}").expect("a string takes every line");
        };
        for Damaged { path, fault } in &self.damaged {
            line(format_args!("{path}: {fault}"));
        }
        for path in &self.extra {
            line(format_args!("{}: extra", path.display()));
        }
        if self.whole {
            line(format_args!(
                "{directory}: {} directories, {} files, seed {}: whole; read {read}",
                self.directories, self.files, self.seed
            ));
        }
        text
    }
}
