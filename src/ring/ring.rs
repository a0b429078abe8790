//! One io_uring and what is in flight on it.
#![allow(unsafe_code, reason = "submissions carry addresses")]

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use nix::sys::socket::{SockaddrLike, SockaddrStorage};

use super::arena::{Arena, Lease};
use super::counters::Counters;
use super::error::{AcceptError, ConnectError, PollError, ReadError, RecvError, SendError};
use super::operations::{Held, InFlight, Message, OperationId, Operations};
use super::probe::Capabilities;
use super::provided::{GROUP, Provided, RecvBuf};
use super::send_buf::SendBuf;
use super::setup::{Setup, SetupError};
use super::token::{Operation, Token, UserData};

/// A socket that operations and their caller hold together. It closes with the last of them, so
/// its number cannot be reused while the kernel may still act on it.
pub type Socket = Rc<OwnedFd>;

/// Completions taken from the queue at a time.
const BATCH: usize = 64;

/// After how long a socket is tried again whose peer has ended its side. Polls answer at once then,
/// with POLLRDHUP, whether there is room or not: sends that waited in the kernel would each occupy a
/// worker thread, and polling again would spin.
const RETRY: Duration = Duration::from_millis(8);

/// Whether more bytes of the same answer come right after a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// These are the last: let them go.
    Nothing,
    /// More follows: the kernel may wait for it (MSG_MORE).
    More,
}

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

/// What came back.
#[derive(Debug)]
pub struct Completion {
    /// The token that the operation was given.
    pub token: Token,
    /// What happened.
    pub event: Event,
}

/// What happened. Unless said otherwise the operation is over.
#[derive(Debug)]
pub enum Event {
    /// A connection, non-blocking and close-on-exec; accepting goes on, unless it was for once.
    Accepted(OwnedFd),
    /// Accepting has ended.
    AcceptFailed(AcceptError),
    /// Bytes; receiving goes on, unless it was for once.
    Received(RecvBuf),
    /// The peer has sent its FIN, or we have shut the socket down.
    Ended,
    /// Receiving has ended.
    RecvFailed(RecvError),
    /// All bytes are with the kernel, or sending failed somewhere among them.
    Sent(Result<(), SendError>),
    /// The connection stands.
    Connected(Result<(), ConnectError>),
    /// The polled descriptor is ready.
    Polled(Result<(), PollError>),
    /// Bytes read; zero at the end of the file.
    Read(Result<(Lease, usize), ReadError>),
    /// Another ring has sent a wake-up. The token means nothing.
    Woken,
}

/// Where a ring receives wake-ups from other rings.
#[derive(Clone, Debug)]
pub struct Address(Arc<OwnedFd>);

/// An io_uring, its buffers and everything in flight. Belongs to the thread that made it.
pub struct Ring {
    uring: IoUring,
    operations: Operations,
    provided: Provided,
    arena: Arena,
    arena_registered: bool,
    capabilities: Capabilities,
    min_wait_us: Option<u32>,
    /// Submissions that found the queue full even after an enter.
    backlog: VecDeque<squeue::Entry>,
    /// Receives that wait for a provided buffer.
    starved: VecDeque<UserData>,
    /// Sends and polls that wait for room on a socket whose peer has ended, in the order of their
    /// time.
    retries: VecDeque<(Instant, UserData)>,
    /// Completions that the kernel does not know of: cancelled while not armed.
    own_completions: VecDeque<Completion>,
    batch: Batch,
    /// Messages for reuse.
    #[expect(clippy::vec_box, reason = "the kernel knows their addresses: they stay boxed")]
    spare_messages: Vec<Box<Message>>,
    counters: Counters,
}

/// Completions taken from the queue and not yet looked at: `entries[next..filled]`.
struct Batch {
    entries: [MaybeUninit<cqueue::Entry>; BATCH],
    next: usize,
    filled: usize,
}

