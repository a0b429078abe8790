//! The way into the kernel: submissions, and the one enter of a turn.
#![allow(unsafe_code, reason = "submissions carry addresses")]

use std::io;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{opcode, squeue};
use nix::sys::socket::SockaddrLike;

use super::completing::RETRY;
use super::operations::{Held, OperationId};
use super::provided::GROUP;
use super::ring::Ring;
use super::token::{Token, UserData};

/// How long [`Ring::enter`] may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// For a completion.
    Completion,
    /// For a completion, at most so long.
    AtMost(Duration),
}

impl Ring {
    /// Submits what is queued and takes in what has completed, waiting as told.
    ///
    /// Nothing completes between two calls. An error means that the ring is unusable.
    pub fn enter(&mut self, wait: Wait) -> io::Result<()> {
        self.rearm_starved();
        self.retry();
        self.drain_backlog()?;
        // What could not be submitted is not to wait for what was.
        let idle = self.backlog.is_empty()
            && self.batch.is_empty()
            && self.own_completions.is_empty()
            && self.uring.completion().is_empty();
        let (submissions, overflown, task_work) = {
            let queue = self.uring.submission();
            (queue.len(), queue.cq_overflow(), queue.taskrun())
        };
        if overflown {
            self.counters.cq_overflows += 1;
        }
        let want = usize::from(idle && wait != Wait::No);
        if submissions == 0 && want == 0 && !overflown && !task_work {
            return Ok(());
        }
        self.counters.enters += 1;
        let timeout = match wait {
            Wait::AtMost(patience) if want > 0 => Some(patience),
            Wait::AtMost(_) | Wait::No | Wait::Completion => None,
        };
        let retry = (want > 0 && !self.retries.is_empty()).then_some(RETRY);
        let timeout = timeout.into_iter().chain(retry).min().map(Timespec::from);
        let submitter = self.uring.submitter();
        let entered = match &timeout {
            None => submitter.submit_and_wait(want),
            Some(timeout) => {
                let mut args = SubmitArgs::new().timespec(timeout);
                if let Some(min_wait_us) = self.min_wait_us {
                    args = args.min_wait_usec(min_wait_us);
                }
                submitter.submit_with_args(want, &args)
            }
        };
        if !self.waking.is_empty() && self.backlog.is_empty() && self.uring.submission().is_empty()
        {
            self.waking.clear();
        }
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) => Ok(()),
            // The time is over; a signal came; completions must be taken first (EBUSY) or memory
            // is short (EAGAIN): the caller's next turn tries again.
            Err((Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }

    pub(super) fn start(&mut self, token: Token, held: Held) -> OperationId {
        let name = self.operations.insert(token, held);
        self.submit(name);
        OperationId(name.pack())
    }

    /// Queues the submission for an entry of the table, from wherever it stands.
    pub(super) fn submit(&mut self, name: UserData) {
        let entry = &mut self.operations.entry(name).expect("submitted while in the table").held;
        let name = UserData { operation: entry.operation(), ..name };
        let descriptor = Fd(entry.descriptor());
        // Waiting for room is done by a poll of ours: see RETRY.
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let submission = match entry {
            Held::Accept { once, .. } => {
                let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
                if *once {
                    let nowhere = std::ptr::null_mut();
                    opcode::Accept::new(descriptor, nowhere, nowhere.cast()).flags(flags).build()
                } else {
                    opcode::AcceptMulti::new(descriptor).flags(flags).build()
                }
            }
            Held::Recv { armed, once, .. } => {
                *armed = true;
                if *once {
                    // The length is that of the buffer which the kernel picks.
                    opcode::Recv::new(descriptor, std::ptr::null_mut(), 0)
                        .buf_group(GROUP)
                        .build()
                        .flags(squeue::Flags::BUFFER_SELECT)
                } else {
                    opcode::RecvMulti::new(descriptor, GROUP).build()
                }
            }
            Held::Send { buf, sent, .. } => {
                let rest = &buf.as_slice()[*sent..];
                opcode::Send::new(descriptor, rest.as_ptr(), rest.len() as u32).flags(flags).build()
            }
            Held::SendVectored { message, sent, .. } => {
                opcode::SendMsg::new(descriptor, message.point(*sent)).flags(flags as u32).build()
            }
            Held::Connect { address, .. } => {
                opcode::Connect::new(descriptor, address.as_ptr().cast(), address.len()).build()
            }
            Held::Poll { events, .. } => opcode::PollAdd::new(descriptor, *events as u32).build(),
            Held::Read { .. } => {
                unreachable!("reads are queued by their own method and never again")
            }
        };
        self.push(submission.user_data(name.pack()));
    }

    pub(super) fn push(&mut self, entry: squeue::Entry) {
        self.counters.sqes += 1;
        if self.backlog.is_empty() && self.try_push(&entry) {
            return;
        }
        self.counters.sq_full += 1;
        self.backlog.push_back(entry);
        // An error here shows again in the caller's next `enter`, with the entry still queued.
        let _ = self.drain_backlog();
    }

    fn try_push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: every address in an entry is that of something held in `operations` (or of
        // nothing), which keeps it in place until the last completion; descriptors are held open
        // the same way, and that of a close is given up by its owner.
        unsafe { self.uring.submission().push(entry) }.is_ok()
    }

    /// Moves waiting submissions into the queue, entering as often as that takes.
    fn drain_backlog(&mut self) -> io::Result<()> {
        while let Some(entry) = self.backlog.pop_front() {
            if self.try_push(&entry) {
                continue;
            }
            self.backlog.push_front(entry);
            self.counters.enters += 1;
            match self.uring.submit() {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::EBUSY | libc::EAGAIN | libc::EINTR)
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
