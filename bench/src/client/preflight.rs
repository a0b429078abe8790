//! One request before the run: does the server answer as it must?
//!
//! A wrong URL is told at once and not as a million wrong answers; and the size of the answer says
//! how large receive buffers should be.

use crate::request::{Persistence, Script};
use crate::response::{FrameError, Framer, Head, HeadMemory};
use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::Plan;

/// Why the run does not begin.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// No connection.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// The server.
        address: std::net::SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The connection broke or nothing came.
    #[error("no answer to the first request: {0}")]
    Silent(#[from] io::Error),
    /// The connection was closed in the middle.
    #[error("the server closed the connection before the first answer was complete")]
    Ended,
    /// Not a response that can be framed.
    #[error("the first answer cannot be read: {0}")]
    Framing(#[from] FrameError),
    /// Another status than the one that is right.
    #[error("GET {path} was answered with status {status}, not {expected}")]
    Status {
        /// What was asked for.
        path: String,
        /// What came.
        status: u16,
        /// What is right.
        expected: u16,
    },
}

/// The answer to the first target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Bytes of head and body together.
    pub(super) bytes: u64,
}

/// Asks for the first target on a connection of its own.
pub(super) fn ask(plan: &Plan) -> Result<Answer, PreflightError> {
    let Plan { targets, wording, status: expected, timeout, .. } = plan;
    let (address, expected, timeout) = (targets.address, *expected, *timeout);
    let mut stream = TcpStream::connect_timeout(&address, timeout)
        .map_err(|error| PreflightError::Connect { address, error })?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let script = Script::new(&targets.list[..1], wording, Persistence::Close, 1);
    stream.write_all(script.bytes())?;
    let (mut framer, mut memory) = (Framer::default(), HeadMemory::default());
    let (mut buffer, mut bytes) = (vec![0; 64 * 1024], 0);
    loop {
        let received = stream.read(&mut buffer)?;
        if received == 0 {
            return Err(PreflightError::Ended);
        }
        bytes += received as u64;
        let mut input = &buffer[..received];
        match framer.next(&mut input, &mut memory)? {
            Some(Head { status, .. }) if status == expected => return Ok(Answer { bytes }),
            Some(Head { status, .. }) => {
                let path = targets.list[0].path.clone();
                return Err(PreflightError::Status { path, status, expected });
            }
            None => {}
        }
    }
}
