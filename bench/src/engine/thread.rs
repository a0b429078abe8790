//! One thread of the engine: its CPU, its ring, and the clock by which its counts are cut.

use super::client::{Client, Orders, SWEEP, UserTally};
use super::network::{Network, RingNetwork};
use super::schedule::Schedule;
use super::tls::TlsNetwork;
use super::windows::{Phase, Windows};
use super::{Model, Plan, RunError, Share, Tls};
use crate::process::{ProcessError, Sample, Usage, cpu_awaited_by_this_thread};
use crate::tally::Tally;
use crate::tls::TlsClient;
use crate::workload::Workload;
use nix::unistd::Pid;
use onering::ring::{Ring, Setup};
use onering::sys::affinity;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Bounds of a receive buffer: it shall hold a whole response, and not evict the caches.
const RECV_BUFFER_BYTES: std::ops::RangeInclusive<u64> = 2048..=64 * 1024;

/// Bounds of the number of receive buffers: one for each connection.
const RECV_BUFFERS: std::ops::RangeInclusive<usize> = 64..=4096;

/// What a thread tells.
#[derive(Debug)]
pub(super) enum Message {
    /// A part of the run is over.
    Part(Box<Part>),
    /// A window is.
    Window(WindowEnd),
}

/// What was counted on one thread in a part of the run.
#[derive(Debug)]
pub(super) struct Part {
    /// Which part, from 0: the same one on every thread.
    pub(super) number: usize,
    /// When it began.
    pub(super) from: Instant,
    pub(super) phase: Phase,
    pub(super) tally: Tally,
    /// At its end.
    pub(super) in_flight: usize,
}

/// What a window has cost a thread, and what its users have done.
#[derive(Debug)]
pub(super) struct WindowEnd {
    /// Which window.
    pub(super) number: usize,
    /// When it really began.
    pub(super) begin: Instant,
    /// How long it really was.
    pub(super) duration: Duration,
    /// The thread's own consumption.
    pub(super) usage: Usage,
    /// How long the thread had something to do and no CPU.
    pub(super) cpu_awaited: Duration,
    /// The thread's calls of `io_uring_enter(2)`.
    pub(super) enters: u64,
    /// The server's consumption, if this thread accounts for it.
    pub(super) server: Option<Result<Usage, ProcessError>>,
    pub(super) users: Vec<UserTally>,
}

/// Runs one thread's share until the last window is over or `stop` is set.
pub(super) fn run<W: Workload>(
    plan: &Plan,
    share: &Share,
    workload: W,
    windows: &Windows,
    stop: &AtomicBool,
    messages: &Sender<Message>,
) -> Result<(), RunError> {
    affinity::pin(share.cpu)?;
    // Planned starts are met to the microsecond; by default the kernel lets timers be 50 µs late.
    nix::sys::prctl::set_timerslack(1).map_err(io::Error::from)?;
    let ring = Ring::new(&setup(plan, share.connections))?;
    let network = RingNetwork::new(ring, plan.server);
    let orders = orders(plan, share, windows);
    let clockwork =
        Clockwork { windows, stop, server: share.accounts_for, reading: None, messages };
    match &plan.tls {
        None => clockwork.run(Client::new(network, workload, orders), plan.timeout)?,
        Some(Tls { settings, resume_percent }) => {
            let client = TlsClient::new(settings, *resume_percent, drawn_from(plan.seed, share));
            let network = TlsNetwork::new(network, client);
            clockwork.run(Client::new(network, workload, orders), plan.timeout)?;
        }
    }
    Ok(())
}

/// What a thread draws from whether a connection resumes a session.
fn drawn_from(seed: u64, share: &Share) -> u64 {
    let (part, _) = share.part;
    // Another constant than any other draw of the run has.
    fastrand::Rng::with_seed(seed ^ 0x0074_6c73).u64(..).wrapping_add(part as u64)
}

/// What `plan` says of one thread's share.
pub(super) fn orders(plan: &Plan, share: &Share, windows: &Windows) -> Orders {
    let schedule = match plan.model {
        Model::Closed => None,
        Model::Open { rate_per_s, arrivals } => {
            Some(Schedule::new(windows.begin(), rate_per_s, arrivals, plan.seed, share.part))
        }
    };
    Orders {
        connections: share.connections,
        pipeline: plan.pipeline,
        schedule,
        until: windows.end(),
        kept: plan.kept,
        from_connect: plan.from_connect,
        pace: plan.pace,
        ramp: plan.ramp,
        timeout: plan.timeout,
    }
}

