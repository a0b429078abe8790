//! One request before the run: does the server answer as it must?
//!
//! A wrong URL is told at once and not as a million wrong answers; and the size of the answer says
//! how large receive buffers should be.

use crate::request::{Persistence, Script, Version};
use crate::response::{FrameError, Framer, Head, HeadMemory};
use crate::target::Targets;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

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
    /// Another status than 200.
    #[error("GET {path} was answered with status {status}, not 200")]
    Status {
        /// What was asked for.
        path: String,
        /// What came.
        status: u16,
    },
}

/// The answer to the first target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Bytes of head and body together.
    pub(super) bytes: u64,
}

/// Asks for the first target on a connection of its own.
pub(super) fn ask(
    targets: &Targets,
    version: Version,
    timeout: Duration,
) -> Result<Answer, PreflightError> {
    let address = targets.address;
    let mut stream = TcpStream::connect_timeout(&address, timeout)
        .map_err(|error| PreflightError::Connect { address, error })?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let script = Script::new(&targets.list[..1], version, Persistence::Close, 1);
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
            Some(Head { status: 200, .. }) => return Ok(Answer { bytes }),
            Some(Head { status, .. }) => {
                return Err(PreflightError::Status { path: targets.list[0].path.clone(), status });
            }
            None => {}
        }
    }
}
