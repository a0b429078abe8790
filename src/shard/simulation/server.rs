//! The shards of a simulation, each turned as its own loop would turn it, and what must be true of
//! them.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::config::Config;
use crate::metrics::{Counters, Values};
use crate::ring::Wait;
use crate::shard::draining::Draining;
use crate::shard::tests::plain;
use crate::shard::{Assignment, Inboxes, Kernel as _, Letter, Shard};
use crate::tls::Contexts;

use super::kernel::Simulated;
use super::world::{Shared, Socket, What};

/// Turns at one moment, in which nothing else happens, that no shard takes.
const QUIET_TURNS_MAX: usize = 50;

/// All shards, and the thread that tells them to end.
pub(super) struct Server {
    world: Shared,
    config: Arc<Config>,
    shards: Vec<Served>,
    inboxes: Inboxes<Simulated>,
    /// Who writes to the inboxes.
    kernel: Simulated,
    pub(super) is_drained: bool,
    /// No shard is given a turn before.
    pub(super) paused_until_ms: u64,
}

/// One shard.
struct Served {
    /// `None` once it has ended.
    shard: Option<Shard<Simulated>>,
    counters: Arc<Counters>,
    wait: Wait,
    /// When it goes on without being told anything.
    due_ms: u64,
    /// The moves and the time after the last turn, and how many turns have found no other.
    after: (u64, u64),
    quiet_turns: usize,
}

impl Server {
    pub(super) fn new(
        world: &Shared,
        config: Config,
        tls: Option<&Arc<ServerConfig>>,
        shards: usize,
    ) -> Self {
        let config = Arc::new(config);
        let kernel =
            |index| Simulated::new(world, index, &config.ring, config.transfer.cold_window_bytes);
        let material = plain(&config);
        let mut shards: Vec<_> = (0..shards)
            .map(|index| {
                let counters = Arc::new(Counters::default());
                #[expect(clippy::arc_with_non_send_sync, reason = "all shards are on this thread")]
                let listener = Arc::new(Socket::new(world, What::Listener(index)));
                let assignment = Assignment {
                    index,
                    cpu: index,
                    steered: false,
                    listeners: vec![listener],
                    counters: Arc::clone(&counters),
                    material: Arc::clone(&material),
                    kernel_may_seal: false,
                    worker: None,
                };
                let shard = Shard::on(kernel(index), Arc::clone(&config), assignment);
                let mut shard = shard.expect("the site is there");
                if let Some(tls) = tls {
                    shard.contexts = Contexts::of_config(Arc::clone(tls));
                }
                let shard = Some(shard);
                Served { shard, counters, wait: Wait::No, due_ms: 0, after: (0, 0), quiet_turns: 0 }
            })
            .collect();
        let inboxes: Inboxes<Simulated> =
            shards.iter().flat_map(|served| &served.shard).map(Shard::inbox).collect();
        for shard in shards.iter_mut().flat_map(|served| &mut served.shard) {
            shard.inboxes = Arc::clone(&inboxes);
            shard.start_accepting();
        }
        let kernel = kernel(usize::MAX);
        Self {
            world: world.clone(),
            config,
            shards,
            inboxes,
            kernel,
            is_drained: false,
            paused_until_ms: 0,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.shards.iter().all(|served| served.shard.is_none())
    }

    /// When a shard goes on without being told anything.
    pub(super) fn due_ms(&self) -> u64 {
        if self.world.borrow().now_ms < self.paused_until_ms {
            return self.paused_until_ms;
        }
        self.shards.iter().map(|served| served.due_ms).min().expect("there is a shard")
    }

    pub(super) fn drain(&mut self) {
        self.is_drained = true;
        self.tell(|| Letter::Drain);
    }

    /// Cuts off whatever is still under way: no client can count on anything any more.
    pub(super) fn cut(&mut self) {
        for link in &mut self.world.borrow_mut().links {
            link.is_damaged |= !link.closed;
        }
        self.tell(|| Letter::Cut);
    }

    fn tell(&mut self, letter: fn() -> Letter<Socket>) {
        for inbox in self.inboxes.iter() {
            inbox.send(letter(), &mut self.kernel);
        }
        self.kernel.enter(Wait::No).expect("it never fails");
    }

    /// Lets operations complete, by chance or every one that can.
    pub(super) fn progress(&mut self, every: bool) -> bool {
        let shards = self.shards.iter_mut().flat_map(|served| &mut served.shard);
        shards.fold(false, |moved, shard| shard.kernel.progress(every) | moved)
    }

    /// One turn of each shard that has a reason for one.
    pub(super) fn turn(&mut self) -> bool {
        if self.world.borrow().now_ms < self.paused_until_ms {
            return false;
        }
        let mut has_moved = false;
        for served in &mut self.shards {
            has_moved |= served.turn(&self.world, &self.config);
        }
        has_moved
    }

    /// Every counter of every shard.
    pub(super) fn values(&self) -> Values {
        self.shards.iter().fold(Values::default(), |mut sum, served| {
            sum.merge(&served.counters.values());
            sum
        })
    }
}

/// What a shard waits for, and in what state.
impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(shard) = &self.shard else { return write!(f, "over") };
        write!(f, "waits {:?} with {:?} ready, ", self.wait, shard.ready)?;
        write!(f, "{:?}, {:?}: ", shard.accepting, shard.draining)?;
        f.debug_list().entries(shard.connections.iter()).finish()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shards.fmt(f)
    }
}

impl Served {
    fn turn(&mut self, world: &Shared, config: &Config) -> bool {
        let Some(shard) = &mut self.shard else { return false };
        let now_ms = world.borrow().now_ms;
        if now_ms < self.due_ms && !shard.kernel.has_completions() {
            return false;
        }
        shard.turn(self.wait).expect("the kernel never fails");
        let after = (world.borrow().moves, now_ms);
        self.quiet_turns = if self.after == after { self.quiet_turns + 1 } else { 0 };
        self.after = after;
        let spins = self.quiet_turns == QUIET_TURNS_MAX;
        assert!(!spins, "the shard spins: it {self:?}");
        let Some(shard) = &mut self.shard else { return true };
        if shard.drained() {
            check_end(shard, config);
            self.shard = None;
            self.due_ms = u64::MAX;
            return true;
        }
        self.wait = shard.patience();
        shard.kernel.submit();
        self.due_ms = match self.wait {
            Wait::No => now_ms,
            Wait::AtMost(patience) => now_ms + patience.as_millis() as u64,
            Wait::Completion => u64::MAX,
        };
        true
    }
}

/// Whether nothing is left of what a shard has done.
fn check_end(shard: &mut Shard<Simulated>, config: &Config) {
    assert!(shard.connections.is_empty(), "connections are left: {:?}", shard.connections);
    assert_eq!(shard.wheel.next_ms(shard.now.monotonic_ms), None, "deadlines are left");
    assert!(shard.answers.is_empty() && shard.fired.is_empty());
    if let Draining::Answering { .. } = shard.draining {
        assert!(shard.kernel.is_at_rest(&config.ring), "the kernel has something left");
    }
}
