//! Received bytes to requests to answers.

use crate::http::{Persistence, RequestBody, Take};
use crate::ring::{RecvBuf, RecvError, SendError, Token};

use super::Shard;
use super::connection::{Phase, Receiving, Step, Writing};
use super::exchange::{Exchange, ExchangeName};
use super::kernel::Kernel;
use super::transport::Transport;

/// Bytes of whole answers to one connection, beyond which the next has to wait until they are sent.
/// They may be of that connection alone, such as parts of a file: this bounds what a peer that reads
/// nothing can make us hold.
const ANSWER_BYTES: usize = 64 * 1024;

/// Input buffers kept for reuse, and the largest that is worth it.
const SPARE_INPUTS: usize = 64;
const SPARE_INPUT_BYTES: usize = 64 * 1024;

impl<K: Kernel> Shard<K> {
    pub(super) fn received(&mut self, token: Token, bytes: RecvBuf) {
        let connection = self.connection(token);
        if connection.receiving == Receiving::First {
            connection.receiving = Receiving::Stopped;
        }
        if connection.phase != Phase::Open {
            return self.discard(token, bytes.len());
        }
        if let Transport::Tls(_) = connection.transport {
            return self.received_records(token, bytes);
        }
        let is_new = self.take_in(token, &bytes);
        if !is_new && matches!(self.connection(token).writing, Writing::Idle) {
            return self.serve_input(token);
        }
        self.connection(token).parted &= !bytes.more_waits();
        self.go_on(token);
    }

    /// Takes in bytes of requests: serves them, or keeps them for later. Says whether it has served
    /// them.
    pub(super) fn take_in(&mut self, token: Token, bytes: &[u8]) -> bool {
        let connection = self.connection(token);
        // The rule: nothing waits, and requests are served from the shared buffer.
        let is_new = connection.input.is_empty() && matches!(connection.writing, Writing::Idle);
        let used = if is_new { self.serve(token, bytes) } else { 0 };
        self.keep_input(token, &bytes[used..]);
        is_new
    }

    /// Begins with the body that follows, if one does, or sees what is to be waited for. The
    /// connection may have ended when this returns.
    pub(super) fn go_on(&mut self, token: Token) {
        match self.connection(token).writing {
            Writing::Body { step: Step::Ready, .. } => self.pump(token),
            _ => self.settle(token),
        }
    }

    /// Keeps bytes for later, unless nothing more is taken from this peer.
    fn keep_input(&mut self, token: Token, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let pipeline_bytes = self.config.limits.pipeline_bytes;
        let connection = &mut self.connections[token.slot as usize];
        if connection.input.capacity() == 0 {
            connection.input = self.spare_inputs.pop().unwrap_or_default();
        }
        connection.input.extend_from_slice(bytes);
        // While an answer is under way, requests pile up here only so far. (Without one, the head
        // that is coming in has limits of its own.)
        if connection.input.len() > pipeline_bytes
            && !matches!(connection.writing, Writing::Idle)
            && let Receiving::Armed(operation) = connection.receiving
        {
            self.kernel.cancel(operation);
            connection.receiving = Receiving::Stopping;
            self.assignment.counters.receives_stopped.add(1);
        }
    }

    /// Serves what is waiting in the connection's own buffer.
    pub(super) fn serve_input(&mut self, token: Token) {
        let connection = self.connection(token);
        if connection.phase != Phase::Open {
            return;
        }
        let mut input = std::mem::take(&mut connection.input);
        let used = self.serve(token, &input);
        input.drain(..used);
        if input.is_empty() {
            self.spare_input(input);
        } else {
            self.connection(token).input = input;
        }
        self.go_on(token);
    }

    /// Keeps an input buffer for reuse.
    pub(super) fn spare_input(&mut self, input: Vec<u8>) {
        if self.spare_inputs.len() < SPARE_INPUTS && input.capacity() <= SPARE_INPUT_BYTES {
            self.spare_inputs.push(input);
        }
    }

    /// Answers the requests at the start of `input`; returns how many bytes they were. A body is
    /// thrown away as it comes, and its request answered after that.
    ///
    /// Whole answers go to the ring in one submission. The first one with a body to pull ends the
    /// batch: it is alone on the socket until it is over.
    fn serve(&mut self, token: Token, input: &[u8]) -> usize {
        let connection = &mut self.connections[token.slot as usize];
        let counters = &self.assignment.counters;
        let mut used = 0;
        let mut requests = 0;
        let mut answer_bytes = 0;
        let mut pulled = None;
        // The answer to a request whose body has begun in this turn.
        let mut held = None;
        while pulled.is_none() {
            if requests == self.config.limits.requests_per_turn {
                counters.turn_requests_capped.add(1);
                break;
            }
            if answer_bytes >= ANSWER_BYTES {
                counters.turn_bytes_capped.add(1);
                break;
            }
            let reply = match connection.http.take(&input[used..], &self.request_limits) {
                Take::Request(head) => {
                    used += head.bytes;
                    let has_body = head.body != RequestBody::None;
                    connection.parted = head.persistence == Persistence::Close && !has_body;
                    // Files want no body. A peer that waits to be asked for it is told so at once.
                    let declined = head.expects_continue && used == input.len();
                    if declined {
                        connection.http.decline_body();
                        counters.bodies_declined.add(1);
                    }
                    let persistence = connection.http.persistence();
                    let reply =
                        self.files.answer(&head, persistence, connection.channel, &self.now);
                    if has_body && !declined {
                        connection.body_bytes = 0;
                        held = Some(reply);
                        continue;
                    }
                    reply
                }
                Take::Body(piece) => {
                    used += piece.bytes;
                    connection.body_bytes += piece.data.len() as u64;
                    counters.body_bytes.add(piece.data.len() as u64);
                    if !piece.is_last {
                        continue;
                    }
                    counters.bodies.add(1);
                    let earlier = || connection.held.take().map(|reply| *reply);
                    let Some(reply) = held.take().or_else(earlier) else { continue };
                    reply
                }
                Take::Refused(refusal) => {
                    used = input.len();
                    (held, connection.held) = (None, None);
                    counters.count_refusal(refusal);
                    tracing::debug!(refusal = refusal.name(), "request refused");
                    self.files.status(
                        self.files.default_site(connection.channel),
                        refusal.status(),
                        Persistence::Close,
                        connection.http.head_only(),
                        &self.now,
                    )
                }
                Take::Incomplete | Take::Busy => break,
            };
            requests += 1;
            connection.exchanges = connection.exchanges.wrapping_add(1);
            counters.count_response(reply.status.code());
            match reply.body {
                None => {
                    answer_bytes += reply.head.len();
                    self.answers.push(reply.head);
                    connection.http.answered();
                }
                Some(body) => {
                    let name = ExchangeName { connection: token, stream: connection.exchanges };
                    pulled = Some(Exchange::new(name, reply.head, body));
                }
            }
        }
        if let Some(reply) = held {
            connection.held = Some(Box::new(reply));
        }
        counters.requests.add(requests as u64);
        self.send_answers(token, pulled);
        used
    }

