//! `onering-bench run`: the options of every workload, and what is done with a result.

mod get;
mod tls;
mod watch;
mod web99;

use super::output::Outputs;
use super::start_at::{StartAt, Waited};
use super::{CommandError, Cpus, Verdict};
use crate::engine::windows::Window;
use crate::engine::{CONNECTIONS_MAX, Model, PIPELINE_MAX, Plan, Tls};
use crate::fingerprint::{Fingerprint, Subject};
use crate::interrupt::Interrupt;
use crate::live;
use crate::request::{Field, Version, Wording};
use crate::result::load::{Arrivals, Generator, Load};
use crate::result::window::Window as WindowResult;
use crate::result::{self, RunResult, SchemaName, cost::ServerCost};
use crate::target::{Scheme, Targets};
use clap::ValueEnum;
use nix::unistd::Pid;
use onering::config::units::{parse_cpus, parse_duration};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use watch::Watch;

/// Load a server and measure it.
///
/// Closed loop, unless --rate is given: each connection sends its next request when the response
/// before it is complete. With --rate requests have planned starts, whatever the server does: both
/// their response time (from the planned start) and their service time (from the send) are told.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onering-bench run --target http://127.0.0.1:8080/ --connections 64 --duration 10s --cpus 1
  onering-bench run --target @urls.txt --duration 10s --server-pid 4711 --json result.json
  onering-bench run --target http://127.0.0.1:8080/ --rate 20000 --arrivals poisson
  onering-bench run --target http://127.0.0.1:8080/ --close --connections 64
  onering-bench run --workload web99-ssl --target https://127.0.0.1:8443/ --load 100
  onering-bench run --target https://127.0.0.1:8443/ --close --tls-resume 90 --tls-version 1.3
  onering-bench run --workload handshake --target https://127.0.0.1:8443/ --tls-resume 90
  onering-bench run --workload web99 --target http://127.0.0.1:8080/ --load 100 --duration 120s
  onering-bench run --target http://127.0.0.1:8080/ --header Range:bytes=0-99 --status 206

Connections that end (--close, --requests-per-connection) do so by the server's close: the
last request says Connection: close and the FIN is awaited. The JSON's schema is named by its
first field, onering-bench/run/2. Exit codes: see onering-bench --help.")]
pub(super) struct Arguments {
    /// The workload
    #[arg(long, value_enum, default_value_t)]
    workload: Workload,
    /// URLs, or @FILE with one on each line, requested in turn
    #[arg(long, value_name = "URL|@FILE", num_args = 1.., required = true)]
    target: Vec<String>,
    /// Allow loading a server that is not on this machine; may be given more than once
    #[arg(long, value_name = "IP")]
    allow_target: Vec<IpAddr>,
    /// Connections kept open
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = within(CONNECTIONS_MAX))]
    connections: u64,
    /// Open loop: requests per second over all connections, whatever the server does; closed loop
    /// if not given
    #[arg(long, value_name = "R", value_parser = rate)]
    rate: Option<f64>,
    /// The arrivals of an open loop
    #[arg(long, value_enum, default_value = "constant", requires = "rate")]
    arrivals: Arrivals,
    /// Seed of all random choices; a new one each time if not given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How long to measure, such as 500ms, 10s or 2m
    #[arg(long, value_name = "T", default_value = "10s", value_parser = parse_duration)]
    duration: Duration,
    /// How long to load before the measurement, uncounted
    #[arg(long, value_name = "T", default_value = "1s", value_parser = parse_duration)]
    warmup: Duration,
    /// CPUs of the generator, one thread on each, such as 0,2-3
    #[arg(long, value_name = "LIST", default_value = "0", value_parser = parse_cpus)]
    cpus: Cpus,
    /// Requests in flight on each connection (pipelining)
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = within(PIPELINE_MAX), conflicts_with = "rate")]
    pipeline: u64,
    /// Close each connection after so many requests
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    requests_per_connection: Option<u64>,
    /// One request per connection: no keep-alive
    #[arg(long, conflicts_with = "requests_per_connection")]
    close: bool,
    /// Speak HTTP/1.0
    #[arg(long)]
    http10: bool,
    /// A header field of every request, such as "If-None-Match: *"; may be given more than once
    #[arg(long, value_name = "FIELD")]
    header: Vec<Field>,
    /// The expected status; any other is an error
    #[arg(long, value_name = "CODE", default_value_t = STATUS, value_parser = clap::value_parser!(u16).range(200..600))]
    status: u16,
    /// Count an error, and connect again, where nothing arrives for so long
    #[arg(long, value_name = "T", default_value = "5s", value_parser = parse_duration)]
    timeout: Duration,
    /// The server's process: report its CPU time, memory and context switches, descendants included
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    server_pid: Option<i32>,
    /// Write the result as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the result as a page with charts; - for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Start at a moment, such as 2030-01-02T03:04:05Z or seconds since 1970, together with other
    /// generators
    #[arg(long, value_name = "TIME")]
    start_at: Option<StartAt>,
    /// Print nothing but the result: no progress
    #[arg(long)]
    quiet: bool,
    // Their headings go on to the end: they stand last.
    #[command(flatten)]
    tls: tls::TlsArguments,
    #[command(flatten)]
    web99: web99::Options,
}

