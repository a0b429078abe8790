//! Servers side by side: the same load on each, one after the other, in random order.
//!
//! Everything runs in a network namespace of its own. For each round, cell and client the servers
//! are taken in an order drawn anew; each is started for its one measurement, checked, measured
//! and stopped. Ratios are taken within a round, between neighbours in time, so that what the
//! machine does to one it does to the other; a table shows their median and their whole range.

pub mod cell;
pub mod namespace;
pub mod peer;
mod running;
mod table;
mod wrk;

use crate::interrupt::Interrupt;
use crate::process::{ProcessError, Sample};
use crate::result::RunResult;
use cell::Cell;
use namespace::NamespaceError;
use onering::sys::affinity;
use peer::{Assignment, Server};
use running::{Running, ServerError};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The name and version of the JSON that `compare` writes.
pub const COMPARE_SCHEMA: &str = "onering-bench/compare/1";

/// The first port used; each start takes the next, so that no connection of a former server is met.
const FIRST_PORT: u16 = 8000;

/// Our own client's warm-up. wrk has none.
const WARMUP: Duration = Duration::from_millis(300);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    /// This program's `run`.
    Run,
    /// wrk.
    Wrk,
}

impl Client {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Wrk => "wrk",
        }
    }
}

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// The loads.
    pub cells: Vec<Cell>,
    /// The servers.
    pub servers: Vec<Server>,
    /// The clients.
    pub clients: Vec<Client>,
    /// How often each is measured.
    pub rounds: u32,
    /// How long each time; wrk rounds up to whole seconds.
    pub duration: Duration,
    /// The CPU of each server.
    pub server_cpu: usize,
    /// The CPU of each client.
    pub client_cpu: usize,
    /// What orders are drawn from.
    pub seed: u64,
    /// This project's server, if not beside this program or in the search path.
    pub onering: Option<PathBuf>,
    /// A former build of it.
    pub former: Option<PathBuf>,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The namespace could not be made.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Client and server would take time from each other.
    #[error("server and client must be on different CPUs, not both on {0}")]
    SameCpu(usize),
    /// Someone would not run where it is to.
    #[error("this process may not run on CPU {cpu}; choose from {}", allowed.iter()
        .map(usize::to_string).collect::<Vec<_>>().join(", "))]
    NoSuchCpu {
        /// Where it was to run.
        cpu: usize,
        /// Where it may.
        allowed: Vec<usize>,
    },
    /// No server, or no client, is left.
    #[error("nothing to compare: {0}")]
    Nothing(String),
    /// Files for the servers could not be written.
    #[error("cannot write the files to be served: {0}")]
    Files(io::Error),
    /// The client's CPU cannot be used.
    #[error(transparent)]
    Pin(#[from] affinity::PinError),
    /// Signals cannot be read.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

impl CompareError {
    /// Whether the command line is to blame.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::SameCpu(_) | Self::NoSuchCpu { .. })
    }

    /// Whether a permission is missing.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Namespace(NamespaceError::Refused(_)))
    }
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Counted from 0.
    pub round: u32,
    /// Name of the cell.
    pub cell: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// Requests answered per second.
    pub requests_per_s: f64,
    /// CPU time of the server's processes per request, µs; absent if it could not be read.
    pub server_cpu_us_per_request: Option<f64>,
    /// What went wrong, all kinds together.
    pub errors: u64,
    /// Whether the client had no time left; wrk does not say.
    pub client_is_the_limit: bool,
}

/// What was not measured, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The server or client, and where.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`COMPARE_SCHEMA`].
    pub schema: String,
    /// Seed of the orders.
    pub seed: u64,
    /// Rounds asked for.
    pub rounds: u32,
    /// Seconds of each measurement asked for.
    pub duration_s: f64,
    /// Congestion control of all connections.
    pub congestion_control: String,
    /// CPU of each server.
    pub server_cpu: usize,
    /// CPU of each client.
    pub client_cpu: usize,
    /// In the order taken.
    pub measurements: Vec<Measurement>,
    /// What is missing.
    pub skipped: Vec<Skipped>,
    /// A signal ended it before it was complete.
    pub interrupted: bool,
}

