//! What is behind the lock of one part: sets of slots, and CLOCK within a set. It knows no lock and no
//! clock.

use zeroize::Zeroize;

use super::super::context_id::ContextId;

/// Bytes of an id under which rustls stores a session, of either version.
pub const ID_BYTES: usize = 32;

/// Bytes of the largest session that a slot holds.
///
/// What rustls 0.23 encodes for a session without a client's chain, in bytes: 71 for either version
/// (a secret of 48 bytes; TLS 1.3 with SHA-256 has 32: 55), `http/1.1` by ALPN 9 more, a server name
/// its length and 1. So 111 with a name of 30, and at most 334, with one of 253, the longest there
/// is. The rest, 48 bytes, makes a slot seven whole cache lines, and has room for data of the
/// application's. A chain of a client's begins at 500 bytes or so, and may have ten thousand.
pub const VALUE_BYTES: usize = 382;

/// Slots of a set: their tags are one cache line, their times another. With this many, sets fill up evenly enough: once
/// sessions for three quarters of the capacity were stored, 2 % of them have been evicted.
pub(super) const WAYS: usize = 16;

/// A tag of this value is that of a free slot.
const FREE: u16 = 0;

/// What a session is found by: its id, and the context that it was stored in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) context: ContextId,
    pub(super) id: [u8; ID_BYTES],
}

impl Key {
    /// Random bits that choose the part.
    pub(super) fn part_bits(&self) -> u32 {
        self.bits(0)
    }

    /// Which of `sets` it belongs to: other random bits, scaled.
    fn set(&self, sets: usize) -> usize {
        ((u64::from(self.bits(4)) * sets as u64) >> 32) as usize
    }

    /// By which all but one in 4096 of the set's other sessions are passed over. A third lot of bits.
    fn tag(&self) -> u16 {
        (self.bits(8) as u16).max(FREE + 1)
    }

    fn bits(&self, at: usize) -> u32 {
        let id = &self.id[at..at + 4];
        u32::from_le_bytes([id[0], id[1], id[2], id[3]])
    }
}

/// What is scanned: the set's slots without their sessions. On two cache lines that are fetched together,
/// of which a look-up that finds nothing reads one.
#[repr(C, align(128))]
struct Set {
    tags: [u16; WAYS],
    /// A bit for each slot: whether it was hit since the hand has passed it.
    marks: u16,
    /// The way that is looked at next when room is needed: `0 <= hand < WAYS`.
    hand: u8,
    /// When each was stored. Seconds of the Unix epoch, of which the low bits suffice to tell an age.
    stored_s: [u32; WAYS],
}

const _: () = assert!(size_of::<Set>() == 128);

impl Set {
    const EMPTY: Set = Set { tags: [FREE; WAYS], marks: 0, hand: 0, stored_s: [0; WAYS] };

    /// A bit for each slot that has `tag`. Without a branch, so that all are compared at once.
    fn tagged(&self, tag: u16) -> u16 {
        let bits = self.tags.iter().enumerate().map(|(way, &own)| u16::from(own == tag) << way);
        bits.fold(0, |tagged, bit| tagged | bit)
    }

    /// A bit for each slot with a session whose time is over.
    fn over(&self, time: Time) -> u16 {
        let stored = self.stored_s.iter().enumerate();
        let bits = stored.map(|(way, &stored_s)| u16::from(time.is_over(stored_s)) << way);
        bits.fold(0, |over, bit| over | bit) & !self.tagged(FREE)
    }

    /// The slot that makes room: the first one that is not marked.
    fn victim(&mut self) -> usize {
        loop {
            let way = usize::from(self.hand);
            self.hand = (self.hand + 1) % WAYS as u8;
            if self.marks & (1 << way) == 0 {
                return way;
            }
            self.marks &= !(1 << way);
        }
    }
}

/// One session, on seven cache lines.
#[repr(align(64))]
struct Slot {
    key: Key,
    /// Bytes of the session: `length <= VALUE_BYTES`.
    length: u16,
    value: [u8; VALUE_BYTES],
}

const _: () = assert!(size_of::<Slot>() == 7 * 64);

impl Slot {
    fn empty() -> Slot {
        let key = Key { context: ContextId::NONE, id: [0; ID_BYTES] };
        Slot { key, length: 0, value: [0; VALUE_BYTES] }
    }

    fn value(&self) -> &[u8] {
        &self.value[..usize::from(self.length)]
    }

    /// Of a slot that is empty, or wiped.
    fn fill(&mut self, key: &Key, value: &[u8]) {
        self.key = *key;
        self.length = value.len() as u16;
        self.value[..value.len()].copy_from_slice(value);
    }

    /// What lies beyond the length was never written, or was wiped with an earlier session.
    fn wipe(&mut self) {
        // As slices, which are wiped at the speed of memory; arrays are wiped byte by byte.
        self.key.id.as_mut_slice().zeroize();
        self.value[..usize::from(self.length)].zeroize();
        self.length = 0;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// How a look-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It was there, and is copied.
    Session,
    /// It was there, but its time is over; it is wiped.
    Over,
    /// It is not there.
    Nothing,
}

/// What a session that was stored has displaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Displaced {
    /// Whether another session was evicted.
    pub(super) evicted: bool,
    /// Sessions of the set that were wiped because their time was over.
    pub(super) expired: usize,
}

