//! A SIEVE table: (scope, target) to value, bounded at once in entries, bytes and descriptors.
//!
//! SIEVE (Zhang et al., NSDI 2024) keeps entries in the order they came and one hand that walks from
//! the oldest to the newest. A hit sets one bit and moves nothing; the hand spares an entry whose bit
//! is set, clearing it, and evicts the first whose bit is not. Newcomers that nobody asks for again
//! are evicted soon, so a scan of targets that never repeat does not flush what is hot.
//!
//! There are two such queues with a hand each: one of all entries, and one of those that hold
//! descriptors, so that a want of descriptors does not walk over thousands of entries that have none.
//!
//! The table knows nothing of files or HTTP. It must not call back: what it evicts it drops.

use std::hash::{BuildHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use hashbrown::HashTable;
use slab::Slab;

/// What the whole table may hold. An entry beyond any of the three makes others leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Entries.
    pub entries: usize,
    /// Bytes, by the entries' weights.
    pub bytes: usize,
    /// Descriptors, by the entries' weights.
    pub descriptors: usize,
}

/// What one entry holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Bytes of memory, the target included.
    pub bytes: usize,
    /// Open descriptors.
    pub descriptors: usize,
}

/// Where an entry sits: from [`Sieve::find`] until the next call that may evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

/// The table.
#[derive(Debug)]
pub struct Sieve<V> {
    table: HashTable<u32>,
    nodes: Slab<Node<V>>,
    queues: [Queue; 2],
    seed: Seed,
    bounds: Bounds,
    held: Weight,
    evictions: u64,
}

/// The queue of all entries.
const ALL: usize = 0;
/// The queue of the entries that hold descriptors.
const HOLDERS: usize = 1;
/// No node.
const NIL: u32 = u32::MAX;

#[derive(Debug)]
struct Node<V> {
    hash: u64,
    scope: u32,
    /// Asked for since a hand last passed.
    visited: bool,
    links: [Links; 2],
    target: Box<[u8]>,
    weight: Weight,
    value: V,
}

/// A node's neighbours in one queue.
#[derive(Clone, Copy, Debug)]
struct Links {
    newer: u32,
    older: u32,
}

const UNLINKED: Links = Links { newer: NIL, older: NIL };

#[derive(Clone, Copy, Debug)]
struct Queue {
    newest: u32,
    oldest: u32,
    /// Where the search for the next victim goes on; `NIL`: at the oldest.
    hand: u32,
}

/// The key of the hash function, drawn by each table for itself.
///
/// Targets are chosen by strangers, who must not be able to choose colliding ones. foldhash is keyed
/// but not cryptographic: it holds as long as nobody learns the key or sees its hashes. Here the key
/// comes from the operating system (by the standard library's `RandomState`), not from addresses and
/// the time as foldhash's own would; it is another one in every shard; no hash and no order of
/// entries ever leaves the table; and the one thing a peer could measure, a few nanoseconds of a
/// longer probe, drowns in a network round trip. Besides, the table is bounded, so the longest chain
/// is too. SipHash would cost 10 ns more on every request.
#[derive(Debug)]
struct Seed {
    own: u64,
    shared: SharedSeed,
}

impl Seed {
    fn random() -> Self {
        let draw = || std::hash::RandomState::new().build_hasher().finish();
        Self { own: draw(), shared: SharedSeed::from_u64(draw()) }
    }

    fn hash(&self, scope: u32, target: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.own, &self.shared);
        hasher.write(target);
        hasher.write_u32(scope);
        hasher.finish()
    }
}

impl<V> Sieve<V> {
    /// An empty table. Room for the index is made at once, since growing it later would stop a shard
    /// for as long as it takes to move every entry's place.
    pub fn new(bounds: Bounds) -> Self {
        let empty = Queue { newest: NIL, oldest: NIL, hand: NIL };
        Self {
            table: HashTable::with_capacity(bounds.entries),
            nodes: Slab::new(),
            queues: [empty; 2],
            seed: Seed::random(),
            bounds,
            held: Weight::default(),
            evictions: 0,
        }
    }

