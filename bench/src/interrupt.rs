//! Being asked to stop in the middle: what was measured is still printed, and no server is left
//! behind.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::TimeSpec;
use onering::sys::signal::{self, Signals};
use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::time::Duration;

/// SIGTERM and SIGINT, held back from this process and looked for between two steps.
///
/// Threads inherit what is held back: hold the signals before the first thread is started.
#[derive(Debug)]
pub struct Interrupt {
    signals: Signals,
    seen: Cell<bool>,
}

impl Interrupt {
    /// Holds them back from now on.
    pub fn hold() -> io::Result<Self> {
        Ok(Self { signals: signal::block_termination()?, seen: Cell::new(false) })
    }

    /// Whether one has come.
    pub fn has_come(&self) -> io::Result<bool> {
        if !self.seen.get() {
            self.seen.set(self.signals.read()?.is_some());
        }
        Ok(self.seen.get())
    }

    /// Waits until one has come, `timeout` at most, and says whether one has.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        if !self.has_come()? {
            let mut fds = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.has_come()
    }

    /// Lets go of them on the calling thread: the next one ends the process at once, as if nothing
    /// had been held. To be called when the first has been obeyed, and winding up may take longer
    /// than patience.
    pub fn let_go(&self) -> io::Result<()> {
        Ok(held().thread_unblock()?)
    }

    /// Starts a process to which signals are delivered as usual. Nothing is let go of here in the
    /// meantime: an interrupt at that very moment would end this program, and leave behind whatever
    /// it has started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        if self.has_come()? {
            return Err(io::ErrorKind::Interrupted.into());
        }
        signal::unblock_termination_in(command);
        command.spawn()
    }
}

fn held() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT].into_iter().collect()
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

    #[test]
    fn a_wait_ends_with_the_interrupt_or_without() {
        let interrupt = Interrupt::hold().unwrap();
        assert!(!interrupt.wait(Duration::from_millis(1)).unwrap());
        raise(Signal::SIGINT).unwrap();
        assert!(interrupt.wait(Duration::from_secs(3600)).unwrap());
        assert!(interrupt.wait(Duration::from_secs(3600)).unwrap());
    }

    #[test]
    fn once_let_go_of_the_signals_are_delivered_again() {
        std::thread::spawn(|| {
            let interrupt = Interrupt::hold().unwrap();
            let blocked = || SigSet::thread_get_mask().unwrap().contains(Signal::SIGINT);
            assert!(blocked());
            interrupt.let_go().unwrap();
            assert!(!blocked());
        })
        .join()
        .unwrap();
    }
}
