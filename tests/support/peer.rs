//! Clients that are not as one would wish them: slow, far behind, on one CPU, gone.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};
use nix::unistd::Pid;

use super::Client;

impl Client {
    /// One whose kernel takes no more than about `bytes` that the client has not read.
    #[track_caller]
    pub(crate) fn narrow(address: SocketAddr, bytes: usize) -> Client {
        let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None);
        let socket = socket.expect("there are descriptors");
        // Before the connection stands: the window is agreed upon then.
        setsockopt(&socket, sockopt::RcvBuf, &bytes).expect("an option of a socket");
        connect(socket.as_raw_fd(), &SockaddrStorage::from(address)).expect("the server listens");
        Client::from(TcpStream::from(socket))
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        let abort = libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(self.stream(), sockopt::Linger, &abort).expect("an option of a socket");
    }

    /// Bytes that the server's kernel holds and the server has not read yet.
    pub(crate) fn unread_by_server(&self) -> u64 {
        let local = self.stream().local_addr().expect("a connected socket");
        let peer = self.stream().peer_addr().expect("a connected socket");
        let hex = |address: SocketAddr| match address {
            SocketAddr::V4(v4) => {
                format!("{:08X}:{:04X}", u32::from_ne_bytes(v4.ip().octets()), v4.port())
            }
            SocketAddr::V6(_) => unreachable!("tests look at IPv4 connections only"),
        };
        let pair = format!("{} {} ", hex(peer), hex(local));
        let sockets = fs::read_to_string("/proc/net/tcp").expect("proc is mounted");
        let line = sockets.lines().find(|line| line.contains(&pair));
        let queues = line.and_then(|line| line.split_whitespace().nth(4));
        let unread = queues.and_then(|queues| queues.split(':').nth(1));
        unread.map_or(0, |hex| u64::from_str_radix(hex, 16).expect("a hexadecimal number"))
    }
}

/// Runs `work` on a thread that stays on `cpu`.
pub(crate) fn on_cpu<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let pinned = scope.spawn(move || {
            let mut cpus = CpuSet::new();
            cpus.set(cpu).expect("a small number");
            sched_setaffinity(Pid::from_raw(0), &cpus).expect("an allowed CPU");
            work()
        });
        pinned.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The first two CPUs that this process may run on, unless it has only one.
pub(crate) fn two_cpus() -> Option<[usize; 2]> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).expect("our own");
    let mut cpus = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false));
    Some([cpus.next()?, cpus.next()?])
}
