//! The simulated kernel: what a ring promises to a shard, as late and in such an order as it may.
//!
//! An operation is submitted by the next [`enter`](Kernel::enter). From then on it completes whenever
//! chance has it, if it can: in any order among operations, in its own order by itself, a cancelled one
//! before or after it has brought more. It checks what a shard owes: one sender at a time on a
//! connection, nothing in flight on a socket that is closed.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use slab::Slab;

use crate::config;
use crate::ring::{
    AcceptError, Arena, Completion, Counters, Event, Lease, OperationId, Provided, ReadError,
    RecvError, SendBuf, SendError, Token, Wait,
};
use crate::shard::kernel::Kernel;
use crate::sys::file::{self, Residency};
use crate::sys::ktls;
use crate::sys::socket;

use super::operation::{Held, Operation, Step};
use super::site::{START_S, read_at};
use super::world::{Shared, Socket, What};

/// One shard's.
pub(super) struct Simulated {
    world: Shared,
    shard: usize,
    operations: Slab<Operation>,
    /// Given to the next operation.
    next_generation: u32,
    /// Not submitted yet.
    cancels: Vec<OperationId>,
    closes: Vec<Socket>,
    wake_ups: Vec<usize>,
    completions: VecDeque<Completion<Socket>>,
    provided: Provided,
    recv_buffer_bytes: usize,
    arena: Arena,
    /// By slot: the link whose connection has it.
    tenants: Vec<usize>,
    counters: Counters,
}