    /// The entry of a target, and marks it as asked for. Allocates nothing.
    #[inline]
    pub fn find(&mut self, scope: u32, target: &[u8]) -> Option<Slot> {
        let hash = self.seed.hash(scope, target);
        let nodes = &self.nodes;
        let slot = *self.table.find(hash, |&slot| {
            let node = &nodes[slot as usize];
            node.hash == hash && node.scope == scope && *node.target == *target
        })?;
        self.nodes[slot as usize].visited = true;
        Some(Slot(slot))
    }

    /// The value at a slot.
    #[inline]
    pub fn value(&mut self, slot: Slot) -> &mut V {
        &mut self.nodes[slot.0 as usize].value
    }

    /// Adds an entry, or puts a new value in place of the target's old one, and makes others leave
    /// where that is one too many; as by [`Self::reweigh`], the one in an old one's place may itself be
    /// among them. A value that would not fit into an empty table is handed back, and the target has
    /// none then.
    pub fn insert(&mut self, scope: u32, target: &[u8], weight: Weight, value: V) -> Result<(), V> {
        let old = self.find(scope, target);
        let Bounds { entries, bytes, descriptors } = self.bounds;
        if entries == 0 || weight.bytes > bytes || weight.descriptors > descriptors {
            if let Some(slot) = old {
                self.remove(slot);
            }
            return Err(value);
        }
        if let Some(slot) = old {
            *self.value(slot) = value;
            self.reweigh(slot, weight);
            return Ok(());
        }
        self.make_room(1, weight);
        let hash = self.seed.hash(scope, target);
        let slot = self.nodes.insert(Node {
            hash,
            scope,
            visited: false,
            links: [UNLINKED; 2],
            target: target.into(),
            weight: Weight::default(),
            value,
        }) as u32;
        let nodes = &self.nodes;
        self.table.insert_unique(hash, slot, |&slot| nodes[slot as usize].hash);
        self.link(ALL, slot);
        self.set_weight(slot, weight);
        Ok(())
    }

    /// States anew what an entry holds. May evict any entry, this one too: whatever is wanted of it is
    /// to be taken before.
    pub fn reweigh(&mut self, slot: Slot, weight: Weight) {
        self.set_weight(slot.0, weight);
        self.make_room(0, Weight::default());
    }

    /// Takes an entry out.
    pub fn remove(&mut self, slot: Slot) -> V {
        let slot = slot.0;
        self.set_weight(slot, Weight::default());
        self.unlink(ALL, slot);
        let node = self.nodes.remove(slot as usize);
        self.table
            .find_entry(node.hash, |&other| other == slot)
            .expect("every node has its place in the table")
            .remove();
        node.value
    }

    /// Evicts up to `count` entries that hold descriptors; returns how many there were.
    pub fn evict_holders(&mut self, count: usize) -> usize {
        (0..count).take_while(|_| self.evict(HOLDERS)).count()
    }

    /// Entries.
    pub fn entries(&self) -> usize {
        self.nodes.len()
    }

    /// What all entries hold together.
    pub fn held(&self) -> Weight {
        self.held
    }

    /// Entries evicted so far; those removed or replaced by name are not counted.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Evicts until this much more would be within the bounds, or nothing is left to evict.
    fn make_room(&mut self, entries: usize, more: Weight) {
        while self.held.descriptors + more.descriptors > self.bounds.descriptors
            && self.evict(HOLDERS)
        {}
        while (self.nodes.len() + entries > self.bounds.entries
            || self.held.bytes + more.bytes > self.bounds.bytes)
            && self.evict(ALL)
        {}
    }

