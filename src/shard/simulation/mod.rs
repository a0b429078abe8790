//! Shards in a simulation of kernel, network, peers and clock.
//!
//! The shards are the real ones, with the HTTP machine and the file cache in them; below them the test
//! plays the kernel ([`kernel`]), which keeps what a ring promises and nothing else. Everything that
//! happens is drawn from a seed: what is asked and by how many, in what pieces it moves, who pauses, who
//! goes away or breaks the connection and when, when operations complete and in which order, what
//! fails, when the server drains, and how few buffers of how few bytes there are. The peers know every
//! answer. Besides:
//!
//! - answers come in order, whole, none twice, none of another connection's, and none after one that
//!   says that it is the last;
//! - whatever is asked wholly is answered, unless somebody has broken the connection;
//! - a peer that stops in the middle of a head or a body is told (408), one that takes nothing is cut
//!   off, and nobody else;
//! - bodies in whatever framing are never taken for requests, and bad ones are answered as such;
//! - what came before the server was told to end is answered;
//! - a shard never spins, and ends with nothing left: no socket, deadline, buffer or operation;
//! - one send at a time is on a socket, and none on one that is closed;
//! - the counters add up;
//! - all of it ends, in a bounded number of rounds.
//!
//! | | |
//! |---|---|
//! | `ONERING_SEED=N` | replays a seed, each round of it shown |
//! | `ONERING_SEEDS=10000` | so many fresh seeds, instead of a few |
//!
//! ```text
//! ONERING_SEEDS=10000 cargo test --lib shard::simulation
//! ```
//!
//! What it does not show: the ring below, whose own tests run on a kernel, and whether that kernel
//! keeps to what is played here; those over sockets do.

mod bodies;
mod client;
mod interleaved;
mod kernel;
mod operation;
pub(super) mod secure;
mod server;
mod site;
mod wire;
mod world;

use std::env;
use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::metrics::Values;

use client::Client;
use secure::{CONFIGS, Secure};
use server::Server;
use wire::Link;
use world::{Shared, Trouble, World};

/// Always run. What a seed means changes with whatever is drawn, so that a defect which one has found is
/// kept as a test of its own, named by the symptom.
const PINNED: std::ops::Range<u64> = 0..300;
/// Fresh ones, unless more are asked for.
const FRESH: u64 = 100;

/// Rounds that no simulation takes.
const ROUNDS_MAX: usize = 1_000_000;

/// Times that the clock goes on although something could happen, each by some milliseconds.
const DELAYS_MAX: usize = 40;

fn from_environment(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number is needed")))
}

#[test]
fn pinned_seeds() {
    match from_environment("ONERING_SEED") {
        Some(seed) => {
            Simulation::new(seed).run(true);
        }
        None => {
            let mut sum = Values::default();
            PINNED.for_each(|seed| sum.merge(&check(seed)));
            is_all_reached(&sum);
        }
    }
}

/// A simulation shows nothing of what it does not come to.
fn is_all_reached(sum: &Values) {
    let reached = [
        sum.handed_off,
        sum.received_hand_off,
        sum.timeouts_head,
        sum.timeouts_body,
        sum.bodies,
        sum.bodies_declined,
        sum.timeouts_idle,
        sum.timeouts_write_stall,
        sum.timeouts_linger,
        sum.deadlines_put_off,
        sum.accept_paused_descriptors,
        sum.accept_paused_limit,
        sum.resets,
        sum.send_errors,
        sum.read_errors,
        sum.receives_stopped,
        sum.sendfile_would_block,
        sum.cold_reads,
        sum.truncated_files,
        sum.turn_requests_capped,
        sum.turn_bytes_capped,
        sum.drain_cut_off,
        sum.enobufs,
        sum.short_sends,
        sum.handshakes_full,
        sum.handshakes_delayed,
        sum.handshakes_evicted,
        sum.handshakes_abandoned,
        sum.timeouts_handshake,
        sum.tls_closed_by_peer,
        sum.tls_truncated,
        sum.cancels,
    ];
    assert!(reached.iter().all(|&count| count > 0), "not reached: {sum:#?}");
}

