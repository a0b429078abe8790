//! `onering-bench run`.

use super::{CommandError, Cpus, Verdict, print_text, write_json};
use crate::client::{self, CONNECTIONS_MAX, PIPELINE_MAX, Plan};
use crate::request::{Field, Version, Wording};
use crate::target::Targets;
use clap::ValueEnum;
use nix::unistd::Pid;
use onering::config::units::{parse_cpus, parse_duration};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Load a server and measure it.
///
/// Closed loop: each connection sends its next request when the response before it is complete.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onering-bench run --target http://127.0.0.1:8080/ --connections 64 --duration 10s --cpus 1
  onering-bench run --target @urls.txt --duration 10s --server-pid 4711 --json result.json
  onering-bench run --target http://127.0.0.1:8080/ --close --connections 64
  onering-bench run --target http://127.0.0.1:8080/ --header Range:bytes=0-99 --status 206

Connections that end (--close, --requests-per-connection) do so by the server's close: the
last request says Connection: close and the FIN is awaited. The JSON's schema is named by its
first field, onering-bench/run/1. Exit codes: see onering-bench --help.")]
pub(super) struct Arguments {
    /// What is asked for
    #[arg(long, value_enum, default_value_t)]
    workload: Workload,
    /// URLs, or @FILE with one on each line, asked for in turn
    #[arg(long, value_name = "URL|@FILE", num_args = 1.., required = true)]
    target: Vec<String>,
    /// A server that is not on this machine but may be loaded nevertheless
    #[arg(long, value_name = "IP")]
    allow_target: Vec<IpAddr>,
    /// Connections held open
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = within(CONNECTIONS_MAX))]
    connections: u64,
    /// What is measured, such as 10s
    #[arg(long, value_name = "T", default_value = "10s", value_parser = parse_duration)]
    duration: Duration,
    /// Runs before anything is counted
    #[arg(long, value_name = "T", default_value = "1s", value_parser = parse_duration)]
    warmup: Duration,
    /// CPUs of the generator, one thread each, such as 0,2-3
    #[arg(long, value_name = "LIST", default_value = "0", value_parser = parse_cpus)]
    cpus: Cpus,
    /// Requests in flight on each connection
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = within(PIPELINE_MAX))]
    pipeline: u64,
    /// End each connection after so many requests
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    requests_per_connection: Option<u64>,
    /// One request per connection
    #[arg(long, conflicts_with = "requests_per_connection")]
    close: bool,
    /// Speak HTTP/1.0
    #[arg(long)]
    http10: bool,
    /// A field of every request, such as "If-None-Match: *"; may be given more than once
    #[arg(long, value_name = "FIELD")]
    header: Vec<Field>,
    /// The status of right answers; others are errors
    #[arg(long, value_name = "CODE", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..600))]
    status: u16,
    /// Give a connection up after standing still so long
    #[arg(long, value_name = "T", default_value = "5s", value_parser = parse_duration)]
    timeout: Duration,
    /// The server's process: its CPU time and context switches are reported, descendants included
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    server_pid: Option<i32>,
    /// Write the result as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Workload {
    /// GET of the targets in turn
    #[default]
    Get,
}

fn within(most: usize) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=most as u64)
}

impl Arguments {
    pub(super) fn execute(&self) -> Result<Verdict, CommandError> {
        let plan = self.plan()?;
        let client::Outcome { report, accounting } = client::run(&plan)?;
        print_text(self.json.as_deref(), &report);
        if let Some(path) = &self.json {
            write_json(path, &report)?;
        }
        if let Err(error) = &accounting {
            eprintln!("onering-bench: the server's consumption is unknown: {error}");
        }
        let clean = report.errors.total() == 0 && report.requests > 0 && accounting.is_ok();
        Ok(if clean { Verdict::Clean } else { Verdict::Errors })
    }

    fn plan(&self) -> Result<Plan, CommandError> {
        let Workload::Get = self.workload;
        let (connections, pipeline) = (self.connections as usize, self.pipeline as usize);
        if connections < self.cpus.len() {
            return Err(CommandError::Usage("--connections must be at least one for each CPU"));
        }
        if self.duration.is_zero() {
            return Err(CommandError::Usage("--duration must not be zero"));
        }
        Ok(Plan {
            targets: Targets::read(&self.target, &self.allow_target)?,
            connections,
            pipeline,
            requests_per_connection: if self.close {
                Some(1)
            } else {
                self.requests_per_connection
            },
            wording: Wording {
                version: if self.http10 { Version::Http10 } else { Version::Http11 },
                fields: self.header.clone(),
            },
            status: self.status,
            cpus: self.cpus.clone(),
            warmup: self.warmup,
            duration: self.duration,
            timeout: self.timeout,
            server: self.server_pid.map(Pid::from_raw),
        })
    }
}