    /// Moves a queue's hand to the first entry not asked for since it last passed, and evicts that.
    /// False: the queue is empty.
    fn evict(&mut self, queue: usize) -> bool {
        let Queue { hand, oldest, .. } = self.queues[queue];
        let mut victim = if hand == NIL { oldest } else { hand };
        if victim == NIL {
            return false;
        }
        // Ends after one round at the latest: the first round clears every bit.
        while std::mem::take(&mut self.nodes[victim as usize].visited) {
            let newer = self.nodes[victim as usize].links[queue].newer;
            victim = if newer == NIL { oldest } else { newer };
        }
        // Unlinking moves the hand on.
        self.queues[queue].hand = victim;
        self.remove(Slot(victim));
        self.evictions += 1;
        true
    }

    fn set_weight(&mut self, slot: u32, weight: Weight) {
        let before = std::mem::replace(&mut self.nodes[slot as usize].weight, weight);
        self.held.bytes = self.held.bytes - before.bytes + weight.bytes;
        self.held.descriptors = self.held.descriptors - before.descriptors + weight.descriptors;
        match (before.descriptors > 0, weight.descriptors > 0) {
            (false, true) => self.link(HOLDERS, slot),
            (true, false) => self.unlink(HOLDERS, slot),
            _ => {}
        }
    }

    /// Puts a node at the newest end of a queue.
    fn link(&mut self, queue: usize, slot: u32) {
        let second = std::mem::replace(&mut self.queues[queue].newest, slot);
        self.nodes[slot as usize].links[queue] = Links { newer: NIL, older: second };
        match second {
            NIL => self.queues[queue].oldest = slot,
            _ => self.nodes[second as usize].links[queue].newer = slot,
        }
    }

