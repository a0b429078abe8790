//! The way out of the kernel: completions to events, and what goes on by itself.
#![allow(unsafe_code, reason = "accepted descriptors are taken over")]

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};

use super::error::{AcceptError, ConnectError, PollError, ReadError, RecvError, SendError};
use super::event::{Completion, Event};
use super::operations::{Held, InFlight};
use super::provided::RecvBuf;
use super::ring::Ring;
use super::token::{Operation, Token, UserData};

/// Completions taken from the queue at a time.
const BATCH: usize = 64;

/// After how long a socket is tried again whose peer has ended its side. Polls answer at once then,
/// with POLLRDHUP, whether there is room or not: sends that waited in the kernel would each occupy a
/// worker thread, and polling again would spin.
pub(super) const RETRY: Duration = Duration::from_millis(8);

/// The least time between two of these tries: they take no more than some hundredths of a CPU, however
/// many sockets there are of that kind. From 256 on, each waits longer than [`RETRY`].
const RETRY_SPACING: Duration = Duration::from_micros(32);

/// Completions taken from the queue and not yet looked at: `entries[next..filled]`.
pub(super) struct Batch {
    entries: [MaybeUninit<cqueue::Entry>; BATCH],
    next: usize,
    filled: usize,
}

impl Ring {
    /// The next completion that [`Ring::enter`] has brought.
    pub fn completion(&mut self) -> Option<Completion> {
        loop {
            if let Some(completion) = self.own_completions.pop_front() {
                return Some(completion);
            }
            let entry = self.batch.pop().or_else(|| {
                self.batch.refill(&mut self.uring);
                self.batch.pop()
            })?;
            self.counters.cqes += 1;
            if let Some(completion) = self.complete(&entry) {
                return Some(completion);
            }
        }
    }

    /// Turns an entry of the completion queue into what the caller is told, if anything.
    fn complete(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        let Some(name) = UserData::unpack(entry.user_data()) else {
            self.counters.stale_completions += 1;
            return None;
        };
        let result = entry.result();
        let outcome = if result < 0 { Err(-result) } else { Ok(result as usize) };
        let more = cqueue::more(entry.flags());
        match name.operation {
            Operation::Woken => {
                self.counters.woken += 1;
                let token = Token { slot: 0, generation: 0 };
                return Some(Completion { token, event: Event::Woken });
            }
            // Only failures of these complete. A cancel that finds nothing lost a race.
            Operation::Cancel => return None,
            Operation::Close => {
                self.counters.close_errors += 1;
                return None;
            }
            Operation::WakeSent => {
                self.counters.wakes_failed += 1;
                return None;
            }
            _ => {}
        }
        // Whatever becomes of a completion, the buffer that it carries goes back.
        let received = match (name.operation, outcome, cqueue::buffer_select(entry.flags())) {
            (Operation::Recv, outcome, Some(id)) => {
                let more_waits = cqueue::sock_nonempty(entry.flags());
                self.provided.take(id, outcome.unwrap_or(0), more_waits)
            }
            _ => None,
        };
        let Some(in_flight) = self.operations.entry(name) else {
            self.counters.stale_completions += 1;
            return None;
        };
        let token = in_flight.token;
        let event = match name.operation {
            Operation::Accept => self.accepted(name, outcome, more)?,
            Operation::Recv => self.received(name, outcome, received, more)?,
            Operation::Send | Operation::SendVectored => self.sent(name, outcome)?,
            Operation::Connect => {
                self.operations.remove(name);
                Event::Connected(outcome.map(drop).map_err(ConnectError::from_errno))
            }
            Operation::Room => self.room(name, outcome)?,
            Operation::Poll => self.polled(name, outcome)?,
            Operation::Read => match (self.operations.remove(name), outcome) {
                (Some(InFlight { held: Held::Read { lease, .. }, .. }), Ok(bytes)) => {
                    Event::Read(Ok((lease, bytes)))
                }
                (_, outcome) => {
                    Event::Read(Err(ReadError::from_errno(outcome.err().unwrap_or(libc::EIO))))
                }
            },
            Operation::Woken | Operation::Cancel | Operation::Close | Operation::WakeSent => {
                return None;
            }
        };
        self.count_unexpected(&event);
        Some(Completion { token, event })
    }

