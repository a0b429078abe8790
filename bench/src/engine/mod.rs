//! The engine: so many connections to one server, on a pinned thread and a ring for each CPU.
//!
//! | module | is | must not know |
//! |---|---|---|
//! | [`windows`] | when is measured | what is measured |
//! | `schedule` | planned starts of an open loop | connections |
//! | `exchanges` | requests of one connection and responses to them | sockets |
//! | `network` | connections and a clock: a ring, or a test's play | requests |
//! | `tls` | TLS over such connections | requests |
//! | `client` | the connections of one thread: with `planned` in an open loop, with `paced` on lines | threads, rings |
//! | `thread` | a CPU, its ring, and the clockwork that cuts its counts | other threads |
//! | `collector` | what all threads have counted | how |
//! | `server` | the memory of the server's processes | connections |
//! | `summary` | the result of it | |
//! | [`preflight`] | one request before the run | |
//!
//! **Closed loop**: a request is sent as soon as the response before it is complete. A server that
//! stands still is waited for: it gets fewer requests, and only as many long times as there are
//! connections.
//!
//! **Open loop**: each request has a planned start, whatever the server does. If no connection is
//! free then, it waits for one, and its response time runs.

mod client;
mod collector;
mod exchanges;
mod network;
mod paced;
mod planned;
pub mod preflight;
mod schedule;
mod server;
mod summary;
#[cfg(test)]
mod tests;
mod thread;
mod timers;
mod tls;
pub mod windows;

use crate::line::Pace;
use crate::process::{ProcessError, Sample};
use crate::result::load::Arrivals;
use crate::result::window::Window as WindowResult;
use crate::tls::TlsSettings;
use crate::workload::Workload;
use collector::Collector;
use nix::unistd::Pid;
use onering::ring::SetupError;
use onering::sys::affinity::{self, PinError};
use onering::sys::limits;
use server::ServerWatch;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use windows::{Window, Windows};

pub use collector::Progress;
pub use preflight::PreflightError;

/// Most connections of a run.
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// Most requests in flight on a connection.
pub const PIPELINE_MAX: usize = 1024;

/// Who decides when a request is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// The server, by answering the one before it.
    Closed,
    /// A schedule.
    Open {
        /// Planned starts each second, over all threads; above zero.
        rate_per_s: f64,
        /// How they follow each other.
        arrivals: Arrivals,
    },
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub server: SocketAddr,
    /// How TLS is spoken, if it is.
    pub tls: Option<Tls>,
    /// When requests are sent.
    pub model: Model,
    /// What Poisson arrivals are drawn from.
    pub seed: u64,
    /// Connections held open, over all threads; at least one for each thread.
    pub connections: usize,
    /// Requests in flight on each connection, at least 1; 1 in an open loop and on a line.
    pub pipeline: usize,
    /// Whether connections carry more than one request.
    pub kept: bool,
    /// Whether service time counts from the beginning of the connection and not from the send: for
    /// connections of one request, where the connection is what is measured.
    pub from_connect: bool,
    /// How fast the users' lines are; `None` for as fast as it goes.
    pub pace: Option<Pace>,
    /// Over how long the first connections are opened.
    pub ramp: Duration,
    /// Bytes of a typical response, for the size of buffers.
    pub answer_bytes: u64,
    /// The CPUs of the threads, one each; not empty.
    pub cpus: Vec<usize>,
    /// What is measured; not empty. One in an open loop, where what a window has planned is awaited
    /// when the last one is over.
    pub windows: Vec<Window>,
    /// How long a connection may stand still before it is given up, and how long an open loop waits
    /// for answers at the end.
    pub timeout: Duration,
    /// The server's process, to account for it and its descendants.
    pub server_process: Option<Pid>,
}

