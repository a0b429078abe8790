//! The closed-loop client: so many connections, each with so many requests in flight, all the time.
//!
//! One pinned thread and one ring for each CPU. A request is sent as soon as the response before it
//! is complete, so that the server sets the pace; what a slow response keeps from being asked is
//! not seen in the latencies of the others.
//!
//! A connection that has carried its requests ends by the *server's* close: the last request says
//! `Connection: close`, and the client waits for the FIN. So the server's way of closing is part of
//! what is measured, and the client does not run out of ports.

mod connection;
mod interval;
mod preflight;
mod thread;

#[cfg(test)]
mod tests;

use crate::process::{ProcessError, Sample, Usage};
use crate::report::{ClientCost, Cost, Load, RUN_SCHEMA, RunReport, per};
use crate::request::{Version, Wording};
use crate::tally::Tally;
use crate::target::Targets;
use interval::Measured;
use nix::unistd::Pid;
use onering::ring::SetupError;
use onering::sys::affinity::PinError;
use onering::sys::limits;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use preflight::PreflightError;

/// Most connections of a run.
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// Most requests in flight on a connection.
pub const PIPELINE_MAX: usize = 1024;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is asked for.
    pub targets: Targets,
    /// Connections held open, over all threads; at least one for each thread.
    pub connections: usize,
    /// Requests in flight on each connection, at least 1.
    pub pipeline: usize,
    /// After how many requests (at least 1) a connection ends; `None`: never.
    pub requests_per_connection: Option<u64>,
    /// What every request says.
    pub wording: Wording,
    /// The status of right answers.
    pub status: u16,
    /// The CPUs of the threads, one each; not empty.
    pub cpus: Vec<usize>,
    /// Before anything is counted.
    pub warmup: Duration,
    /// What is measured.
    pub duration: Duration,
    /// How long a connection may stand still before it is given up.
    pub timeout: Duration,
    /// The server's process, to account for it and its descendants.
    pub server: Option<Pid>,
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

/// What was measured.
#[derive(Debug)]
pub struct Outcome {
    /// The figures.
    pub report: RunReport,
    /// Why the report says nothing of the server, if its process was named.
    pub accounting: Result<(), ProcessError>,
}

/// Asks once to see that the server answers, then runs the plan.
pub fn run(plan: &Plan) -> Result<Outcome, RunError> {
    let limit = limits::raise_nofile()?;
    let needed = plan.connections + DESCRIPTORS_SPARE;
    if (needed as u64) > limit.soft {
        return Err(RunError::Descriptors { connections: plan.connections, limit: limit.soft });
    }
    if let Some(server) = plan.server {
        Sample::of_tree(server)?;
    }
    let answer = preflight::ask(plan)?;
    let begin = Instant::now() + plan.warmup;
    let threads: Vec<JoinHandle<Result<Measured, RunError>>> = shares(plan)
        .into_iter()
        .map(|share| {
            let (plan, answer_bytes) = (plan.clone(), answer.bytes);
            let run = move || thread::run(&plan, &share, answer_bytes, begin);
            std::thread::Builder::new().name(format!("client-{}", share.cpu)).spawn(run)
        })
        .collect::<Result<_, _>>()?;
    let results = threads.into_iter().map(|thread| match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    Ok(summarise(plan, results.collect::<Result<_, _>>()?))
}

/// The thread that reads what the server consumes, at both ends of its own interval.
const ACCOUNTANT: usize = 0;

/// One thread's part of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    cpu: usize,
    connections: usize,
    /// The first target it asks for.
    first_target: usize,
    /// The process it accounts for; only the thread [`ACCOUNTANT`] does.
    server: Option<Pid>,
}

/// Divides connections and targets evenly.
fn shares(plan: &Plan) -> Vec<Share> {
    let threads = plan.cpus.len();
    let share = |(i, &cpu): (usize, &usize)| Share {
        cpu,
        connections: plan.connections / threads + usize::from(i < plan.connections % threads),
        first_target: plan.targets.list.len() * i / threads,
        server: plan.server.filter(|_| i == ACCOUNTANT),
    };
    plan.cpus.iter().enumerate().map(share).collect()
}

fn summarise(plan: &Plan, mut results: Vec<Measured>) -> Outcome {
    let mut tally = Tally::new();
    let mut usage = Usage::default();
    let (mut enters, mut busiest_thread) = (0, 0_f64);
    let (mut requests_per_s, mut megabytes_per_s) = (0.0, 0.0);
    for part in &results {
        let seconds = part.duration.as_secs_f64();
        tally.add(&part.tally);
        usage = usage.and(part.usage);
        enters += part.enters;
        busiest_thread = busiest_thread.max(part.usage.cpu.as_secs_f64() / seconds);
        // The intervals of two threads differ by up to a turn of their loops.
        requests_per_s += part.tally.requests as f64 / seconds;
        megabytes_per_s += part.tally.received_bytes as f64 / seconds / 1e6;
    }
    let requests = tally.requests;
    let Measured { duration: measured, server, .. } = results.swap_remove(ACCOUNTANT);
    let cost = |usage| Cost::new(usage, requests, measured);
    let (server, accounting) = match server {
        None => (None, Ok(())),
        Some(Ok(usage)) => (Some(cost(usage)), Ok(())),
        Some(Err(error)) => (None, Err(error)),
    };
    let report = RunReport {
        schema: RUN_SCHEMA.to_owned(),
        load: load(plan),
        measured_s: measured.as_secs_f64(),
        requests,
        requests_per_s,
        megabytes_per_s,
        connects: tally.connects,
        errors: tally.errors,
        latency_us: tally.latency(),
        client: ClientCost {
            cost: cost(usage),
            busiest_thread,
            enters_per_request: per(enters as f64, requests),
        },
        server,
    };
    Outcome { report, accounting }
}

/// The plan as the report states it.
fn load(plan: &Plan) -> Load {
    let first = &plan.targets.list[0];
    Load {
        workload: "get".to_owned(),
        target: format!("http://{}{}", first.authority, first.path),
        targets: plan.targets.list.len(),
        connections: plan.connections,
        pipeline: plan.pipeline,
        requests_per_connection: plan.requests_per_connection,
        http: match plan.wording.version {
            Version::Http10 => "1.0".to_owned(),
            Version::Http11 => "1.1".to_owned(),
        },
        fields: plan.wording.fields.iter().map(ToString::to_string).collect(),
        status: plan.status,
        cpus: plan.cpus.clone(),
    }
}
