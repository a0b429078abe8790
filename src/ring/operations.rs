//! The table of operations in flight: owner of whatever the kernel sees.
//!
//! An entry is made before its submission is queued and removed at its last completion; in
//! between, what it holds neither moves nor goes away. Entries themselves may move when the table
//! grows, so everything that the kernel has an address of lies behind a box or a reference count.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;

use slab::Slab;

use super::arena::Lease;
use super::ring::Socket;
use super::send_buf::SendBuf;
use super::token::{Operation, SLOTS_MAX, Token, UserData};

/// Names an operation in flight, to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId(pub(super) u64);

/// What a test needs that plays the ring.
#[cfg(test)]
impl OperationId {
    /// Names an operation of the test's own table.
    pub(crate) fn simulated(slot: u32, generation: u32) -> OperationId {
        OperationId(u64::from(slot) << 32 | u64::from(generation))
    }

    /// What it was made of.
    pub(crate) fn parts(self) -> (u32, u32) {
        ((self.0 >> 32) as u32, self.0 as u32)
    }
}

/// What an operation holds until its last completion.
#[derive(Debug)]
pub(super) enum Held {
    /// An accept, once or multishot.
    Accept { listener: Arc<OwnedFd>, once: bool },
    /// A receive, once or multishot. Not armed while it waits for a provided buffer.
    Recv { socket: Socket, armed: bool, once: bool },
    /// One buffer, of which `sent` bytes are with the kernel.
    Send { socket: Socket, buf: SendBuf, sent: usize },
    /// Several buffers, of which `sent` bytes are with the kernel.
    SendVectored { socket: Socket, message: Box<Message>, sent: usize },
    /// A connection being made; the kernel copies the address when the submission is taken.
    Connect { socket: Socket, address: Box<nix::sys::socket::SockaddrStorage> },
    /// A one-time poll for `events`.
    Poll { descriptor: Socket, events: libc::c_short },
    /// A read of a file.
    Read { file: Rc<OwnedFd>, lease: Lease },
}

impl Held {
    pub(super) fn operation(&self) -> Operation {
        match self {
            Held::Accept { .. } => Operation::Accept,
            Held::Recv { .. } => Operation::Recv,
            Held::Send { .. } => Operation::Send,
            Held::SendVectored { .. } => Operation::SendVectored,
            Held::Connect { .. } => Operation::Connect,
            Held::Poll { .. } => Operation::Poll,
            Held::Read { .. } => Operation::Read,
        }
    }

    /// The descriptor that is acted on; open as long as `self` is there.
    pub(super) fn descriptor(&self) -> RawFd {
        match self {
            Held::Accept { listener, .. } => listener.as_raw_fd(),
            Held::Recv { socket, .. }
            | Held::Send { socket, .. }
            | Held::SendVectored { socket, .. }
            | Held::Connect { socket, .. } => socket.as_raw_fd(),
            Held::Poll { descriptor, .. } => descriptor.as_raw_fd(),
            Held::Read { file, .. } => file.as_raw_fd(),
        }
    }
}

/// A message header with its vectors and the bytes they point to.
///
/// Boxed, so that header and vectors stay where they are; reused, so that a warm ring allocates
/// nothing.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bufs: Vec<SendBuf>,
    vectors: Vec<libc::iovec>,
    header: libc::msghdr,
}

/// The kernel's UIO_MAXIOV.
const VECTORS_MAX: usize = 1024;

impl Message {
    pub(super) fn new() -> Box<Message> {
        Box::new(Message { bufs: Vec::new(), vectors: Vec::new(), header: empty_header() })
    }

