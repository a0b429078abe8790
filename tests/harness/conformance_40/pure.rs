//! The HTTP machine and the file cache, driven without a socket.
//!
//! It does what the shard does: take a request, have it answered, send the answer, take the next. It
//! has none of the shard's limits of a turn, and no deadlines.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use onering::config::{Config, Limits};
use onering::files::{Files, Now, Reply, Request, SiteId};
use onering::http::{
    Awaiting, Body as _, Connection, HeadLimits, Method, Persistence, Pull, RequestHead, Status,
    Take,
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

/// A file cache, for one connection after the other.
pub(super) struct Machine {
    files: Files,
    limits: HeadLimits,
    now: Now,
}

impl Machine {
    pub(super) fn new(site: &Site) -> Machine {
        let Config { sites, cache, limits, .. } = site.resolved("");
        let Limits { request_line_bytes, head_bytes, fields, .. } = limits;
        Machine {
            files: Files::open(&sites, &cache).expect("the root is there"),
            limits: HeadLimits { request_line_bytes, head_bytes, fields },
            now: Now::new(NOW_S, 0),
        }
    }

    /// What comes back to a peer that sends these pieces and then, perhaps, ends its side.
    pub(super) fn answers(&mut self, pieces: &[&[u8]], ends: bool) -> Outcome {
        let mut connection = Connection::new();
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for piece in pieces {
            input.extend_from_slice(piece);
            self.serve(&mut connection, &mut input, &mut output);
        }
        if ends {
            connection.peer_ended();
            self.serve(&mut connection, &mut input, &mut output);
        }
        let is_over = connection.awaiting(!input.is_empty()) == Awaiting::Close;
        Outcome { bytes: output, is_over }
    }

    fn serve(&mut self, connection: &mut Connection, input: &mut Vec<u8>, output: &mut Vec<u8>) {
        loop {
            let (used, reply) = match connection.take(input, &self.limits) {
                Take::Request(head) => (head.bytes, self.reply_to(&head, connection.persistence())),
                Take::Refused(refusal) => (input.len(), self.page(refusal.status())),
                Take::Incomplete | Take::Busy => return,
            };
            input.drain(..used);
            send(reply, output);
            connection.answered();
        }
    }

    fn reply_to(&mut self, head: &RequestHead<'_>, persistence: Persistence) -> Reply {
        let RequestHead { target, fields, .. } = *head;
        let status = match head.method {
            Method::Get | Method::Head => {
                let site = self.files.site(head.host);
                let head_only = head.method == Method::Head;
                let request = Request { target, head_only, persistence, fields };
                return self.files.reply(site, &request, &self.now);
            }
            Method::Options => Status::NO_CONTENT,
            Method::Other => Status::NOT_IMPLEMENTED,
            _ => Status::METHOD_NOT_ALLOWED,
        };
        self.files.status(SiteId::DEFAULT, status, persistence, false, &self.now)
    }

    fn page(&mut self, status: Status) -> Reply {
        self.files.status(SiteId::DEFAULT, status, Persistence::Close, false, &self.now)
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