/// The expected status, if none is given.
const STATUS: u16 = 200;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Workload {
    /// GET of the targets in turn
    #[default]
    Get,
    /// TLS handshakes: a connection, one request and the close, full and resumed told apart
    Handshake,
    /// SPECweb99-style: 70 % static and 30 % dynamic requests for a file set, on lines of 400 kbit/s
    Web99,
    /// The same over TLS
    Web99Ssl,
    /// SPECweb96-style: static requests for a file set at ten rates up to --rate
    Web96,
}

fn within(most: usize) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=most as u64)
}

/// The longest run: results have something of each second, and are read as a whole.
const RUN_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Requests a second: often enough to be seen in the longest run, and no more than a clock of ns can
/// tell apart.
fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "write a number of requests a second".to_owned())?;
    if (0.001..=1e8).contains(&rate) {
        Ok(rate)
    } else {
        Err("a rate is from 0.001 to 100000000 requests a second".to_owned())
    }
}

impl Arguments {
    pub(super) fn execute(&self) -> Result<Verdict, CommandError> {
        if (self.connections as usize) < self.cpus.len() {
            return Err(CommandError::Usage("--connections must be at least one for each CPU"));
        }
        if self.duration.is_zero() {
            return Err(CommandError::Usage("--duration must not be zero"));
        }
        self.check_options()?;
        let targets = Targets::read(&self.target, &self.allow_target)?;
        match self.workload {
            Workload::Get => self.get(targets),
            Workload::Handshake => self.handshake(targets),
            Workload::Web99 => self.web99("web99", Scheme::Http, &targets),
            Workload::Web99Ssl => self.web99("web99-ssl", Scheme::Https, &targets),
            Workload::Web96 => self.web96(&targets),
        }
    }

