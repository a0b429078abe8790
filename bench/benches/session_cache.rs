//! Look-ups and insertions per second of the server's session cache, of rustls's own, and of quick_cache.
//!
//! ```text
//! cargo bench --package onering-bench --bench session_cache [-- --rounds N --duration-ms N]
//! ```
//!
//! All three are asked through `rustls::server::StoresServerSessions`, as a handshake asks them, so each
//! look-up makes a vector of what it found and each insertion brings two. A session has 111 bytes, as one with
//! a server name of 30. A look-up is for one of a thread's last sessions, which is there; an
//! insertion is of a new one, so that the full caches evict. What they do to secrets differs:
//!
//! | cache | wipes a session that leaves |
//! |---|---|
//! | onering | yes: eviction, deletion, replacement; and the vector that brought it |
//! | rustls | no |
//! | quick_cache | yes: its values are wiped when they are dropped |
//!
//! Contenders take turns within a round, so that a round's ratios are of one time; what is printed are
//! medians over the rounds, of the rates and of the ratios to rustls's in the same round. Where each thread can have
//! a CPU, a run in which they waited for one is made again: threads that take turns do not contend.

use std::fmt;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use clap::Parser;
use onering::tls::cache::{ContextSessions, SessionCache, Settings};
use onering::tls::clock::Clock;
use onering::tls::context_id::ContextId;
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use zeroize::Zeroize;

/// Sessions that each cache has room for.
const ENTRIES: usize = 16_384;
/// The numbers of threads. The last one is more than this project's machine has CPUs.
const THREADS: [usize; 3] = [1, 2, 8];
/// Insertions among a hundred operations.
const MIXES: [usize; 2] = [10, 50];
const SESSION_BYTES: usize = 111;
/// The share of its time that a thread may wait for a CPU, and how often a run is made again for it.
const WAITED_MAX: f64 = 0.02;
const ATTEMPTS: usize = 20;
type Id = [u8; 32];

/// Look-ups and insertions per second of the session cache, against others.
#[derive(Parser)]
struct Options {
    /// Rounds, in each of which every contender runs once per number of threads and mix.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// How long each runs.
    #[arg(long, default_value_t = 200)]
    duration_ms: u64,
    /// What cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

type Make = fn() -> Arc<dyn StoresServerSessions>;

const CONTENDERS: [(&str, Make); 3] =
    [("onering", onering), ("rustls", rustls), ("quick_cache", quick_cache)];
const REFERENCE: usize = 1;

fn onering() -> Arc<dyn StoresServerSessions> {
    let now = UNIX_EPOCH.elapsed().expect("after 1970");
    let settings = Settings {
        entries: NonZeroUsize::new(ENTRIES).expect("not zero"),
        // As a server on this machine has, whatever the number of threads here.
        threads: thread::available_parallelism().expect("it is known"),
        lifetime: Duration::from_secs(3600),
    };
    let cache = SessionCache::new(settings, Arc::new(Clock::at(now.as_secs())));
    Arc::new(ContextSessions::new(Arc::new(cache), ContextId::of(&[b"benchmark"])))
}

fn rustls() -> Arc<dyn StoresServerSessions> {
    ServerSessionMemoryCache::new(ENTRIES)
}

fn quick_cache() -> Arc<dyn StoresServerSessions> {
    Arc::new(QuickCache(quick_cache::sync::Cache::new(ENTRIES)))
}

/// The adapter that somebody would write who takes a crate for it.
struct QuickCache(quick_cache::sync::Cache<Id, Wiped>);

/// A session that is wiped when it is dropped, as a slice: `Zeroizing<Vec<u8>>` does so byte by byte.
#[derive(Clone)]
struct Wiped(Vec<u8>);

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.as_mut_slice().zeroize();
    }
}

impl fmt::Debug for QuickCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuickCache")
    }
}

impl StoresServerSessions for QuickCache {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        let Ok(id) = id.try_into() else { return false };
        self.0.insert(id, Wiped(session));
        true
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let id: &Id = id.try_into().ok()?;
        self.0.get(id).map(|mut session| std::mem::take(&mut session.0))
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        let id: &Id = id.try_into().ok()?;
        self.0.remove(id).map(|(_, mut session)| std::mem::take(&mut session.0))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// One thread's work: its last sessions, as many as fit the cache together with the other threads'.
struct Load {
    random: fastrand::Rng,
    last: Vec<Id>,
    next: usize,
    session: [u8; SESSION_BYTES],
}

impl Load {
    fn new(thread: usize, threads: usize, store: &dyn StoresServerSessions) -> Load {
        let random = fastrand::Rng::with_seed(thread as u64 + 1);
        let last = vec![[0; 32]; ENTRIES / 2 / threads];
        let mut load = Load { random, last, next: 0, session: [7; SESSION_BYTES] };
        for _ in 0..load.last.len() * 3 {
            load.insert(store);
        }
        load
    }

