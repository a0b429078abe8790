//! Connections that only wait: what does the server keep of each?
//!
//! Each is used once before, since a server may defer accepting a connection until something comes,
//! and may keep after a request what it needed for it. What the kernel keeps of a connection is no
//! process's memory and is not in the figure.

use super::{LoadError, Taken};
use crate::compare::answer::Expected;
use crate::compare::figure::Figures;
use crate::compare::options::SETTLE;
use crate::dial::Connection;
use crate::interrupt::Interrupt;
use crate::process::{Group, Memory};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use nix::unistd::Pid;
use std::io;
use std::os::fd::AsRawFd;

/// Opens `connections`, lets them wait, and reads what the server's memory has grown by.
pub(in crate::compare) fn measure(
    expected: &Expected,
    connections: usize,
    server: Pid,
    interrupt: &Interrupt,
) -> Result<Taken, LoadError> {
    let group = Group::watch(server)?;
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        if interrupt.has_come()? {
            return Err(io::Error::from(io::ErrorKind::Interrupted).into());
        }
        open.push(expected.ask()?);
    }
    std::thread::sleep(SETTLE);
    let Memory { begin_bytes, end_bytes, .. } = group.finish()?.memory;
    let closed = open.iter().filter(|connection| is_closed(connection)).count();
    if closed > 0 {
        return Err(LoadError::NotKept { closed, connections });
    }
    let grown = end_bytes.saturating_sub(begin_bytes) as f64;
    Ok(Taken {
        figures: Figures {
            idle_connection_bytes: Some(grown / connections as f64),
            server_memory_bytes: Some(end_bytes as f64),
            ..Figures::default()
        },
        requests: connections as u64,
        sampled: connections as u64,
        ..Taken::default()
    })
}

/// Whether the server has closed a connection.
fn is_closed(connection: &Connection) -> bool {
    let socket = match connection {
        Connection::Plain(socket) => socket,
        Connection::Tls(stream) => stream.get_ref(),
    };
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    // Tickets of TLS may wait to be read: that is no end.
    !matches!(recv(socket.as_raw_fd(), &mut [0], flags), Ok(1..) | Err(Errno::EAGAIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};

    #[test]
    fn a_connection_that_is_closed_is_told_from_one_that_waits() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let connection = Connection::Plain(client);
        assert!(!is_closed(&connection));
        server.write_all(b"ticket").unwrap();
        assert!(!is_closed(&connection));
        let Connection::Plain(client) = &connection else { unreachable!() };
        let mut ticket = [0; 6];
        std::io::Read::read_exact(&mut &*client, &mut ticket).unwrap();
        server.shutdown(Shutdown::Both).unwrap();
        drop(server);
        client.peek(&mut [0]).unwrap();
        assert!(is_closed(&connection));
    }
}
