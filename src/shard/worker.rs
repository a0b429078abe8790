//! Handshakes that take too long for a shard: an RSA key of 4096 bits signs in milliseconds, in which a
//! shard would serve hundreds of requests.
//!
//! A thread of its own, on whatever CPU the kernel finds idle, takes a [`Job`] from the shards' queue,
//! works on the flight, and puts the handshake into the shard's inbox. The queue is as long as there may
//! be handshakes in progress of one shard: what finds it full is refused, for a handshake whose connection
//! has ended meanwhile stays in it, and whoever could make it longer and longer would have all others wait.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crossbeam::channel::{Receiver, Sender, TrySendError, bounded};

use crate::ring::{Ring, Setup, Token, Wait};
use crate::tls::Handshake;

use super::StartError;
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
    /// A way to a thread that is still to be started, and what that is started with: a queue of so many
    /// flights.
    pub fn new(flights: usize) -> (Worker, Receiver<Job>) {
        let (sender, jobs) = bounded(flights);
        (Worker(sender), jobs)
    }

    /// Hands a flight over. It comes back where too many wait, or nobody works.
    pub(super) fn give(&self, job: Job) -> Result<(), Job> {
        self.0.try_send(job).map_err(TrySendError::into_inner)
    }

    /// Starts the thread. It answers into the shards' inboxes.
    pub fn start(jobs: Receiver<Job>, inboxes: Inboxes) -> Result<JoinHandle<()>, StartError> {
        let (made, outcome) = mpsc::sync_channel(1);
        let run = move || {
            // To wake shards with, no more. A ring is of the thread that makes it.
            match Ring::new(&Setup { entries: 8, recv_buffers: 1, ..Setup::default() }) {
                Ok(ring) => {
                    let _ = made.send(Ok(()));
                    work(&jobs, &inboxes, ring);
                }
                Err(error) => {
                    let _ = made.send(Err(error));
                }
            }
        };
        let thread = thread::Builder::new()
            .name("handshakes".to_owned())
            .spawn(run)
            .map_err(StartError::Worker)?;
        outcome.recv().expect("the thread says how it began, first of all")?;
        Ok(thread)
    }
}

fn work(jobs: &Receiver<Job>, inboxes: &Inboxes, mut ring: Ring) {
    for Job { shard, token, mut handshake } in jobs {
        let progress = handshake.advance();
        let letter = Letter::Handshake { token, handshake, progress };
        inboxes[shard].send(letter, &mut ring);
        // A shard that was not woken finds the letter at its next turn.
        let _ = ring.enter(Wait::No);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shard::simulation::secure::CONFIGS;

    #[test]
    fn what_finds_the_queue_full_comes_back() {
        let job = |slot| Job {
            shard: 0,
            token: Token { slot, generation: 0 },
            handshake: Box::new(Handshake::new(Arc::clone(&CONFIGS[0].0))),
        };
        let (worker, jobs) = Worker::new(1);
        worker.give(job(1)).expect("there is room");
        assert_eq!(worker.give(job(2)).expect_err("it is full").token.slot, 2);
        assert_eq!(jobs.recv().expect("the first").token.slot, 1);
        worker.give(job(3)).expect("there is room again");
        drop(jobs);
        assert_eq!(worker.give(job(4)).expect_err("nobody works").token.slot, 4);
    }
}