impl Simulated {
    pub(super) fn new(
        world: &Shared,
        shard: usize,
        ring: &config::Ring,
        window_bytes: usize,
    ) -> Self {
        Self {
            world: Rc::clone(world),
            shard,
            operations: Slab::new(),
            next_generation: 0,
            cancels: Vec::new(),
            closes: Vec::new(),
            wake_ups: Vec::new(),
            completions: VecDeque::new(),
            provided: Provided::new(ring.recv_buffers, ring.recv_buffer_bytes).expect("memory"),
            recv_buffer_bytes: ring.recv_buffer_bytes as usize,
            arena: Arena::new(ring.fixed_buffers, window_bytes).expect("memory"),
            tenants: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Whether a shard that waits is to go on.
    pub(super) fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    /// Whether all that it was given has come back: operations, completions and buffers.
    pub(super) fn is_at_rest(&self, config: &config::Ring) -> bool {
        let leases: Vec<_> = std::iter::from_fn(|| self.arena.lease()).collect();
        self.operations.is_empty()
            && self.completions.is_empty()
            && self.provided.available() == config.recv_buffers
            && leases.len() == usize::from(config.fixed_buffers)
    }

    /// Lets operations get on: each by chance, or every one. Says whether one has.
    pub(super) fn progress(&mut self, every: bool) -> bool {
        let moves = self.world.borrow().moves;
        if self.world.borrow().wake_ups.get(self.shard).is_some_and(|&count| count > 0) {
            self.world.borrow_mut().wake_ups[self.shard] -= 1;
            self.world.borrow_mut().moves += 1;
            self.counters.woken += 1;
            let token = Token { slot: 0, generation: 0 };
            self.completions.push_back(Completion { token, event: Event::Woken });
        }
        let mut keys: Vec<usize> = self.operations.iter().map(|(key, _)| key).collect();
        self.world.borrow_mut().random.shuffle(&mut keys);
        for key in keys {
            let operation = &self.operations[key];
            if !operation.submitted || !every && self.world.borrow_mut().random.bool() {
                continue;
            }
            let token = operation.token;
            let event = match self.step(key) {
                Step::Nothing => continue,
                Step::Moved => None,
                Step::More(event) => Some(event),
                Step::Last(event) => {
                    self.operations.remove(key);
                    Some(event)
                }
            };
            self.world.borrow_mut().moves += 1;
            self.completions.extend(event.map(|event| Completion { token, event }));
        }
        self.world.borrow().moves != moves
    }

    /// The first half of an enter: what was queued goes in.
    pub(super) fn submit(&mut self) {
        for (_, operation) in &mut self.operations {
            operation.submitted = true;
            if let Held::Recv { starved, .. } = &mut operation.what
                && self.provided.has_available()
            {
                *starved = false;
            }
        }
        for name in std::mem::take(&mut self.cancels) {
            let (key, generation) = name.parts();
            if let Some(operation) = self.operations.get_mut(key as usize)
                && operation.generation == generation
            {
                operation.cancelled = true;
            }
        }
        self.closes.clear();
        for shard in self.wake_ups.drain(..) {
            self.world.borrow_mut().wake_ups[shard] += 1;
        }
    }

    fn step(&mut self, key: usize) -> Step {
        let cancelled = self.operations[key].cancelled;
        let hurries = cancelled && self.world.borrow_mut().random.bool();
        let step = match &self.operations[key].what {
            _ if hurries => Step::Nothing,
            Held::Accept { once } => self.accepted(*once),
            Held::Recv { .. } => self.received(key),
            Held::Send { .. } => self.sent(key),
            Held::Poll { socket } => self.polled(socket),
            Held::Read { .. } => self.read_done(key),
        };
        match (&step, &self.operations[key].what) {
            (Step::Nothing, Held::Accept { .. }) if cancelled => {
                Step::Last(Event::AcceptFailed(AcceptError::Cancelled))
            }
            (Step::Nothing, Held::Recv { .. }) if cancelled => {
                Step::Last(Event::RecvFailed(RecvError::Cancelled))
            }
            _ => step,
        }
    }

    fn accepted(&self, once: bool) -> Step {
        let mut world = self.world.borrow_mut();
        if world.backlogs[self.shard].is_empty() {
            return Step::Nothing;
        }
        let passing = world.trouble.passing;
        if world.chance(passing) {
            let errors = [
                AcceptError::ProcessDescriptors,
                AcceptError::SystemDescriptors,
                AcceptError::Memory,
            ];
            let error = errors[world.random.usize(..errors.len())];
            return Step::Last(Event::AcceptFailed(error));
        }
        let link = world.backlogs[self.shard].pop_front().expect("it is not empty");
        drop(world);
        let event = Event::Accepted(Socket::new(&self.world, What::Connection(link)));
        if once { Step::Last(event) } else { Step::More(event) }
    }

    fn received(&mut self, key: usize) -> Step {
        let Held::Recv { socket, once, starved } = &mut self.operations[key].what else {
            unreachable!("it is a receive")
        };
        if *starved {
            return Step::Nothing;
        }
        let mut world = self.world.borrow_mut();
        let lasting = world.trouble.lasting;
        let fails = world.chance(lasting) && world.chance(8);
        let says_more = world.random.bool();
        let link = &mut world.links[socket.link()];
        if link.to_server.unread() > 0 {
            if !self.provided.has_available() {
                *starved = true;
                self.counters.enobufs += 1;
                return Step::Moved;
            }
            let bytes: Vec<u8> = link.to_server.take(self.recv_buffer_bytes).collect();
            // A FIN that has arrived may be told as more to come.
            let more = link.to_server.unread() > 0 || link.has_client_ended() && says_more;
            let buffer = self.provided.receive(&bytes, more).expect("one is available");
            let event = Event::Received(buffer);
            return if *once { Step::Last(event) } else { Step::More(event) };
        }
        if link.is_gone() {
            return Step::Last(Event::RecvFailed(RecvError::Reset));
        }
        if link.is_recv_over() {
            return Step::Last(Event::Ended);
        }
        if fails {
            link.is_damaged = true;
            return Step::Last(Event::RecvFailed(RecvError::Memory));
        }
        Step::Nothing
    }

    fn sent(&mut self, key: usize) -> Step {
        let Held::Send { socket, bufs, sent } = &mut self.operations[key].what else {
            unreachable!("it is a send")
        };
        let mut world = self.world.borrow_mut();
        let lasting = world.trouble.lasting;
        if world.chance(lasting) {
            world.links[socket.link()].is_damaged = true;
            let errors = [SendError::TimedOut, SendError::Memory];
            return Step::Last(Event::Sent(Err(errors[world.random.usize(..errors.len())])));
        }
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.as_slice()).copied().collect();
        let rest = &all[*sent..];
        let world = &mut *world;
        let link = &mut world.links[socket.link()];
        if link.is_send_shut() {
            return Step::Last(Event::Sent(Err(SendError::Closed)));
        }
        let most = rest.len().min(link.to_client.room());
        if most == 0 {
            return Step::Nothing;
        }
        let taken = if world.random.bool() { most } else { world.random.usize(1..=most) };
        link.to_client.put(&rest[..taken]);
        *sent += taken;
        if *sent == all.len() {
            return Step::Last(Event::Sent(Ok(())));
        }
        self.counters.short_sends += 1;
        Step::Moved
    }

    fn polled(&self, socket: &Socket) -> Step {
        let world = self.world.borrow();
        let link = &world.links[socket.link()];
        if link.is_send_shut() || link.to_client.room() > 0 {
            return Step::Last(Event::Polled(Ok(())));
        }
        Step::Nothing
    }

    fn read_done(&mut self, key: usize) -> Step {
        let token = self.operations[key].token;
        let Held::Read { file, offset, bytes, lease } = &mut self.operations[key].what else {
            unreachable!("it is a read")
        };
        let mut lease = lease.take().expect("a read is done once");
        let link = self.tenants[token.slot as usize];
        let mut world = self.world.borrow_mut();
        let lasting = world.trouble.lasting;
        if world.chance(lasting) {
            world.links[link].is_damaged = true;
            let errors = [ReadError::Device, ReadError::Memory];
            let error = errors[world.random.usize(..errors.len())];
            return Step::Last(Event::Read(Err(error)));
        }
        if world.chance(lasting) {
            world.links[link].is_damaged = true;
            return Step::Last(Event::Read(Ok((lease, 0))));
        }
        let most = (*bytes).min(lease.len());
        let part = if world.random.bool() { most } else { world.random.usize(1..=most) };
        read_at(file, *offset, &mut lease[..part]);
        Step::Last(Event::Read(Ok((lease, part))))
    }

    fn start(&mut self, token: Token, what: Held) -> OperationId {
        let generation = self.next_generation;
        self.next_generation += 1;
        let operation = Operation { generation, token, submitted: false, cancelled: false, what };
        let key = self.operations.insert(operation);
        self.counters.sqes += 1;
        OperationId::simulated(key as u32, generation)
    }

    fn start_send(&mut self, socket: &Rc<Socket>, bufs: Vec<SendBuf>, token: Token) -> OperationId {
        self.check_sender(socket);
        self.start(token, Held::Send { socket: Rc::clone(socket), bufs, sent: 0 })
    }

    /// The kernel keeps no order between two.
    fn check_sender(&self, socket: &Socket) {
        let sends = |operation: &Operation| match &operation.what {
            Held::Send { socket: other, .. } => other.is == socket.is,
            _ => false,
        };
        let is_alone = !self.operations.iter().any(|(_, operation)| sends(operation));
        assert!(is_alone, "two senders on {socket:?}");
    }

    /// A call that sends of itself: as much as there is room for, or less.
    fn send(&self, socket: &Socket, bytes: &[u8]) -> Result<usize, socket::SendError> {
        self.check_sender(socket);
        let world = &mut *self.world.borrow_mut();
        let passing = world.trouble.passing;
        if world.chance(passing) {
            // Memory is waited for by the wheel: often, and a window of one byte would outlast the end.
            return Err(match world.random.usize(..16) {
                0 => socket::SendError::NoMemory,
                _ => socket::SendError::WouldBlock,
            });
        }
        let link = &mut world.links[socket.link()];
        if link.is_send_shut() {
            return Err(socket::SendError::Closed);
        }
        let most = bytes.len().min(link.to_client.room());
        if most == 0 {
            return Err(socket::SendError::WouldBlock);
        }
        let taken = if world.random.bool() { most } else { world.random.usize(1..=most) };
        link.to_client.put(&bytes[..taken]);
        world.moves += 1;
        Ok(taken)
    }
}

impl Kernel for Simulated {
    type Socket = Socket;
    type Address = usize;

