//! What a shard asks of the kernel: the seam at which it is simulated.
//!
//! [`Kernel`] is the [`Ring`] and, beside it, the calls that a shard makes inline and the two clocks.
//! A shard runs on [`Ring`] unless it is told otherwise, and is compiled for it: nothing is looked up
//! in a table while it runs. Its other implementor is the test that plays the kernel.
//!
//! Nothing here decides anything: a method is one call, with the name that the call has below.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use crate::ring::{Address, Completion, Counters, Lease, OperationId, Ring, SendBuf, Token, Wait};
use crate::sys::clock;
use crate::sys::file::{self, ReadError, Residency};
use crate::sys::ktls;
use crate::sys::socket::{self, SendError};

/// Operations of a ring, calls beside it, and clocks.
pub trait Kernel: Sized {
    /// A socket that is open as long as somebody holds it: a connection, or a listener.
    type Socket: Debug;
    /// Where another shard's kernel reaches this one.
    type Address;

    /// [`Ring::enter`].
    fn enter(&mut self, wait: Wait) -> io::Result<()>;
    /// [`Ring::completion`].
    fn completion(&mut self) -> Option<Completion<Self::Socket>>;
    /// [`Ring::counters`].
    fn counters(&self) -> Counters;
    /// [`Ring::address`].
    fn address(&self) -> io::Result<Self::Address>;
    /// [`Ring::wake`].
    fn wake(&mut self, kernel: &Self::Address);

    /// [`Ring::accept`].
    fn accept(&mut self, listener: &Arc<Self::Socket>, token: Token) -> OperationId;
    /// [`Ring::accept_once`].
    fn accept_once(&mut self, listener: &Arc<Self::Socket>, token: Token) -> OperationId;
    /// [`Ring::recv`].
    fn recv(&mut self, socket: &Rc<Self::Socket>, token: Token) -> OperationId;
    /// [`Ring::recv_once`].
    fn recv_once(&mut self, socket: &Rc<Self::Socket>, token: Token) -> OperationId;
    /// [`Ring::send`].
    fn send(&mut self, socket: &Rc<Self::Socket>, buf: SendBuf, token: Token) -> OperationId;
    /// [`Ring::send_vectored`].
    fn send_vectored(
        &mut self,
        socket: &Rc<Self::Socket>,
        bufs: &mut Vec<SendBuf>,
        token: Token,
    ) -> OperationId;
    /// [`Ring::poll_writable`].
    fn poll_writable(&mut self, socket: &Rc<Self::Socket>, token: Token) -> OperationId;
    /// A buffer of [`Ring::arena`].
    fn lease(&self) -> Option<Lease>;
    /// [`Ring::read`].
    fn read(
        &mut self,
        file: &Rc<OwnedFd>,
        offset: u64,
        lease: Lease,
        bytes: usize,
        token: Token,
    ) -> OperationId;
    /// [`Ring::cancel`].
    fn cancel(&mut self, operation: OperationId);
    /// [`Ring::close`].
    fn close(&mut self, socket: Rc<Self::Socket>);

    /// [`socket::accept_nonblocking`].
    fn accept_nonblocking(&self, listener: &Arc<Self::Socket>) -> io::Result<Option<Self::Socket>>;
    /// [`socket::incoming_cpu`].
    fn incoming_cpu(&self, socket: &Self::Socket) -> Option<u32>;
    /// [`socket::has_unread`].
    fn has_unread(&self, socket: &Self::Socket) -> bool;
    /// [`socket::bytes_acked`].
    fn bytes_acked(&self, socket: &Self::Socket) -> io::Result<u64>;
    /// [`socket::send_more`].
    fn send_more(&self, socket: &Self::Socket, bytes: &[u8]) -> Result<usize, SendError>;
    /// [`socket::send_now`].
    fn send_now(&self, socket: &Self::Socket, bytes: &[u8]) -> Result<usize, SendError>;
    /// [`file::residency`].
    fn residency(&self, file: &OwnedFd, offset: u64) -> Residency;
    /// [`file::read_nowait`].
    fn read_nowait(
        &self,
        file: &OwnedFd,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize, ReadError>;
    /// [`file::sendfile`].
    fn sendfile(
        &self,
        socket: &Self::Socket,
        file: &OwnedFd,
        offset: &mut u64,
        bytes: usize,
    ) -> Result<usize, SendError>;
    /// [`ktls::attach`].
    fn attach_tls(&self, socket: &Self::Socket, keys: &ktls::Keys) -> io::Result<ktls::Sealing>;
    /// [`ktls::flush`].
    fn flush_tls(
        &self,
        socket: &Self::Socket,
        sealing: &ktls::Sealing,
        plain_bytes: u64,
    ) -> io::Result<bool>;
    /// [`socket::push`].
    fn push(&self, socket: &Self::Socket) -> io::Result<()>;
    /// [`ktls::send_record`].
    fn send_record(
        &self,
        socket: &Self::Socket,
        content_type: u8,
        bytes: &[u8],
    ) -> Result<usize, SendError>;
    /// [`socket::shutdown_write`].
    fn shutdown_write(&self, socket: &Self::Socket) -> io::Result<()>;
    /// [`socket::shutdown_both`].
    fn shutdown_both(&self, socket: &Self::Socket) -> io::Result<()>;
    /// [`socket::reset`].
    fn reset(&self, socket: &Self::Socket) -> io::Result<()>;

    /// [`clock::realtime_s`].
    fn realtime_s(&self) -> u64;
    /// [`clock::monotonic_ms`].
    fn monotonic_ms(&self) -> u64;
}

impl Kernel for Ring {
    type Socket = OwnedFd;
    type Address = Address;