    fn accepted(
        &mut self,
        name: UserData,
        outcome: Result<usize, i32>,
        more: bool,
    ) -> Option<Event> {
        let event = match outcome {
            // SAFETY: a successful accept makes a descriptor that nobody else knows of.
            Ok(descriptor) => Event::Accepted(unsafe { OwnedFd::from_raw_fd(descriptor as i32) }),
            // What concerns the newcomer only (accept(2)) does not end the service.
            Err(
                libc::ECONNABORTED
                | libc::EINTR
                | libc::EAGAIN
                | libc::EPROTO
                | libc::EPERM
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH,
            ) => {
                if !more {
                    self.rearm(name, Event::AcceptFailed(AcceptError::Cancelled));
                }
                return None;
            }
            Err(errno) => {
                self.operations.remove(name);
                return Some(Event::AcceptFailed(AcceptError::from_errno(errno)));
            }
        };
        if matches!(self.operations.entry(name)?.held, Held::Accept { once: true, .. }) {
            self.operations.remove(name);
        } else if !more {
            self.rearm(name, Event::AcceptFailed(AcceptError::Cancelled));
        }
        Some(event)
    }

    fn received(
        &mut self,
        name: UserData,
        outcome: Result<usize, i32>,
        received: Option<RecvBuf>,
        more: bool,
    ) -> Option<Event> {
        match (outcome, received) {
            (Ok(1..), Some(bytes)) => {
                if matches!(self.operations.entry(name)?.held, Held::Recv { once: true, .. }) {
                    self.operations.remove(name);
                } else if !more {
                    self.rearm(name, Event::RecvFailed(RecvError::Cancelled));
                }
                Some(Event::Received(bytes))
            }
            (Ok(_), _) => {
                self.operations.remove(name);
                Some(Event::Ended)
            }
            (Err(libc::ENOBUFS), _) => {
                self.counters.enobufs += 1;
                if let Some(InFlight { held: Held::Recv { armed, .. }, cancelled: false, .. }) =
                    self.operations.entry(name)
                {
                    *armed = false;
                    self.starved.push_back(name);
                } else {
                    self.end_cancelled(name, Event::RecvFailed(RecvError::Cancelled));
                }
                None
            }
            (Err(libc::EINTR | libc::EAGAIN), _) => {
                self.rearm(name, Event::RecvFailed(RecvError::Cancelled));
                None
            }
            (Err(errno), _) => {
                self.operations.remove(name);
                Some(Event::RecvFailed(RecvError::from_errno(errno)))
            }
        }
    }

    fn sent(&mut self, name: UserData, outcome: Result<usize, i32>) -> Option<Event> {
        let in_flight = self.operations.entry(name)?;
        let cancelled = in_flight.cancelled;
        let (total, sent) = match &mut in_flight.held {
            Held::Send { buf, sent, .. } => (buf.len(), sent),
            Held::SendVectored { message, sent, .. } => (message.bytes(), sent),
            _ => return None,
        };
        let result = match outcome {
            Ok(bytes) if *sent + bytes >= total => Ok(()),
            Ok(1..) | Err(libc::EINTR | libc::EAGAIN) if cancelled => Err(SendError::Cancelled),
            Ok(bytes @ 1..) => {
                *sent += bytes;
                self.counters.short_sends += 1;
                self.await_room(name);
                return None;
            }
            Err(libc::EAGAIN) => {
                self.await_room(name);
                return None;
            }
            Ok(0) => Err(SendError::Unexpected(0)),
            Err(libc::EINTR) => {
                self.submit(name);
                return None;
            }
            Err(errno) => Err(SendError::from_errno(errno)),
        };
        if let Some(InFlight { held: Held::SendVectored { mut message, .. }, .. }) =
            self.operations.remove(name)
        {
            message.bufs.clear();
            self.spare_messages.push(message);
        }
        Some(Event::Sent(result))
    }

    fn room(&mut self, name: UserData, outcome: Result<usize, i32>) -> Option<Event> {
        let errno = match self.settled(name, outcome)? {
            Ok(_) if self.operations.entry(name)?.cancelled => libc::ECANCELED,
            Ok(_) => {
                self.submit(name);
                return None;
            }
            Err(errno) => errno,
        };
        self.operations.remove(name);
        Some(Event::Sent(Err(SendError::from_errno(errno))))
    }

