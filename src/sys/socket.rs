//! TCP sockets: listening ones, and the few calls that a connection needs beside the ring.
//!
//! What can be inherited is set on the listener, so that an accepted connection costs no call of its
//! own: on Linux a connection takes TCP_NODELAY, SO_LINGER, SO_KEEPALIVE and buffer sizes from its
//! listener, but not O_NONBLOCK, which accept4(2) and the ring's accept set by their own flag.
#![allow(unsafe_code, reason = "listen(2) with any backlog, and TCP_INFO, are not wrapped by nix")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    self, AddressFamily, MsgFlags, SetSockOpt, Shutdown, SockFlag, SockProtocol, SockType,
    SockaddrStorage, sockopt,
};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

use super::count_call;

sockopt_impl!(
    /// Seconds for which the kernel holds a connection back until its first byte.
    DeferAccept,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_DEFER_ACCEPT,
    i32
);

sockopt_impl!(
    /// The CPU that handled the socket's last packet; -1 before the first one.
    IncomingCpu,
    GetOnly,
    libc::SOL_SOCKET,
    libc::SO_INCOMING_CPU,
    i32
);

/// How to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Whether the socket may share its address with others of the same user (SO_REUSEPORT).
    pub reuse_port: bool,
    /// TCP_DEFER_ACCEPT in seconds; zero leaves it off.
    pub defer_accept_s: u32,
    /// Length of the accept queue; the kernel clamps it to `net.core.somaxconn`.
    pub backlog: i32,
}

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another socket listens there.
    #[error(
        "cannot listen on {address}: the port is in use; `ss -ltnp 'sport = :{}'` names the \
         program: stop it, or choose another port", address.port()
    )]
    InUse {
        /// Where it was tried.
        address: SocketAddr,
    },
    /// The port is reserved for the privileged.
    #[error(
        "cannot listen on {address}: the port needs a privilege; grant it (`setcap \
         cap_net_bind_service=+ep` on the program), lower `net.ipv4.ip_unprivileged_port_start`, \
         or choose a port from 1024 on"
    )]
    Privileged {
        /// Where it was tried.
        address: SocketAddr,
    },
    /// No interface of this host has the address.
    #[error(
        "cannot listen on {address}: no interface of this host has that address; `ip address` lists \
         those there are"
    )]
    NoSuchAddress {
        /// Where it was tried.
        address: SocketAddr,
    },
    /// The host has no IPv6 (or, less likely, no IPv4).
    #[error(
        "cannot listen on {address}: the host does not speak this address family; for IPv6 see \
         `net.ipv6.conf.all.disable_ipv6`"
    )]
    NoSuchFamily {
        /// Where it was tried.
        address: SocketAddr,
    },
    /// Anything else.
    #[error("cannot listen on {address}: {call}: {source}")]
    Failed {
        /// Where it was tried.
        address: SocketAddr,
        /// The call that failed.
        call: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl ListenError {
    fn new(address: SocketAddr, call: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::EADDRINUSE => Self::InUse { address },
            Errno::EACCES => Self::Privileged { address },
            Errno::EADDRNOTAVAIL => Self::NoSuchAddress { address },
            Errno::EAFNOSUPPORT => Self::NoSuchFamily { address },
            errno => Self::Failed { address, call, source: errno.into() },
        }
    }
}

