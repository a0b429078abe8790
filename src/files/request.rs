//! What is asked of a site's files, when, and what is answered.

use crate::config::Admission;
use crate::http::{FieldLines, ImfDate, Persistence, Status};
use crate::ring::SendBuf;

use super::FileBody;

/// The time, as a shard knows it: read once a turn, so that one turn has one time.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Seconds since the Unix epoch.
    pub unix_s: u64,
    /// The same second as a `Date` says it.
    pub date: ImfDate,
    /// Milliseconds on a clock that never goes back.
    pub monotonic_ms: u64,
}

/// The way by which a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Without TLS.
    Plain,
    /// By TLS, whose client had to be this.
    Tls(Admission),
}

/// What is asked of a site: GET, or HEAD.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The target in origin form.
    pub target: &'a [u8],
    /// It is HEAD.
    pub head_only: bool,
    /// What the answer says about the connection.
    pub persistence: Persistence,
    /// Conditions, ranges, accepted codings.
    pub fields: FieldLines<'a>,
}

/// What to send for a request.
#[derive(Debug)]
pub struct Reply {
    /// The status, which `head` says too.
    pub status: Status,
    /// The head; followed by the body, if there is one that is short.
    pub head: SendBuf,
    /// The rest, if it is to be sent from a file.
    pub body: Option<FileBody>,
}

impl Now {
    /// The time.
    pub fn new(unix_s: u64, monotonic_ms: u64) -> Self {
        let date = ImfDate::from_unix_s(i64::try_from(unix_s).unwrap_or(i64::MAX));
        Self { unix_s, date, monotonic_ms }
    }

    /// Goes on to this time; the date is written anew only if the second is another one.
    pub fn advance(&mut self, unix_s: u64, monotonic_ms: u64) {
        if self.unix_s == unix_s {
            self.monotonic_ms = monotonic_ms;
        } else {
            *self = Self::new(unix_s, monotonic_ms);
        }
    }
}