/// Why one measurement has no figures.
#[derive(Debug, thiserror::Error)]
enum MeasureError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Wrk(#[from] wrk::WrkError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("the client failed: {0}")]
    Client(String),
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Compares. To be called before any thread is started: the calling thread moves into a network
/// namespace of its own. Progress goes to `progress`, a line each.
pub fn compare(
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Comparison, CompareError> {
    if options.server_cpu == options.client_cpu {
        return Err(CompareError::SameCpu(options.client_cpu));
    }
    let allowed = affinity::allowed_cpus();
    for cpu in [options.server_cpu, options.client_cpu] {
        if !allowed.contains(&cpu) {
            return Err(CompareError::NoSuchCpu { cpu, allowed });
        }
    }
    let mut comparison = Comparison {
        schema: COMPARE_SCHEMA.to_owned(),
        seed: options.seed,
        rounds: options.rounds,
        duration_s: options.duration.as_secs_f64(),
        congestion_control: namespace::CONGESTION_CONTROL.to_owned(),
        server_cpu: options.server_cpu,
        client_cpu: options.client_cpu,
        measurements: Vec::new(),
        skipped: Vec::new(),
        interrupted: false,
    };
    let (servers, clients) = programs(options, &mut comparison.skipped);
    for Skipped { what, why } in &comparison.skipped {
        progress(&format!("{what} skipped: {why}"));
    }
    if servers.is_empty() || clients.is_empty() {
        return Err(CompareError::Nothing("no server or no client is installed".to_owned()));
    }
    namespace::enter()?;
    affinity::pin(options.client_cpu)?;
    let mut stage = Stage::new(options)?;
    let mut random = fastrand::Rng::with_seed(options.seed);
    let plan: Vec<_> = (0..options.rounds)
        .flat_map(|round| order(&mut random, round, &options.cells, &clients, &servers))
        .collect();
    let total = plan.len();
    progress(&format!(
        "{total} measurements of {:.1} s, about {:.0} minutes",
        options.duration.as_secs_f64(),
        (total as f64 * (options.duration + WARMUP + OVERHEAD).as_secs_f64() / 60.0).ceil()
    ));
    for (done, (round, cell, client, server)) in plan.into_iter().enumerate() {
        let what = format!("{} {} {}", server.0.name(), cell.name, client.0.name());
        let line = match stage.measure(cell, client, server) {
            Ok(taken) => {
                let text = format!("{what}: {:.0} requests/s", taken.requests_per_s);
                comparison.measurements.push(Measurement { round, ..taken });
                text
            }
            Err(_) if stage.interrupt.has_come().map_err(CompareError::Signals)? => {
                comparison.interrupted = true;
                break;
            }
            Err(error) => {
                let why = error.to_string();
                let text = format!("{what} skipped: {why}");
                comparison.skipped.push(Skipped { what: format!("{what}, round {round}"), why });
                text
            }
        };
        progress(&format!("[{}/{total}] {line}", done + 1));
    }
    Ok(comparison)
}

/// What starting, checking and stopping take, for the estimate only.
const OVERHEAD: Duration = Duration::from_millis(300);

/// A server or a client with its program.
type Program<'a, T> = (T, &'a Path);

/// One round: cells, clients and servers in random order, the servers of one cell and client next
/// to each other.
fn order<'a, C: Copy>(
    random: &mut fastrand::Rng,
    round: u32,
    cells: &[Cell],
    clients: &'a [(C, PathBuf)],
    servers: &'a [(Server, PathBuf)],
) -> Vec<(u32, Cell, Program<'a, C>, Program<'a, Server>)> {
    let mut blocks: Vec<_> = cells
        .iter()
        .flat_map(|&cell| clients.iter().map(move |(client, path)| (cell, (*client, &**path))))
        .collect();
    random.shuffle(&mut blocks);
    let mut all = Vec::new();
    for (cell, client) in blocks {
        let mut contenders: Vec<_> = servers
            .iter()
            .filter(|(server, _)| server.takes_part(cell))
            .map(|(server, path)| (*server, path.as_path()))
            .collect();
        random.shuffle(&mut contenders);
        all.extend(contenders.into_iter().map(|server| (round, cell, client, server)));
    }
    all
}

