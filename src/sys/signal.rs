//! Signals as something to read. A process that is asked to end finds that in a descriptor which its
//! loop polls like any other: no handler runs, so that nothing needs to be safe inside one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::count_call;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// SIGTERM: end in good order.
    Terminate,
    /// SIGINT: the same, from a terminal.
    Interrupt,
}

/// The signals of this process, to be read.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
}

impl Signals {
    /// Blocks SIGTERM and SIGINT on this thread and opens the descriptor that tells of them.
    /// SIGPIPE is blocked too and never read: a write to a closed socket says EPIPE instead
    /// (sendfile(2) has no flag for that).
    ///
    /// Threads inherit what is blocked: call this on the main thread before it starts another.
    pub fn block() -> io::Result<Self> {
        let asking: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
        let mut blocked = asking;
        blocked.add(Signal::SIGPIPE);
        count_call();
        blocked.thread_block()?;
        count_call();
        let fd = SignalFd::with_flags(&asking, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { fd })
    }

    /// The next signal that has arrived; `None` when there is none. Never blocks.
    pub fn read(&self) -> io::Result<Option<Request>> {
        count_call();
        let Some(information) = self.fd.read_signal()? else { return Ok(None) };
        let interrupt = information.ssi_signo == Signal::SIGINT as u32;
        Ok(Some(if interrupt { Request::Interrupt } else { Request::Terminate }))
    }
}

impl AsFd for Signals {
    /// Readable when a signal has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use nix::sys::signal::raise;

    use super::*;
    use crate::sys::socket::{SendError, send_more};

    #[test]
    fn signals_are_read_and_do_not_kill() {
        let signals = Signals::block().expect("signalfd");
        assert_eq!(signals.read().expect("read"), None);
        // raise(3) signals the calling thread alone: no other test of the process sees it.
        raise(Signal::SIGTERM).expect("raise");
        assert_eq!(signals.read().expect("read"), Some(Request::Terminate));
        raise(Signal::SIGINT).expect("raise");
        assert_eq!(signals.read().expect("read"), Some(Request::Interrupt));
        assert_eq!(signals.read().expect("read"), None);
    }

    #[test]
    fn a_write_to_a_closed_peer_is_an_error() {
        let _signals = Signals::block().expect("signalfd");
        let (ours, theirs) = UnixStream::pair().expect("pair");
        drop(theirs);
        raise(Signal::SIGPIPE).expect("raise");
        assert_eq!(send_more(&ours, b"x"), Err(SendError::Closed));
    }
}
