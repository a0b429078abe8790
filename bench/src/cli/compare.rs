//! `onering-bench compare`.

use super::{CommandError, Verdict, print_text, write_json};
use crate::compare::cell::{CELLS, Cell};
use crate::compare::peer::Server;
use crate::compare::{Client, Options, compare};
use clap::ValueEnum;
use onering::config::units::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// Measure servers side by side under the same loads.
///
/// Runs in a network namespace of its own (needs root or a user namespace), starts and stops the
/// servers itself, each pinned to one CPU and with the configuration in bench/peers. A server that
/// is not installed is named and skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onering-bench compare --profile quick --json result.json
  onering-bench compare --cells 1k-64,1k-512 --servers onering,floor --rounds 9
  onering-bench compare --profile smoke --clients run
  onering-bench compare --servers onering,former --former ./onering-before --clients run

The JSON's schema is named by its first field, onering-bench/compare/1. Exit codes: see
onering-bench --help.")]
pub(super) struct Arguments {
    /// Rounds and duration, unless given
    #[arg(long, value_enum, default_value_t = Profile::Quick)]
    profile: Profile,
    /// How often everything is measured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// How long each time; wrk rounds up to whole seconds
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Loads, all if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = cell)]
    cells: Vec<Cell>,
    /// Servers, all if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    servers: Vec<Server>,
    /// Clients, all if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    clients: Vec<Client>,
    /// The CPU of each server
    #[arg(long, value_name = "CPU", default_value_t = 0)]
    server_cpu: usize,
    /// The CPU of each client
    #[arg(long, value_name = "CPU", default_value_t = 1)]
    client_cpu: usize,
    /// What the orders are drawn from; a new one each time if not given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The onering program, if not beside this one or in the search path
    #[arg(long, value_name = "PATH")]
    onering: Option<PathBuf>,
    /// The program of a former build, for `--servers onering,former`
    #[arg(long, value_name = "PATH")]
    former: Option<PathBuf>,
    /// Write the result as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Profile {
    /// 1 round of 1 s: does it all work?
    Smoke,
    /// 5 rounds of 3 s
    Quick,
}

fn cell(name: &str) -> Result<Cell, String> {
    Cell::named(name).ok_or_else(|| {
        let names = CELLS.map(|cell| cell.name).join(", ");
        format!("the cells are {names}")
    })
}

fn or_all<T: Clone>(given: &[T], all: &[T]) -> Vec<T> {
    if given.is_empty() { all.to_vec() } else { given.to_vec() }
}

impl Arguments {
    pub(super) fn execute(&self) -> Result<Verdict, CommandError> {
        let (rounds, duration) = match self.profile {
            Profile::Smoke => (1, Duration::from_secs(1)),
            Profile::Quick => (5, Duration::from_secs(3)),
        };
        let options = Options {
            cells: or_all(&self.cells, &CELLS),
            servers: or_all(&self.servers, &Server::ALL),
            clients: or_all(&self.clients, &[Client::Run, Client::Wrk]),
            rounds: self.rounds.unwrap_or(rounds),
            duration: self.duration.unwrap_or(duration),
            server_cpu: self.server_cpu,
            client_cpu: self.client_cpu,
            seed: self.seed.unwrap_or_else(|| fastrand::u64(..)),
            onering: self.onering.clone(),
            former: self.former.clone(),
        };
        if options.servers.contains(&Server::Former) != options.former.is_some() {
            return Err(CommandError::Usage(
                "a former build is compared by --former PATH and `former` among the --servers",
            ));
        }
        if options.duration < Duration::from_millis(1) {
            return Err(CommandError::Usage("--duration must be at least 1ms"));
        }
        let comparison = compare(&options, &mut |line| eprintln!("{line}"))?;
        print_text(self.json.as_deref(), &comparison);
        if let Some(path) = &self.json {
            write_json(path, &comparison)?;
        }
        let clean = !comparison.interrupted
            && !comparison.measurements.is_empty()
            && comparison.measurements.iter().all(|measurement| measurement.errors == 0);
        Ok(if clean { Verdict::Clean } else { Verdict::Errors })
    }
}
