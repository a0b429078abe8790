//! One request before the run: does the server answer as it must?
//!
//! A wrong URL is told at once and not as a million wrong answers; and the size of the answer says
//! how large receive buffers should be.

use crate::dial::{Connection, DialError};
use crate::once::{self, OnceError, Patience};
use crate::request::{Persistence, Script, Wording};
use crate::response::FrameError;
use crate::target::Target;
use crate::tls::{Negotiated, TlsSettings};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why the run does not begin.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// No connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The connection broke.
    #[error("no answer to the first request: {0}")]
    Silent(io::Error),
    /// Nothing came in time.
    #[error(
        "no answer to the first request in time\n  fix: see what the server waits for, or give it more \
         by --timeout"
    )]
    Late,
    /// The connection was closed in the middle.
    #[error("the server closed the connection before the first answer was complete")]
    Ended,
    /// Not a response that can be framed.
    #[error("the first answer cannot be read: {0}")]
    Framing(FrameError),
    /// Something came again and again.
    #[error("the first answer was not complete after {0:?}")]
    Endless(Duration),
    /// Too long to be read as a whole.
    #[error("the first answer has {0} bytes; at most {ANSWER_BYTES_MAX} can be asked for")]
    TooLong(u64),
    /// Another status than the one that is right.
    #[error(
        "GET {path} was answered with status {status}, not {expected}\n  fix: name another --target, \
         or --status {status} if that is the right one"
    )]
    Status {
        /// What was asked for.
        path: String,
        /// What came.
        status: u16,
        /// What is right.
        expected: u16,
    },
}

/// Longest answer that is asked for.
pub const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// How long the first answer may take, whatever comes of it meanwhile; longer only if a connection
/// may stand still for longer.
const WHOLE_ANSWER_MAX: Duration = Duration::from_secs(60);

/// The answer to the first request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of head and body.
    pub bytes: u64,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// What TLS was spoken, if it was.
    pub negotiated: Option<Negotiated>,
}

/// Asks for a target on a connection of its own.
pub fn ask(
    server: SocketAddr,
    tls: Option<&TlsSettings>,
    target: &Target,
    wording: &Wording,
    expected: u16,
    timeout: Duration,
) -> Result<Answer, PreflightError> {
    let mut connection = Connection::dial(server, tls, timeout)?;
    let script = Script::new(std::slice::from_ref(target), wording, Persistence::Close, 1);
    let request = script.request(0);
    // No signal is held back yet: it ends the process.
    let whole = WHOLE_ANSWER_MAX.max(timeout);
    let patience = Patience { still: timeout, whole, stop: &mut || false };
    let answer = once::exchange(&mut connection, request.as_slice(), ANSWER_BYTES_MAX, patience)
        .map_err(PreflightError::from)?;
    if answer.head.status != expected {
        let (path, status) = (target.path.clone(), answer.head.status);
        return Err(PreflightError::Status { path, status, expected });
    }
    let body_bytes = answer.body.len() as u64;
    let bytes = answer.head_bytes.len() as u64 + body_bytes;
    Ok(Answer { bytes, body_bytes, negotiated: connection.negotiated() })
}

impl From<OnceError> for PreflightError {
    fn from(error: OnceError) -> Self {
        match error {
            OnceError::Silent(error) => Self::Silent(error),
            OnceError::Late => Self::Late,
            OnceError::Ended => Self::Ended,
            OnceError::Endless(whole) => Self::Endless(whole),
            OnceError::Interrupted => Self::Silent(io::ErrorKind::Interrupted.into()),
            OnceError::Framing(error) => Self::Framing(error),
            OnceError::TooLong(bytes) => Self::TooLong(bytes),
        }
    }
}