    /// Takes a node out of a queue; a hand that stood on it goes on to the next newer.
    fn unlink(&mut self, queue: usize, slot: u32) {
        let Links { newer, older } =
            std::mem::replace(&mut self.nodes[slot as usize].links[queue], UNLINKED);
        match newer {
            NIL => self.queues[queue].newest = older,
            _ => self.nodes[newer as usize].links[queue].older = older,
        }
        match older {
            NIL => self.queues[queue].oldest = newer,
            _ => self.nodes[older as usize].links[queue].newer = newer,
        }
        if self.queues[queue].hand == slot {
            self.queues[queue].hand = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    const ROOMY: Bounds = Bounds { entries: 1000, bytes: 1 << 30, descriptors: 1000 };

    fn bytes(bytes: usize) -> Weight {
        Weight { bytes, descriptors: 0 }
    }

    fn open() -> Weight {
        Weight { bytes: 1, descriptors: 1 }
    }

    #[test]
    fn finds_by_site_and_target() {
        let mut sieve = Sieve::new(ROOMY);
        sieve.insert(0, b"/a", bytes(1), 'x').unwrap();
        sieve.insert(1, b"/a", bytes(1), 'y').unwrap();
        let slot = sieve.find(1, b"/a").unwrap();
        assert_eq!(*sieve.value(slot), 'y');
        assert_eq!(sieve.find(2, b"/a"), None);
        assert_eq!(sieve.find(0, b"/"), None);
    }

    #[test]
    fn replaces_the_same_target() {
        let mut sieve = Sieve::new(ROOMY);
        sieve.insert(0, b"/a", Weight { bytes: 7, descriptors: 1 }, 'x').unwrap();
        sieve.insert(0, b"/a", bytes(3), 'y').unwrap();
        let slot = sieve.find(0, b"/a").unwrap();
        assert_eq!((sieve.entries(), sieve.held(), *sieve.value(slot)), (1, bytes(3), 'y'));
        assert_eq!(sieve.evictions(), 0);
    }

    #[test]
    fn refuses_what_cannot_fit() {
        let mut sieve = Sieve::new(Bounds { entries: 4, bytes: 10, descriptors: 0 });
        sieve.insert(0, b"/kept", bytes(10), 'k').unwrap();
        assert_eq!(sieve.insert(0, b"/large", bytes(11), 'l'), Err('l'));
        assert_eq!(sieve.insert(0, b"/open", open(), 'o'), Err('o'));
        assert_eq!(sieve.entries(), 1);
        assert_eq!(sieve.insert(0, b"/kept", bytes(11), 'l'), Err('l'));
        assert_eq!((sieve.entries(), sieve.evictions()), (0, 0));
        assert_eq!(Sieve::new(Bounds { entries: 0, ..ROOMY }).insert(0, b"/", open(), 0), Err(0));
    }

    #[test]
    fn a_scan_does_not_flush_what_is_hot() {
        let mut sieve = Sieve::new(Bounds { entries: 100, ..ROOMY });
        let hot: Vec<Vec<u8>> = (0..50).map(|n| format!("/hot/{n}").into_bytes()).collect();
        for target in &hot {
            sieve.insert(0, target, bytes(1), ()).unwrap();
            sieve.find(0, target);
        }
        for n in 0..100_000 {
            // Twenty targets that never come again for each request of a hot one.
            if n % 20 == 0 {
                let hot = hot[n / 20 % 50].as_slice();
                assert!(sieve.find(0, hot).is_some(), "a hot entry was flushed at {n}");
            }
            sieve.insert(0, format!("/scan/{n}").as_bytes(), bytes(1), ()).unwrap();
        }
        assert_eq!(sieve.evictions(), 100_000 - 50);
    }

    #[test]
    fn a_want_of_descriptors_spares_entries_without() {
        let mut sieve = Sieve::new(Bounds { descriptors: 2, ..ROOMY });
        for n in 0..10 {
            sieve.insert(0, format!("/memory/{n}").as_bytes(), bytes(1), ()).unwrap();
            sieve.insert(0, format!("/open/{n}").as_bytes(), open(), ()).unwrap();
        }
        assert_eq!((sieve.entries(), sieve.held().descriptors), (12, 2));
        assert!(sieve.find(0, b"/open/9").is_some());
        assert_eq!(sieve.evict_holders(5), 2);
        assert_eq!((sieve.entries(), sieve.held().descriptors), (10, 0));
        assert_eq!(sieve.evictions(), 10);
    }

    #[test]
    fn evicted_values_live_as_long_as_somebody_holds_them() {
        let mut sieve = Sieve::new(Bounds { entries: 1, ..ROOMY });
        let value = Rc::new(());
        sieve.insert(0, b"/a", bytes(1), value.clone()).unwrap();
        sieve.insert(0, b"/b", bytes(1), Rc::new(())).unwrap();
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    fn growing_beyond_the_bounds_evicts() {
        let mut sieve = Sieve::new(Bounds { bytes: 10, ..ROOMY });
        sieve.insert(0, b"/a", bytes(4), ()).unwrap();
        sieve.insert(0, b"/b", bytes(4), ()).unwrap();
        let first = sieve.find(0, b"/a").unwrap();
        sieve.reweigh(first, bytes(8));
        assert!(sieve.find(0, b"/a").is_some() && sieve.find(0, b"/b").is_none());
        sieve.reweigh(first, bytes(11));
        assert_eq!((sieve.entries(), sieve.held()), (0, Weight::default()));
    }

    #[test]
    fn tables_hash_alike_only_by_chance() {
        assert_ne!(Seed::random().hash(0, b"/target"), Seed::random().hash(0, b"/target"));
    }

    /// SIEVE as the paper tells it, over plain vectors; each queue oldest first.
    #[derive(Default)]
    struct Model {
        entries: BTreeMap<u8, (Weight, bool)>,
        queues: [Vec<u8>; 2],
        hands: [usize; 2],
    }

    impl Model {
        fn unqueue(&mut self, queue: usize, key: u8) {
            let at = self.queues[queue].iter().position(|&other| other == key).unwrap();
            self.queues[queue].remove(at);
            let hand = &mut self.hands[queue];
            if at < *hand {
                *hand -= 1;
            } else if *hand == self.queues[queue].len() {
                *hand = 0;
            }
        }

        fn remove(&mut self, key: u8) {
            let (weight, _) = self.entries.remove(&key).unwrap();
            self.unqueue(ALL, key);
            if weight.descriptors > 0 {
                self.unqueue(HOLDERS, key);
            }
        }

        fn replace(&mut self, bounds: Bounds, key: u8, weight: Weight) -> bool {
            let Some((before, visited)) = self.entries.get_mut(&key) else {
                return false;
            };
            *visited = true;
            let before = std::mem::replace(before, weight);
            match (before.descriptors > 0, weight.descriptors > 0) {
                (false, true) => self.queues[HOLDERS].push(key),
                (true, false) => self.unqueue(HOLDERS, key),
                _ => {}
            }
            self.make_room(bounds, 0, Weight::default());
            true
        }

        fn evict(&mut self, queue: usize) {
            loop {
                let key = self.queues[queue][self.hands[queue]];
                let (_, visited) = self.entries.get_mut(&key).unwrap();
                if !std::mem::take(visited) {
                    return self.remove(key);
                }
                self.hands[queue] = (self.hands[queue] + 1) % self.queues[queue].len();
            }
        }

        fn held(&self) -> Weight {
            self.entries.values().fold(Weight::default(), |sum, (weight, _)| Weight {
                bytes: sum.bytes + weight.bytes,
                descriptors: sum.descriptors + weight.descriptors,
            })
        }

        fn make_room(&mut self, bounds: Bounds, entries: usize, more: Weight) {
            while self.held().descriptors + more.descriptors > bounds.descriptors {
                self.evict(HOLDERS);
            }
            while self.entries.len() + entries > bounds.entries
                || self.held().bytes + more.bytes > bounds.bytes
            {
                self.evict(ALL);
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Find(u8),
        Insert(u8, Weight),
        Reweigh(u8, Weight),
        Remove(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0..24u8;
        let weight =
            (0..6usize, 0..2usize).prop_map(|(bytes, descriptors)| Weight { bytes, descriptors });
        prop_oneof![
            4 => key.clone().prop_map(Step::Find),
            4 => (key.clone(), weight.clone()).prop_map(|(key, weight)| Step::Insert(key, weight)),
            1 => (key.clone(), weight).prop_map(|(key, weight)| Step::Reweigh(key, weight)),
            1 => key.prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn behaves_as_the_model(steps in prop::collection::vec(step(), 1..400)) {
            let bounds = Bounds { entries: 12, bytes: 30, descriptors: 4 };
            let mut sieve = Sieve::new(bounds);
            let mut model = Model::default();
            for step in steps {
                match step {
                    Step::Find(key) => {
                        prop_assert_eq!(
                            sieve.find(0, &[key]).is_some(),
                            model.entries.contains_key(&key)
                        );
                        if let Some((_, visited)) = model.entries.get_mut(&key) {
                            *visited = true;
                        }
                    }
                    Step::Insert(key, weight) => {
                        sieve.insert(0, &[key], weight, key).unwrap();
                        if !model.replace(bounds, key, weight) {
                            model.make_room(bounds, 1, weight);
                            model.entries.insert(key, (weight, false));
                            model.queues[ALL].push(key);
                            if weight.descriptors > 0 {
                                model.queues[HOLDERS].push(key);
                            }
                        }
                    }
                    Step::Reweigh(key, weight) => {
                        if let Some(slot) = sieve.find(0, &[key]) {
                            sieve.reweigh(slot, weight);
                            model.replace(bounds, key, weight);
                        }
                    }
                    Step::Remove(key) => {
                        if let Some(slot) = sieve.find(0, &[key]) {
                            prop_assert_eq!(sieve.remove(slot), key);
                            model.remove(key);
                        }
                    }
                }
                let mut keys: Vec<u8> = sieve.nodes.iter().map(|(_, node)| node.value).collect();
                keys.sort_unstable();
                prop_assert_eq!(keys, model.entries.keys().copied().collect::<Vec<_>>());
                prop_assert_eq!(sieve.held(), model.held());
                prop_assert_eq!(sieve.table.len(), sieve.entries());
                prop_assert!(sieve.entries() <= bounds.entries);
                prop_assert!(sieve.held().bytes <= bounds.bytes);
                prop_assert!(sieve.held().descriptors <= bounds.descriptors);
            }
        }
    }
}