/// Why an inherited descriptor cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// There is no such descriptor.
    #[error(
        "descriptor {fd} is not open; pass a listening socket under that number (systemd: \
         `Sockets=`, the first is 3)"
    )]
    NotOpen {
        /// Its number.
        fd: RawFd,
    },
    /// It is something else.
    #[error(
        "descriptor {fd} is not a listening TCP socket; `ls -l /proc/self/fd` in its place shows \
         what is passed"
    )]
    NotListening {
        /// Its number.
        fd: RawFd,
    },
    /// Anything else.
    #[error("cannot take over descriptor {fd}: {source}")]
    Failed {
        /// Its number.
        fd: RawFd,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Why bytes did not go out. One vocabulary for send(2) and sendfile(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The socket's buffer is full: wait until it is writable.
    WouldBlock,
    /// The peer is gone (EPIPE, ECONNRESET, ETIMEDOUT and their kin).
    Closed,
    /// The kernel is short of memory: worth another try a little later.
    NoMemory,
    /// The file cannot be sent this way (EINVAL): read it and send the bytes.
    Unsupported,
    /// The file could not be read (EIO): the response cannot be completed.
    FileFailed,
    /// Another `errno`, which no documented cause explains.
    Other(i32),
}

impl From<Errno> for SendError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EAGAIN => Self::WouldBlock,
            Errno::EPIPE
            | Errno::ECONNRESET
            | Errno::ECONNABORTED
            | Errno::ENOTCONN
            | Errno::ETIMEDOUT
            | Errno::EHOSTUNREACH
            | Errno::ENETUNREACH
            | Errno::ENETDOWN => Self::Closed,
            Errno::ENOMEM | Errno::ENOBUFS => Self::NoMemory,
            Errno::EINVAL | Errno::EOPNOTSUPP => Self::Unsupported,
            Errno::EIO => Self::FileFailed,
            errno => Self::Other(errno as i32),
        }
    }
}

/// Opens a listening TCP socket: non-blocking, close-on-exec, SO_REUSEADDR, TCP_NODELAY for all of
/// its connections, and IPv6 only on an IPv6 address (one address, one family, whatever
/// `net.ipv6.bindv6only` says).
pub fn listen(address: SocketAddr, options: &ListenOptions) -> Result<OwnedFd, ListenError> {
    let failed = |call| move |errno| ListenError::new(address, call, errno);
    let fd = stream_socket(address).map_err(failed("socket"))?;
    set(&fd, sockopt::ReuseAddr, true).map_err(failed("SO_REUSEADDR"))?;
    if address.is_ipv6() {
        set(&fd, sockopt::Ipv6V6Only, true).map_err(failed("IPV6_V6ONLY"))?;
    }
    if options.reuse_port {
        set(&fd, sockopt::ReusePort, true).map_err(failed("SO_REUSEPORT"))?;
    }
    set(&fd, sockopt::TcpNoDelay, true).map_err(failed("TCP_NODELAY"))?;
    if options.defer_accept_s > 0 {
        let seconds = i32::try_from(options.defer_accept_s).unwrap_or(i32::MAX);
        set(&fd, DeferAccept, seconds).map_err(failed("TCP_DEFER_ACCEPT"))?;
    }
    bind(&fd, address).map_err(failed("bind"))?;
    count_call();
    // SAFETY: listen(2) takes a descriptor and a number and touches no memory of ours; the
    // descriptor is open because `fd` owns it. (nix refuses a backlog above SOMAXCONN's old value.)
    let listening = unsafe { libc::listen(fd.as_raw_fd(), options.backlog) };
    Errno::result(listening).map_err(failed("listen"))?;
    Ok(fd)
}

/// Checks that nobody listens on an address, not even a socket that would share it.
///
/// SO_REUSEPORT lets a second server of the same user join a group unnoticed: half of the connections
/// would go to each, and the order that steering counts on would be lost. A bind without that option
/// fails where anyone listens. What happens between this check and the bind that follows is not seen.
pub fn ensure_free(address: SocketAddr) -> Result<(), ListenError> {
    let failed = |call| move |errno| ListenError::new(address, call, errno);
    let fd = stream_socket(address).map_err(failed("socket"))?;
    set(&fd, sockopt::ReuseAddr, true).map_err(failed("SO_REUSEADDR"))?;
    if address.is_ipv6() {
        set(&fd, sockopt::Ipv6V6Only, true).map_err(failed("IPV6_V6ONLY"))?;
    }
    bind(&fd, address).map_err(failed("bind"))
}

/// A new TCP socket of the address's family, non-blocking and close-on-exec: for a client to connect.
pub fn tcp_stream_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    Ok(stream_socket(address)?)
}

fn stream_socket(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    count_call();
    socket::socket(
        family,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        SockProtocol::Tcp,
    )
}