    /// Only what does not wait: a simulation lets a shard wait by not turning it.
    fn enter(&mut self, _: Wait) -> io::Result<()> {
        self.counters.enters += 1;
        self.submit();
        self.progress(false);
        Ok(())
    }

    fn completion(&mut self) -> Option<Completion<Socket>> {
        let completion = self.completions.pop_front()?;
        self.counters.cqes += 1;
        Some(completion)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn address(&self) -> io::Result<usize> {
        Ok(self.shard)
    }

    fn wake(&mut self, shard: &usize) {
        self.counters.wakes_sent += 1;
        self.wake_ups.push(*shard);
    }

    fn accept(&mut self, listener: &Arc<Socket>, token: Token) -> OperationId {
        assert_eq!(listener.is, What::Listener(self.shard));
        self.start(token, Held::Accept { once: false })
    }

    fn accept_once(&mut self, listener: &Arc<Socket>, token: Token) -> OperationId {
        assert_eq!(listener.is, What::Listener(self.shard));
        self.start(token, Held::Accept { once: true })
    }

    fn recv(&mut self, socket: &Rc<Socket>, token: Token) -> OperationId {
        self.start(token, Held::Recv { socket: Rc::clone(socket), once: false, starved: false })
    }

    fn recv_once(&mut self, socket: &Rc<Socket>, token: Token) -> OperationId {
        let slot = token.slot as usize;
        self.tenants.resize(self.tenants.len().max(slot + 1), usize::MAX);
        self.tenants[slot] = socket.link();
        self.start(token, Held::Recv { socket: Rc::clone(socket), once: true, starved: false })
    }

    fn send(&mut self, socket: &Rc<Socket>, buf: SendBuf, token: Token) -> OperationId {
        self.start_send(socket, vec![buf], token)
    }

    fn send_vectored(
        &mut self,
        socket: &Rc<Socket>,
        bufs: &mut Vec<SendBuf>,
        token: Token,
    ) -> OperationId {
        self.start_send(socket, std::mem::take(bufs), token)
    }

    fn poll_writable(&mut self, socket: &Rc<Socket>, token: Token) -> OperationId {
        self.start(token, Held::Poll { socket: Rc::clone(socket) })
    }

    fn lease(&self) -> Option<Lease> {
        self.arena.lease()
    }

    fn read(
        &mut self,
        file: &Rc<OwnedFd>,
        offset: u64,
        lease: Lease,
        bytes: usize,
        token: Token,
    ) -> OperationId {
        let file = Rc::clone(file);
        self.start(token, Held::Read { file, offset, bytes, lease: Some(lease) })
    }

    fn cancel(&mut self, name: OperationId) {
        let (key, generation) = name.parts();
        let operation = self.operations.get(key as usize);
        let Some(operation) = operation.filter(|other| other.generation == generation) else {
            return;
        };
        self.counters.cancels += 1;
        if let Held::Recv { starved: true, .. } = operation.what {
            // The kernel knows nothing of it: the ring ends it, at once.
            let Operation { token, .. } = self.operations.remove(key as usize);
            let event = Event::RecvFailed(RecvError::Cancelled);
            return self.completions.push_front(Completion { token, event });
        }
        self.cancels.push(name);
    }

    fn close(&mut self, socket: Rc<Socket>) {
        let socket = Rc::into_inner(socket);
        self.closes.push(socket.expect("nothing is in flight on a socket that is closed"));
    }

    fn accept_nonblocking(&self, listener: &Arc<Socket>) -> io::Result<Option<Socket>> {
        assert_eq!(listener.is, What::Listener(self.shard));
        let mut world = self.world.borrow_mut();
        let passing = world.trouble.passing;
        if world.chance(passing) {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let link = world.backlogs[self.shard].pop_front();
        drop(world);
        Ok(link.map(|link| Socket::new(&self.world, What::Connection(link))))
    }

    fn incoming_cpu(&self, _: &Socket) -> Option<u32> {
        None
    }

    fn has_unread(&self, socket: &Socket) -> bool {
        self.world.borrow().links[socket.link()].to_server.unread() > 0
    }

    fn bytes_acked(&self, socket: &Socket) -> io::Result<u64> {
        Ok(self.world.borrow().links[socket.link()].to_client.acked)
    }

    fn send_more(&self, socket: &Socket, bytes: &[u8]) -> Result<usize, socket::SendError> {
        self.send(socket, bytes)
    }

    fn send_now(&self, socket: &Socket, bytes: &[u8]) -> Result<usize, socket::SendError> {
        self.send(socket, bytes)
    }

    fn residency(&self, _: &OwnedFd, _: u64) -> Residency {
        let mut world = self.world.borrow_mut();
        let cold = world.trouble.cold;
        match world.chance(cold) {
            true => [Residency::Cold, Residency::Unknown][world.random.usize(..2)],
            false => [Residency::Warm, Residency::Memory][world.random.usize(..2)],
        }
    }

    fn read_nowait(
        &self,
        file: &OwnedFd,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize, file::ReadError> {
        let mut world = self.world.borrow_mut();
        let passing = world.trouble.passing;
        if world.chance(passing) {
            return Err(file::ReadError::Cold);
        }
        let some = world.random.usize(1..=buffer.len());
        let bytes = [some, buffer.len()][world.random.usize(..2)];
        read_at(file, offset, &mut buffer[..bytes]);
        Ok(bytes)
    }

    fn sendfile(
        &self,
        socket: &Socket,
        file: &OwnedFd,
        offset: &mut u64,
        bytes: usize,
    ) -> Result<usize, socket::SendError> {
        let mut world = self.world.borrow_mut();
        let (passing, lasting) = (world.trouble.passing, world.trouble.lasting);
        if world.chance(lasting) {
            world.links[socket.link()].is_damaged = true;
            let outcomes = [Ok(0), Err(socket::SendError::Other(libc::EOVERFLOW))];
            return outcomes[world.random.usize(..outcomes.len())];
        }
        if world.chance(passing) {
            let errors = [socket::SendError::Unsupported, socket::SendError::FileFailed];
            return Err(errors[world.random.usize(..errors.len())]);
        }
        let room = world.links[socket.link()].to_client.room();
        drop(world);
        // One byte if there is no room: the call itself says so.
        let mut piece = vec![0; bytes.min(room).max(1)];
        read_at(file, *offset, &mut piece);
        let sent = self.send(socket, &piece)?;
        *offset += sent as u64;
        Ok(sent)
    }

    fn attach_tls(&self, _: &Socket, _: &ktls::Keys) -> io::Result<ktls::Sealing> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn flush_tls(&self, socket: &Socket, _: &ktls::Sealing, _: u64) -> io::Result<bool> {
        panic!("{socket:?}: this kernel has no TLS")
    }

    fn push(&self, _: &Socket) -> io::Result<()> {
        Ok(())
    }

    fn send_record(&self, socket: &Socket, _: u8, _: &[u8]) -> Result<usize, socket::SendError> {
        panic!("{socket:?}: this kernel has no TLS")
    }

    fn shutdown_write(&self, socket: &Socket) -> io::Result<()> {
        done(self.world.borrow_mut().links[socket.link()].shut(false))
    }

    fn shutdown_both(&self, socket: &Socket) -> io::Result<()> {
        done(self.world.borrow_mut().links[socket.link()].shut(true))
    }

    fn reset(&self, socket: &Socket) -> io::Result<()> {
        done(self.world.borrow_mut().links[socket.link()].reset_by_server())
    }

    fn realtime_s(&self) -> u64 {
        START_S + self.monotonic_ms() / 1000
    }

    fn monotonic_ms(&self) -> u64 {
        self.world.borrow().now_ms
    }
}

/// What a call says that may find the connection gone.
fn done(was_there: bool) -> io::Result<()> {
    was_there.then_some(()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOTCONN))
}
