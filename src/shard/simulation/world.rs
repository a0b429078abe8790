//! What shards and peers share: the links, the accept queues, the clock, and chance.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use super::wire::Link;

/// Held by all kernels and all sockets of a simulation.
pub(super) type Shared = Rc<RefCell<World>>;

/// See the module's page.
pub(super) struct World {
    pub(super) random: fastrand::Rng,
    pub(super) now_ms: u64,
    pub(super) links: Vec<Link>,
    /// By shard: links that wait to be accepted.
    pub(super) backlogs: Vec<VecDeque<usize>>,
    /// By shard: wake-ups that have not arrived.
    pub(super) wake_ups: Vec<usize>,
    pub(super) trouble: Trouble,
    /// Bytes moved and operations completed: what does not change it is no progress.
    pub(super) moves: u64,
}

/// How often what goes wrong: each is one in so many, zero for never.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    /// The disk is to be waited for.
    pub(super) cold: u32,
    /// A call has to be tried again, or in another way.
    pub(super) passing: u32,
    /// Something breaks for good.
    pub(super) lasting: u32,
}

impl Trouble {
    pub(super) fn draw(random: &mut fastrand::Rng) -> Self {
        Self {
            cold: [0, 8, 2][random.usize(..3)],
            passing: [0, 0, 30, 4][random.usize(..4)],
            lasting: [0, 0, 0, 60][random.usize(..4)],
        }
    }
}

impl World {
    pub(super) fn new(shards: usize, trouble: Trouble, random: fastrand::Rng) -> Shared {
        Rc::new(RefCell::new(Self {
            random,
            now_ms: 0,
            links: Vec::new(),
            backlogs: vec![VecDeque::new(); shards],
            wake_ups: vec![0; shards],
            trouble,
            moves: 0,
        }))
    }

    /// Whether that happens which happens one time in so many.
    pub(super) fn chance(&mut self, one_in: u32) -> bool {
        one_in > 0 && self.random.u32(..one_in) == 0
    }

    /// A client's connection reaches a shard's accept queue.
    pub(super) fn connect(&mut self, shard: usize, link: usize) {
        self.backlogs[shard].push_back(link);
        self.moves += 1;
    }
}

/// A socket of a shard, open as long as somebody holds it.
pub(super) struct Socket {
    world: Shared,
    pub(super) is: What,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ms, {:?}, links ", self.now_ms, self.trouble)?;
        self.links.fmt(f)
    }
}

/// What a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A shard's only listener.
    Listener(usize),
    /// One of the links, at the server's end.
    Connection(usize),
}

impl Socket {
    pub(super) fn new(world: &Shared, is: What) -> Self {
        if let What::Connection(link) = is {
            world.borrow_mut().links[link].accepted = true;
        }
        Self { world: Rc::clone(world), is }
    }

    /// Which link it is.
    pub(super) fn link(&self) -> usize {
        match self.is {
            What::Connection(link) => link,
            What::Listener(shard) => panic!("a call for connections on listener {shard}"),
        }
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.is.fmt(f)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // What has failed is told by the panic; the world may be in the middle of anything then.
        if let What::Connection(link) = self.is
            && !std::thread::panicking()
        {
            self.world.borrow_mut().links[link].close();
        }
    }
}
