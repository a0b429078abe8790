//! One io_uring and what is in flight on it.
#![allow(unsafe_code, reason = "submissions carry addresses")]

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd};
use io_uring::{IoUring, opcode, squeue};
use nix::sys::socket::SockaddrStorage;

use super::arena::{Arena, Lease};
use super::completing::Batch;
use super::counters::Counters;
use super::error::{PollError, RecvError, SendError};
use super::event::{Completion, Event};
use super::operations::{Held, Message, OperationId, Operations};
use super::probe::Capabilities;
use super::provided::{GROUP, Provided};
use super::send_buf::SendBuf;
use super::setup::{Setup, SetupError};
use super::submitting::Wait;
use super::token::{Operation, Token, UserData};

/// A socket that operations and their caller hold together. It closes with the last of them, so
/// its number cannot be reused while the kernel may still act on it.
pub type Socket = Rc<OwnedFd>;

/// Where a ring receives wake-ups from other rings.
#[derive(Clone, Debug)]
pub struct Address(Arc<OwnedFd>);

/// An io_uring, its buffers and everything in flight. Belongs to the thread that made it.
pub struct Ring {
    pub(super) uring: IoUring,
    pub(super) operations: Operations,
    pub(super) provided: Provided,
    pub(super) arena: Arena,
    pub(super) arena_registered: bool,
    pub(super) capabilities: Capabilities,
    pub(super) min_wait_us: Option<u32>,
    /// Submissions that found the queue full even after an enter.
    pub(super) backlog: VecDeque<squeue::Entry>,
    /// Rings to be woken by submissions that the kernel has not taken yet: held open till then.
    pub(super) waking: Vec<Address>,
    /// Receives that wait for a provided buffer.
    pub(super) starved: VecDeque<UserData>,
    /// Sends and polls that wait for room on a socket whose peer has ended, in the order of their
    /// time.
    pub(super) retries: VecDeque<(Instant, UserData)>,
    /// Completions that the kernel does not know of: cancelled while not armed.
    pub(super) own_completions: VecDeque<Completion>,
    pub(super) batch: Batch,
    /// Messages for reuse.
    #[expect(clippy::vec_box, reason = "the kernel knows their addresses: they stay boxed")]
    pub(super) spare_messages: Vec<Box<Message>>,
    pub(super) counters: Counters,
}

impl Ring {
    /// Makes a ring on the thread that will own it.
    pub fn new(setup: &Setup) -> Result<Ring, SetupError> {
        let (uring, capabilities) = setup.build()?;
        let provided = Provided::new(setup.recv_buffers, setup.recv_buffer_bytes)
            .map_err(SetupError::memory)?;
        // SAFETY: descriptors and buffers are mappings, and `provided.entries()` is their number.
        // They live until `drop` has unregistered the group, or are leaked there; should this
        // function fail further down, no receive was ever submitted that could look at them.
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
        // SAFETY: the vectors describe the arena's mapping. The kernel pins its pages and no longer
        // needs their addresses.
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
            waking: Vec::new(),
            starved: VecDeque::new(),
            retries: VecDeque::new(),
            own_completions: VecDeque::new(),
            batch: Batch::new(),
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
        let ring = unsafe { BorrowedFd::borrow_raw(self.uring.as_raw_fd()) };
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
    pub fn send(&mut self, socket: &Socket, buf: SendBuf, token: Token) -> OperationId {
        self.start(token, Held::Send { socket: Rc::clone(socket), buf, sent: 0 })
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
        self.waking.push(ring.clone());
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
        entry.cancelled = true;
        if matches!(entry.held, Held::Recv { armed: false, .. }) {
            self.starved.retain(|&starved| starved != name);
            self.end_cancelled(name, Event::RecvFailed(RecvError::Cancelled));
            return;
        }
        let event = match entry.held {
            Held::Poll { .. } => Event::Polled(Err(PollError::Cancelled)),
            _ => Event::Sent(Err(SendError::Cancelled)),
        };
        let sends = matches!(entry.held, Held::Send { .. } | Held::SendVectored { .. });
        if let Some(place) = self.retries.iter().position(|(_, retried)| retried.is_of(name)) {
            self.retries.remove(place);
            self.end_cancelled(name, event);
            return;
        }
        if sends {
            self.push_cancel(CancelBuilder::user_data(
                UserData { operation: Operation::Room, ..name }.pack(),
            ));
        }
        self.push_cancel(CancelBuilder::user_data(operation.0));
    }

    fn push_cancel(&mut self, what: CancelBuilder) {
        let cancel = opcode::AsyncCancel2::new(what)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(UserData::anonymous(Operation::Cancel).pack());
        self.push(cancel);
    }
}

impl Drop for Ring {
    /// Cancels what is in flight and waits until the kernel has let go of all of it.
    fn drop(&mut self) {
        /// Turns of 10 ms in which nothing completes before giving up on the kernel.
        const QUIET_TURNS: usize = 1000;
        // From here on nothing is submitted again.
        self.operations.cancel_all();
        let unknown_to_kernel = self.retries.drain(..).map(|(_, name)| name);
        for name in unknown_to_kernel.chain(self.starved.drain(..)) {
            self.operations.remove(name);
        }
        self.push_cancel(CancelBuilder::any());
        let mut quiet_turns = 0;
        while !(self.operations.is_empty() && self.backlog.is_empty())
            && quiet_turns < QUIET_TURNS
            && self.enter(Wait::AtMost(Duration::from_millis(10))).is_ok()
        {
            quiet_turns += 1;
            while let Some(completion) = self.completion() {
                drop(completion);
                quiet_turns = 0;
            }
            // Only then, since it is dear with much in flight: it may have missed something.
            if quiet_turns > 0 {
                self.push_cancel(CancelBuilder::any());
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
