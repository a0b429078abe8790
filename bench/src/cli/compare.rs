//! `onering-bench compare`.

use super::output::{Outputs, tell_error, write_json};
use super::{CommandError, Cpus, Verdict};
use crate::compare::cell::{CELLS, Cell};
use crate::compare::compare;
use crate::compare::comparison::{Comparison, Measurement};
use crate::compare::options::{Client, JournalFile, Options, Profile};
use crate::compare::peer::Server;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use onering::config::units::{parse_cpus, parse_duration};
use std::path::PathBuf;
use std::time::Duration;

/// Measure servers side by side under the same loads.
///
/// Runs in a network namespace of its own (needs root or a user namespace), starts and stops the
/// servers itself, each on the same CPUs and with the configuration in bench/peers. A server that
/// is not installed is named, with its package, and skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onering-bench compare --profile quick --json result.json --html result.html
  onering-bench compare --cells 1k-64,1k-512 --servers onering,floor --rounds 9
  onering-bench compare --profile smoke --clients run
  onering-bench compare --profile tls --json tls.json
  onering-bench compare --cells tls12-id-64 --servers onering,nginx --server-cpus 0,1 --client-cpus 0,1 --share-cpus
  onering-bench compare --profile full --journal full.journal --json full.json
  onering-bench compare --profile full --resume full.journal --json full.json
  onering-bench compare --servers onering,former --former ./onering-before

Servers and wrk from Debian's packages:
  apt-get install --no-install-recommends nginx h2o lighttpd lighttpd-mod-openssl apache2-bin \\
    caddy haproxy wrk iproute2

The JSON's schema is named by its first field, onering-bench/compare/2, and printed by
--print-schema. Exit codes: see onering-bench --help.")]
pub(super) struct Arguments {
    /// Which cells, servers and clients, how many rounds and how long, where the options below do
    /// not say so
    #[arg(long, value_enum, default_value_t = Profile::Quick)]
    profile: Profile,
    /// Rounds: how often everything is measured; verdicts take five, intervals of 95 % six
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// How long each measurement lasts; wrk rounds up to whole seconds
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Cells, that is, kinds of load: what is asked for, and over how many connections; the
    /// profile's if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = cell())]
    cells: Vec<Cell>,
    /// Servers; the profile's if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    servers: Vec<Server>,
    /// The server that ratios are to
    #[arg(long, value_name = "SERVER", value_enum, default_value_t = Server::Onering)]
    reference: Server,
    /// Clients; the profile's if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    clients: Vec<Client>,
    /// The CPUs of each server, such as 0,2-3
    #[arg(long, visible_alias = "server-cpu", value_name = "LIST", default_value = "0", value_parser = parse_cpus)]
    server_cpus: Cpus,
    /// The CPUs of each client
    #[arg(long, visible_alias = "client-cpu", value_name = "LIST", default_value = "1", value_parser = parse_cpus)]
    client_cpus: Cpus,
    /// Let servers and clients have CPUs in common: their rates are then those of both, and only the
    /// servers' CPU time per request is their own
    #[arg(long)]
    share_cpus: bool,
    /// Seed of the order within rounds; a new one each time if not given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The onering program, if not beside this one or in the search path
    #[arg(long, value_name = "PATH")]
    onering: Option<PathBuf>,
    /// The program of a former build, for `--servers onering,former`
    #[arg(long, value_name = "PATH")]
    former: Option<PathBuf>,
    /// Keep each measurement in this new file, to go on after an interruption; with --profile full
    /// compare.journal if not given
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    journal: Option<PathBuf>,
    /// Go on with the comparison of this journal; all else must be as it was
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write the result as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the result as a page with charts; - for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the JSON Schema of results, and do nothing else
    #[arg(long)]
    print_schema: bool,
}

/// The journal of the full profile, if none is named.
const JOURNAL: &str = "compare.journal";

/// Takes the name of a cell; the help has them all, with what each is.
fn cell() -> impl TypedValueParser<Value = Cell> {
    let values = CELLS.map(|cell| PossibleValue::new(cell.name).help(cell.to_string()));
    PossibleValuesParser::new(values).try_map(|name| Cell::named(&name).ok_or("no such cell"))
}