    fn polled(&mut self, name: UserData, outcome: Result<usize, i32>) -> Option<Event> {
        let outcome = self.settled(name, outcome)?;
        self.operations.remove(name);
        Some(Event::Polled(outcome.map(drop).map_err(PollError::from_errno)))
    }

    /// Waits until the socket has room for the rest of a send.
    fn await_room(&mut self, name: UserData) {
        let Some(entry) = self.operations.entry(name) else { return };
        let poll = opcode::PollAdd::new(Fd(entry.held.descriptor()), libc::POLLOUT as u32).build();
        let name = UserData { operation: Operation::Room, ..name };
        self.push(poll.user_data(name.pack()));
    }

    /// What a poll has come to; `None` if it has answered only because the peer has ended: it is
    /// tried again later then.
    fn settled(
        &mut self,
        name: UserData,
        outcome: Result<usize, i32>,
    ) -> Option<Result<usize, i32>> {
        const SETTLED: usize =
            (libc::POLLIN | libc::POLLOUT | libc::POLLERR | libc::POLLHUP) as usize;
        if !outcome.is_ok_and(|ready| ready & SETTLED == 0) {
            return Some(outcome);
        }
        if self.operations.entry(name)?.cancelled {
            return Some(Err(libc::ECANCELED));
        }
        self.counters.room_retries += 1;
        let due = Instant::now() + RETRY;
        let due = self.retries.back().map_or(due, |&(last, _)| due.max(last + RETRY_SPACING));
        self.retries.push_back((due, name));
        None
    }

    /// Goes on with what has waited long enough for a peer that has ended.
    pub(super) fn retry(&mut self) {
        while let Some(&(due, name)) = self.retries.front() {
            if due > Instant::now() {
                return;
            }
            self.retries.pop_front();
            if self.operations.entry(name).is_some() {
                self.submit(name);
            }
        }
    }

    /// Submits a multishot operation anew that the kernel has ended by itself; `cancelled` is its
    /// end if that is what the caller wants: the cancellation has found nothing to cancel.
    fn rearm(&mut self, name: UserData, cancelled: Event) {
        if self.operations.entry(name).is_some_and(|entry| entry.cancelled) {
            return self.end_cancelled(name, cancelled);
        }
        match name.operation {
            Operation::Accept => self.counters.rearmed_accept += 1,
            _ => self.counters.rearmed_recv += 1,
        }
        self.submit(name);
    }

    /// Ends an operation that the kernel knows nothing of any more.
    pub(super) fn end_cancelled(&mut self, name: UserData, event: Event) {
        if let Some(InFlight { token, .. }) = self.operations.remove(name) {
            self.own_completions.push_back(Completion { token, event });
        }
    }

    /// Arms the receives that ended for want of a buffer, as soon as one is there.
    pub(super) fn rearm_starved(&mut self) {
        while self.provided.has_available() {
            let Some(name) = self.starved.pop_front() else { return };
            self.counters.rearmed_recv += 1;
            self.submit(name);
        }
    }

    fn count_unexpected(&mut self, event: &Event) {
        if matches!(
            event,
            Event::AcceptFailed(AcceptError::Unexpected(_))
                | Event::RecvFailed(RecvError::Unexpected(_))
                | Event::Sent(Err(SendError::Unexpected(_)))
                | Event::Connected(Err(ConnectError::Unexpected(_)))
                | Event::Polled(Err(PollError::Unexpected(_)))
                | Event::Read(Err(ReadError::Unexpected(_)))
        ) {
            self.counters.unexpected_errors += 1;
        }
    }
}

impl Batch {
    pub(super) fn new() -> Batch {
        Batch { entries: [const { MaybeUninit::uninit() }; BATCH], next: 0, filled: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next == self.filled
    }

    fn pop(&mut self) -> Option<cqueue::Entry> {
        if self.next == self.filled {
            return None;
        }
        // SAFETY: `next < filled`, and `refill` has initialised all entries below `filled`.
        let entry = unsafe { self.entries[self.next].assume_init_ref() }.clone();
        self.next += 1;
        Some(entry)
    }

    fn refill(&mut self, uring: &mut IoUring) {
        self.next = 0;
        self.filled = uring.completion().fill(&mut self.entries).len();
    }
}
