//! The HTTP machine and the file cache, driven without a socket.
//!
//! It does what the shard does: take a request, have it answered, take its body, send the answer, take
//! the next. It has none of the shard's limits of a turn, and no deadlines.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use onering::config::{Config, Limits};
use onering::files::{Channel, Files, Now, Reply, SiteId};
use onering::http::{
    Awaiting, Body as _, Connection, HeadLimits, Persistence, Pull, RequestBody, RequestLimits,
    Status, Take,
};

use crate::support::Site;

/// A year in which every file of the site is old.
const NOW_S: u64 = 1_800_000_000;

/// What is pulled of a body at once.
const QUANTUM_BYTES: usize = 70_000;

/// All that came back, and whether the connection is over.
pub(super) struct Outcome {
    pub(super) bytes: Vec<u8>,
    pub(super) is_over: bool,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.bytes[..self.bytes.len().min(1000)];
        let end = if self.is_over { "and closed" } else { "and left open" };
        write!(formatter, "\"{}\" {end}", shown.escape_ascii())
    }
}

/// A peer, and what has passed between it and us.
#[derive(Default)]
struct Peer {
    connection: Connection,
    /// What was received and not consumed.
    input: Vec<u8>,
    /// The answer to a request whose body is coming.
    held: Option<Reply>,
    output: Vec<u8>,
}

/// A file cache, for one connection after the other.
pub(super) struct Machine {
    files: Files,
    limits: RequestLimits,
    now: Now,
}

impl Machine {
    pub(super) fn new(site: &Site) -> Machine {
        let Config { sites, cache, limits, .. } = site.resolved("");
        let Limits { request_line_bytes, head_bytes, fields, body_bytes, .. } = limits;
        let head = HeadLimits { request_line_bytes, head_bytes, fields };
        Machine {
            files: Files::open(&sites, &cache).expect("the root is there"),
            limits: RequestLimits { head, body_bytes },
            now: Now::new(NOW_S, 0),
        }
    }

    /// What comes back to a peer that sends these pieces and then, perhaps, ends its side.
    pub(super) fn answers(&mut self, pieces: &[&[u8]], ends: bool) -> Outcome {
        let mut peer = Peer::default();
        for piece in pieces {
            peer.input.extend_from_slice(piece);
            self.serve(&mut peer);
        }
        if ends {
            peer.connection.peer_ended();
            self.serve(&mut peer);
        }
        let is_over = peer.connection.awaiting(!peer.input.is_empty()) == Awaiting::Close;
        Outcome { bytes: peer.output, is_over }
    }

    fn serve(&mut self, peer: &mut Peer) {
        let Peer { connection, input, output, held } = peer;
        loop {
            let (used, reply) = match connection.take(input, &self.limits) {
                Take::Request(head) => {
                    // A peer that waits before it sends a body is not asked for it.
                    let is_declined = head.expects_continue && head.bytes == input.len();
                    if is_declined {
                        connection.decline_body();
                    }
                    *held = Some(self.files.answer(
                        &head,
                        connection.persistence(),
                        Channel::Plain,
                        &self.now,
                    ));
                    let is_whole = is_declined || head.body == RequestBody::None;
                    (head.bytes, held.take_if(|_| is_whole))
                }
                Take::Body(piece) => (piece.bytes, held.take_if(|_| piece.is_last)),
                Take::Refused(refusal) => {
                    *held = None;
                    (input.len(), Some(self.page(refusal.status(), connection.head_only())))
                }
                Take::Incomplete | Take::Busy => return,
            };
            input.drain(..used);
            if let Some(reply) = reply {
                send(reply, output);
                connection.answered();
            }
        }
    }

    fn page(&mut self, status: Status, head_only: bool) -> Reply {
        self.files.status(SiteId::DEFAULT, status, Persistence::Close, head_only, &self.now)
    }
}

fn send(reply: Reply, output: &mut Vec<u8>) {
    output.extend_from_slice(reply.head.as_slice());
    let Some(mut body) = reply.body else { return };
    loop {
        match body.next(QUANTUM_BYTES) {
            Pull::Bytes(bytes) => output.extend_from_slice(bytes.as_slice()),
            Pull::File { file, offset, bytes } => {
                let file = File::from(file.try_clone().expect("a descriptor is free"));
                let start = output.len();
                output.resize(start + bytes, 0);
                file.read_exact_at(&mut output[start..], offset).expect("the file is as long");
            }
            Pull::Wait => unreachable!("files are always ready"),
            Pull::End => return,
        }
    }
}