/// Takes one connection off the accept queue: non-blocking, close-on-exec. `None` when there is none.
pub fn accept_nonblocking(listener: impl AsFd) -> io::Result<Option<OwnedFd>> {
    loop {
        count_call();
        match socket::accept4(&listener, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK) {
            Ok(fd) => return Ok(Some(fd)),
            Err(Errno::EAGAIN) => return Ok(None),
            // A connection that died in the queue is not the listener's trouble: take the next.
            Err(Errno::EINTR | Errno::ECONNABORTED) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The address that a socket is bound to.
pub fn local_addr(fd: impl AsFd) -> io::Result<SocketAddr> {
    count_call();
    let address: SockaddrStorage = socket::getsockname(fd.as_fd().as_raw_fd())?;
    inet(&address)
}

/// Takes over a listening TCP socket that this process was started with, by its number: the answer
/// refers to the same socket by a descriptor of its own, close-on-exec and non-blocking, and gives its
/// connections TCP_NODELAY. The number itself stays open, but is not passed on to programs that we start.
///
/// O_NONBLOCK belongs to the socket, not to the descriptor: whoever else holds the socket sees it too.
pub fn adopt_listener(fd: RawFd) -> Result<OwnedFd, AdoptError> {
    let failed = |source| AdoptError::Failed { fd, source };
    count_call();
    // SAFETY: F_DUPFD_CLOEXEC takes numbers and touches no memory of ours. Should `fd` not be open, or
    // be anything else than was meant, the call fails or the checks below do; nothing is closed.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    let copy = match Errno::result(copy) {
        // SAFETY: the kernel has just made this descriptor, so that nobody else owns it.
        Ok(copy) => unsafe { OwnedFd::from_raw_fd(copy) },
        Err(Errno::EBADF) => return Err(AdoptError::NotOpen { fd }),
        Err(errno) => return Err(failed(errno.into())),
    };
    if !is_tcp_listener(&copy) {
        return Err(AdoptError::NotListening { fd });
    }
    set_nonblocking(&copy).map_err(failed)?;
    set_nodelay(&copy).map_err(failed)?;
    count_call();
    // SAFETY: as above; FD_CLOEXEC is a flag of the descriptor, which the duplicate shows to be open.
    let flagged = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    Errno::result(flagged).map_err(|errno| failed(errno.into()))?;
    Ok(copy)
}

fn is_tcp_listener(fd: &OwnedFd) -> bool {
    let is = |answer: Result<bool, Errno>| {
        count_call();
        answer == Ok(true)
    };
    is(socket::getsockopt(fd, sockopt::AcceptConn))
        && is(socket::getsockopt(fd, sockopt::SockType).map(|kind| kind == SockType::Stream))
        && local_addr(fd).is_ok()
}

fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    count_call();
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    count_call();
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Sends small segments at once (TCP_NODELAY). Connections of our listeners have it already.
pub fn set_nodelay(fd: impl AsFd) -> io::Result<()> {
    Ok(set(&fd, sockopt::TcpNoDelay, true)?)
}

/// Has TCP send what it holds back for more to come (tcp(7): setting TCP_NODELAY flushes, corked or not).
///
/// To be called when a socket of the kernel's TLS has no room for more: on Linux 6.1 nothing may be on
/// its way then, so that room never comes. (TLS finds the buffer full and does not tell TCP, which was
/// promised more; of a buffer below some 64 KiB nothing has been sent by then, and memory pressure can
/// make it that small.)
pub fn push(fd: impl AsFd) -> io::Result<()> {
    set_nodelay(fd)
}

/// Ends the connection by a reset, at once; what is unsent is dropped, and operations that are pending
/// on the ring complete. Not by SO_LINGER and a close: a close waits for those operations, and a
/// shutdown(2) that ends them lets a peer that reads just then see an end in good order.
///
/// A socket whose sending was handed to the kernel's TLS cannot be left so (EOPNOTSUPP): there it has to
/// be that shutdown(2), then the reset with the close. In TLS it is no end in good order, for there is no
/// close_notify.
pub fn reset(fd: impl AsFd) -> io::Result<()> {
    let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as _, sa_data: [0; 14] };
    count_call();
    // SAFETY: the kernel reads `nowhere`, which lives until the call returns, and keeps nothing of it;
    // its length is that of the type. Connecting to no address is how tcp(7) leaves a connection.
    let done = unsafe {
        libc::connect(fd.as_fd().as_raw_fd(), &raw const nowhere, size_of_val(&nowhere) as _)
    };
    match Errno::result(done) {
        Ok(_) => Ok(()),
        Err(Errno::EOPNOTSUPP) => {
            set(&fd, sockopt::Linger, libc::linger { l_onoff: 1, l_linger: 0 })?;
            shutdown_both(fd)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Whether the peer has sent something that nobody has received yet: bytes, not its FIN.
pub fn has_unread(fd: impl AsFd) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    count_call();
    socket::recv(fd.as_fd().as_raw_fd(), &mut [0], flags).is_ok_and(|bytes| bytes > 0)
}

/// Sends a FIN after what is queued. The peer may go on sending.
///
/// The ring's own shutdown would raise a kernel worker thread; this call never blocks.
pub fn shutdown_write(fd: impl AsFd) -> io::Result<()> {
    count_call();
    Ok(socket::shutdown(fd.as_fd().as_raw_fd(), Shutdown::Write)?)
}

/// Ends both directions; a receive that is pending on the ring completes.
pub fn shutdown_both(fd: impl AsFd) -> io::Result<()> {
    count_call();
    Ok(socket::shutdown(fd.as_fd().as_raw_fd(), Shutdown::Both)?)
}

/// The CPU that handled the connection's last packet in the kernel.
pub fn incoming_cpu(fd: impl AsFd) -> Option<u32> {
    count_call();
    u32::try_from(socket::getsockopt(&fd, IncomingCpu).ok()?).ok()
}

/// Bytes that the peer has acknowledged since the connection began (TCP_INFO `tcpi_bytes_acked`): the
/// only sign that a peer still takes a response whose bytes have all been handed to the kernel.
pub fn bytes_acked(fd: impl AsFd) -> io::Result<u64> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut bytes = mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    count_call();
    // SAFETY: `info` is writable for `bytes` bytes, which is what `bytes` tells the kernel; both
    // outlive the call.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    Errno::result(result)?;
    // SAFETY: `tcp_info` is made of integers and was zeroed, so that it is initialised even where an
    // older kernel fills in fewer fields.
    Ok(unsafe { info.assume_init() }.tcpi_bytes_acked)
}

/// Hands bytes to the kernel without waiting, announcing that more follow at once (MSG_MORE): a head
/// whose body comes by [`sendfile`](super::file::sendfile). May take fewer than were given.
pub fn send_more(fd: impl AsFd, bytes: &[u8]) -> Result<usize, SendError> {
    send(fd, bytes, MsgFlags::from_bits_retain(libc::MSG_MORE))
}

/// Hands bytes to the kernel without waiting, to be sent at once. May take fewer than were given.
pub fn send_now(fd: impl AsFd, bytes: &[u8]) -> Result<usize, SendError> {
    send(fd, bytes, MsgFlags::empty())
}

fn send(fd: impl AsFd, bytes: &[u8], flags: MsgFlags) -> Result<usize, SendError> {
    let flags = flags | MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    loop {
        count_call();
        match socket::send(fd.as_fd().as_raw_fd(), bytes, flags) {
            Err(Errno::EINTR) => {}
            result => return result.map_err(SendError::from),
        }
    }
}

fn set<O>(fd: &impl AsFd, option: O, value: O::Val) -> Result<(), Errno>
where
    O: SetSockOpt<Val: Sized>,
{
    count_call();
    socket::setsockopt(fd, option, &value)
}

fn bind(fd: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    count_call();
    socket::bind(fd.as_raw_fd(), &SockaddrStorage::from(address))
}

fn inet(address: &SockaddrStorage) -> io::Result<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        Ok(SocketAddr::V4((*v4).into()))
    } else if let Some(v6) = address.as_sockaddr_in6() {
        Ok(SocketAddr::V6((*v6).into()))
    } else {
        Err(io::Error::new(io::ErrorKind::Unsupported, "not an internet socket"))
    }
}

#[cfg(test)]
mod tests;