    /// Refuses an option that the workload has no use for: without it something else would be measured
    /// than was asked for.
    fn check_options(&self) -> Result<(), CommandError> {
        let of_targets = [
            ("--close", self.close),
            ("--requests-per-connection", self.requests_per_connection.is_some()),
            ("--header", !self.header.is_empty()),
            ("--status", self.status != STATUS),
        ];
        let (of_users, of_file_set) = (self.web99.of_users(), self.web99.of_file_set());
        let foreign: Vec<_> = match self.workload {
            Workload::Get | Workload::Handshake => {
                of_users.into_iter().chain(of_file_set).collect()
            }
            Workload::Web99 | Workload::Web99Ssl => of_targets.into(),
            Workload::Web96 => of_users.into_iter().chain(of_targets).collect(),
        };
        match foreign.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => {
                let workload = self.workload.to_possible_value();
                let workload = workload.map(|value| value.get_name().to_owned());
                let workload = workload.unwrap_or_default();
                Err(CommandError::Foreign { option, workload })
            }
        }
    }

    /// What random choices are drawn from.
    fn drawn_from(&self) -> u64 {
        // JSON readers have 53 bits for a number.
        self.seed.unwrap_or_else(|| fastrand::u64(..1 << 53))
    }

    fn model(&self) -> Model {
        match self.rate {
            None => Model::Closed,
            Some(rate_per_s) => Model::Open { rate_per_s, arrivals: self.arrivals },
        }
    }

    /// A plan without lines, with one window.
    fn plan(
        &self,
        targets: &Targets,
        tls: Option<Tls>,
        answer_bytes: u64,
        kept: bool,
        seed: u64,
    ) -> Plan {
        Plan {
            server: targets.address,
            tls,
            model: self.model(),
            seed,
            connections: self.connections as usize,
            pipeline: self.pipeline as usize,
            kept,
            from_connect: false,
            pace: None,
            // All at once would be a burst that no later moment has.
            ramp: self.warmup / 2,
            answer_bytes,
            cpus: self.cpus.clone(),
            windows: vec![Window { from: self.warmup, length: self.duration }],
            timeout: self.timeout,
            server_process: self.server_pid.map(Pid::from_raw),
        }
    }

    fn wording(&self) -> Wording {
        Wording {
            version: if self.http10 { Version::Http10 } else { Version::Http11 },
            fields: self.header.clone(),
        }
    }

    /// Measures by `measure`, and tells of the result.
    fn tell(
        &self,
        plan: &Plan,
        load: Load,
        measure: impl FnOnce(&mut Watch) -> Result<Vec<WindowResult>, CommandError>,
    ) -> Result<Verdict, CommandError> {
        if plan.windows.last().is_some_and(|last| last.from + last.length > RUN_MAX) {
            return Err(CommandError::Usage("a run is at most 12 h long, warm-up included"));
        }
        let outputs = Outputs::new(self.json.as_deref(), self.html.as_deref())?;
        let interrupt = Interrupt::hold().map_err(CommandError::Signals)?;
        let command_line: Vec<String> = std::env::args().collect();
        let fingerprint = Fingerprint::read(Subject {
            target: Some(plan.server.ip()),
            command: command_line.clone(),
            programs: Vec::new(),
        });
        if let Some(start_at) = self.start_at
            && start_at.wait(&interrupt)? == Waited::Interrupted
        {
            return Err(CommandError::NothingMeasured);
        }
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let iterations = plan.windows.len() > 1;
        let mut watch = Watch::new(interrupt, live::Options::here(self.quiet), iterations);
        let windows = measure(&mut watch)?;
        let interrupted = watch.finish();
        let result = RunResult {
            schema: SchemaName::Run2,
            load,
            generators: vec![Generator {
                started_unix_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
                tool: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                command_line,
                model: generator_model(plan),
                seed: Some(plan.seed),
                cpus: plan.cpus.iter().map(|&cpu| cpu as u32).collect(),
                fingerprint: Some(fingerprint),
            }],
            windows,
        };
        if result.windows.is_empty() {
            return Err(CommandError::NothingMeasured);
        }
        outputs.write(&result, &result, || {
            result::html::report(&[(result.load.target.clone(), result.clone())])
        })?;
        Ok(verdict(&result, interrupted))
    }
}

fn generator_model(plan: &Plan) -> result::load::Model {
    let connections = plan.connections as u64;
    match plan.model {
        Model::Closed => result::load::Model::Closed { connections },
        Model::Open { rate_per_s, arrivals } => {
            result::load::Model::Open { rate_per_s, arrivals, connections }
        }
    }
}

fn verdict(result: &RunResult, interrupted: bool) -> Verdict {
    let unknown =
        |window: &WindowResult| matches!(window.counts().server, ServerCost::Unknown { .. });
    if interrupted {
        Verdict::Interrupted
    } else if result.is_behind_schedule() {
        Verdict::Behind
    } else if result.errors() > 0
        || result.missed() > 0
        || result.requests() == 0
        || result.windows.iter().any(unknown)
    {
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

    fn refusal(line: &str) -> Option<String> {
        let words = ["run", "--target", "http://127.0.0.1/"].into_iter().chain(line.split(' '));
        let checked = Line::try_parse_from(words).unwrap().arguments.check_options();
        checked.err().map(|error| {
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        })
    }

    #[test]
    fn an_option_that_the_workload_would_ignore_is_refused() {
        for line in [
            "--workload get --close --status 304 --header A:b",
            "--workload handshake --close --iterations 3",
            "--workload web99 --load 4 --mix static --fileset x",
            "--workload web99-ssl --cgi-path /cgi --status 200",
            "--workload web96 --rate 100 --files-path /f/ --ramp 2s",
        ] {
            assert_eq!(refusal(line), None, "{line}");
        }
        for (line, option) in [
            ("--workload get --load 4", "--load"),
            ("--workload handshake --ramp 2s", "--ramp"),
            ("--workload get --fileset x", "--fileset"),
            ("--workload web99 --close", "--close"),
            ("--workload web99-ssl --header A:b", "--header"),
            ("--workload web96 --requests-per-connection 3", "--requests-per-connection"),
            ("--workload web96 --load 4", "--load"),
        ] {
            let words: Vec<_> = line.split(' ').collect();
            let expected = format!("--workload {} has no use for {option}\n", words[1]);
            let said = refusal(line).unwrap_or_default();
            assert!(said.starts_with(&expected), "{line}: {said}");
        }
    }
}
