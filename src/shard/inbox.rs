//! How shards and the server speak to a shard: a queue, and a wake-up by MSG_RING.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam::queue::SegQueue;
use crossbeam::utils::CachePadded;

use crate::ring::{Address, Ring};

/// What a shard can be told.
#[derive(Debug)]
pub enum Letter {
    /// A fresh connection from a shard that has too many.
    Connection(OwnedFd),
    /// Finish what is under way, take what is queued, and end.
    Drain,
    /// Be done at once: whatever is still under way is cut off.
    Cut,
}

/// A shard's inbox, shared by all who write to it.
#[derive(Debug)]
pub struct Inbox {
    letters: SegQueue<Letter>,
    /// A wake-up is on its way: the next writer need not send another.
    woken: CachePadded<AtomicBool>,
    /// Connections of the shard, as its owner last said.
    load: CachePadded<AtomicUsize>,
    address: Address,
}

impl Inbox {
    pub(super) fn new(address: Address) -> Inbox {
        Inbox {
            letters: SegQueue::new(),
            woken: CachePadded::new(AtomicBool::new(false)),
            load: CachePadded::new(AtomicUsize::new(0)),
            address,
        }
    }

    /// Puts a letter in and wakes the shard with `ring`, the caller's own.
    pub fn send(&self, letter: Letter, ring: &mut Ring) {
        self.letters.push(letter);
        if !self.woken.swap(true, Ordering::AcqRel) {
            ring.wake(&self.address);
        }
    }

    /// The next letter. Once this says `None`, the next writer sends a wake-up again.
    pub(super) fn take(&self) -> Option<Letter> {
        self.letters.pop().or_else(|| {
            self.woken.store(false, Ordering::SeqCst);
            // A writer may have come between the look and the store, and have sent no wake-up.
            self.letters.pop()
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    pub(super) fn set_load(&self, connections: usize) {
        self.load.store(connections, Ordering::Relaxed);
    }

    fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }
}

/// The inboxes of all shards, in their order.
pub type Inboxes = Arc<[Arc<Inbox>]>;

/// A shard hands fresh connections off once it has this many more than the least loaded,
/// besides half of that one's number.
const HAND_OFF_SURPLUS: usize = 16;

/// The shard that should take a fresh connection instead of shard `own`, if that has too many.
/// Smaller differences are left alone, since a hand-off costs a wake-up of another CPU.
pub(super) fn relief(inboxes: &[Arc<Inbox>], own: usize, connections: usize) -> Option<usize> {
    let least = (0..inboxes.len()).min_by_key(|&shard| inboxes[shard].load())?;
    let load = inboxes[least].load();
    (least != own && connections > load + load / 2 + HAND_OFF_SURPLUS).then_some(least)
}
