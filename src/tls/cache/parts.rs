//! The parts of the table, each behind its lock, and what is counted there.
//!
//! The lock is a parameter, so that the model checker runs this code over a lock of its own.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use super::Values;
use super::table::{Found, Key, Table, Time, VALUE_BYTES, WAYS};
use crate::metrics::Counter;

/// Parts for each thread, at least. Two threads that do nothing else did 8.8 million operations a second
/// with 4, and 10.2 with 16 (nine look-ups to one insertion); more brought no more. One costs 128 bytes.
const PARTS_PER_THREAD: usize = 16;

/// Sets that one call of [`Parts::sweep`] looks at: the lock is held for a few microseconds if there is
/// nothing to wipe, and for as much again for each fifty sessions.
const SWEEP_SETS: usize = 32;

/// A lock around a table.
pub(super) trait Lock {
    fn new(table: Table) -> Self;

    /// Runs `f` on the table while nobody else has it; tells `f` whether somebody else had it.
    fn hold<R>(&self, f: impl FnOnce(&mut Table, bool) -> R) -> R;
}

/// The standard library's: a word, and a futex where another thread has it.
impl Lock for Mutex<Table> {
    fn new(table: Table) -> Self {
        Mutex::new(table)
    }

    fn hold<R>(&self, f: impl FnOnce(&mut Table, bool) -> R) -> R {
        let (mut table, contended) = match self.try_lock() {
            Ok(table) => (table, false),
            Err(TryLockError::WouldBlock) => {
                (self.lock().unwrap_or_else(PoisonError::into_inner), true)
            }
            // A slot has no tag while it changes: a panic leaves nothing half done behind.
            Err(TryLockError::Poisoned(poisoned)) => (poisoned.into_inner(), false),
        };
        f(&mut table, contended)
    }
}

/// Written by whoever holds the part's lock, and so by one at a time; read without it.
#[derive(Default)]
#[repr(C)]
struct Counters {
    hits: Counter,
    misses: Counter,
    // From here on, on the second line.
    entries: Counter,
    evictions: Counter,
    expirations: Counter,
    too_large: Counter,
    contended: Counter,
}

/// One part, on two cache lines of its own, the unit in which CPUs fetch. Half of the time another CPU was the
/// last one in it, and then each line that is written costs a transfer. So what every operation writes,
/// which is the lock and a count of hits or misses, is on the first line, and the second is
/// written only when something there changes.
#[repr(C, align(128))]
struct Part<L> {
    lock: L,
    counters: Counters,
}

const _: () = assert!(std::mem::offset_of!(Part<Mutex<Table>>, counters.entries) == 64);

impl<L: Lock> Part<L> {
    fn hold<R>(&self, f: impl FnOnce(&mut Table, &Counters) -> R) -> R {
        let counters = &self.counters;
        self.lock.hold(|table, contended| {
            if contended {
                counters.contended.add(1);
            }
            let before = table.entries();
            let result = f(table, counters);
            if table.entries() != before {
                counters.entries.set(table.entries().into());
            }
            result
        })
    }
}

/// All parts.
pub(super) struct Parts<L> {
    /// As many as a power of two.
    parts: Box<[Part<L>]>,
    sets_per_part: usize,
    lifetime_s: u32,
    /// Which piece is swept next. Written once a second by each shard.
    swept: AtomicUsize,
}

impl<L: Lock> Parts<L> {
    /// Room for `entries`, in parts enough for `threads`. A small table has fewer parts, so that each has
    /// one set at least and the rounding does not multiply it.
    pub(super) fn new(entries: NonZeroUsize, threads: NonZeroUsize, lifetime_s: u32) -> Self {
        let sets = entries.get().div_ceil(WAYS);
        let wanted = threads.get().saturating_mul(PARTS_PER_THREAD).next_power_of_two();
        let parts = wanted.min(1 << sets.ilog2());
        let sets_per_part = sets.div_ceil(parts);
        let part =
            |_| Part { lock: L::new(Table::new(sets_per_part)), counters: Counters::default() };
        Self {
            parts: (0..parts).map(part).collect(),
            sets_per_part,
            lifetime_s,
            swept: AtomicUsize::new(0),
        }
    }

    /// Whether it was there, and is now in `copy`, which must have room for [`VALUE_BYTES`].
    pub(super) fn get(&self, key: &Key, now_s: u32, copy: &mut Vec<u8>) -> bool {
        self.part(key).hold(|table, counters| {
            let found = table.get(key, self.time(now_s), copy);
            count(found, counters);
            found == Found::Session
        })
    }

    /// Whether it was there, and is now in `copy`, which must have room for [`VALUE_BYTES`].
    pub(super) fn take(&self, key: &Key, now_s: u32, copy: &mut Vec<u8>) -> bool {
        self.part(key).hold(|table, counters| {
            let found = table.take(key, self.time(now_s), copy);
            count(found, counters);
            found == Found::Session
        })
    }

    /// Whether it was stored.
    pub(super) fn put(&self, key: &Key, value: &[u8], now_s: u32) -> bool {
        self.part(key).hold(|table, counters| {
            if value.len() > VALUE_BYTES {
                counters.too_large.add(1);
                return false;
            }
            let displaced = table.put(key, value, self.time(now_s));
            if displaced.evicted {
                counters.evictions.add(1);
            }
            if displaced.expired > 0 {
                counters.expirations.add(displaced.expired as u64);
            }
            true
        })
    }

    /// Wipes what is over in the next piece of the table.
    pub(super) fn sweep(&self, now_s: u32) {
        let pieces_per_part = self.sets_per_part.div_ceil(SWEEP_SETS);
        let piece =
            self.swept.fetch_add(1, Ordering::Relaxed) % (pieces_per_part * self.parts.len());
        let start = piece % pieces_per_part * SWEEP_SETS;
        let end = (start + SWEEP_SETS).min(self.sets_per_part);
        self.parts[piece / pieces_per_part].hold(|table, counters| {
            let expired = table.expire(start..end, self.time(now_s));
            counters.expirations.add(expired as u64);
        });
    }

    pub(super) fn values(&self) -> Values {
        let capacity = (self.parts.len() * self.sets_per_part * WAYS) as u64;
        let mut values = Values { capacity, ..Values::default() };
        for Part { counters, .. } in &self.parts {
            values.entries += counters.entries.value();
            values.hits += counters.hits.value();
            values.misses += counters.misses.value();
            values.evictions += counters.evictions.value();
            values.expirations += counters.expirations.value();
            values.too_large += counters.too_large.value();
            values.contended += counters.contended.value();
        }
        values
    }

    fn part(&self, key: &Key) -> &Part<L> {
        &self.parts[key.part_bits() as usize & (self.parts.len() - 1)]
    }

    fn time(&self, now_s: u32) -> Time {
        Time { now_s, lifetime_s: self.lifetime_s }
    }

    /// Runs `f` while this thread has the lock of the first part.
    #[cfg(test)]
    pub(super) fn while_locked(&self, f: impl FnOnce()) {
        self.parts[0].lock.hold(|_, _| f());
    }

    /// [`Table::residue`] of all parts.
    #[cfg(test)]
    pub(super) fn residue(&self) -> usize {
        self.parts.iter().map(|part| part.lock.hold(|table, _| table.residue())).sum()
    }
}

/// Counts how a look-up ended.
fn count(found: Found, counters: &Counters) {
    match found {
        Found::Session => counters.hits.add(1),
        Found::Nothing => counters.misses.add(1),
        Found::Over => {
            counters.misses.add(1);
            counters.expirations.add(1);
        }
    }
}
