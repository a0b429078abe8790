//! A server that runs: started, seen to listen, stopped; all by its process id.

use super::configuration::Assignment;
use crate::interrupt::Interrupt;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to begin, and to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);

/// Why a server is not measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    /// It could not be started.
    #[error("cannot be started: {0}")]
    Start(#[from] io::Error),
    /// It ended by itself.
    #[error("ended at once ({status}): {said}")]
    Ended {
        /// How.
        status: std::process::ExitStatus,
        /// The last of what it wrote.
        said: String,
    },
    /// It does not listen.
    #[error("does not listen after {} s", PATIENCE.as_secs())]
    Silent,
}

/// The process, stopped on drop with all that it has started.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Starts a server on its CPUs by its command and waits until it listens. The calling thread is
    /// on `own_cpus` afterwards.
    pub(super) fn start(
        mut command: Command,
        assignment: &Assignment<'_>,
        interrupt: &Interrupt,
        own_cpus: &[usize],
    ) -> Result<Self, ServerError> {
        let said = assignment.scratch.join("output");
        let output = File::create(&said)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // A group of its own: what a terminal sends to this program's group does not reach it, and
        // whatever it leaves behind is found by the group.
        command.process_group(0);
        // A process is born on the CPUs of the thread that starts it.
        keep_to(assignment.cpus)?;
        let child = interrupt.spawn(&mut command);
        keep_to(own_cpus)?;
        let mut running = Self { child: child? };
        running.await_listening(assignment, &said)?;
        Ok(running)
    }

    /// The process, of which others may descend.
    pub(super) fn pid(&self) -> Pid {
        // Process ids fit into the type that the kernel has for them.
        Pid::from_raw(self.child.id() as i32)
    }

    fn await_listening(
        &mut self,
        assignment: &Assignment<'_>,
        said: &Path,
    ) -> Result<(), ServerError> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Err(ServerError::Ended { status, said: last_lines(said) });
            }
            if TcpStream::connect(assignment.address).is_ok() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Err(ServerError::Silent)
    }

    /// Whether it has ended; it is not reaped, so that its id and its group's stay its own.
    fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::Pid(self.pid()), flags), Ok(WaitStatus::StillAlive))
    }

    fn signal(&self, sent: Result<(), Errno>) {
        match sent {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(errno) => eprintln!("onering-bench: cannot stop {}: {errno}", self.pid()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A server that was seen to end has been reaped: its id may be another's by now.
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal(kill(self.pid(), Signal::SIGTERM));
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE && !self.has_ended() {
            std::thread::sleep(LOOK);
        }
        self.signal(killpg(self.pid(), Signal::SIGKILL));
        let _ = self.child.wait();
    }
}

/// Keeps the calling thread, and what it starts, to these CPUs.
pub(super) fn keep_to(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// The end of a file of messages, on one line that people can still read.
fn last_lines(file: &Path) -> String {
    let text = fs::read(file).unwrap_or_default();
    let end = text.len().saturating_sub(MESSAGE_BYTES);
    let lines = String::from_utf8_lossy(&text[end..]).into_owned();
    lines.lines().collect::<Vec<_>>().join("; ")
}

/// How much of what a server has written is shown if it fails.
const MESSAGE_BYTES: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::cell::Cell;
    use crate::compare::certificate::Certificate;
    use onering::sys::affinity::allowed_cpus;
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};

    /// Starts a "server" that is a shell script in a directory of its own, and is thought to listen
    /// at an address.
    fn start(
        script: &str,
        address: SocketAddr,
        look: impl FnOnce(Result<Running, ServerError>, &Path) + Send,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let assignment = Assignment {
            address,
            root: directory.path(),
            scratch: directory.path(),
            cpus: &allowed_cpus()[..1],
            cell: Cell::named("1k-64").unwrap(),
            certificate: &Certificate::kept_in(directory.path()),
        };
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(directory.path());
        // Affinity and held signals are a thread's own.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let interrupt = Interrupt::hold().unwrap();
                let running = Running::start(command, &assignment, &interrupt, &allowed_cpus());
                look(running, directory.path());
            });
        });
    }

    fn eventually(what: impl Fn() -> bool) {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::sleep(LOOK);
        }
    }

    #[test]
    fn what_a_server_leaves_behind_ends_with_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let script = "sleep 60 & echo $! > kept; mv kept left; exec sleep 60";
        start(script, listener.local_addr().unwrap(), |running, directory| {
            let running = running.unwrap();
            eventually(|| directory.join("left").exists());
            let left = fs::read_to_string(directory.join("left")).unwrap();
            let state = || fs::read_to_string(format!("/proc/{}/stat", left.trim()));
            assert!(state().is_ok());
            drop(running);
            eventually(|| state().map_or(true, |state| state.contains(") Z ")));
        });
    }

    #[test]
    fn a_server_that_does_not_stand_is_heard() {
        // Nobody listens at the port of tcpmux.
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        start("echo the port is taken; exit 3", nowhere, |running, _| match running {
            Err(ServerError::Ended { said, .. }) => assert_eq!(said, "the port is taken"),
            other => panic!("{other:?}"),
        });
    }
}
