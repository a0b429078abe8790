//! What a server costs: CPU time, context switches and memory of all its processes together.
//!
//! The processes are the root's: its descendants, and the process group and the session that it
//! leads, if it leads one. They may come and go while something is measured: children of a master,
//! CGI programs.
//!
//! **CPU time.** A living process has a CPU clock, exact to the moment of the reading, which keeps
//! the time of threads that have ended. (`/proc/PID/stat` counts in ticks of 10 ms, and
//! `/proc/PID/schedstat` lags by up to a scheduler tick.) When a process has ended and its parent
//! has waited for it, its time and that of the children for which it had waited are found in the
//! parent's, as `cutime` and `cstime` (wait(2), getrusage(2)). So what was consumed between two
//! moments is the difference of *clock + waited-for children's time* over all processes, less what
//! the ended ones had consumed before. How far that may be off:
//!
//! | what | off by |
//! |---|---|
//! | processes that live at both moments, or were born between and live | nothing |
//! | processes that have ended, waited for | two ticks (20 ms) for each parent that waited, over the whole measurement and however many children: both figures are rounded down at both ends |
//! | processes that have ended, waited for by nobody (SIGCHLD ignored), or by none of the group | what they consumed since the last look; they are counted as *lost* when they were seen before, and an ignored SIGCHLD is told |
//! | processes born during the reading itself | what they had consumed by then |
//!
//! On loopback the clocks hold the network's soft interrupts that run in the server's own system
//! calls, and not those that run in the client's.
//!
//! **Context switches** are those of threads, and end with them: of a thread or process that has
//! ended, those since the last look are missing. They are a lower bound where threads end.
//!
//! **Memory** is the proportional set size, in which a page shared by *n* processes counts one
//! *n*th, so that it can be added up; where that may not be read, the resident set size, which
//! counts shared pages once for each process.

mod group;
mod memory;
mod sample;

pub use group::{Consumption, Group};
pub use memory::{Measure, Memory};
pub use sample::Sample;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::io;
use std::time::Duration;

/// Why a process cannot be accounted for.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It is not there, or it may not be read.
    #[error(
        "cannot read process {pid}: {error}\n  fix: name a process that runs, and may be read by you, with --server-pid"
    )]
    Unreadable {
        /// The process.
        pid: Pid,
        /// Why.
        error: io::Error,
    },
    /// It has ended in the meantime.
    #[error("process {pid} has ended during the measurement")]
    Ended {
        /// The process.
        pid: Pid,
    },
}

/// Consumed by a set of processes, or by a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because another was due.
    pub involuntary_switches: u64,
}

impl Usage {
    /// What was consumed since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }

    /// Of both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }

    /// Of the calling thread since it began.
    pub fn of_this_thread() -> io::Result<Self> {
        use nix::sys::resource::{UsageWho, getrusage};
        let switches = getrusage(UsageWho::RUSAGE_THREAD)?;
        Ok(Self {
            cpu: clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into(),
            voluntary_switches: switches.voluntary_context_switches().unsigned_abs(),
            involuntary_switches: switches.involuntary_context_switches().unsigned_abs(),
        })
    }
}

/// How long the calling thread has waited for a CPU while it had something to do, since it began; zero
/// where the kernel does not tell (proc(5), `schedstat`).
pub fn cpu_awaited_by_this_thread() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_ascii_whitespace().nth(1).and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

#[cfg(test)]
mod tests;
