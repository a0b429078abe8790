//! What stands in for the shard: it drives the machines over a wire, with a clock that is told.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use onering::files::{FileBody, Files, Now, Reply, Request, SiteId};
use onering::http::{
    Awaiting, Body as _, Connection, HeadLimits, Method, Persistence, Pull, RequestBody,
    RequestHead, RequestLimits, Status, Take,
};

use super::wire::Wire;

const LIMITS: RequestLimits = RequestLimits {
    head: HeadLimits { request_line_bytes: 200, head_bytes: 1000, fields: 10 },
    body_bytes: BODY_BYTES as u64,
};
const PIPELINE_BYTES: usize = 300;
const QUANTUM_BYTES: usize = 700;

/// The largest request body.
pub(super) const BODY_BYTES: usize = 2000;
const BODY_RATE_BYTES: u64 = 500;

pub(super) const HEAD_MS: u64 = 10_000;
pub(super) const BODY_MS: u64 = 20_000;
pub(super) const IDLE_MS: u64 = 20_000;
pub(super) const STALL_MS: u64 = 15_000;
pub(super) const LINGER_MS: u64 = 5_000;

/// One connection, as the server sees it.
pub(super) struct Server<'a> {
    files: &'a mut Files,
    connection: Connection,
    input: Vec<u8>,
    peer_ended: bool,
    /// The answer to a request whose body is coming, and what has come of that.
    held: Option<Reply>,
    body_bytes: u64,
    /// What of the answer under way is in memory and not on the wire.
    output: Vec<u8>,
    body: Option<FileBody>,
    is_answering: bool,
    is_draining: bool,
    /// An answer was under way, or has begun, since it drains: there is to be no other.
    is_last_begun: bool,
    phase: Phase,
    awaiting: Awaiting,
    since_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Lingering,
    Over,
}