    /// Points header and vectors to what is left after `sent` bytes, or to as much of that as one
    /// message may have vectors for: the kernel then sends less than all, which is a short send.
    pub(super) fn point(&mut self, sent: usize) -> *const libc::msghdr {
        self.vectors.clear();
        let mut skip = sent;
        for buf in &self.bufs {
            if self.vectors.len() == VECTORS_MAX {
                break;
            }
            let bytes = buf.as_slice();
            let rest = &bytes[skip.min(bytes.len())..];
            skip -= bytes.len() - rest.len();
            if !rest.is_empty() {
                self.vectors.push(libc::iovec {
                    iov_base: rest.as_ptr().cast_mut().cast(),
                    iov_len: rest.len(),
                });
            }
        }
        self.header = empty_header();
        self.header.msg_iov = self.vectors.as_mut_ptr();
        self.header.msg_iovlen = self.vectors.len();
        &raw const self.header
    }

    pub(super) fn bytes(&self) -> usize {
        self.bufs.iter().map(SendBuf::len).sum()
    }
}

fn empty_header() -> libc::msghdr {
    libc::msghdr {
        msg_name: std::ptr::null_mut(),
        msg_namelen: 0,
        msg_iov: std::ptr::null_mut(),
        msg_iovlen: 0,
        msg_control: std::ptr::null_mut(),
        msg_controllen: 0,
        msg_flags: 0,
    }
}

#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) token: Token,
    generation: u32,
    /// The caller wants it to end: it is not submitted again, whatever the kernel was quicker with.
    pub(super) cancelled: bool,
    pub(super) held: Held,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Operations {
    entries: Slab<InFlight>,
    /// Given to the next entry, so that a slot's next tenant has another name.
    next_generation: u32,
}

impl Operations {
    pub(super) fn insert(&mut self, token: Token, held: Held) -> UserData {
        assert!(self.entries.len() < SLOTS_MAX, "more operations in flight than 24 bits can name");
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        let operation = held.operation();
        let slot =
            self.entries.insert(InFlight { token, generation, cancelled: false, held }) as u32;
        UserData { operation, slot, generation }
    }

    /// The entry of that name, if it is still in flight.
    pub(super) fn entry(&mut self, name: UserData) -> Option<&mut InFlight> {
        self.entries.get_mut(name.slot as usize).filter(|entry| entry.generation == name.generation)
    }

    /// Ends the operation; what it held is the caller's now.
    pub(super) fn remove(&mut self, name: UserData) -> Option<InFlight> {
        self.entry(name)?;
        Some(self.entries.remove(name.slot as usize))
    }

    /// Marks every operation as one that is to end.
    pub(super) fn cancel_all(&mut self) {
        for (_, entry) in &mut self.entries {
            entry.cancelled = true;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll() -> Held {
        Held::Poll {
            descriptor: Rc::new(std::fs::File::open("/dev/null").unwrap().into()),
            events: libc::POLLIN,
        }
    }

    const TOKEN: Token = Token { slot: 3, generation: 9 };

    #[test]
    fn a_name_is_not_reused_with_its_slot() {
        let mut operations = Operations::default();
        let first = operations.insert(TOKEN, poll());
        assert_eq!(operations.remove(first).unwrap().token, TOKEN);
        let second = operations.insert(TOKEN, poll());
        assert_eq!(first.slot, second.slot);
        assert!(operations.entry(first).is_none());
        assert!(operations.remove(first).is_none());
        assert!(operations.entry(second).is_some());
    }

    #[test]
    fn a_message_points_to_what_is_left() {
        let mut message = Message::new();
        message.bufs =
            vec![SendBuf::Static(b"abc"), SendBuf::Static(b""), SendBuf::Static(b"defg")];
        assert_eq!(message.bytes(), 7);
        for (sent, lengths) in
            [(0, vec![3, 4]), (2, vec![1, 4]), (3, vec![4]), (6, vec![1]), (7, vec![])]
        {
            message.point(sent);
            let left: Vec<usize> = message.vectors.iter().map(|vector| vector.iov_len).collect();
            assert_eq!(left, lengths, "{sent}");
            assert_eq!(message.header.msg_iovlen, left.len());
        }
    }
}