/// The time, and how long a session lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// Now, in seconds modulo 2^32.
    pub(super) now_s: u32,
    /// At which age a session's time is over.
    pub(super) lifetime_s: u32,
}

impl Time {
    /// By the difference, as serial numbers are compared: one that was stored before the clock was set
    /// back counts as new.
    fn is_over(self, stored_s: u32) -> bool {
        let age_s = self.now_s.wrapping_sub(stored_s);
        (age_s >= self.lifetime_s) & (age_s <= i32::MAX as u32)
    }
}

/// The ways that have a bit in `bits`, in ascending order.
fn ways(mut bits: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let way = (bits != 0).then_some(bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        way
    })
}

/// The sets of one part, and their slots: `slots.len() == sets.len() * WAYS`.
pub(super) struct Table {
    sets: Box<[Set]>,
    slots: Box<[Slot]>,
    entries: u32,
}

impl Table {
    /// An empty table of `sets` sets.
    pub(super) fn new(sets: usize) -> Table {
        Table {
            sets: (0..sets).map(|_| Set::EMPTY).collect(),
            slots: (0..sets * WAYS).map(|_| Slot::empty()).collect(),
            entries: 0,
        }
    }

    /// Sessions in it.
    pub(super) fn entries(&self) -> u32 {
        self.entries
    }

    /// Copies the session and leaves it there. `copy` has room for any, so that nothing is allocated.
    pub(super) fn get(&mut self, key: &Key, time: Time, copy: &mut Vec<u8>) -> Found {
        let set = key.set(self.sets.len());
        let Some(way) = self.position(set, key) else { return Found::Nothing };
        if time.is_over(self.sets[set].stored_s[way]) {
            self.free(set, way);
            return Found::Over;
        }
        // A line that is not written stays in the other CPUs' caches.
        if self.sets[set].marks & (1 << way) == 0 {
            self.sets[set].marks |= 1 << way;
        }
        copy.extend_from_slice(self.slots[set * WAYS + way].value());
        Found::Session
    }

    /// Copies the session, likewise, and wipes it.
    pub(super) fn take(&mut self, key: &Key, time: Time, copy: &mut Vec<u8>) -> Found {
        let set = key.set(self.sets.len());
        let Some(way) = self.position(set, key) else { return Found::Nothing };
        let is_over = time.is_over(self.sets[set].stored_s[way]);
        if !is_over {
            copy.extend_from_slice(self.slots[set * WAYS + way].value());
        }
        self.free(set, way);
        if is_over { Found::Over } else { Found::Session }
    }

    /// Stores a session, which must fit ([`VALUE_BYTES`]), in place of one with the same key, in a free
    /// slot, or where another must go.
    pub(super) fn put(&mut self, key: &Key, value: &[u8], time: Time) -> Displaced {
        let set = key.set(self.sets.len());
        let mut displaced = Displaced::default();
        let way = self.position(set, key).or_else(|| self.free_way(set)).unwrap_or_else(|| {
            displaced.expired = self.expire_set(set, time);
            self.free_way(set).unwrap_or_else(|| {
                displaced.evicted = true;
                self.sets[set].victim()
            })
        });
        self.free(set, way);
        self.slots[set * WAYS + way].fill(key, value);
        self.sets[set].tags[way] = key.tag();
        self.sets[set].stored_s[way] = time.now_s;
        self.entries += 1;
        displaced
    }

    /// Wipes the sessions of some sets whose time is over, and says how many there were.
    pub(super) fn expire(&mut self, sets: std::ops::Range<usize>, time: Time) -> usize {
        sets.map(|set| self.expire_set(set, time)).sum()
    }

    fn expire_set(&mut self, set: usize, time: Time) -> usize {
        let over = self.sets[set].over(time);
        ways(over).for_each(|way| self.free(set, way));
        over.count_ones() as usize
    }

    /// Which way of its set `key` is in. How long the comparison takes tells a peer about ids, which
    /// are no secrets: without the session's secret an id is of no use.
    fn position(&self, set: usize, key: &Key) -> Option<usize> {
        ways(self.sets[set].tagged(key.tag())).find(|way| self.slots[set * WAYS + way].key == *key)
    }

    fn free_way(&self, set: usize) -> Option<usize> {
        ways(self.sets[set].tagged(FREE)).next()
    }

    /// Wipes the slot, if there is a session in it.
    fn free(&mut self, set: usize, way: usize) {
        if self.sets[set].tags[way] == FREE {
            return;
        }
        self.sets[set].tags[way] = FREE;
        self.sets[set].marks &= !(1 << way);
        self.slots[set * WAYS + way].wipe();
        self.entries -= 1;
    }

    /// Bytes of secrets, or of ids, that are left anywhere in the slots.
    #[cfg(test)]
    pub(super) fn residue(&self) -> usize {
        let bytes = self.slots.iter().flat_map(|slot| slot.key.id.iter().chain(&slot.value));
        bytes.filter(|&&byte| byte != 0).count()
    }
}