type Installed = (Vec<(Server, PathBuf)>, Vec<(Client, PathBuf)>);

/// The programs of what is to be compared; what has none is skipped.
fn programs(options: &Options, skipped: &mut Vec<Skipped>) -> Installed {
    let mut skip = |name: &str| {
        let why = format!("no program `{name}` is installed");
        skipped.push(Skipped { what: name.to_owned(), why });
    };
    let mut servers = Vec::new();
    for &server in &options.servers {
        let named = match server {
            Server::Onering => options.onering.clone(),
            Server::Former => options.former.clone(),
            _ => None,
        };
        match named.or_else(|| server.program()) {
            Some(program) => servers.push((server, program)),
            None => skip(server.name()),
        }
    }
    let mut clients = Vec::new();
    for &client in &options.clients {
        let program = match client {
            Client::Run => std::env::current_exe().ok(),
            Client::Wrk => peer::find(client.name()),
        };
        match program {
            Some(program) => clients.push((client, program)),
            None => skip(client.name()),
        }
    }
    (servers, clients)
}

/// Where servers perform: their files and the next free port.
struct Stage<'a> {
    options: &'a Options,
    interrupt: Interrupt,
    files: TempDir,
    root: PathBuf,
    next_port: u16,
}

impl<'a> Stage<'a> {
    fn new(options: &'a Options) -> Result<Self, CompareError> {
        let files = tempfile::Builder::new()
            .prefix("onering-bench-")
            // Servers give up root and must still get in.
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .map_err(CompareError::Files)?;
        let root = files.path().join("root");
        fs::create_dir(&root).map_err(CompareError::Files)?;
        for cell in &options.cells {
            let text = (0..cell.file_bytes).map(|i| b'a' + (i % 26) as u8).collect::<Vec<_>>();
            let path = root.join(cell.file_name());
            fs::write(&path, text)
                .and_then(|()| {
                    File::options().write(true).open(&path)?.set_modified(cell::written())
                })
                .map_err(CompareError::Files)?;
        }
        let interrupt = Interrupt::hold().map_err(CompareError::Signals)?;
        Ok(Self { options, interrupt, files, root, next_port: FIRST_PORT })
    }

