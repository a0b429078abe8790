//! The command line: one file for each command.

mod compare;
mod floor;
mod merge;
mod report;
mod run;
pub mod start_at;
mod sweep;

use crate::compare::CompareError;
use crate::dial::DialError;
use crate::engine::RunError;
use crate::floor::FloorError;
use crate::target::TargetError;
use crate::tls::TlsOptionsError;
use crate::workload::web99::control::ControlError;
use crate::workload::web99::parameters::ParametersError;
use clap::{Parser, Subcommand};
use nix::unistd::{AccessFlags, access};
use onering_fileset::plan::PlanError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sweep::SweepError;

/// CPUs as written in one value, such as `0,2-3`. (An alias, so that the option is taken once.)
type Cpus = Vec<usize>;

const EXIT_CODES: &str = "\
Exit codes:
  0  measured, nothing went wrong (floor: ended by SIGTERM or SIGINT)
  1  measured, but some requests failed or none succeeded: see the errors in the result
     (sweep: no rate met the objectives)
  2  the command line, a target, a list or a result file is wrong
  3  the environment does not allow it: no ring, no server, no descriptors
  4  a permission is missing
  5  measured, but the generator fell behind its own schedule: the figures are not the server's
  130  interrupted: what was measured until then is in the result";

/// Load generator and measuring tools for web servers.
#[derive(Debug, Parser)]
#[command(name = "onering-bench", version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Arguments>),
    Sweep(sweep::Arguments),
    Compare(Box<compare::Arguments>),
    Report(report::Arguments),
    Merge(merge::Arguments),
    Floor(floor::Arguments),
}

/// Does what the command line says; prints results to standard output, errors to standard error.
pub fn main(cli: &Cli) -> ExitCode {
    let result = match &cli.command {
        Command::Run(arguments) => arguments.execute(),
        Command::Sweep(arguments) => arguments.execute(),
        Command::Compare(arguments) => arguments.execute(),
        Command::Report(arguments) => arguments.execute(),
        Command::Merge(arguments) => arguments.execute(),
        Command::Floor(arguments) => arguments.execute(),
    };
    match result {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Errors) => ExitCode::from(1),
        Ok(Verdict::Behind) => ExitCode::from(5),
        Ok(Verdict::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("onering-bench: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// How a command that ran to its end went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Exit code 0.
    Clean,
    /// Exit code 1.
    Errors,
    /// Exit code 5.
    Behind,
    /// Exit code 130, as of whoever is ended by SIGINT.
    Interrupted,
}

/// Why a command did not run to its end.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Tls(#[from] TlsOptionsError),
    #[error("{0}")]
    Usage(&'static str),
    #[error(
        "--workload {workload} has no use for {option}\n  fix: leave it out, or name another --workload"
    )]
    Foreign { option: &'static str, workload: String },
    #[error("{option} is an option of sweep\n  fix: write it before the options of run")]
    Behind { option: &'static str },
    #[error(
        "sweep has no use for {option}: it makes many runs, each at a rate of its own\n  fix: leave it \
         out; rates are searched between --from and --most"
    )]
    OfOneRun { option: &'static str },
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    Floor(#[from] FloorError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Read(#[from] crate::result::read::ReadError),
    #[error("{file} is not of the same run as those before it: {reason}")]
    Unlike { file: String, reason: crate::result::merge::Unlike },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    #[error(transparent)]
    FileSetPlan(#[from] PlanError),
    #[error(transparent)]
    FileSet(#[from] onering_fileset::store::Error),
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    StartAt(#[from] start_at::StartAtError),
    #[error("interrupted before anything was measured")]
    NothingMeasured,
}

impl CommandError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Target(_)
            | Self::Tls(_)
            | Self::Usage(_)
            | Self::Foreign { .. }
            | Self::Behind { .. }
            | Self::OfOneRun { .. }
            | Self::StartAt(_)
            | Self::Read(_)
            | Self::Unlike { .. }
            | Self::Parameters(_)
            | Self::FileSetPlan(_)
            | Self::FileSet(_) => 2,
            Self::NothingMeasured => 130,
            Self::Write { error, .. } => match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::IsADirectory => 2,
                io::ErrorKind::PermissionDenied => 4,
                _ => 3,
            },
            Self::Sweep(error) => error.exit_code(),
            Self::Compare(error) if error.is_usage() => 2,
            Self::Compare(error) if error.is_permission() => 4,
            Self::Floor(FloorError::Listen(onering::sys::socket::ListenError::Privileged {
                ..
            })) => 4,
            Self::Run(RunError::Ring(error)) | Self::Floor(FloorError::Ring(error)) => {
                use onering::ring::SetupError::{Disabled, Forbidden};
                if matches!(error, Disabled { .. } | Forbidden { .. }) { 4 } else { 3 }
            }
            _ => 3,
        }
    }
}

/// Writes a result as JSON, `-` meaning standard output.
fn write_json(path: &Path, result: &impl serde::Serialize) -> Result<(), CommandError> {
    let failed = |error: serde_json::Error| failed(path, error.into());
    let mut json = serde_json::to_vec_pretty(result).map_err(failed)?;
    json.push(b'\n');
    write(path, &json)
}

/// Writes a file, `-` meaning standard output.
fn write(path: &Path, contents: &[u8]) -> Result<(), CommandError> {
    let written = if is_stdout(path) {
        use std::io::Write;
        io::stdout().write_all(contents)
    } else {
        std::fs::write(path, contents)
    };
    written.map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: io::Error) -> CommandError {
    CommandError::Write { path: path.to_owned(), error }
}

/// The files that a command writes besides what it prints, at most one of them standard output.
struct Outputs<'p> {
    json: Option<&'p Path>,
    html: Option<&'p Path>,
}