impl Ring {
    /// Makes a ring on the thread that will own it.
    pub fn new(setup: &Setup) -> Result<Ring, SetupError> {
        let (uring, capabilities) = setup.build()?;
        let provided = Provided::new(setup.recv_buffers, setup.recv_buffer_bytes)
            .map_err(SetupError::memory)?;
        // SAFETY: descriptors and buffers are mappings that live until `drop` has unregistered
        // the group (or is leaked), and `provided.entries()` is their number.
        unsafe {
            uring.submitter().register_buf_ring_with_flags(
                provided.descriptors_address(),
                provided.entries(),
                GROUP,
                0,
            )
        }
        .map_err(SetupError::from_registration)?;
        let arena = Arena::new(setup.fixed_buffers, setup.fixed_buffer_bytes)
            .map_err(SetupError::memory)?;
        // SAFETY: the vectors describe the arena's mapping, which lives until `drop` has
        // unregistered it (or is leaked).
        let arena_registered = setup.fixed_buffers > 0
            && unsafe { uring.submitter().register_buffers(&arena.vectors()) }.is_ok();
        // Saves the kernel a descriptor look-up in each enter; without it everything still works.
        let _ = uring.submitter().register_ring_fd();
        let min_wait_us = u32::try_from(setup.min_wait.as_micros())
            .ok()
            .filter(|&wait_us| wait_us > 0 && capabilities.min_wait);
        Ok(Ring {
            uring,
            operations: Operations::default(),
            provided,
            arena,
            arena_registered,
            capabilities,
            min_wait_us,
            backlog: VecDeque::new(),
            starved: VecDeque::new(),
            retries: VecDeque::new(),
            own_completions: VecDeque::new(),
            batch: Batch { entries: [const { MaybeUninit::uninit() }; BATCH], next: 0, filled: 0 },
            spare_messages: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// What this kernel was found to have.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether reads go into registered buffers; if not, RLIMIT_MEMLOCK was too small.
    pub fn arena_registered(&self) -> bool {
        self.arena_registered
    }

    /// Counts since the ring was made.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of operations in flight.
    pub fn in_flight(&self) -> usize {
        self.operations.len()
    }

    /// The buffers for [`Ring::read`].
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Where other rings can wake this one.
    pub fn address(&self) -> io::Result<Address> {
        // SAFETY: the ring's descriptor is open as long as `self.uring` is, which outlives this
        // borrow.
        let ring = unsafe { std::os::fd::BorrowedFd::borrow_raw(self.uring.as_raw_fd()) };
        Ok(Address(Arc::new(ring.try_clone_to_owned()?)))
    }

    /// Accepts connections until it fails or is cancelled.
    pub fn accept(&mut self, listener: &Arc<OwnedFd>, token: Token) -> OperationId {
        self.start(token, Held::Accept { listener: Arc::clone(listener), once: false })
    }

    /// Accepts one connection. Unlike [`Ring::accept`], which may bring all that are queued before
    /// it can be cancelled.
    pub fn accept_once(&mut self, listener: &Arc<OwnedFd>, token: Token) -> OperationId {
        self.start(token, Held::Accept { listener: Arc::clone(listener), once: true })
    }

    /// Receives into provided buffers until the peer ends, it fails, or is cancelled.
    pub fn recv(&mut self, socket: &Socket, token: Token) -> OperationId {
        self.start(token, Held::Recv { socket: Rc::clone(socket), armed: true, once: false })
    }

    /// Receives into one provided buffer. Unlike [`Ring::recv`] it leaves nothing pending on the
    /// socket, which then can be closed at once.
    pub fn recv_once(&mut self, socket: &Socket, token: Token) -> OperationId {
        self.start(token, Held::Recv { socket: Rc::clone(socket), armed: true, once: true })
    }

    /// Sends all of `buf`. At most one send may be in flight on a socket: the kernel keeps no
    /// order between two.
    pub fn send(
        &mut self,
        socket: &Socket,
        buf: SendBuf,
        follow: Follow,
        token: Token,
    ) -> OperationId {
        self.start(token, Held::Send { socket: Rc::clone(socket), buf, sent: 0, follow })
    }

    /// Sends all of `bufs`, one after the other; leaves the vector empty. As with
    /// [`Ring::send`], one at a time on a socket.
    pub fn send_vectored(
        &mut self,
        socket: &Socket,
        bufs: &mut Vec<SendBuf>,
        token: Token,
    ) -> OperationId {
        let mut message = self.spare_messages.pop().unwrap_or_else(Message::new);
        message.bufs.append(bufs);
        self.start(token, Held::SendVectored { socket: Rc::clone(socket), message, sent: 0 })
    }

    /// Connects a stream socket.
    pub fn connect(&mut self, socket: &Socket, peer: SocketAddr, token: Token) -> OperationId {
        let address = Box::new(SockaddrStorage::from(peer));
        self.start(token, Held::Connect { socket: Rc::clone(socket), address })
    }

    /// Waits once until `descriptor` can be written to.
    pub fn poll_writable(&mut self, descriptor: &Socket, token: Token) -> OperationId {
        self.poll(descriptor, libc::POLLOUT, token)
    }

    /// Waits once until `descriptor` can be read from.
    pub fn poll_readable(&mut self, descriptor: &Socket, token: Token) -> OperationId {
        self.poll(descriptor, libc::POLLIN, token)
    }

    fn poll(&mut self, descriptor: &Socket, events: libc::c_short, token: Token) -> OperationId {
        self.start(token, Held::Poll { descriptor: Rc::clone(descriptor), events })
    }

    /// Reads up to a whole buffer of a file from `offset` bytes on.
    pub fn read(
        &mut self,
        file: &Rc<OwnedFd>,
        offset: u64,
        mut lease: Lease,
        bytes: usize,
        token: Token,
    ) -> OperationId {
        let descriptor = Fd(file.as_raw_fd());
        let bytes = bytes.min(lease.len()) as u32;
        let start = lease.as_mut_ptr();
        let entry = if self.arena_registered {
            self.counters.fixed_reads += 1;
            opcode::ReadFixed::new(descriptor, start, bytes, lease.index()).offset(offset).build()
        } else {
            self.counters.unregistered_reads += 1;
            opcode::Read::new(descriptor, start, bytes).offset(offset).build()
        };
        let name = self.operations.insert(token, Held::Read { file: Rc::clone(file), lease });
        self.push(entry.user_data(name.pack()));
        OperationId(name.pack())
    }

    /// Closes a descriptor, with the rest of the turn's submissions. While operations hold it,
    /// it closes with the last of them.
    pub fn close(&mut self, descriptor: Socket) {
        if let Ok(descriptor) = Rc::try_unwrap(descriptor) {
            let close = opcode::Close::new(Fd(descriptor.into_raw_fd()))
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(UserData::anonymous(Operation::Close).pack());
            self.push(close);
        }
    }

    /// Wakes another ring: it sees [`Event::Woken`].
    pub fn wake(&mut self, ring: &Address) {
        self.counters.wakes_sent += 1;
        let message = opcode::MsgRingData::new(
            Fd(ring.0.as_raw_fd()),
            0,
            UserData::anonymous(Operation::Woken).pack(),
            None,
        )
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(UserData::anonymous(Operation::WakeSent).pack());
        self.push(message);
    }

    /// Asks the kernel to end an operation. It completes as `Cancelled`, or as what it had come
    /// to before; an operation that is over already is left alone.
    pub fn cancel(&mut self, operation: OperationId) {
        let Some(name) = UserData::unpack(operation.0) else { return };
        let Some(entry) = self.operations.entry(name) else { return };
        self.counters.cancels += 1;
        if matches!(entry.held, Held::Recv { armed: false, .. }) {
            self.starved.retain(|&starved| starved != name);
            let token = entry.token;
            self.operations.remove(name);
            let event = Event::RecvFailed(RecvError::Cancelled);
            self.own_completions.push_back(Completion { token, event });
            return;
        }
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::user_data(operation.0))
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(UserData::anonymous(Operation::Cancel).pack());
        self.push(cancel);
    }

    /// Submits what is queued and takes in what has completed, waiting as told.
    ///
    /// Nothing completes between two calls. An error means that the ring is unusable.
    pub fn enter(&mut self, wait: Wait) -> io::Result<()> {
        self.rearm_starved();
        self.retry();
        self.drain_backlog()?;
        let idle = self.batch.next == self.batch.filled
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
        let patience = match wait {
            Wait::AtMost(patience) => Some(patience),
            Wait::No | Wait::Completion => None,
        };
        let patience = if self.retries.is_empty() {
            patience
        } else {
            Some(patience.unwrap_or(RETRY).min(RETRY))
        };
        let timeout = patience.filter(|_| want > 0).map(Timespec::from);
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
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) => Ok(()),
            // The time is over; a signal came; completions must be taken first (EBUSY) or memory
            // is short (EAGAIN): the caller's next turn tries again.
            Err((Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }

    /// The next completion that [`Ring::enter`] has brought.
    pub fn completion(&mut self) -> Option<Completion> {
        if let Some(completion) = self.own_completions.pop_front() {
            return Some(completion);
        }
        loop {
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

    fn start(&mut self, token: Token, held: Held) -> OperationId {
        let name = self.operations.insert(token, held);
        self.submit(name);
        OperationId(name.pack())
    }

    /// Queues the submission for an entry of the table, from wherever it stands.
    fn submit(&mut self, name: UserData) {
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
            Held::Send { buf, sent, follow, .. } => {
                let rest = &buf.as_slice()[*sent..];
                let more = if *follow == Follow::More { libc::MSG_MORE } else { 0 };
                opcode::Send::new(descriptor, rest.as_ptr(), rest.len() as u32)
                    .flags(flags | more)
                    .build()
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

    fn push(&mut self, entry: squeue::Entry) {
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

    /// Arms the receives that ended for want of a buffer, as soon as one is there.
    fn rearm_starved(&mut self) {
        while self.provided.has_available() {
            let Some(name) = self.starved.pop_front() else { return };
            self.counters.rearmed_recv += 1;
            self.submit(name);
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
            (Operation::Recv, Ok(bytes), Some(id)) => {
                self.provided.take(id, bytes, cqueue::sock_nonempty(entry.flags()))
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
                    self.counters.rearmed_accept += 1;
                    self.submit(name);
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
            self.counters.rearmed_accept += 1;
            self.submit(name);
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
                    self.counters.rearmed_recv += 1;
                    self.submit(name);
                }
                Some(Event::Received(bytes))
            }
            (Ok(_), _) => {
                self.operations.remove(name);
                Some(Event::Ended)
            }
            (Err(libc::ENOBUFS), _) => {
                self.counters.enobufs += 1;
                if let Some(InFlight { held: Held::Recv { armed, .. }, .. }) =
                    self.operations.entry(name)
                {
                    *armed = false;
                    self.starved.push_back(name);
                }
                None
            }
            (Err(libc::EINTR | libc::EAGAIN), _) => {
                self.counters.rearmed_recv += 1;
                self.submit(name);
                None
            }
            (Err(errno), _) => {
                self.operations.remove(name);
                Some(Event::RecvFailed(RecvError::from_errno(errno)))
            }
        }
    }

    /// Waits until the socket has room for the rest of a send.
    fn await_room(&mut self, name: UserData) {
        let Some(entry) = self.operations.entry(name) else { return };
        let poll = opcode::PollAdd::new(Fd(entry.held.descriptor()), libc::POLLOUT as u32).build();
        let name = UserData { operation: Operation::Room, ..name };
        self.push(poll.user_data(name.pack()));
    }

    /// Goes on with what has waited long enough for a peer that has ended.
    fn retry(&mut self) {
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

    /// Whether a poll has answered only because the peer has ended; it is tried again later then.
    fn deferred(&mut self, name: UserData, outcome: Result<usize, i32>) -> bool {
        const SETTLED: usize =
            (libc::POLLIN | libc::POLLOUT | libc::POLLERR | libc::POLLHUP) as usize;
        let deferred = outcome.is_ok_and(|ready| ready & SETTLED == 0);
        if deferred {
            self.counters.room_retries += 1;
            self.retries.push_back((Instant::now() + RETRY, name));
        }
        deferred
    }

    fn room(&mut self, name: UserData, outcome: Result<usize, i32>) -> Option<Event> {
        match outcome {
            Ok(_) if self.deferred(name, outcome) => None,
            Ok(_) => {
                self.submit(name);
                None
            }
            Err(errno) => {
                self.operations.remove(name);
                Some(Event::Sent(Err(SendError::from_errno(errno))))
            }
        }
    }

    fn polled(&mut self, name: UserData, outcome: Result<usize, i32>) -> Option<Event> {
        if self.deferred(name, outcome) {
            return None;
        }
        self.operations.remove(name);
        Some(Event::Polled(outcome.map(drop).map_err(PollError::from_errno)))
    }

    fn sent(&mut self, name: UserData, outcome: Result<usize, i32>) -> Option<Event> {
        let (total, sent) = match &mut self.operations.entry(name)?.held {
            Held::Send { buf, sent, .. } => (buf.len(), sent),
            Held::SendVectored { message, sent, .. } => (message.bytes(), sent),
            _ => return None,
        };
        let result = match outcome {
            Ok(bytes) if *sent + bytes >= total => Ok(()),
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

impl Drop for Ring {
    /// Cancels what is in flight and waits until the kernel has let go of all of it.
    fn drop(&mut self) {
        /// Turns of at most 10 ms before giving up on the kernel.
        const TURNS: usize = 1000;
        for _ in 0..TURNS {
            while let Some(completion) = self.completion() {
                drop(completion);
            }
            let unknown_to_kernel = self.retries.drain(..).map(|(_, name)| name);
            for name in unknown_to_kernel.chain(self.starved.drain(..)) {
                self.operations.remove(name);
            }
            if self.operations.is_empty() && self.backlog.is_empty() {
                break;
            }
            // Each turn anew: a multishot may have been armed again by its last completion.
            let cancel = opcode::AsyncCancel2::new(CancelBuilder::any())
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(UserData::anonymous(Operation::Cancel).pack());
            self.push(cancel);
            if self.enter(Wait::AtMost(Duration::from_millis(10))).is_err() {
                break;
            }
        }
        // Queued closes and wake-ups go out with it.
        let _ = self.enter(Wait::No);
        let _ = self.uring.submitter().unregister_buf_ring(GROUP);
        if !self.operations.is_empty() {
            // The kernel may still look at what these hold: it must stay for the process's life.
            std::mem::forget(std::mem::take(&mut self.operations));
            std::mem::forget(self.provided.clone());
            std::mem::forget(self.arena.clone());
        }
    }
}

impl AsFd for Address {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}
