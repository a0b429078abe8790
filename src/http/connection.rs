//! The HTTP/1 connection, as a state machine: whose turn it is, and when it is over (RFC 9112 §9).
//!
//! It sees bytes and events; it owns neither the bytes nor a socket nor a deadline. What is read
//! and what is written move independently, so each has its own enum; draining is the one thing
//! that comes from neither side.
//!
//! | `Reading` | what may still be taken |
//! |---|---|
//! | `Head` | the next head; the peer may send more |
//! | `Ended` | heads that were received before the peer's FIN |
//! | `Done` | nothing: whatever still comes is ignored |
//!
//! | `Writing` | what is under way |
//! |---|---|
//! | `Idle` | nothing |
//! | `Answer` | one response |
//!
//! | event | while `Idle` | while `Answer` |
//! |---|---|---|
//! | `take` → request | → `Answer`; → `Done` if it asks to close, has a body, is the last of an ended input, or while draining | – |
//! | `take` → incomplete | `Head` notes the bytes as seen; `Ended` → `Done` | – |
//! | `take` → refused | → `Answer`, → `Done` | – |
//! | `take` → busy | only in `Done` | always, nothing changes |
//! | `refuse` | → `Answer`, → `Done`; nothing changes in `Done` | → `Done` |
//! | `answered` | nothing changes | → `Idle` |
//! | `peer_ended` | `Head` → `Ended` | `Head` → `Ended` |
//! | `drain` | the next request is the last | → `Done` |
//!
//! `Done` and `Idle` together mean close. A response says `Connection: close` if and only if
//! reading is `Done`: so every request that a half-closed peer has pipelined is answered, and
//! none that follows a response which said that it is the last.

use super::head::{self, HeadLimits, Persistence, Refusal, RequestBody, RequestHead};

/// One HTTP/1 connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    reading: Reading,
    writing: Writing,
    draining: bool,
}

/// What may still be taken from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Head {
        /// Whether no request has been taken yet.
        first: bool,
        /// Bytes of the input that were found to be an incomplete head.
        seen_bytes: u32,
    },
    Ended,
    Done,
}

/// What is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Idle,
    Answer {
        /// What the request asked for; void once reading is `Done`.
        asked: Persistence,
    },
}

/// What [`Connection::take`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take<'a> {
    /// A request, to be answered now. Its `bytes` are consumed.
    Request(RequestHead<'a>),
    /// Not a whole head yet: keep the bytes, and call again with more.
    Incomplete,
    /// No request: answer with its status, then close. No further input is looked at.
    Refused(Refusal),
    /// A response is under way, or no further request is taken.
    Busy,
}

/// What a connection waits for, and so which deadline applies to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaiting {
    /// The first byte of the first request.
    FirstHead,
    /// The rest of a head that has begun.
    Head,
    /// The first byte of another request.
    NextRequest,
    /// The end of the response under way.
    Answer,
    /// Nothing: all is answered and nothing more is taken. The transport may close, lingering if
    /// the peer has not ended.
    Close,
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

impl Connection {
    /// A connection on which nothing has been received.
    pub const fn new() -> Self {
        Self {
            reading: Reading::Head { first: true, seen_bytes: 0 },
            writing: Writing::Idle,
            draining: false,
        }
    }

