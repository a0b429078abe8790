//! Handshakes that take too long for a shard: an RSA key of 4096 bits signs in milliseconds, in which a
//! shard would serve hundreds of requests.
//!
//! A thread of its own, on whatever CPU the kernel finds idle, takes a [`Job`] from the shards' queue,
//! works on the flight, and puts the handshake into the shard's inbox. The queue is as long as there may
//! be handshakes in progress, and no longer.

use std::thread::{self, JoinHandle};

use crossbeam::channel::{Receiver, Sender, unbounded};

use crate::ring::{Ring, Setup, Token, Wait};
use crate::tls::Handshake;

use super::inbox::{Inboxes, Letter};

/// A flight to work on.
#[derive(Debug)]
pub struct Job {
    /// Whose it is: the shard,
    pub shard: usize,
    /// and the connection.
    pub token: Token,
    /// The handshake, with the peer's flight.
    pub handshake: Box<Handshake>,
}

/// The way to the thread. It ends with the last of these.
#[derive(Clone, Debug)]
pub struct Worker(Sender<Job>);

impl Worker {
    /// A way to a thread that is still to be started, and what that is started with.
    pub fn new() -> (Worker, Receiver<Job>) {
        let (sender, jobs) = unbounded();
        (Worker(sender), jobs)
    }

    /// Hands a flight over.
    pub(super) fn give(&self, job: Job) {
        // Without a thread nobody answers: the handshake's deadline ends it.
        let _ = self.0.send(job);
    }

    /// Starts the thread. It answers into the shards' inboxes.
    pub fn start(jobs: Receiver<Job>, inboxes: Inboxes) -> std::io::Result<JoinHandle<()>> {
        thread::Builder::new().name("handshakes".to_owned()).spawn(move || work(&jobs, &inboxes))
    }
}

fn work(jobs: &Receiver<Job>, inboxes: &Inboxes) {
    // To wake shards with, no more.
    let Ok(mut ring) = Ring::new(&Setup { entries: 8, recv_buffers: 1, ..Setup::default() }) else {
        return;
    };
    for Job { shard, token, mut handshake } in jobs {
        let progress = handshake.advance();
        let letter = Letter::Handshake { token, handshake, progress };
        inboxes[shard].send(letter, &mut ring);
        // A shard that was not woken finds the letter at its next turn.
        let _ = ring.enter(Wait::No);
    }
}