#[test]
fn fresh_seeds() {
    let count = from_environment("ONERING_SEEDS").unwrap_or(FRESH);
    let random = RandomState::new();
    for at in 0..count {
        check(random.hash_one(at));
    }
}

/// Runs a seed; if it fails, says which it was.
fn check(seed: u64) -> Values {
    let run = || Simulation::new(seed).run(false);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        eprintln!("seed {seed} fails. To replay it:");
        eprintln!("ONERING_SEED={seed} cargo test --lib simulation::pinned_seeds -- --nocapture");
        resume_unwind(panic);
    })
}

#[derive(Debug)]
struct Simulation {
    random: fastrand::Rng,
    world: Shared,
    server: Server,
    /// Each with the link of its number.
    clients: Vec<Client>,
    /// The round in which the server is told to end, and the one in which it is to do so at once.
    drain_at: usize,
    cut_at: usize,
    /// The round in which the server is given no time for a while, as a process that was stopped.
    pause_at: usize,
    delays: usize,
    is_secure: bool,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let shards = if random.u8(..16) == 0 { 2 } else { 1 };
        // A shard hands connections off only if it has very many.
        let clients = if shards == 2 { random.usize(18..40) } else { random.usize(1..7) };
        let world = World::new(shards, Trouble::draw(&mut random), random.fork());
        // A third of the simulations is over TLS, of either version.
        let tls = CONFIGS.get(random.usize(..6));
        let secure = |random: &mut _| tls.map(|(_, client)| Secure::new(client, random));
        let clients: Vec<_> =
            (0..clients).map(|_| Client::new(secure(&mut random), &mut random)).collect();
        let pauses = random.u8(..8) == 0;
        let links = clients.iter().map(|_| Link::new(pauses, &mut random)).collect();
        world.borrow_mut().links = links;
        let mut config = site::config(&mut random);
        if shards == 2 {
            config.limits.connections_per_shard = 100;
        }
        let is_secure = tls.is_some();
        let server = Server::new(&world, config, tls.map(|(server, _)| server), shards);
        let sometime = |random: &mut fastrand::Rng, one_in| match random.u8(..one_in) {
            0 => random.usize(..400),
            _ => usize::MAX,
        };
        let pause_at = if pauses { random.usize(..300) } else { usize::MAX };
        let drain_at = if pauses { usize::MAX } else { sometime(&mut random, 4) };
        let cut_at = drain_at.saturating_add(sometime(&mut random, 4));
        Self { random, world, server, clients, drain_at, cut_at, pause_at, delays: 0, is_secure }
    }

    /// From the first connection to the end of the last shard.
    fn run(mut self, is_shown: bool) -> Values {
        for round in 0.. {
            assert!(round < ROUNDS_MAX, "it does not end: {self:?}");
            if round == self.drain_at {
                self.drain();
            }
            if round == self.cut_at {
                self.server.cut();
            }
            if round == self.pause_at {
                let now_ms = self.world.borrow().now_ms;
                self.server.paused_until_ms = now_ms + self.random.u64(..60_000);
            }
            if self.delays < DELAYS_MAX && self.random.u8(..64) == 0 {
                self.delays += 1;
                self.world.borrow_mut().now_ms += self.random.u64(1..50);
            }
            if is_shown {
                println!("{round} at {} ms: {:?}", self.world.borrow().now_ms, self.clients);
            }
            if self.round(false) || self.round(true) {
                continue;
            }
            if self.server.is_over() && self.pause_ends_ms().is_none() {
                break;
            }
            self.pass_time();
        }
        self.judge();
        self.server.values()
    }

    fn drain(&mut self) {
        self.server.drain();
        let world = self.world.borrow();
        for (client, link) in self.clients.iter_mut().zip(&world.links) {
            client.drain(link);
        }
    }

    /// Everybody has a go, in any order: by chance, or each. Says whether anything has moved.
    fn round(&mut self, every: bool) -> bool {
        let mut has_moved = false;
        for actor in 0..2 * self.clients.len() + 2 {
            if !every && self.random.bool() {
                continue;
            }
            has_moved |= match actor {
                0 => self.server.progress(every),
                1 => self.server.turn(),
                _ if actor % 2 == 0 => self.step((actor - 2) / 2),
                _ => self.carry((actor - 2) / 2),
            };
        }
        has_moved
    }

    fn step(&mut self, index: usize) -> bool {
        let world = &mut *self.world.borrow_mut();
        let client = &mut self.clients[index];
        if client.is_to_come() {
            if client.connects(world.now_ms) {
                world.connect(0, index);
                return true;
            }
            return false;
        }
        client.step(&mut world.links[index], world.now_ms, &mut world.random)
    }

    fn carry(&mut self, index: usize) -> bool {
        let world = &mut *self.world.borrow_mut();
        let has_moved = world.links[index].carry(&mut world.random);
        world.moves += u64::from(has_moved);
        has_moved
    }

    /// Nobody can do anything: time passes until somebody may. Once nobody is there, the server ends.
    fn pass_time(&mut self) {
        let is_left = self.world.borrow().links.iter().all(|link| link.closed);
        if is_left && !self.server.is_drained {
            return self.drain();
        }
        let next_ms = self.pause_ends_ms().into_iter().chain([self.server.due_ms()]).min();
        let next_ms = next_ms.filter(|&ms| ms < u64::MAX);
        let next_ms = next_ms.unwrap_or_else(|| panic!("all wait for ever: {self:?}"));
        let mut world = self.world.borrow_mut();
        world.now_ms = next_ms.max(world.now_ms + 1);
    }

    /// When the first client that pauses goes on.
    fn pause_ends_ms(&self) -> Option<u64> {
        let now_ms = self.world.borrow().now_ms;
        self.clients.iter().map(|client| client.paused_until_ms).filter(|&ms| ms > now_ms).min()
    }

    /// Was everything answered that had to be, and counted?
    fn judge(&self) {
        let world = self.world.borrow();
        for (client, link) in self.clients.iter().zip(&world.links) {
            if link.accepted {
                assert!(link.closed, "a socket is left open: {client:?}");
                client.judge(link, self.server.values().handshakes_evicted > 0);
            } else {
                assert!(self.drain_at < usize::MAX, "never accepted: {client:?}");
            }
        }
        let values = self.server.values();
        let accepted = world.links.iter().filter(|link| link.accepted).count() as u64;
        assert_eq!(values.accepted, accepted);
        assert_eq!(values.closed, accepted);
        assert_eq!(values.connections, 0);
        assert_eq!(values.stale_completions, 0);
        let responses = values.responses_2xx
            + values.responses_3xx
            + values.responses_4xx
            + values.responses_5xx;
        let refused_late = values.timeouts_head + values.timeouts_body;
        assert!((values.requests..=values.requests + refused_late).contains(&responses));
        let choking = self.clients.iter().filter(|client| client.chokes()).count() as u64;
        assert!(values.timeouts_write_stall <= choking, "somebody was cut off who was reading");
        let written: u64 = world.links.iter().map(|link| link.to_client.written).sum();
        let sent = if self.is_secure { values.tls_bytes_sealed } else { values.bytes_sent };
        assert!(written <= sent, "more was sent than was counted");
        let are_cut = values.timeouts_handshake + values.handshakes_evicted > 0;
        if !are_cut && !world.links.iter().any(|link| link.is_damaged || link.is_broken()) {
            assert_eq!(written, sent);
        }
    }
}
