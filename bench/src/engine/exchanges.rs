//! The requests of one connection and the responses to them; knows no socket.
//!
//! | what happens | requests may be sent | responses are awaited |
//! |---|---|---|
//! | [`Exchanges::begin`] | as many as the connection may carry | none |
//! | [`Exchanges::next_batch`] | what is left, one batch at a time | one more each |
//! | a response that announces the close | none | none: what was in flight is lost, as announced |
//! | the last response | none | none |
//! | [`Exchanges::lose`] | none | none: what was in flight is lost |

use crate::request::Persistence;
use crate::response::{FrameError, Framer, Head, Piece};
use crate::tally::{Tally, Times};
use crate::workload::{Request, Workload, Wrong};
use onering::ring::SendBuf;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

/// What the connection carried that is not a response asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A response that cannot be framed.
    Frame(FrameError),
    /// Bytes while no response was awaited.
    Unasked,
}

/// A response that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) class: usize,
    pub(super) times: Times,
    /// Head and body.
    pub(super) bytes: u64,
    pub(super) right: Result<(), Wrong>,
}

impl Answer {
    /// Counts it.
    pub(super) fn count(self, tally: &mut Tally) {
        match self.right {
            Ok(()) => tally.answered(self.class, self.times, self.bytes),
            Err(wrong) => tally.errors.wrong(wrong),
        }
    }
}

/// The moments that a piece of input belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// When it had been received.
    pub(super) at: Instant,
    /// When the line that is played has carried it; the same where none is.
    pub(super) carried: Instant,
}

#[derive(Debug)]
struct InFlight<A> {
    asked: A,
    class: usize,
    planned: Option<Instant>,
    sent: Instant,
    response: Awaited,
}

/// What has come of a response.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    Nothing,
    Rest { first_byte: Instant, head_bytes: u64, body_bytes: u64, right: Result<(), Wrong> },
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Exchanges<A> {
    framer: Framer,
    /// In the order sent; at most `pipeline`.
    in_flight: VecDeque<InFlight<A>>,
    pipeline: usize,
    /// Requests that the connection may still be asked to carry.
    left: u64,
    /// A batch is on its way to the kernel: no other may be started.
    sending: bool,
}

impl<A> Exchanges<A> {
    pub(super) fn new(pipeline: usize) -> Self {
        Self {
            framer: Framer::default(),
            in_flight: VecDeque::with_capacity(pipeline),
            pipeline,
            left: 0,
            sending: false,
        }
    }

    /// A new connection, for so many requests (at least one). Nothing is in flight.
    pub(super) fn begin(&mut self, requests: u64) {
        self.framer.reset();
        self.left = requests;
        self.sending = false;
    }

    /// Whether [`Exchanges::next_batch`] has one.
    pub(super) fn may_send(&self) -> bool {
        !self.sending && self.left > 0 && self.in_flight.len() < self.pipeline
    }

    /// The next requests to send, as one buffer. `planned` is the planned start of a request in an
    /// open loop, which sends one at a time; `sent` is from when on service time counts.
    pub(super) fn next_batch<W: Workload<Asked = A>>(
        &mut self,
        workload: &mut W,
        user: usize,
        planned: Option<Instant>,
        sent: Instant,
    ) -> Option<SendBuf> {
        if !self.may_send() {
            return None;
        }
        let mut batch: Option<SendBuf> = None;
        let mut count = if planned.is_some() { 1 } else { self.pipeline - self.in_flight.len() };
        while count > 0 && self.left > 0 {
            let last = self.left == 1;
            if last && batch.is_some() {
                // A server may close as soon as it has read it, whatever is in front of it.
                break;
            }
            let persistence = if last { Persistence::Close } else { Persistence::Persist };
            let Request { asked, class, bytes } = workload.ask(user, persistence);
            self.in_flight.push_back(InFlight {
                asked,
                class,
                planned,
                sent,
                response: Awaited::Nothing,
            });
            batch = Some(match batch {
                None => bytes,
                Some(before) => joined(before, bytes),
            });
            // u64::MAX is no end.
            self.left -= u64::from(self.left != u64::MAX);
            count -= 1;
        }
        self.sending = batch.is_some();
        batch
    }

