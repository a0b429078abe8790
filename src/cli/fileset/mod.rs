//! `onering fileset`: the SPECweb99-style file set. A file for each of its commands; what they do is
//! in the crate `onering-fileset`.

use clap::Subcommand;
use onering_fileset::plan::{Directories, PlanError};
use onering_fileset::store;

use super::{Exit, Failure};

mod generate;
mod plan;
mod progress;
mod verify;

const AFTER_HELP: &str = "\
Examples:
  onering fileset plan --load 5700
  onering fileset generate /srv/web99 --load 100
  onering fileset verify /srv/web99

The workload is SPECweb99-style: built from published facts, with another harness. Its results are
not comparable with SPEC's.

Exit codes:
  0  done; the set is whole
  1  the set is not whole: damaged, or its generation was interrupted
  2  the command line is wrong, or does not go with what is in the directory
  3  the disk is too small, or something failed
  4  a permission is missing";

/// Plan, generate and verify the SPECweb99-style file set.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Plan(plan::Args),
    Generate(generate::Args),
    Verify(verify::Args),
}

/// How large a set.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Size {
    /// As large as so many simultaneous connections need.
    #[arg(long, value_name = "N")]
    load: Option<u64>,
    /// So many directories, of 36 files and 5.1 MB each.
    #[arg(long, value_name = "N")]
    dirs: Option<u64>,
}

impl Size {
    fn directories(&self) -> Result<Directories, Failure> {
        let directories = match (self.load, self.dirs) {
            (Some(load), _) => Directories::for_load(load),
            (None, Some(directories)) => Directories::new(directories),
            (None, None) => Err(PlanError::NoDirectory),
        };
        directories.map_err(|error| Failure::new(Exit::Configuration, error))
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Plan(args) => plan::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Verify(args) => verify::run(args),
    }
}

/// Which exit code a failure calls for.
fn failure(error: store::Error) -> Failure {
    let exit = if error.is_usage() {
        Exit::Configuration
    } else if error.is_permission() {
        Exit::Permission
    } else {
        Exit::Environment
    };
    Failure::new(exit, error)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::cli::Cli;

    #[test]
    fn examples_in_the_help_can_be_parsed() {
        let cli = Cli::command();
        let fileset = cli.find_subcommand("fileset").expect("it is there");
        for command in fileset.get_subcommands().chain([fileset]) {
            let help = command.get_after_help().expect("it has examples").to_string();
            let examples: Vec<_> =
                help.lines().filter(|line| line.starts_with("  onering ")).collect();
            assert!(!examples.is_empty(), "{}", command.get_name());
            for example in examples {
                if let Err(error) = Cli::try_parse_from(example.split_whitespace()) {
                    panic!("{example}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_set_has_one_size() {
        for line in ["plan", "plan --load 1 --dirs 1", "plan --load x", "generate --load 1"] {
            let words = ["onering", "fileset"].into_iter().chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_err(), "{line}");
        }
    }
}
