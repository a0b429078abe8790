//! The measured interval: everything is counted from one moment to another, on each thread by
//! itself, and the server's consumption is read at those same two moments.

use crate::process::{ProcessError, Sample, Usage};
use crate::tally::Tally;
use nix::unistd::Pid;
use std::io;
use std::time::{Duration, Instant};

/// What one thread has measured.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) tally: Tally,
    /// The thread's own consumption.
    pub(super) usage: Usage,
    /// The thread's calls of `io_uring_enter(2)`.
    pub(super) enters: u64,
    /// How long the interval really was.
    pub(super) duration: Duration,
    /// The server's consumption, if this thread accounts for it.
    pub(super) server: Option<Result<Usage, ProcessError>>,
}

/// The interval as one thread sees it: before, or in it. After it there is [`Measured`].
#[derive(Debug)]
pub(super) struct Interval {
    begin: Instant,
    duration: Duration,
    server: Option<Pid>,
    start: Option<Start>,
}

/// All readings at the start.
#[derive(Debug)]
struct Start {
    at: Instant,
    usage: Usage,
    enters: u64,
    server: Option<Result<Sample, ProcessError>>,
}

impl Interval {
    /// An interval of `duration` from `begin` on, accounting for the process `server`.
    pub(super) fn new(begin: Instant, duration: Duration, server: Option<Pid>) -> Self {
        Self { begin, duration, server, start: None }
    }

    /// To be called once a turn: empties `tally` when the interval begins, and takes it when the
    /// interval is over.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        enters: u64,
        tally: &mut Tally,
    ) -> io::Result<Option<Measured>> {
        if self.start.is_none() && now >= self.begin {
            let server = self.server.map(Sample::of_tree);
            // The clock is read after the server, at both ends.
            *tally = Tally::new();
            let usage = Usage::of_this_thread()?;
            self.start = Some(Start { at: Instant::now(), usage, enters, server });
        }
        if now < self.begin + self.duration {
            return Ok(None);
        }
        let Some(start) = self.start.take() else { return Ok(None) };
        let server = start.server.zip(self.server).map(|(earlier, pid)| {
            let earlier = earlier?;
            Sample::of_tree(pid)?.since(&earlier)
        });
        Ok(Some(Measured {
            tally: std::mem::take(tally),
            usage: Usage::of_this_thread()?.since(start.usage),
            enters: enters - start.enters,
            duration: start.at.elapsed(),
            server,
        }))
    }
}