impl<'a> Server<'a> {
    pub(super) fn new(files: &'a mut Files, now: &Now) -> Self {
        Self {
            files,
            connection: Connection::new(),
            input: Vec::new(),
            peer_ended: false,
            held: None,
            body_bytes: 0,
            output: Vec::new(),
            body: None,
            is_answering: false,
            is_draining: false,
            is_last_begun: false,
            phase: Phase::Open,
            awaiting: Awaiting::FirstHead,
            since_ms: now.monotonic_ms,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    pub(super) fn drain(&mut self) {
        self.connection.drain();
        self.is_draining = true;
        self.is_last_begun = self.is_answering;
    }

    /// When it acts of itself.
    pub(super) fn due_ms(&self) -> u64 {
        self.since_ms
            + match (self.phase, self.awaiting) {
                (Phase::Lingering, _) | (_, Awaiting::Close) => LINGER_MS,
                (_, Awaiting::FirstHead | Awaiting::Head) => HEAD_MS,
                (_, Awaiting::Body) => BODY_MS + self.body_bytes * 1000 / BODY_RATE_BYTES,
                (_, Awaiting::NextRequest) => IDLE_MS,
                (_, Awaiting::Answer) => STALL_MS,
            }
    }

    /// One turn of the loop; says whether anything has moved.
    pub(super) fn turn(&mut self, wire: &mut Wire, now: &Now, random: &mut fastrand::Rng) -> bool {
        if wire.reset {
            self.phase = Phase::Over;
        }
        if self.phase == Phase::Over {
            return false;
        }
        let mut has_moved = self.receive(wire, random);
        if self.phase == Phase::Open {
            has_moved |= self.serve(now);
            has_moved |= self.send(wire, now, random);
            self.settle(wire, now);
        }
        if self.phase == Phase::Lingering && self.peer_ended {
            self.phase = Phase::Over;
            has_moved = true;
        }
        if self.phase != Phase::Over && now.monotonic_ms >= self.due_ms() {
            self.expired(wire, now);
            has_moved = true;
        }
        has_moved
    }

    fn receive(&mut self, wire: &mut Wire, random: &mut fastrand::Rng) -> bool {
        // Now and then there is no buffer to receive into.
        if random.u8(..16) == 0 {
            return !wire.to_server.is_over();
        }
        let mut piece = Vec::new();
        let is_full = self.is_answering && self.input.len() > PIPELINE_BYTES;
        if self.phase != Phase::Open || self.connection.takes_more() && !is_full {
            wire.to_server.read(&mut piece, random);
        }
        if self.phase == Phase::Open && self.connection.takes_more() {
            self.input.extend_from_slice(&piece);
        }
        let ends = wire.to_server.is_over() && !self.peer_ended;
        if ends {
            self.peer_ended = true;
            self.connection.peer_ended();
        }
        ends || !piece.is_empty()
    }

    fn serve(&mut self, now: &Now) -> bool {
        if self.is_answering {
            return false;
        }
        let input = std::mem::take(&mut self.input);
        let (used, reply) = match self.connection.take(&input, &LIMITS) {
            Take::Request(head) => {
                if head.expects_continue && head.bytes == input.len() {
                    self.connection.decline_body();
                }
                self.body_bytes = 0;
                self.held = Some(self.reply_to(&head, now));
                let is_whole =
                    head.body == RequestBody::None || !matches!(self.awaits(), Awaiting::Body);
                (head.bytes, self.held.take_if(|_| is_whole))
            }
            Take::Body(piece) => {
                self.body_bytes += piece.data.len() as u64;
                (piece.bytes, self.held.take_if(|_| piece.is_last))
            }
            Take::Refused(refusal) => {
                self.held = None;
                (input.len(), Some(self.page(refusal.status(), now)))
            }
            Take::Incomplete | Take::Busy => (0, None),
        };
        self.input = input[used..].to_vec();
        if let Some(reply) = reply {
            self.begin(reply);
        }
        used > 0 || self.is_answering
    }

    fn awaits(&self) -> Awaiting {
        self.connection.awaiting(!self.input.is_empty())
    }

    fn begin(&mut self, reply: Reply) {
        assert!(!self.is_last_begun, "it drains, and answers again");
        self.is_last_begun = self.is_draining;
        self.output = reply.head.as_slice().to_vec();
        self.body = reply.body;
        self.is_answering = true;
    }

    fn reply_to(&mut self, head: &RequestHead<'_>, now: &Now) -> Reply {
        let persistence = self.connection.persistence();
        let RequestHead { target, fields, .. } = *head;
        let status = match head.method {
            Method::Get | Method::Head => {
                let site = self.files.site(head.host);
                let head_only = head.method == Method::Head;
                let request = Request { target, head_only, persistence, fields };
                return self.files.reply(site, &request, now);
            }
            Method::Options => Status::NO_CONTENT,
            Method::Other => Status::NOT_IMPLEMENTED,
            _ => Status::METHOD_NOT_ALLOWED,
        };
        self.files.status(SiteId::DEFAULT, status, persistence, false, now)
    }

    fn page(&mut self, status: Status, now: &Now) -> Reply {
        self.files.status(SiteId::DEFAULT, status, Persistence::Close, false, now)
    }

    fn send(&mut self, wire: &mut Wire, now: &Now, random: &mut fastrand::Rng) -> bool {
        if !self.is_answering {
            return false;
        }
        if self.output.is_empty()
            && let Some(body) = &mut self.body
        {
            match body.next(random.usize(1..=QUANTUM_BYTES)) {
                Pull::Bytes(bytes) => self.output.extend_from_slice(bytes.as_slice()),
                Pull::File { file, offset, bytes } => {
                    self.output = read(&file, offset, bytes);
                }
                Pull::Wait => unreachable!("files are always ready"),
                Pull::End => self.body = None,
            }
        }
        let taken = wire.to_client.write(&self.output, random);
        self.output.drain(..taken);
        if taken > 0 {
            self.since_ms = now.monotonic_ms;
        }
        if self.output.is_empty() && self.body.is_none() {
            self.is_answering = false;
            self.connection.answered();
            return true;
        }
        taken > 0
    }

    /// What is waited for now?
    fn settle(&mut self, wire: &mut Wire, now: &Now) {
        let awaiting = self.awaits();
        assert_eq!(awaiting == Awaiting::Answer, self.is_answering);
        if awaiting != self.awaiting {
            self.awaiting = awaiting;
            self.since_ms = now.monotonic_ms;
        }
        if awaiting == Awaiting::Close {
            wire.to_client.end();
            self.phase = Phase::Lingering;
            self.since_ms = now.monotonic_ms;
        }
    }

    fn expired(&mut self, wire: &mut Wire, now: &Now) {
        match (self.phase, self.awaiting) {
            (Phase::Open, Awaiting::Head | Awaiting::Body) => {
                self.connection.refuse();
                self.held = None;
                self.input.clear();
                let reply = self.page(Status::REQUEST_TIMEOUT, now);
                self.begin(reply);
                self.settle(wire, now);
            }
            (Phase::Open, Awaiting::Answer) => {
                wire.reset = true;
                self.phase = Phase::Over;
            }
            (Phase::Open, _) => {
                wire.to_client.end();
                self.phase = Phase::Over;
            }
            _ => self.phase = Phase::Over,
        }
    }
}

/// A piece of a file that does not change.
pub(super) fn read(file: &OwnedFd, offset: u64, bytes: usize) -> Vec<u8> {
    let file = File::from(file.try_clone().expect("a descriptor is free"));
    let mut piece = vec![0; bytes];
    file.read_exact_at(&mut piece, offset).expect("the file has what it was said to have");
    piece
}
