//! The command line: one file for each command.

mod compare;
mod floor;
mod merge;
mod output;
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
use onering_fileset::plan::PlanError;
use output::tell_error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use sweep::SweepError;

/// CPUs as written in one value, such as `0,2-3`. (An alias, so that the option is taken once.)
type Cpus = Vec<usize>;

const EXIT_CODES: &str = "\
Exit codes:
  0  measured, nothing went wrong (floor: ended by SIGTERM or SIGINT)
  1  measured, but some requests failed, or were never sent or answered, or none succeeded: see the
     result
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
            tell_error(&format_args!("onering-bench: {error}"));
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
    fn contradictions_are_refused() {
        for line in [
            "run --target http://127.0.0.1/ --close --requests-per-connection 3",
            "run --target http://127.0.0.1/ --connections 0",
            "run --target http://127.0.0.1/ --requests-per-connection 0",
            "run --target http://127.0.0.1/ --rate 0",
            "run --target http://127.0.0.1/ --rate 1e-20",
            "run --target http://127.0.0.1/ --rate 1e9",
            "run --target http://127.0.0.1/ --rate nan",
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