    #[inline]
    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        self.enter(wait)
    }

    #[inline]
    fn completion(&mut self) -> Option<Completion> {
        self.completion()
    }

    #[inline]
    fn counters(&self) -> Counters {
        self.counters()
    }

    #[inline]
    fn address(&self) -> io::Result<Address> {
        self.address()
    }

    #[inline]
    fn wake(&mut self, ring: &Address) {
        self.wake(ring);
    }

    #[inline]
    fn accept(&mut self, listener: &Arc<OwnedFd>, token: Token) -> OperationId {
        self.accept(listener, token)
    }

    #[inline]
    fn accept_once(&mut self, listener: &Arc<OwnedFd>, token: Token) -> OperationId {
        self.accept_once(listener, token)
    }

    #[inline]
    fn recv(&mut self, socket: &Rc<OwnedFd>, token: Token) -> OperationId {
        self.recv(socket, token)
    }

    #[inline]
    fn recv_once(&mut self, socket: &Rc<OwnedFd>, token: Token) -> OperationId {
        self.recv_once(socket, token)
    }

    #[inline]
    fn send(&mut self, socket: &Rc<OwnedFd>, buf: SendBuf, token: Token) -> OperationId {
        self.send(socket, buf, token)
    }

    #[inline]
    fn send_vectored(
        &mut self,
        socket: &Rc<OwnedFd>,
        bufs: &mut Vec<SendBuf>,
        token: Token,
    ) -> OperationId {
        self.send_vectored(socket, bufs, token)
    }

    #[inline]
    fn poll_writable(&mut self, socket: &Rc<OwnedFd>, token: Token) -> OperationId {
        self.poll_writable(socket, token)
    }

    #[inline]
    fn lease(&self) -> Option<Lease> {
        self.arena().lease()
    }

    #[inline]
    fn read(
        &mut self,
        file: &Rc<OwnedFd>,
        offset: u64,
        lease: Lease,
        bytes: usize,
        token: Token,
    ) -> OperationId {
        self.read(file, offset, lease, bytes, token)
    }

    #[inline]
    fn cancel(&mut self, operation: OperationId) {
        self.cancel(operation);
    }

    #[inline]
    fn close(&mut self, socket: Rc<OwnedFd>) {
        self.close(socket);
    }

    #[inline]
    fn accept_nonblocking(&self, listener: &Arc<OwnedFd>) -> io::Result<Option<OwnedFd>> {
        socket::accept_nonblocking(listener)
    }

    #[inline]
    fn incoming_cpu(&self, socket: &OwnedFd) -> Option<u32> {
        socket::incoming_cpu(socket)
    }

    #[inline]
    fn has_unread(&self, socket: &OwnedFd) -> bool {
        socket::has_unread(socket)
    }

    #[inline]
    fn bytes_acked(&self, socket: &OwnedFd) -> io::Result<u64> {
        socket::bytes_acked(socket)
    }

    #[inline]
    fn send_more(&self, socket: &OwnedFd, bytes: &[u8]) -> Result<usize, SendError> {
        socket::send_more(socket, bytes)
    }

    #[inline]
    fn send_now(&self, socket: &OwnedFd, bytes: &[u8]) -> Result<usize, SendError> {
        socket::send_now(socket, bytes)
    }

    #[inline]
    fn residency(&self, file: &OwnedFd, offset: u64) -> Residency {
        file::residency(file, offset)
    }

    #[inline]
    fn read_nowait(
        &self,
        file: &OwnedFd,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize, ReadError> {
        file::read_nowait(file, buffer, offset)
    }

    #[inline]
    fn sendfile(
        &self,
        socket: &OwnedFd,
        file: &OwnedFd,
        offset: &mut u64,
        bytes: usize,
    ) -> Result<usize, SendError> {
        file::sendfile(socket, file, offset, bytes)
    }

    #[inline]
    fn attach_tls(&self, socket: &OwnedFd, keys: &ktls::Keys) -> io::Result<ktls::Sealing> {
        ktls::attach(socket, keys)
    }

    #[inline]
    fn flush_tls(
        &self,
        socket: &OwnedFd,
        sealing: &ktls::Sealing,
        plain_bytes: u64,
    ) -> io::Result<bool> {
        ktls::flush(socket, sealing, plain_bytes)
    }

    #[inline]
    fn push(&self, socket: &OwnedFd) -> io::Result<()> {
        socket::push(socket)
    }

    #[inline]
    fn send_record(
        &self,
        socket: &OwnedFd,
        content_type: u8,
        bytes: &[u8],
    ) -> Result<usize, SendError> {
        ktls::send_record(socket, content_type, bytes)
    }

    #[inline]
    fn shutdown_write(&self, socket: &OwnedFd) -> io::Result<()> {
        socket::shutdown_write(socket)
    }

    #[inline]
    fn shutdown_both(&self, socket: &OwnedFd) -> io::Result<()> {
        socket::shutdown_both(socket)
    }

    #[inline]
    fn reset(&self, socket: &OwnedFd) -> io::Result<()> {
        socket::reset(socket)
    }

    #[inline]
    fn realtime_s(&self) -> u64 {
        clock::realtime_s()
    }

    #[inline]
    fn monotonic_ms(&self) -> u64 {
        clock::monotonic_ms()
    }
}
