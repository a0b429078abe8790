//! What the tests over sockets use: a server process of one's own, a client that sends raw bytes,
//! and a wait that gives up.
//!
//! Nothing here sleeps for a result or looks at how long something took: a test waits until what
//! it expects has happened, and fails after [`PATIENCE`].

#![allow(dead_code, unused_imports, reason = "a toolbox: not every test needs every tool")]

pub(crate) mod client;
pub(crate) mod cold;
pub(crate) mod hold;
pub(crate) mod in_process;
pub(crate) mod peer;
pub(crate) mod seccomp;
pub(crate) mod secure;
pub(crate) mod server;
pub(crate) mod site;
pub(crate) mod tls;
pub(crate) mod tools;
pub(crate) mod wire;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use client::{Client, Response};
pub(crate) use server::{Args, Server};
pub(crate) use site::{Site, pattern};

/// How long a test waits for anything before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Returns what `probe` gives as soon as it gives something; panics when that takes too long.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns as soon as `condition` holds; panics when that takes too long.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Does `work` again and again in a thread of its own while `meanwhile` runs.
pub(crate) fn during(mut work: impl FnMut() + Send, meanwhile: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                work();
            }
        });
        // Also where it panics, or the scope would never end.
        let _over = Setting(&over);
        meanwhile();
    });
}

struct Setting<'a>(&'a AtomicBool);

impl Drop for Setting<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How often a test does what it repeats `count` times where there is time: in the emulator, which is
/// slow, the environment says by how much to divide that.
pub(crate) fn repeats(count: usize) -> usize {
    let divisor = std::env::var("ONERING_REPEATS_DIVISOR");
    let divisor = divisor.map_or(1, |text| text.parse().expect("a number that divides"));
    count.div_ceil(divisor)
}

/// Says that the running test cannot be run here, and why; the test then returns. `tests/run`
/// counts it apart. The line passes by libtest, which shows nothing of a test that has passed.
pub(crate) fn skip(why: &str) {
    let name = thread::current().name().unwrap_or("a test").to_owned();
    writeln!(std::io::stderr(), "\nskipped: {name}: {why}").expect("standard error can be written");
}
