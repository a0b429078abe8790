//! The HTTP/1 connection, as a state machine: whose turn it is, and when it is over (RFC 9112 §9).
//!
//! It sees bytes and events; it owns neither the bytes nor a socket nor a deadline. What is read
//! and what is written move independently, so each has its own enum; that the peer has ended and
//! that the server drains are noted besides.
//!
//! | `Reading` | what may still be taken |
//! |---|---|
//! | `Head` | the next head |
//! | `Body` | the body of the last head |
//! | `Done` | nothing: whatever still comes is ignored |
//!
//! | `Writing` | what is under way |
//! |---|---|
//! | `Idle` | nothing |
//! | `Answer` | one response, made or not |
//!
//! | event | in `Head` | in `Body` | in `Done` |
//! |---|---|---|---|
//! | `take` → request | `Idle` → `Answer`; → `Done` if it is the last | – | – |
//! | `take` → request with a body | `Idle` → `Answer`, → `Body` | – | – |
//! | `take` → body | – | with its last piece → `Head`, or → `Done` if that was the last request | – |
//! | `take` → incomplete | the bytes are noted as seen; ended: → `Done` | nothing changes | – |
//! | `take` → refused | `Idle` → `Answer`, → `Done` | `Answer` only: → `Done` | – |
//! | `take` → busy | `Answer` only: nothing changes | `Idle` only, at a fault: → `Done` | nothing changes |
//! | `refuse` | `Idle` → `Answer`; → `Done` | → `Done` | nothing changes |
//! | `give_up` | → `Done`, `Idle` | → `Done`, `Idle` | → `Idle` |
//! | `decline_body` | nothing changes | → `Done` | nothing changes |
//! | `answered` | → `Idle` | → `Idle`; → `Done` if that was the last request | → `Idle` |
//! | `peer_ended` | noted | noted | noted |
//! | `drain` | noted; `Answer`: → `Done` | noted; `Idle`: → `Done` | noted |
//!
//! A request is the last if it asks for that, while the server drains, and if the peer has ended and
//! nothing follows it.
//!
//! `Done` and `Idle` together mean close. A response says `Connection: close` if it is known to be
//! the last when it is made: so every request that a half-closed peer has pipelined is answered, and
//! none that follows a response which said that it is the last.
//!
//! A body is taken whether or not its request is answered already; whoever answers decides which comes
//! first. A response that says that it is the last need not wait for the body
//! ([`Connection::decline_body`]); any other should, for a fault of the body is answered in its place,
//! and a peer that writes before it reads would not see it.

use super::head::{self, HeadLimits, Method, Persistence, Refusal, RequestHead, Scheme};
use super::request_body::{BodyPiece, BodyReader};

/// How large a request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Its head; a trailer section too.
    pub head: HeadLimits,
    /// Bytes of its body's data. Beyond: [`Refusal::BodyTooLarge`].
    pub body_bytes: u64,
}

/// One HTTP/1 connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    scheme: Scheme,
    reading: Reading,
    writing: Writing,
    /// The peer has ended its side: what counts is what was received before.
    ended: bool,
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
    Body(BodyReader),
    Done,
}

/// What is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Idle,
    Answer {
        /// What the request asked for; void once reading is `Done`.
        asked: Persistence,
        /// It is to HEAD.
        head_only: bool,
    },
}