    /// Looks for the next request at the start of `input`: all that was received and not consumed.
    ///
    /// After [`Take::Incomplete`], `input` must begin with the same bytes; those are looked at
    /// again only when a line's end or a limit may have decided the head, so a head may come byte
    /// by byte ([`head::worth_parsing`]).
    pub fn take<'a>(&mut self, input: &'a [u8], limits: &HeadLimits) -> Take<'a> {
        let seen_bytes = match (self.reading, self.writing) {
            (Reading::Done, _) | (_, Writing::Answer { .. }) => return Take::Busy,
            (Reading::Head { seen_bytes, .. }, Writing::Idle) => seen_bytes as usize,
            (Reading::Ended, Writing::Idle) => 0,
        };
        if !head::worth_parsing(input, seen_bytes, limits) {
            return self.incomplete(input.len());
        }
        match head::parse(input, limits) {
            Ok(Some(head)) => {
                self.begin_answer(&head, input.len() > head.bytes);
                Take::Request(head)
            }
            Ok(None) => self.incomplete(input.len()),
            Err(refusal) => {
                self.refuse();
                Take::Refused(refusal)
            }
        }
    }

    fn begin_answer(&mut self, head: &RequestHead<'_>, more_input: bool) {
        self.writing = Writing::Answer { asked: head.persistence };
        let last = self.draining
            || head.persistence == Persistence::Close
            // Bodies are not read: what follows cannot be told from a request.
            || head.body == RequestBody::Present;
        self.reading = match self.reading {
            Reading::Head { .. } if !last => Reading::Head { first: false, seen_bytes: 0 },
            Reading::Ended if !last && more_input => Reading::Ended,
            _ => Reading::Done,
        };
    }

    fn incomplete<'a>(&mut self, input_bytes: usize) -> Take<'a> {
        self.reading = match self.reading {
            Reading::Head { first, .. } => {
                // A count that is too low costs a parse, no more.
                let seen_bytes = u32::try_from(input_bytes).unwrap_or(u32::MAX);
                Reading::Head { first, seen_bytes }
            }
            Reading::Ended | Reading::Done => Reading::Done,
        };
        Take::Incomplete
    }

    /// The caller refuses what is being received, with 408 for instance: that answer is under way
    /// and is the last. If another is under way already, it is the last; if all is over, it stays so.
    pub fn refuse(&mut self) {
        if let (Reading::Head { .. } | Reading::Ended, Writing::Idle) = (self.reading, self.writing)
        {
            self.writing = Writing::Answer { asked: Persistence::Close };
        }
        self.reading = Reading::Done;
    }

    /// The response under way has been handed over to the transport, wholly; it need not be
    /// acknowledged. [`take`](Self::take) may be called at once.
    pub fn answered(&mut self) {
        self.writing = Writing::Idle;
    }

    /// The peer has ended its side. What was received before is still answered: call
    /// [`take`](Self::take) again, with an empty input too, until it says otherwise than
    /// [`Take::Request`].
    pub fn peer_ended(&mut self) {
        if let Reading::Head { .. } = self.reading {
            self.reading = Reading::Ended;
        }
    }

    /// The server is going down: the response under way, or else the next one, is the last.
    ///
    /// A connection that has not had its first request yet waits for it; an idle one may close.
    pub fn drain(&mut self) {
        self.draining = true;
        if let Writing::Answer { .. } = self.writing {
            self.reading = Reading::Done;
        }
    }

    /// What the head of the response under way has to say; `Close` if there is none.
    pub fn persistence(&self) -> Persistence {
        match (self.reading, self.writing) {
            (Reading::Done, _) | (_, Writing::Idle) => Persistence::Close,
            (_, Writing::Answer { asked }) => asked,
        }
    }

    /// Whether bytes that the peer may still send are looked at.
    pub fn takes_more(&self) -> bool {
        matches!(self.reading, Reading::Head { .. })
    }

    /// What the connection waits for. `has_input`: whether bytes are kept that no request consumed.
    pub fn awaiting(&self, has_input: bool) -> Awaiting {
        match (self.reading, self.writing) {
            (_, Writing::Answer { .. }) => Awaiting::Answer,
            (Reading::Done, Writing::Idle) => Awaiting::Close,
            (_, Writing::Idle) if has_input => Awaiting::Head,
            (Reading::Ended, Writing::Idle) => Awaiting::Close,
            (Reading::Head { first: true, .. }, Writing::Idle) => Awaiting::FirstHead,
            (Reading::Head { .. }, Writing::Idle) if self.draining => Awaiting::Close,
            (Reading::Head { .. }, Writing::Idle) => Awaiting::NextRequest,
        }
    }
}

/// A shard holds very many of them.
const _: () = assert!(size_of::<Connection>() <= 16);

#[cfg(test)]
mod tests;
