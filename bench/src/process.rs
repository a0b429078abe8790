//! What a server costs: CPU time and context switches of a process and all its descendants.
//!
//! CPU time comes from each process's CPU clock, which is exact to the moment of the reading and
//! keeps the time of threads that have ended (`/proc/PID/stat` counts in ticks of 10 ms, and
//! `/proc/PID/schedstat` lags by up to a scheduler tick). On loopback it holds the network's soft
//! interrupts that run in the process's own system calls, and not those that run in the client's.

use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::time::Duration;

/// Why a process cannot be accounted for.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It is not there, or ended while it was read.
    #[error("cannot read process {pid}: {error}")]
    Unreadable {
        /// The process.
        pid: Pid,
        /// Why.
        error: io::Error,
    },
    /// Processes came or went between two samples, so that their difference means nothing.
    #[error("processes {before:?} became {after:?} during the measurement")]
    Changed {
        /// At the first sample.
        before: Vec<i32>,
        /// At the second.
        after: Vec<i32>,
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

/// A process with all its descendants at one moment, and what they had consumed by then.
#[derive(Clone, Debug)]
pub struct Sample {
    usage: Usage,
    members: Vec<Pid>,
}

impl Sample {
    /// Reads the process `root` and its descendants.
    pub fn of_tree(root: Pid) -> Result<Self, ProcessError> {
        let mut members = vec![root];
        let mut usage = Usage::default();
        let mut next = 0;
        while let Some(&pid) = members.get(next) {
            match usage_of(pid).and_then(|own| Ok((own, children_of(pid)?))) {
                Ok((own, children)) => {
                    usage = usage.and(own);
                    members.extend(children);
                    next += 1;
                }
                // It has ended between its parent's word and ours: that is seen by who is left.
                Err(error) if pid != root && is_gone(&error) => {
                    members.remove(next);
                }
                Err(error) => return Err(ProcessError::Unreadable { pid, error }),
            }
        }
        members.sort_unstable();
        Ok(Self { usage, members })
    }

    /// What was consumed since `earlier`, if the processes are still the same ones.
    pub fn since(&self, earlier: &Self) -> Result<Usage, ProcessError> {
        if self.members != earlier.members {
            let numbers = |pids: &[Pid]| pids.iter().map(|pid| pid.as_raw()).collect();
            return Err(ProcessError::Changed {
                before: numbers(&earlier.members),
                after: numbers(&self.members),
            });
        }
        Ok(self.usage.since(earlier.usage))
    }
}

/// Whether an error means that a process or a thread has ended.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// A file of each thread of a process, but for threads that end meanwhile.
fn of_each_thread(pid: Pid, file: &str) -> io::Result<Vec<String>> {
    let mut texts = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        match fs::read_to_string(task?.path().join(file)) {
            Ok(text) => texts.push(text),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(texts)
}

fn usage_of(pid: Pid) -> io::Result<Usage> {
    let mut usage =
        Usage { cpu: ClockId::pid_cpu_clock_id(pid)?.now()?.into(), ..Usage::default() };
    for status in of_each_thread(pid, "status")? {
        usage.voluntary_switches += field(&status, "voluntary_ctxt_switches:")?;
        usage.involuntary_switches += field(&status, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(usage)
}

/// The children that any thread of `pid` has started.
fn children_of(pid: Pid) -> io::Result<Vec<Pid>> {
    let mut children = Vec::new();
    for list in of_each_thread(pid, "children")? {
        children.extend(list.split_whitespace().filter_map(|n| n.parse().ok()).map(Pid::from_raw));
    }
    Ok(children)
}

/// The number behind `name` at the beginning of a line of `/proc/PID/status`.
fn field(status: &str, name: &str) -> io::Result<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value
        .and_then(|value| value.trim().parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no {name} in status")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t15\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:").unwrap(), 15);
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:").unwrap(), 7);
        assert!(field(status, "other:").is_err());
    }

    #[test]
    fn own_cpu_time_is_seen_and_grows() {
        let earlier = Sample::of_tree(Pid::this()).unwrap();
        let mut value = 1_u64;
        for i in 0..1_000_000_u64 {
            value = std::hint::black_box(value.wrapping_mul(31) ^ i);
        }
        let thread = Usage::of_this_thread().unwrap();
        let later = Usage::of_this_thread().unwrap();
        assert!(later.cpu >= thread.cpu);
        // Other tests may start processes meanwhile: the set of members is not compared here.
        let usage = usage_of(Pid::this()).unwrap();
        assert!(usage.cpu > earlier.usage.cpu, "{usage:?} {earlier:?}");
    }

    #[test]
    fn descendants_are_members_and_their_end_is_noticed() {
        let mut shell = Command::new("sh")
            .args(["-c", "cat; :"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let root = Pid::from_raw(shell.id() as i32);
        let both = loop {
            let sample = Sample::of_tree(root).unwrap();
            if sample.members.len() == 2 {
                break sample;
            }
            std::thread::yield_now();
        };
        assert!(both.since(&both).is_ok());
        let alone = Sample { members: vec![root], ..both.clone() };
        assert!(matches!(alone.since(&both), Err(ProcessError::Changed { .. })));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(matches!(Sample::of_tree(root), Err(ProcessError::Unreadable { .. })));
    }
}
