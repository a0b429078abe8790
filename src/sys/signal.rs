//! Signals as something to read. A process that is asked to end finds that in a descriptor which its
//! loop polls like any other: no handler runs, so that nothing needs to be safe inside one.

#![allow(
    unsafe_code,
    reason = "signal(2) is unsafe in nix, for it can install handlers; so is running code in a child"
)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

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

/// Has a program that is started find SIGTERM and SIGINT as they are for a program that holds nothing
/// back, although this thread does: a child inherits what its parent blocks, and a server that cannot
/// be told to end would have to be killed.
pub fn unblock_termination_in(command: &mut Command) {
    // Of the parent nothing may be unblocked, be it for the moment of the start: a signal that comes
    // then would end it.
    let unblock = || Ok(termination().thread_unblock()?);
    // SAFETY: between fork(2) and execve(2) only sigaddset(3) and pthread_sigmask(3) are called, which
    // neither allocate nor lock.
    unsafe { command.pre_exec(unblock) };
}

fn termination() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT].into_iter().collect()
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
    fn a_program_can_be_told_to_end_by_what_its_parent_holds_back() {
        let _signals = block_termination().expect("signalfd");
        let mask = |command: &mut Command| {
            let output = command.output().expect("grep");
            let text = String::from_utf8(output.stdout).expect("text");
            let mask = text.trim_start_matches("SigBlk:").trim();
            u64::from_str_radix(mask, 16).expect("a mask")
        };
        let both = 1 << (Signal::SIGTERM as u64 - 1) | 1 << (Signal::SIGINT as u64 - 1);
        let command = || {
            let mut command = Command::new("grep");
            command.args(["SigBlk:", "/proc/self/status"]);
            command
        };
        assert_eq!(mask(&mut command()) & both, both);
        let mut told = command();
        unblock_termination_in(&mut told);
        assert_eq!(mask(&mut told) & both, 0);
        let held = SigSet::thread_get_mask().expect("mask");
        assert!(held.contains(Signal::SIGTERM) && held.contains(Signal::SIGINT));
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
