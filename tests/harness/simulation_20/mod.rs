//! Layer 20: the HTTP machine and the file cache, in a simulation of peer, wire and clock.
//!
//! Everything that happens is drawn from a seed: what is asked, in what pieces it is sent and taken,
//! who pauses, who goes away or breaks the connection and when, when the server drains, and when
//! there is no buffer to receive into. The peer knows every answer. Besides:
//!
//! - answers come in order, whole, none twice, and none after one that says that it is the last;
//! - whatever is asked wholly is answered, unless somebody has broken the connection;
//! - a peer that stops in the middle of a head or a body is told (408), one that takes nothing is cut
//!   off;
//! - bodies in whatever framing are never taken for requests, and bad ones are answered as such;
//! - the connection ends, in a bounded number of steps.
//!
//! | | |
//! |---|---|
//! | `ONERING_SEED=N` | replays a seed, each step of it shown |
//! | `ONERING_SEEDS=10000` | so many fresh seeds, instead of a few |
//!
//! ```text
//! ONERING_SEEDS=10000 cargo test --test harness simulation
//! ```
//!
//! What it does not show: the shard's own loop, for that is bound to the ring of the kernel. What
//! drives the machines here ([`server`]) is written after it and is not it. So cancellation,
//! completions that come late, sendfile(2) and cold reads are for the tests over sockets.

mod bodies;
mod client;
mod interleaved;
mod server;
mod site;
mod wire;

use std::env;
use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use onering::files::Now;

use client::Client;
use server::Server;
use site::START_S;
use wire::Wire;

/// Always run. A seed that has found something is added with what that was.
const PINNED: std::ops::Range<u64> = 0..300;
/// Fresh ones, unless more are asked for.
const FRESH: u64 = 100;

/// Steps that no connection takes.
const STEPS_MAX: usize = 400_000;

fn from_environment(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number is needed")))
}

#[test]
fn pinned_seeds() {
    match from_environment("ONERING_SEED") {
        Some(seed) => run(seed, true),
        None => PINNED.for_each(check),
    }
}

#[test]
fn fresh_seeds() {
    let count = from_environment("ONERING_SEEDS").unwrap_or(FRESH);
    let random = RandomState::new();
    (0..count).for_each(|at| check(random.hash_one(at)));
}

/// Runs a seed; if it fails, says which it was.
fn check(seed: u64) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed, false))) {
        eprintln!("seed {seed} fails. To replay it:");
        eprintln!("ONERING_SEED={seed} cargo test --test harness simulation_20::pinned_seeds");
        resume_unwind(panic);
    }
}

/// One connection, from its beginning to its end.
fn run(seed: u64, is_shown: bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut now = Now::new(START_S, 0);
    let mut files = site::open();
    let mut wire = Wire::new(&mut random);
    let mut client = Client::new(&mut random);
    let drain_at = if random.u8(..8) == 0 { random.usize(..300) } else { usize::MAX };
    let mut server = Server::new(&mut files, &now);

    for step in 0.. {
        assert!(step < STEPS_MAX, "it does not end: {client:?}");
        if server.is_over() {
            // What is on the wire still arrives.
            client.hurry();
            if !client.step(&mut wire, now.monotonic_ms, &mut random) {
                break;
            }
            continue;
        }
        if step == drain_at {
            server.drain();
            client.is_drained = true;
        }
        let has_moved = match random.bool() {
            true => client.step(&mut wire, now.monotonic_ms, &mut random),
            false => server.turn(&mut wire, &now, &mut random),
        };
        if is_shown {
            println!("{step} at {} ms: {client:?}", now.monotonic_ms);
        }
        if !has_moved && is_still(&mut server, &mut client, &mut wire, &now, &mut random) {
            // Nobody can do anything: time passes until somebody may.
            let pause_ms = Some(client.paused_until_ms).filter(|&ms| ms > now.monotonic_ms);
            let next_ms = pause_ms.map_or(server.due_ms(), |ms| ms.min(server.due_ms()));
            let next_ms = next_ms.max(now.monotonic_ms + 1);
            now.advance(START_S + next_ms / 1000, next_ms);
        }
    }
    client.judge(&wire);
}

/// Gives both sides a few more turns each, since what has not moved may have been bad luck.
fn is_still(
    server: &mut Server<'_>,
    client: &mut Client,
    wire: &mut Wire,
    now: &Now,
    random: &mut fastrand::Rng,
) -> bool {
    (0..3).all(|_| !server.turn(wire, now, random) && !client.step(wire, now.monotonic_ms, random))
}