fn setup(plan: &Plan, connections: usize) -> Setup {
    let (smallest, largest) = RECV_BUFFER_BYTES.into_inner();
    let (fewest, most) = RECV_BUFFERS.into_inner();
    let power = connections.next_power_of_two();
    let recv_buffer_bytes = match plan.pace {
        Some(_) => crate::line::READ_BYTES as u32,
        None => plan.answer_bytes.clamp(smallest, largest).next_power_of_two() as u32,
    };
    Setup {
        entries: (2 * power).clamp(fewest, most) as u32,
        recv_buffers: power.clamp(fewest, most) as u16,
        recv_buffer_bytes,
        ..Setup::default()
    }
}

/// Cuts a client's counts into parts and windows.
pub(super) struct Clockwork<'a> {
    pub(super) windows: &'a Windows,
    pub(super) stop: &'a AtomicBool,
    /// The process to account for.
    pub(super) server: Option<Pid>,
    /// All readings at the beginning of the window.
    pub(super) reading: Option<Reading>,
    pub(super) messages: &'a Sender<Message>,
}

#[derive(Debug)]
pub(super) struct Reading {
    window: usize,
    at: Instant,
    usage: Usage,
    cpu_awaited: Duration,
    enters: u64,
    server: Option<Result<Sample, ProcessError>>,
}

impl Clockwork<'_> {
    /// Lets `client` run to the end. What the last window has planned is awaited for `patience`.
    pub(super) fn run<N: Network, W: Workload>(
        mut self,
        mut client: Client<N, W>,
        patience: Duration,
    ) -> io::Result<()> {
        let mut from = self.windows.begin();
        let mut phase = self.windows.phase(from);
        self.begin(phase, from, &mut client)?;
        for number in 0.. {
            let edge = self.windows.edge(from);
            let stopped = loop {
                let now = client.turn(edge)?;
                if self.stop.load(Ordering::Relaxed) {
                    break true;
                }
                if now >= edge || phase == Phase::Draining && client.drained() {
                    break false;
                }
            };
            let next = if stopped { Phase::Draining } else { self.windows.phase(edge) };
            let over = next == Phase::Draining
                && (stopped || client.drained() || edge >= self.windows.end() + patience);
            if over {
                client.end();
            }
            let tally = client.take_tally();
            let in_flight = client.in_flight();
            let part = Part { number, from, phase, tally, in_flight };
            // Nobody listens any more only where the run has failed elsewhere.
            let _ = self.messages.send(Message::Part(Box::new(part)));
            if next != phase {
                self.end(&mut client)?;
                if !over {
                    self.begin(next, edge, &mut client)?;
                }
            }
            if over {
                return Ok(());
            }
            (from, phase) = (edge, next);
        }
        Ok(())
    }

    /// What is to be read when a phase begins.
    fn begin<N: Network, W: Workload>(
        &mut self,
        phase: Phase,
        planned_from: Instant,
        client: &mut Client<N, W>,
    ) -> io::Result<()> {
        let Phase::Measured(window) = phase else { return Ok(()) };
        client.count_from(planned_from);
        client.take_users();
        // The clock is read after the server, at both ends.
        let server = self.server.map(Sample::of_tree);
        let usage = Usage::of_this_thread()?;
        let cpu_awaited = cpu_awaited_by_this_thread();
        let (at, enters) = (client.now(), client.enters());
        self.reading = Some(Reading { window, at, usage, cpu_awaited, enters, server });
        Ok(())
    }

    /// What is to be told when a window is over.
    fn end<N: Network, W: Workload>(&mut self, client: &mut Client<N, W>) -> io::Result<()> {
        let Some(begin) = self.reading.take() else { return Ok(()) };
        let server = begin.server.zip(self.server).map(|(earlier, pid)| {
            let earlier = earlier?;
            Sample::of_tree(pid)?.since(&earlier)
        });
        let end = WindowEnd {
            number: begin.window,
            begin: begin.at,
            duration: client.now().saturating_duration_since(begin.at),
            usage: Usage::of_this_thread()?.since(begin.usage),
            cpu_awaited: cpu_awaited_by_this_thread().saturating_sub(begin.cpu_awaited),
            enters: client.enters() - begin.enters,
            server,
            users: client.take_users(),
        };
        let _ = self.messages.send(Message::Window(end));
        Ok(())
    }
}

const _: () = assert!(SWEEP.as_millis() <= 1000, "`stop` is looked at once a turn");