/// What [`Connection::take`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take<'a> {
    /// A request, to be answered. Its `bytes` are consumed; a body may follow.
    Request(RequestHead<'a>),
    /// A piece of the last request's body. Its `bytes` are consumed.
    Body(BodyPiece<'a>),
    /// Not a whole head yet, or nothing of a body: keep the bytes, and call again with more.
    Incomplete,
    /// No request, or one whose body is at fault: answer with its status, in place of whatever was
    /// to be answered, then close. No further input is looked at.
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
    /// The rest of a body.
    Body,
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
    /// A connection, not secured, on which nothing has been received.
    pub const fn new() -> Self {
        Self::over(Scheme::Http)
    }

    /// A connection, secured or not, on which nothing has been received.
    pub const fn over(scheme: Scheme) -> Self {
        Self {
            scheme,
            reading: Reading::Head { first: true, seen_bytes: 0 },
            writing: Writing::Idle,
            ended: false,
            draining: false,
        }
    }

    /// Looks for the next request, or for more of a body, at the start of `input`: all that was
    /// received and not consumed.
    ///
    /// After [`Take::Incomplete`], `input` must begin with the same bytes; those are looked at
    /// again only when a line's end or a limit may have decided the head, so a head may come byte
    /// by byte ([`head::worth_parsing`]).
    pub fn take<'a>(&mut self, input: &'a [u8], limits: &RequestLimits) -> Take<'a> {
        match (&mut self.reading, self.writing) {
            (Reading::Head { seen_bytes, .. }, Writing::Idle) => {
                // What has waited for a line's end or a limit waits in vain once the peer has ended.
                let seen_bytes = if self.ended { 0 } else { *seen_bytes as usize };
                self.take_head(input, seen_bytes, limits)
            }
            (Reading::Body(reader), _) => match reader.next(input, &limits.head) {
                Ok(piece) => self.take_piece(piece, input.len() > piece.bytes),
                Err(refusal) => self.refuse_body(refusal),
            },
            (Reading::Head { .. }, Writing::Answer { .. }) | (Reading::Done, _) => Take::Busy,
        }
    }

    fn take_head<'a>(
        &mut self,
        input: &'a [u8],
        seen_bytes: usize,
        limits: &RequestLimits,
    ) -> Take<'a> {
        if !head::worth_parsing(input, seen_bytes, &limits.head) {
            return self.incomplete(input.len());
        }
        let parsed = head::parse(input, &limits.head).and_then(|head| match head {
            Some(head) => {
                self.check_scheme(&head)?;
                Ok(Some((head, BodyReader::new(head.body, limits.body_bytes)?)))
            }
            None => Ok(None),
        });
        match parsed {
            Ok(Some((head, body))) => {
                let head_only = head.method == Method::Head;
                self.writing = Writing::Answer { asked: head.persistence, head_only };
                match body {
                    Some(reader) => self.reading = Reading::Body(reader),
                    None => self.next_head(input.len() > head.bytes),
                }
                Take::Request(head)
            }
            Ok(None) => self.incomplete(input.len()),
            Err(refusal) => {
                self.refuse(input);
                Take::Refused(refusal)
            }
        }
    }

    /// A URI of the other scheme is another resource, which is not here (RFC 9110 §4.2.2, §7.4).
    fn check_scheme(&self, head: &RequestHead<'_>) -> Result<(), Refusal> {
        match (head.scheme, self.scheme) {
            (Some(Scheme::Https), Scheme::Http) => Err(Refusal::TargetUnsecured),
            (Some(Scheme::Http), Scheme::Https) => Err(Refusal::TargetSecured),
            _ => Ok(()),
        }
    }

    /// A request has been taken, to its end.
    fn next_head(&mut self, more_input: bool) {
        let last = self.is_last() || (self.ended && !more_input);
        self.reading =
            if last { Reading::Done } else { Reading::Head { first: false, seen_bytes: 0 } };
    }

    /// Whether no request may follow the one that is being answered.
    fn is_last(&self) -> bool {
        self.draining || matches!(self.writing, Writing::Answer { asked: Persistence::Close, .. })
    }

    fn incomplete<'a>(&mut self, input_bytes: usize) -> Take<'a> {
        self.reading = match self.reading {
            Reading::Head { first, .. } if !self.ended => {
                // A count that is too low costs a parse, no more.
                let seen_bytes = u32::try_from(input_bytes).unwrap_or(u32::MAX);
                Reading::Head { first, seen_bytes }
            }
            _ => Reading::Done,
        };
        Take::Incomplete
    }

    fn take_piece<'a>(&mut self, piece: BodyPiece<'a>, more_input: bool) -> Take<'a> {
        match piece {
            BodyPiece { is_last: true, .. } => self.next_head(more_input),
            BodyPiece { bytes: 1.., .. } => {}
            _ if self.ended => return self.refuse_body(Refusal::BodyCut),
            _ => return Take::Incomplete,
        }
        Take::Body(piece)
    }

    /// A request that is answered already cannot be refused any more.
    fn refuse_body<'a>(&mut self, refusal: Refusal) -> Take<'a> {
        self.reading = Reading::Done;
        match self.writing {
            Writing::Answer { .. } => Take::Refused(refusal),
            Writing::Idle => Take::Busy,
        }
    }

    /// The caller refuses what is being received, with 408 for instance: that answer is under way
    /// and is the last. If another is under way already, it is the last; if all is over, it stays so.
    /// `input` is all that was received and not consumed, as for [`take`](Self::take).
    pub fn refuse(&mut self, input: &[u8]) {
        if let (Reading::Head { .. }, Writing::Idle) = (self.reading, self.writing) {
            let head_only = head::begins_with_head_method(input);
            self.writing = Writing::Answer { asked: Persistence::Close, head_only };
        }
        self.reading = Reading::Done;
    }

    /// Nothing more is taken, and nothing is answered: the transport has failed, or waits no longer.
    pub fn give_up(&mut self) {
        (self.reading, self.writing) = (Reading::Done, Writing::Idle);
    }

    /// Nobody wants the body that is to come: nothing of it is taken, and the answer to its request
    /// is the last.
    ///
    /// That is the way to answer a peer that waits before it sends
    /// ([`RequestHead::expects_continue`]): whether it then sends the body cannot be told
    /// (RFC 9110 §10.1.1).
    pub fn decline_body(&mut self) {
        if let Reading::Body(_) = self.reading {
            self.reading = Reading::Done;
        }
    }

    /// The response under way has been handed over to the transport, wholly; it need not be
    /// acknowledged. [`take`](Self::take) may be called at once.
    pub fn answered(&mut self) {
        if self.is_last() {
            self.decline_body();
        }
        self.writing = Writing::Idle;
    }

    /// The peer has ended its side. What was received before is still answered: call
    /// [`take`](Self::take) again, with an empty input too, until it says otherwise than
    /// [`Take::Request`] or [`Take::Body`].
    pub fn peer_ended(&mut self) {
        self.ended = true;
    }

    /// The server is going down: the response under way, or else the next one, is the last.
    ///
    /// A connection that has not had its first request yet waits for it, and a request whose body
    /// is coming is taken to its end; an idle connection may close.
    pub fn drain(&mut self) {
        self.draining = true;
        match (self.reading, self.writing) {
            (Reading::Head { .. }, Writing::Answer { .. }) | (Reading::Body(_), Writing::Idle) => {
                self.reading = Reading::Done;
            }
            _ => {}
        }
    }

    /// What the head of the response under way has to say; `Close` if there is none.
    pub fn persistence(&self) -> Persistence {
        match (self.reading, self.writing) {
            (Reading::Done, _) | (_, Writing::Idle) => Persistence::Close,
            (_, Writing::Answer { .. }) if self.draining => Persistence::Close,
            (_, Writing::Answer { asked, .. }) => asked,
        }
    }

    /// Whether the response under way, a refusal too, is to HEAD: then it has no content
    /// (RFC 9110 §9.3.2).
    pub fn head_only(&self) -> bool {
        matches!(self.writing, Writing::Answer { head_only: true, .. })
    }

    /// Whether bytes that the peer may still send are looked at.
    pub fn takes_more(&self) -> bool {
        !self.ended && self.reading != Reading::Done
    }

    /// Whether all is answered and nothing more is taken.
    pub fn is_over(&self) -> bool {
        (self.reading, self.writing) == (Reading::Done, Writing::Idle)
    }

    /// What the connection waits for. `has_input`: whether bytes are kept that no request consumed.
    pub fn awaiting(&self, has_input: bool) -> Awaiting {
        match (self.reading, self.writing) {
            (Reading::Body(_), _) => Awaiting::Body,
            (_, Writing::Answer { .. }) => Awaiting::Answer,
            (Reading::Done, Writing::Idle) => Awaiting::Close,
            (Reading::Head { .. }, Writing::Idle) if has_input => Awaiting::Head,
            (Reading::Head { .. }, Writing::Idle) if self.ended => Awaiting::Close,
            (Reading::Head { first: true, .. }, Writing::Idle) => Awaiting::FirstHead,
            (Reading::Head { .. }, Writing::Idle) if self.draining => Awaiting::Close,
            (Reading::Head { .. }, Writing::Idle) => Awaiting::NextRequest,
        }
    }
}

/// A shard holds very many of them.
const _: () = assert!(size_of::<Connection>() <= 32);

#[cfg(test)]
mod tests;