fn or_else<T: Clone>(given: &[T], otherwise: Vec<T>) -> Vec<T> {
    if given.is_empty() { otherwise } else { given.to_vec() }
}

impl Arguments {
    pub(super) fn execute(&self) -> Result<Verdict, CommandError> {
        if self.print_schema {
            write_json(std::path::Path::new("-"), &crate::compare::comparison::schema())?;
            return Ok(Verdict::Clean);
        }
        let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        let options = self.options(in_ci)?;
        let outputs = Outputs::new(self.json.as_deref(), self.html.as_deref())?;
        let comparison = compare(&options, &mut |line| tell_error(&line))?;
        outputs.write(&comparison, &comparison, || comparison.html())?;
        Ok(verdict(&comparison))
    }

    fn options(&self, in_ci: bool) -> Result<Options, CommandError> {
        let profile = self.profile;
        if profile == Profile::Full && in_ci {
            return Err(CommandError::Usage(
                "--profile full takes hours and is not for CI, which the variable CI tells of; \
                 use --profile smoke",
            ));
        }
        let options = Options {
            profile,
            cells: or_else(&self.cells, profile.cells()),
            servers: or_else(&self.servers, profile.servers()),
            reference: self.reference,
            clients: or_else(&self.clients, profile.clients()),
            rounds: self.rounds.unwrap_or_else(|| profile.rounds()),
            duration: self.duration.unwrap_or_else(|| profile.duration()),
            server_cpus: self.server_cpus.clone(),
            client_cpus: self.client_cpus.clone(),
            share_cpus: self.share_cpus,
            seed: self.seed,
            onering: self.onering.clone(),
            former: self.former.clone(),
            journal: match (&self.journal, &self.resume) {
                (_, Some(path)) => Some(JournalFile::Resumed(path.clone())),
                (Some(path), None) => Some(JournalFile::New(path.clone())),
                (None, None) if profile == Profile::Full => Some(JournalFile::New(JOURNAL.into())),
                (None, None) => None,
            },
        };
        if options.servers.contains(&Server::Former) != options.former.is_some() {
            return Err(CommandError::Usage(
                "a former build is compared by --former PATH and `former` among the --servers",
            ));
        }
        if options.duration < Duration::from_millis(1) {
            return Err(CommandError::Usage("--duration must be at least 1ms"));
        }
        Ok(options)
    }
}

fn verdict(comparison: &Comparison) -> Verdict {
    let measurements = &comparison.measurements;
    let failed = |one: &Measurement| one.errors() > 0 || one.figures.requests_per_s == Some(0.0);
    if comparison.interrupted {
        Verdict::Interrupted
    } else if measurements.is_empty() || measurements.iter().any(failed) {
        Verdict::Errors
    } else {
        Verdict::Clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn options(line: &str, in_ci: bool) -> Result<Options, CommandError> {
        let words = ["compare"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().arguments.options(in_ci)
    }

    #[test]
    fn a_profile_is_the_default_for_what_is_not_given() {
        let quick = options("", true).unwrap();
        assert_eq!((quick.cells.len(), quick.servers.len(), quick.rounds), (8, 5, 5));
        assert_eq!((quick.clients, quick.journal), (vec![Client::Run], None));
        let chosen = options("--cells 1k-64,1k-512 --clients wrk --rounds 2", true).unwrap();
        assert_eq!((chosen.cells.len(), chosen.clients.len(), chosen.rounds), (2, 1, 2));
    }

    #[test]
    fn the_full_profile_keeps_a_journal_and_is_not_for_ci() {
        assert!(options("--profile full", true).is_err());
        let new = options("--profile full", false).unwrap().journal;
        assert_eq!(new, Some(JournalFile::New(JOURNAL.into())));
        let resumed = options("--profile full --resume x", false).unwrap().journal;
        assert_eq!(resumed, Some(JournalFile::Resumed("x".into())));
    }

    #[test]
    fn a_former_build_needs_both_its_path_and_its_name() {
        assert!(options("--servers onering,former", false).is_err());
        assert!(options("--former x", false).is_err());
        assert!(options("--servers onering,former --former x", false).is_ok());
    }
}
