//! How shards and the server speak to a shard: a queue, and a wake-up by MSG_RING.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam::queue::SegQueue;
use crossbeam::utils::CachePadded;

use crate::ring::{Ring, Token};
use crate::tls::{Handshake, Material, Progress};

use super::kernel::Kernel;

/// What a shard can be told.
#[derive(Debug)]
pub enum Letter<S = OwnedFd> {
    /// A fresh connection from a shard that has too many.
    Connection {
        /// It.
        socket: S,
        /// Which of the listeners it came in by: all shards have the same.
        listener: usize,
    },
    /// A handshake that a worker has worked on.
    Handshake {
        /// Whose.
        token: Token,
        /// How it stands.
        handshake: Box<Handshake>,
        /// What it has come to.
        progress: Progress,
    },
    /// Other certificates and keys, for connections to come.
    Material(Arc<Material>),
    /// Finish what is under way, take what is queued, and end.
    Drain,
    /// Be done at once: whatever is still under way is cut off.
    Cut,
}

/// A shard's inbox, shared by all who write to it.
pub struct Inbox<K: Kernel = Ring> {
    letters: SegQueue<Letter<K::Socket>>,
    /// A wake-up is on its way and has not arrived: the next writer need not send another.
    woken: CachePadded<AtomicBool>,
    /// Connections of the shard, as its owner last said.
    load: CachePadded<AtomicUsize>,
    /// The shard drains and nobody waits for it now, or it has ended.
    done: AtomicBool,
    address: K::Address,
}

impl<K: Kernel> Inbox<K> {
    pub(super) fn new(address: K::Address) -> Self {
        Inbox {
            letters: SegQueue::new(),
            woken: CachePadded::new(AtomicBool::new(false)),
            load: CachePadded::new(AtomicUsize::new(0)),
            done: AtomicBool::new(false),
            address,
        }
    }

    /// Puts a letter in and wakes the shard with `kernel`, the caller's own.
    pub fn send(&self, letter: Letter<K::Socket>, kernel: &mut K) {
        if let Letter::Connection { .. } = letter {
            // Whoever hands off many in one turn must see what it has done.
            let _ = self.load.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |connections| {
                connections.checked_add(1)
            });
        }
        self.letters.push(letter);
        self.wake(kernel);
    }

    /// Sends a wake-up, unless one is on its way.
    fn wake(&self, kernel: &mut K) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            kernel.wake(&self.address);
        }
    }

    /// The wake-up has arrived, or letters are about to be taken without one, as after one that has
    /// failed: the next writer sends another. To be called before letters are taken, which then are
    /// all those that were put in without a wake-up of their own.
    pub(super) fn awake(&self) {
        self.woken.swap(false, Ordering::AcqRel);
    }

    /// The next letter.
    pub(super) fn take(&self) -> Option<Letter<K::Socket>> {
        self.letters.pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    pub(super) fn set_done(&self, done: bool) {
        self.done.store(done, Ordering::Release);
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    pub(super) fn set_load(&self, connections: usize) {
        self.load.store(connections, Ordering::Relaxed);
    }

    fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }
}

/// The inboxes of all shards, in their order.
pub type Inboxes<K = Ring> = Arc<[Arc<Inbox<K>>]>;

/// A shard hands fresh connections off once it has this many more than the least loaded,
/// besides half of that one's number.
const HAND_OFF_SURPLUS: usize = 16;

/// The shard that should take a fresh connection instead of shard `own`, if that has too many.
/// Smaller differences are left alone, since a hand-off costs a wake-up of another CPU.
pub(super) fn relief<K: Kernel>(
    inboxes: &[Arc<Inbox<K>>],
    own: usize,
    connections: usize,
) -> Option<usize> {
    let least = (0..inboxes.len()).min_by_key(|&shard| inboxes[shard].load())?;
    let load = inboxes[least].load();
    // A shard that drains says that it has more than there can be.
    let enough = load.saturating_add(load / 2).saturating_add(HAND_OFF_SURPLUS);
    (least != own && connections > enough).then_some(least)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::ring::{Event, Setup, Wait};

    use super::*;

    fn ring() -> Ring {
        Ring::new(&Setup { entries: 8, recv_buffers: 1, ..Setup::default() }).unwrap()
    }

    /// Of the socket only the descriptor matters here.
    fn connection() -> Letter {
        let socket = std::fs::File::open("/dev/null").unwrap().into();
        Letter::Connection { socket, listener: 0 }
    }

    fn inboxes(loads: &[usize]) -> (Ring, Vec<Arc<Inbox>>) {
        let ring = ring();
        let inboxes = loads.iter().map(|&load| {
            let inbox = Inbox::<Ring>::new(ring.address().unwrap());
            inbox.set_load(load);
            Arc::new(inbox)
        });
        let inboxes = inboxes.collect();
        (ring, inboxes)
    }

    #[test]
    fn the_least_loaded_relieves_whoever_has_clearly_more() {
        let (_ring, inboxes) = inboxes(&[100, 40, 60]);
        assert_eq!(relief(&inboxes, 0, 76), None);
        assert_eq!(relief(&inboxes, 0, 77), Some(1));
        assert_eq!(relief(&inboxes, 1, 1000), None);
    }

    #[test]
    fn whoever_drains_relieves_nobody() {
        let (_ring, inboxes) = inboxes(&[usize::MAX, usize::MAX, usize::MAX]);
        assert_eq!(relief(&inboxes, 2, 1000), None);
    }

    #[test]
    fn what_is_handed_off_counts_before_it_is_taken() {
        let (_ring, inboxes) = inboxes(&[20, 0]);
        let mut own = ring();
        let mut handed_off = 0;
        while relief(&inboxes, 0, 20).is_some() {
            inboxes[1].send(connection(), &mut own);
            handed_off += 1;
        }
        assert_eq!(handed_off, 3, "20 are not more than 3 + 1 + 16");
        inboxes[1].set_load(usize::MAX);
        inboxes[1].send(connection(), &mut own);
        assert_eq!(inboxes[1].load(), usize::MAX);
    }

    /// Whether a wake-up comes.
    fn is_woken(writer: &mut Ring, reader: &mut Ring) -> bool {
        writer.enter(Wait::No).unwrap();
        reader.enter(Wait::AtMost(Duration::from_millis(100))).unwrap();
        matches!(reader.completion().map(|completion| completion.event), Some(Event::Woken))
    }

    #[test]
    fn a_wake_up_that_comes_after_its_letter_was_read_is_not_the_last() {
        let (mut reader, mut writer) = (ring(), ring());
        let inbox = Inbox::<Ring>::new(reader.address().unwrap());
        // Between the two steps of a writer the shard looks by chance.
        inbox.letters.push(Letter::Drain);
        assert!(matches!(inbox.take(), Some(Letter::Drain)));
        assert!(inbox.take().is_none());
        inbox.wake(&mut writer);
        assert!(is_woken(&mut writer, &mut reader));
        inbox.awake();
        inbox.send(Letter::Cut, &mut writer);
        inbox.send(Letter::Cut, &mut writer);
        assert!(is_woken(&mut writer, &mut reader));
        assert!(!is_woken(&mut writer, &mut reader), "one for both");
        assert!(inbox.take().is_some() && inbox.take().is_some() && inbox.is_empty());
    }
}