    fn measure(
        &mut self,
        cell: Cell,
        (client, client_program): Program<'_, Client>,
        (server, server_program): Program<'_, Server>,
    ) -> Result<Measurement, MeasureError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.next_port));
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        let scratch = tempfile::tempdir_in(self.files.path())?;
        let assignment = Assignment {
            address,
            root: &self.root,
            scratch: scratch.path(),
            cpu: self.options.server_cpu,
            cell,
        };
        let running =
            Running::start(server, server_program, &assignment, &self.interrupt, self.options)?;
        let url = format!("http://{address}/{}", cell.file_name());
        let figures = match client {
            Client::Run => self.by_run(client_program, &url, cell, &running)?,
            Client::Wrk => self.by_wrk(client_program, &url, cell, &running)?,
        };
        Ok(Measurement {
            round: 0,
            cell: cell.name.to_owned(),
            client: client.name().to_owned(),
            server: server.name().to_owned(),
            requests_per_s: figures.requests_per_s,
            server_cpu_us_per_request: figures.server_cpu_us_per_request,
            errors: figures.errors,
            client_is_the_limit: figures.client_is_the_limit,
        })
    }

    fn by_run(
        &self,
        program: &Path,
        url: &str,
        cell: Cell,
        running: &Running,
    ) -> Result<Figures, MeasureError> {
        let mut command = Command::new(program);
        command.args(["run", "--json", "-", "--target", url]);
        command.args(["--connections", &cell.connections.to_string()]);
        command.args(["--cpus", &self.options.client_cpu.to_string()]);
        command.args(["--duration", &format!("{}ms", self.options.duration.as_millis())]);
        command.args(["--warmup", &format!("{}ms", WARMUP.as_millis())]);
        command.args(["--server-pid", &running.pid().to_string()]);
        command.args(["--status", &cell.part.status().to_string()]);
        if cell.close {
            command.arg("--close");
        }
        if let Some(field) = cell.part.field() {
            command.args(["--header", &field]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = self.interrupt.spawn(&mut command)?.wait_with_output()?;
        let result: RunResult = serde_json::from_slice(&output.stdout).map_err(|_| {
            MeasureError::Client(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        })?;
        let [window] = &*result.windows else {
            return Err(MeasureError::Client("it has not measured one window".to_owned()));
        };
        Ok(Figures {
            requests_per_s: window.figures().requests_per_s,
            server_cpu_us_per_request: window.figures().server_cpu_us_per_request,
            errors: result.errors(),
            client_is_the_limit: result.client_is_the_limit(),
        })
    }

    fn by_wrk(
        &self,
        program: &Path,
        url: &str,
        cell: Cell,
        running: &Running,
    ) -> Result<Figures, MeasureError> {
        let before = Sample::of_tree(running.pid())?;
        let mut command = wrk::command(program, url, cell, self.options.duration);
        let printed = wrk::read(&self.interrupt.spawn(&mut command)?.wait_with_output()?)?;
        let usage = Sample::of_tree(running.pid())?.since(&before)?;
        Ok(Figures {
            requests_per_s: printed.requests_per_s,
            server_cpu_us_per_request: (printed.requests > 0)
                .then(|| usage.cpu.as_secs_f64() * 1e6 / printed.requests as f64),
            errors: printed.errors,
            client_is_the_limit: false,
        })
    }
}

/// What a client says of a server.
struct Figures {
    requests_per_s: f64,
    server_cpu_us_per_request: Option<f64>,
    errors: u64,
    client_is_the_limit: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::{CELLS, Part};

    #[test]
    fn a_round_has_each_combination_once_and_servers_stay_together() {
        let servers: Vec<_> = Server::ALL.map(|server| (server, PathBuf::new())).into();
        let clients = [(Client::Run, PathBuf::new()), (Client::Wrk, PathBuf::new())];
        let mut random = fastrand::Rng::with_seed(7);
        let plan = order(&mut random, 3, &CELLS, &clients, &servers);
        let mut blocks = Vec::new();
        for block in plan.chunk_by(|a, b| (a.1, a.2.0) == (b.1, b.2.0)) {
            let (round, cell, client, _) = block[0];
            assert!(block.iter().all(|m| m.0 == round));
            let mut names: Vec<_> = block.iter().map(|m| m.3.0.name()).collect();
            names.sort_unstable();
            match cell.part {
                Part::Whole => assert_eq!(names, ["floor", "h2o", "lighttpd", "nginx", "onering"]),
                _ => assert_eq!(names, ["h2o", "lighttpd", "nginx", "onering"]),
            }
            assert!(!blocks.contains(&(cell.name, client.0.name())));
            blocks.push((cell.name, client.0.name()));
        }
        assert_eq!(blocks.len(), CELLS.len() * clients.len());
    }

    #[test]
    fn cpus_that_will_not_do_are_refused_before_anything_is_begun() {
        let options = |server_cpu, client_cpu| Options {
            cells: CELLS.to_vec(),
            servers: Server::ALL.to_vec(),
            clients: vec![Client::Run],
            rounds: 1,
            duration: Duration::from_secs(1),
            server_cpu,
            client_cpu,
            seed: 0,
            onering: None,
            former: None,
        };
        let here = affinity::allowed_cpus()[0];
        for (server_cpu, client_cpu) in [(1, 1), (here, 1023), (1023, here)] {
            let error = compare(&options(server_cpu, client_cpu), &mut |_| {}).unwrap_err();
            assert!(error.is_usage() && !error.is_permission(), "{error}");
        }
    }
}