    fn insert(&mut self, store: &dyn StoresServerSessions) {
        let mut id = [0; 32];
        self.random.fill(&mut id);
        black_box(store.put(id.to_vec(), self.session.to_vec()));
        self.last[self.next] = id;
        self.next = (self.next + 1) % self.last.len();
    }

    /// Whether it was found.
    fn look_up(&mut self, store: &dyn StoresServerSessions) -> bool {
        let id = &self.last[self.random.usize(..self.last.len())];
        black_box(store.get(id)).is_some()
    }
}

/// What a run has come to.
#[derive(Clone, Copy, Default)]
struct Outcome {
    operations: u64,
    look_ups: u64,
    found: u64,
    waited: Duration,
}

/// A run's millions of operations per second, the share of look-ups that found something, and the share of
/// its time that a thread waited for a CPU.
#[derive(Clone, Copy)]
struct Rate {
    mops: f64,
    found: f64,
    waited: f64,
}

/// How long this thread was ready to run and did not, since it began (`/proc/PID/schedstat`, the second
/// number).
fn waited() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

/// The run that was disturbed least.
fn run(make: Make, threads: usize, mix: usize, duration: Duration) -> Rate {
    let mut best = attempt(make, threads, mix, duration);
    let cpus = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    for _ in 1..ATTEMPTS {
        if threads > cpus || best.waited < WAITED_MAX {
            break;
        }
        let again = attempt(make, threads, mix, duration);
        if again.waited < best.waited {
            best = again;
        }
    }
    best
}

fn attempt(make: Make, threads: usize, mix: usize, duration: Duration) -> Rate {
    let store = make();
    let (ready, ended) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let work = |thread: usize| {
        let mut load = Load::new(thread, threads, &*store);
        let mut outcome = Outcome::default();
        ready.wait();
        let before = waited();
        while !ended.load(Ordering::Relaxed) {
            for _ in 0..64 {
                if load.random.usize(..100) < mix {
                    load.insert(&*store);
                } else {
                    outcome.look_ups += 1;
                    outcome.found += u64::from(load.look_up(&*store));
                }
            }
            outcome.operations += 64;
        }
        outcome.waited = waited() - before;
        outcome
    };
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        ready.wait();
        let began = Instant::now();
        thread::sleep(duration);
        ended.store(true, Ordering::Relaxed);
        let mut sum = Outcome::default();
        for thread in running {
            let outcome = thread.join().expect("no thread panics");
            sum.operations += outcome.operations;
            sum.look_ups += outcome.look_ups;
            sum.found += outcome.found;
            sum.waited = sum.waited.max(outcome.waited);
        }
        let elapsed = began.elapsed().as_secs_f64();
        Rate {
            mops: sum.operations as f64 / elapsed / 1e6,
            found: sum.found as f64 / sum.look_ups as f64,
            waited: sum.waited.as_secs_f64() / elapsed,
        }
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let options = Options::parse();
    let duration = Duration::from_millis(options.duration_ms);
    let cells: Vec<_> =
        MIXES.iter().flat_map(|&mix| THREADS.map(|threads| (threads, mix))).collect();
    // rates[cell][contender][round]
    let mut rates = vec![vec![Vec::new(); CONTENDERS.len()]; cells.len()];
    let mut found = vec![vec![1.0_f64; CONTENDERS.len()]; cells.len()];
    let mut waited = rates.clone();
    for round in 0..options.rounds {
        for (cell, &(threads, mix)) in cells.iter().enumerate() {
            for turn in 0..CONTENDERS.len() {
                let contender = (turn + round) % CONTENDERS.len();
                let rate = run(CONTENDERS[contender].1, threads, mix, duration);
                rates[cell][contender].push(rate.mops);
                found[cell][contender] = found[cell][contender].min(rate.found);
                waited[cell][contender].push(rate.waited * 100.0);
            }
        }
    }
    println!(
        "| mix | threads | cache | Mops/s | times rustls (least, most) | found at least | waited |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (cell, (threads, mix)) in cells.iter().enumerate() {
        for (contender, (name, _)) in CONTENDERS.iter().enumerate() {
            let (own, reference) = (&rates[cell][contender], &rates[cell][REFERENCE]);
            let ratios: Vec<f64> = own.iter().zip(reference).map(|(a, b)| a / b).collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let most = ratios.iter().copied().fold(0.0, f64::max);
            println!(
                "| {}/{mix} | {threads} | {name} | {:.2} | {:.2} ({least:.2}, {most:.2}) | {:.1} % | {:.0} % |",
                100 - mix,
                median(own.clone()),
                median(ratios),
                found[cell][contender] * 100.0,
                median(waited[cell][contender].clone()),
            );
        }
    }
}