impl<'p> Outputs<'p> {
    fn paths(&self) -> impl Iterator<Item = &'p Path> {
        [self.json, self.html].into_iter().flatten()
    }

    /// Whether standard output is one of the files, so that nothing else may be printed there.
    fn take_stdout(&self) -> bool {
        self.paths().any(is_stdout)
    }

    /// Refuses, before anything is measured, what could not be written afterwards.
    fn check(&self) -> Result<(), CommandError> {
        if self.paths().filter(|path| is_stdout(path)).count() > 1 {
            return Err(CommandError::Usage(
                "--json and --html cannot both be -, standard output\n  fix: name a file for one of \
                 them",
            ));
        }
        let mut files = self.paths().filter(|path| !is_stdout(path));
        files.try_for_each(|path| is_writable(path).map_err(|error| failed(path, error)))
    }

    /// Prints a result, unless standard output is one of the files.
    fn print(&self, text: &impl fmt::Display) {
        if !self.take_stdout() {
            print!("{text}");
        }
    }
}

/// `-`.
fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a file can be written. It is not opened: there may be nothing to write in the end, and
/// whoever reads from a pipe would see it end.
fn is_writable(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(access(path, AccessFlags::W_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
            Ok(access(directory.unwrap_or(Path::new(".")), AccessFlags::W_OK)?)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn examples_in_the_help_can_be_parsed() {
        let command = Cli::command();
        for subcommand in command.get_subcommands() {
            let help = subcommand.get_after_help().unwrap().to_string();
            let examples: Vec<_> =
                help.lines().filter_map(|line| line.strip_prefix("  onering-bench ")).collect();
            assert!(!examples.is_empty(), "{}", subcommand.get_name());
            for example in examples {
                let words = ["onering-bench"].into_iter().chain(example.split_whitespace());
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{example}: {error}");
                }
            }
        }
    }

    #[test]
    fn what_could_not_be_written_is_refused_before_anything_is_measured() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let check = |json: &Path, html: &Path| {
            Outputs { json: Some(json), html: Some(html) }
                .check()
                .map_err(|error| error.exit_code())
        };
        let (json, html) = (here.join("a.json"), here.join("a.html"));
        assert_eq!(check(&json, &html), Ok(()));
        assert!(!json.exists(), "a check leaves nothing behind");
        assert_eq!(check(Path::new("-"), &html), Ok(()));
        assert_eq!(check(Path::new("-"), Path::new("-")), Err(2));
        assert_eq!(check(here, &html), Err(2));
        assert_eq!(check(&here.join("missing/a.json"), &html), Err(2));
        std::fs::write(&json, "an earlier result").unwrap();
        assert_eq!(check(&json, &html), Ok(()));
        assert_eq!(std::fs::read(&json).unwrap(), b"an earlier result");
        assert_eq!(check(&json.join("a.json"), &html), Err(2));
    }

    #[test]
    fn contradictions_are_refused() {
        for line in [
            "run --target http://127.0.0.1/ --close --requests-per-connection 3",
            "run --target http://127.0.0.1/ --connections 0",
            "run --target http://127.0.0.1/ --requests-per-connection 0",
            "run",
            "floor --listen 127.0.0.1:80 --cpus 0",
            "report",
            "merge one.json --json all.json",
            "merge one.json two.json",
        ] {
            let words = ["onering-bench"].into_iter().chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_err(), "{line}");
        }
    }
}