    /// The batch is with the kernel.
    pub(super) fn sent(&mut self) {
        self.sending = false;
    }

    /// Takes in what was received and gives `answered` each response that is complete.
    pub(super) fn receive<W: Workload<Asked = A>>(
        &mut self,
        mut input: &[u8],
        arrival: Arrival,
        workload: &mut W,
        user: usize,
        mut answered: impl FnMut(Answer),
    ) -> Result<(), Fault> {
        loop {
            let Some(front) = self.in_flight.front_mut() else {
                return if input.is_empty() { Ok(()) } else { Err(Fault::Unasked) };
            };
            let Awaited::Rest { head_bytes, body_bytes, right, .. } = &mut front.response else {
                if input.is_empty() {
                    return Ok(());
                }
                front.response = Awaited::Rest {
                    first_byte: arrival.at,
                    head_bytes: 0,
                    body_bytes: 0,
                    right: Ok(()),
                };
                continue;
            };
            let memory = workload.memory(&front.asked);
            match self.framer.next(&mut input, memory).map_err(Fault::Frame)? {
                None => return Ok(()),
                Some(Piece::Head(head, bytes)) => {
                    *head_bytes = bytes.len() as u64;
                    *right = workload.head(user, &mut front.asked, head, bytes);
                }
                Some(Piece::Body(piece)) => {
                    if right.is_ok() {
                        *right = workload.body(user, &mut front.asked, *body_bytes, piece);
                    }
                    *body_bytes += piece.len() as u64;
                }
                Some(Piece::End(head)) => {
                    self.complete(head, arrival.carried, workload, user, &mut answered);
                }
            }
        }
    }

    /// The response to the first request in flight is complete.
    fn complete<W: Workload<Asked = A>>(
        &mut self,
        head: Head,
        last_byte: Instant,
        workload: &mut W,
        user: usize,
        answered: &mut impl FnMut(Answer),
    ) {
        let Some(InFlight { asked, class, planned, sent, response }) = self.in_flight.pop_front()
        else {
            return;
        };
        let Awaited::Rest { first_byte, head_bytes, body_bytes, right } = response else { return };
        let right = match right {
            Ok(()) => workload.end(user, asked),
            Err(wrong) => {
                workload.lost(user, asked);
                Err(wrong)
            }
        };
        let times = Times { planned, sent, first_byte, last_byte };
        answered(Answer { class, times, bytes: head_bytes + body_bytes, right });
        if !head.persistent {
            self.lose(workload, user);
        }
    }

    /// Nothing more will come: what is in flight is lost, and nothing is left to be asked. Gives how
    /// many requests were in flight.
    pub(super) fn lose<W: Workload<Asked = A>>(&mut self, workload: &mut W, user: usize) -> usize {
        self.left = 0;
        let lost = self.in_flight.len();
        for request in self.in_flight.drain(..) {
            workload.lost(user, request.asked);
        }
        lost
    }

    /// No request is left and no response awaited: only the close can follow.
    pub(super) fn finished(&self) -> bool {
        self.left == 0 && self.in_flight.is_empty()
    }

    /// Whether a response is awaited, or has come in part.
    pub(super) fn awaiting(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Whether a response is awaited of which nothing has come.
    pub(super) fn awaiting_first_byte(&self) -> bool {
        let front = self.in_flight.front();
        front.is_some_and(|request| matches!(request.response, Awaited::Nothing))
    }

    /// The planned starts of the requests in flight.
    pub(super) fn planned(&self) -> impl Iterator<Item = Instant> {
        self.in_flight.iter().filter_map(|request| request.planned)
    }

    /// Requests in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

/// Two buffers as one: without copying, if the second lies right behind the first.
fn joined(first: SendBuf, second: SendBuf) -> SendBuf {
    if let (SendBuf::Shared(bytes, range), SendBuf::Shared(others, other)) = (&first, &second)
        && Rc::ptr_eq(bytes, others)
        && range.end == other.start
    {
        return SendBuf::Shared(Rc::clone(bytes), range.start..other.end);
    }
    let bytes: Rc<[u8]> = [first.as_slice(), second.as_slice()].concat().into();
    let length = bytes.len() as u32;
    SendBuf::Shared(bytes, 0..length)
}