/// How TLS is spoken.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Versions, ciphers, names.
    pub settings: TlsSettings,
    /// Of a hundred connections, how many are to resume a session.
    pub resume_percent: u8,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server did not answer the first request as it must.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// The server's process cannot be accounted for.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A CPU cannot be used.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// No ring.
    #[error(transparent)]
    Ring(#[from] SetupError),
    /// Each connection needs a descriptor.
    #[error("{connections} connections need more than the {limit} descriptors that this process \
             may open\n  fix: ulimit -n {}", connections + DESCRIPTORS_SPARE)]
    Descriptors {
        /// What was asked for.
        connections: usize,
        /// RLIMIT_NOFILE, hard.
        limit: u64,
    },
    /// A system call failed that should not.
    #[error("cannot go on: {0}")]
    System(#[from] io::Error),
}

/// Descriptors needed beside those of the connections, with some to spare: a connection's
/// successor may be opened before the kernel has let go of it.
const DESCRIPTORS_SPARE: usize = 256;

/// One thread's part of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Where it runs.
    pub cpu: usize,
    /// How many connections it has.
    pub connections: usize,
    /// The number of the first of them among all.
    pub first_connection: usize,
    /// Which part of how many it is.
    pub part: (usize, usize),
    /// The process it accounts for; only the first thread does.
    accounts_for: Option<Pid>,
}

/// Divides connections evenly.
fn shares(plan: &Plan) -> Vec<Share> {
    let threads = plan.cpus.len();
    let (each, rest) = (plan.connections / threads, plan.connections % threads);
    let share = |(i, &cpu): (usize, &usize)| Share {
        cpu,
        connections: each + usize::from(i < rest),
        first_connection: each * i + i.min(rest),
        part: (i, threads),
        accounts_for: plan.server_process.filter(|_| i == 0),
    };
    plan.cpus.iter().enumerate().map(share).collect()
}

/// Who watches a run.
pub trait Watcher {
    /// A part of the run, a second or less, is over.
    fn part(&mut self, progress: &Progress<'_>);

    /// Whether the run is to end early; asked several times a second.
    fn wants_to_stop(&mut self) -> bool;
}

/// How often a watcher is asked at least.
const ASK: Duration = Duration::from_millis(100);

/// Runs the plan: `workload` makes each thread's users. Gives the windows that were begun, each with
/// the name that `name` has for its number.
pub fn run<W: Workload>(
    plan: &Plan,
    workload: &(dyn Fn(&Share) -> W + Sync),
    name: &dyn Fn(usize) -> String,
    watcher: &mut dyn Watcher,
) -> Result<Vec<WindowResult>, RunError> {
    let limit = limits::raise_nofile()?;
    let needed = plan.connections + DESCRIPTORS_SPARE;
    if (needed as u64) > limit.soft {
        return Err(RunError::Descriptors { connections: plan.connections, limit: limit.soft });
    }
    if let Some(server) = plan.server_process {
        Sample::of_tree(server)?;
    }
    let shares = shares(plan);
    let classes = workload(&shares[0]).classes();
    // Whoever watches is not to take time from the server.
    affinity::pin(shares[0].cpu)?;
    let windows = Windows::from_now(plan.windows.clone());
    let stop = AtomicBool::new(false);
    let mut collector = Collector::new(&windows, shares.len());
    let mut server = plan.server_process.map(ServerWatch::new);
    if let Some(server) = &mut server {
        server.turn(windows.phase(windows.begin()));
    }
    let mut watch = |mut progress: Progress<'_>, next, watcher: &mut dyn Watcher| {
        progress.server = server.as_mut().and_then(|server| server.turn(next));
        watcher.part(&progress);
    };
    let run_share = |share: &Share, messages: &mpsc::Sender<_>| {
        let result = thread::run(plan, share, workload(share), &windows, &stop, messages);
        if result.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        result
    };
    std::thread::scope(|scope| {
        let (sender, messages) = mpsc::channel();
        let mut threads = Vec::new();
        for share in &shares {
            let (run_share, sender) = (&run_share, sender.clone());
            let builder = std::thread::Builder::new().name(format!("client-{}", share.cpu));
            threads.push(builder.spawn_scoped(scope, move || run_share(share, &sender))?);
        }
        drop(sender);
        loop {
            match messages.recv_timeout(ASK) {
                Ok(message) => collector.take(message, &mut |p, next| watch(p, next, watcher)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if watcher.wants_to_stop() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        for thread in threads {
            match thread.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, RunError>(())
    })?;
    let measured = collector.windows(&mut |p, next| watch(p, next, watcher));
    let mut memory = server.map(ServerWatch::finish).unwrap_or_default();
    let window = |(number, measured)| {
        let server = plan.server_process.map(|_| memory.remove(&number));
        summary::window(name(number), measured, &classes, plan.pace.is_some(), server)
    };
    Ok(measured.into_iter().enumerate().map(window).collect())
}
