//! Being asked to stop in the middle: what was measured is still printed, and no server is left
//! behind.

use nix::sys::signal::{SigSet, Signal};
use onering::sys::signal::{self, Signals};
use std::cell::Cell;
use std::io;
use std::process::{Child, Command};

/// SIGTERM and SIGINT, held back from this process and looked for between two steps.
#[derive(Debug)]
pub(super) struct Interrupt {
    signals: Signals,
    seen: Cell<bool>,
}

impl Interrupt {
    /// Holds them back from now on.
    pub(super) fn hold() -> io::Result<Self> {
        Ok(Self { signals: signal::block_termination()?, seen: Cell::new(false) })
    }

    /// Whether one has come.
    pub(super) fn has_come(&self) -> io::Result<bool> {
        if !self.seen.get() {
            self.seen.set(self.signals.read()?.is_some());
        }
        Ok(self.seen.get())
    }

    /// Starts a process to which signals are delivered as usual: a child inherits what its parent
    /// holds back, and a server that cannot be told to end would have to be killed. So nothing is
    /// held back for the moment of the start.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        if self.has_come()? {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let held: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
        held.thread_unblock()?;
        let child = command.spawn();
        held.thread_block()?;
        child
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{kill, raise};
    use nix::unistd::Pid;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_child_can_be_told_to_end_and_an_interrupt_stops_the_next() {
        let interrupt = Interrupt::hold().unwrap();
        let mut child = interrupt.spawn(Command::new("sleep").arg("60")).unwrap();
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
        assert!(!interrupt.has_come().unwrap());
        raise(Signal::SIGINT).unwrap();
        assert!(interrupt.has_come().unwrap() && interrupt.has_come().unwrap());
        let refused = interrupt.spawn(Command::new("sleep").arg("60")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Interrupted);
    }
}
