//! Connections that only wait: what does the server keep of each?
//!
//! Each is used once before, since a server may defer accepting a connection until something comes,
//! and may keep after a request what it needed for it. What the kernel keeps of a connection is no
//! process's memory and is not in the figure.

use super::{LoadError, Taken};
use crate::compare::answer::Expected;
use crate::compare::figure::Figures;
use crate::compare::interrupt::Interrupt;
use crate::compare::options::SETTLE;
use crate::process::{Group, Memory};
use nix::unistd::Pid;
use std::io;

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
    let closed = open.iter().filter(|connection| connection.is_closed()).count();
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