    /// Hands the collected answers to the ring; the body that follows them comes after.
    pub(super) fn send_answers(&mut self, token: Token, then: Option<Exchange>) {
        let connection = &mut self.connections[token.slot as usize];
        match (self.answers.len(), then) {
            (0, None) => {}
            (0, Some(exchange)) => {
                connection.writing = Writing::Body { exchange, step: Step::Ready };
            }
            (_, then) if connection.transport.seals() => self.seal_answers(token, then),
            (count, then) => {
                let counters = &self.assignment.counters;
                counters.inline_sends.add(1);
                let bytes: usize = self.answers.iter().map(|answer| answer.len()).sum();
                counters.bytes_sent.add(bytes as u64);
                let connection = &mut self.connections[token.slot as usize];
                if count == 1 {
                    let answer = self.answers.pop().expect("there is one");
                    self.kernel.send(&connection.socket, answer, token);
                } else {
                    self.kernel.send_vectored(&connection.socket, &mut self.answers, token);
                }
                connection.in_flight += 1;
                connection.writing = Writing::Answers { then };
                if let Transport::Tls(_) = connection.transport {
                    self.given_to_kernel(token, bytes);
                }
            }
        }
    }

    /// The ring has sent what it was given.
    pub(super) fn sent(&mut self, token: Token, result: Result<(), SendError>) {
        let connection = self.connection(token);
        connection.in_flight -= 1;
        if connection.phase == Phase::Shut {
            return self.end_if_over(token);
        }
        if let Err(error) = result {
            return self.send_failed(token, error);
        }
        if let Transport::Tls(_) = connection.transport {
            self.records_sent(token);
        }
        let connection = self.connection(token);
        let then = match &mut connection.writing {
            Writing::Answers { then } => then.take(),
            Writing::Body { step: Step::AwaitSent, .. } => return self.pump(token),
            Writing::Body { .. } | Writing::Idle | Writing::Flushing => return,
        };
        match then {
            Some(exchange) => {
                connection.writing = Writing::Body { exchange, step: Step::Ready };
                self.pump(token);
            }
            None => {
                connection.writing = Writing::Idle;
                // The end of the peer's side may cut a body off.
                if connection.input.is_empty() && !connection.has_ended {
                    self.settle(token);
                } else {
                    self.serve_input(token);
                }
            }
        }
    }

    /// The peer's FIN: what it has asked before is still answered.
    pub(super) fn peer_ended(&mut self, token: Token) {
        let connection = self.connection(token);
        connection.receiving = Receiving::Over;
        let had_ended = std::mem::replace(&mut connection.has_ended, true);
        match connection.phase {
            Phase::Open => {
                connection.http.peer_ended();
                if connection.transport.is_handshaking() {
                    return self.end_of_handshaker(token);
                }
                let is_cut = matches!(connection.transport, Transport::Tls(_)) && !had_ended;
                let is_idle = matches!(connection.writing, Writing::Idle);
                if is_cut {
                    // What was received was authentic, and a request tells where it ends.
                    self.assignment.counters.tls_truncated.add(1);
                }
                if is_idle {
                    self.serve_input(token);
                }
            }
            Phase::Lingering { .. } => self.shut(token),
            Phase::Shut => self.end_if_over(token),
        }
    }

    pub(super) fn receive_failed(&mut self, token: Token, error: RecvError) {
        let connection = &mut self.connections[token.slot as usize];
        match (error, connection.receiving, connection.phase) {
            (RecvError::Cancelled, Receiving::Stopping, Phase::Open) => {
                connection.receiving = Receiving::Stopped;
                // The answer may have been sent while the cancellation was under way.
                if matches!(connection.writing, Writing::Idle) {
                    self.serve_input(token);
                } else {
                    self.settle(token);
                }
            }
            // The last answer was sent while the cancellation was under way: what still comes is
            // to be thrown away, since a close before that would be a reset.
            (RecvError::Cancelled, Receiving::Stopping, Phase::Lingering { .. }) => {
                let operation = self.kernel.recv(&connection.socket, token);
                connection.receiving = Receiving::Armed(operation);
            }
            _ => {
                if error == RecvError::Reset {
                    self.assignment.counters.resets.add(1);
                }
                self.connection(token).receiving = Receiving::Over;
                self.shut(token);
            }
        }
    }
}
