//! Signals as something to read. A process that is asked to end finds that in a descriptor which its
//! loop polls like any other: no handler runs, so that nothing needs to be safe inside one.

#![allow(unsafe_code, reason = "signal(2) is unsafe in nix, for it can install handlers")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::count_call;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// SIGTERM: end in good order.
    Terminate,
    /// SIGINT: the same, from a terminal.
    Interrupt,
    /// SIGHUP: read the configuration again.
    Hangup,
}

/// The signals of this process, to be read.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
}

/// Blocks SIGTERM and SIGINT on this thread and opens the descriptor that tells of them.
///
/// Threads inherit what is blocked: call this on the main thread before it starts another.
pub fn block_termination() -> io::Result<Signals> {
    block(&[Signal::SIGTERM, Signal::SIGINT])
}

/// The same of SIGHUP too, which ends the process otherwise.
pub fn block_requests() -> io::Result<Signals> {
    block(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP])
}

fn block(signals: &[Signal]) -> io::Result<Signals> {
    let asking: SigSet = signals.iter().copied().collect();
    count_call();
    asking.thread_block()?;
    count_call();
    let fd = SignalFd::with_flags(&asking, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    Ok(Signals { fd })
}

/// Makes a write to a closed socket an error, EPIPE, instead of the end of the process: sendfile(2)
/// has no flag for that.
pub fn ignore_sigpipe() -> io::Result<()> {
    count_call();
    // SAFETY: SIG_IGN installs no handler, so that no code of ours can run inside one.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigIgn) }?;
    Ok(())
}

impl Signals {
    /// The next signal that has arrived; `None` when there is none. Never blocks.
    pub fn read(&self) -> io::Result<Option<Request>> {
        count_call();
        let Some(information) = self.fd.read_signal()? else { return Ok(None) };
        Ok(Some(match Signal::try_from(information.ssi_signo as i32) {
            Ok(Signal::SIGHUP) => Request::Hangup,
            Ok(Signal::SIGINT) => Request::Interrupt,
            _ => Request::Terminate,
        }))
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
        let signals = block_requests().expect("signalfd");
        assert_eq!(signals.read().expect("read"), None);
        // raise(3) signals the calling thread alone: no other test of the process sees it.
        raise(Signal::SIGTERM).expect("raise");
        assert_eq!(signals.read().expect("read"), Some(Request::Terminate));
        raise(Signal::SIGINT).expect("raise");
        assert_eq!(signals.read().expect("read"), Some(Request::Interrupt));
        raise(Signal::SIGHUP).expect("raise");
        assert_eq!(signals.read().expect("read"), Some(Request::Hangup));
        assert_eq!(signals.read().expect("read"), None);
    }

    #[test]
    fn a_write_to_a_closed_peer_is_an_error() {
        ignore_sigpipe().expect("signal");
        let (ours, theirs) = UnixStream::pair().expect("pair");
        drop(theirs);
        raise(Signal::SIGPIPE).expect("raise");
        assert_eq!(send_more(&ours, b"x"), Err(SendError::Closed));
    }
}
