//! The timer wheel: one deadline for each connection of a shard.
//!
//! A deadline is looked at when its tick comes up, not when it moves: a busy connection pushes
//! its deadline ahead with every request, and the wheel learns of that once in a while, when the
//! old one fires and the owner schedules anew. Scheduling, moving and removing are O(1).

use std::ops::Range;

/// Milliseconds of a tick. Deadlines are met within two of them.
const TICK_MS: u64 = 32;
/// Ticks of one revolution: 32.8 s, longer than most deadlines. Those that lie further ahead
/// fire after one revolution and are scheduled again.
const TICKS: usize = 1024;
const WORDS: usize = TICKS / u64::BITS as usize;

const NONE: u32 = u32::MAX;

/// Deadlines of slots `0..`, each slot with at most one.
#[derive(Debug)]
pub(super) struct Wheel {
    /// First slot of each tick's list.
    heads: Vec<u32>,
    /// Which ticks have a list.
    occupied: [u64; WORDS],
    /// By slot.
    links: Vec<Link>,
    /// All ticks before this one have fired.
    now: u64,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
    /// The tick for which the slot is scheduled, `None` while it is in no list.
    tick: Option<u64>,
}

const UNLINKED: Link = Link { next: NONE, previous: NONE, tick: None };

impl Wheel {
    pub(super) fn new(now_ms: u64) -> Wheel {
        Wheel {
            heads: vec![NONE; TICKS],
            occupied: [0; WORDS],
            links: Vec::new(),
            now: now_ms / TICK_MS,
        }
    }

    /// Makes sure that `slot` fires at `due_ms` or sooner. One that is scheduled sooner already
    /// stays there: its owner schedules it again when it has fired.
    pub(super) fn schedule(&mut self, slot: u32, due_ms: u64) {
        let tick = self.tick_of(due_ms);
        match self.links.get(slot as usize).and_then(|link| link.tick) {
            Some(scheduled) if scheduled <= tick => return,
            Some(_) => self.unlink(slot),
            None => {}
        }
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, UNLINKED);
        }
        let place = tick as usize % TICKS;
        let next = std::mem::replace(&mut self.heads[place], slot);
        if next != NONE {
            self.links[next as usize].previous = slot;
        }
        self.links[slot as usize] = Link { next, previous: NONE, tick: Some(tick) };
        self.occupied[place / 64] |= 1 << (place % 64);
    }

    /// Forgets the slot's deadline.
    pub(super) fn remove(&mut self, slot: u32) {
        if self.links.get(slot as usize).is_some_and(|link| link.tick.is_some()) {
            self.unlink(slot);
        }
    }

    /// Milliseconds from `now_ms` to the next deadline; `None` if there is none.
    pub(super) fn next_ms(&self, now_ms: u64) -> Option<u64> {
        let start = self.now as usize % TICKS;
        // Words from the current tick's on; that one comes last again, for its lower bits.
        let ahead = (0..=WORDS).find_map(|step| {
            let index = (start / 64 + step) % WORDS;
            let below = (1 << (start % 64)) - 1;
            let word = match step {
                0 => self.occupied[index] & !below,
                WORDS => self.occupied[index] & below,
                _ => self.occupied[index],
            };
            let place = index * 64 + word.trailing_zeros() as usize;
            (word != 0).then(|| (place + TICKS - start) % TICKS)
        })?;
        // A tick fires when it has passed whole.
        Some(((self.now + ahead as u64 + 1) * TICK_MS).saturating_sub(now_ms))
    }

    /// Takes out all slots whose time has come, and appends them to `fired`.
    pub(super) fn advance(&mut self, now_ms: u64, fired: &mut Vec<u32>) {
        let end = now_ms / TICK_MS;
        // After a long sleep each place is visited once, not each tick.
        let passed: Range<u64> = self.now.max(end.saturating_sub(TICKS as u64))..end;
        for tick in passed {
            let place = tick as usize % TICKS;
            if self.occupied[place / 64] & 1 << (place % 64) == 0 {
                continue;
            }
            self.occupied[place / 64] &= !(1 << (place % 64));
            let mut slot = std::mem::replace(&mut self.heads[place], NONE);
            while slot != NONE {
                let link = std::mem::replace(&mut self.links[slot as usize], UNLINKED);
                fired.push(slot);
                slot = link.next;
            }
        }
        self.now = self.now.max(end);
    }

    fn tick_of(&self, due_ms: u64) -> u64 {
        due_ms.div_ceil(TICK_MS).clamp(self.now, self.now + TICKS as u64 - 1)
    }

    fn unlink(&mut self, slot: u32) {
        let link = std::mem::replace(&mut self.links[slot as usize], UNLINKED);
        if link.next != NONE {
            self.links[link.next as usize].previous = link.previous;
        }
        if link.previous != NONE {
            self.links[link.previous as usize].next = link.next;
            return;
        }
        let place = link.tick.expect("only linked slots are unlinked") as usize % TICKS;
        self.heads[place] = link.next;
        if link.next == NONE {
            self.occupied[place / 64] &= !(1 << (place % 64));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn fired(wheel: &mut Wheel, now_ms: u64) -> Vec<u32> {
        let mut fired = Vec::new();
        wheel.advance(now_ms, &mut fired);
        fired.sort_unstable();
        fired
    }

    #[test]
    fn fires_when_due_and_not_before() {
        let mut wheel = Wheel::new(1000);
        wheel.schedule(3, 1500);
        assert!(fired(&mut wheel, 1499).is_empty());
        assert_eq!(fired(&mut wheel, 1500 + 2 * TICK_MS), [3]);
        assert_eq!(wheel.next_ms(2000), None);
    }

    #[test]
    fn an_earlier_deadline_wins_and_a_later_one_waits() {
        let mut wheel = Wheel::new(0);
        wheel.schedule(0, 10_000);
        wheel.schedule(0, 20_000);
        assert_eq!(fired(&mut wheel, 11_000), [0]);
        wheel.schedule(0, 20_000);
        wheel.schedule(0, 12_000);
        assert_eq!(fired(&mut wheel, 13_000), [0]);
    }

    #[test]
    fn a_deadline_past_the_horizon_fires_after_a_revolution() {
        let mut wheel = Wheel::new(0);
        wheel.schedule(7, 1_000_000);
        assert!(fired(&mut wheel, TICK_MS * (TICKS as u64 - 2)).is_empty());
        assert_eq!(fired(&mut wheel, TICK_MS * (TICKS as u64 + 1)), [7]);
    }

    #[test]
    fn a_long_sleep_misses_nothing() {
        let mut wheel = Wheel::new(0);
        for slot in 0..100 {
            wheel.schedule(slot, u64::from(slot) * 300);
        }
        assert_eq!(fired(&mut wheel, 10_000_000).len(), 100);
    }

    proptest! {
        /// Against a plain map of deadlines: nothing fires early, nothing is late by more than
        /// two ticks, and `next_ms` never oversleeps.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((0u32..20, 0u64..40_000, 0u64..3000, 0u8..4), 1..200)) {
            let mut wheel = Wheel::new(0);
            let mut model: HashMap<u32, u64> = HashMap::new();
            let mut now = 0;
            for (slot, ahead, passes, kind) in steps {
                match kind {
                    0 => {
                        wheel.remove(slot);
                        model.remove(&slot);
                    }
                    1 | 2 => {
                        wheel.schedule(slot, now + ahead);
                        let due = model.entry(slot).or_insert(u64::MAX);
                        *due = (*due).min(now + ahead);
                    }
                    _ => {
                        now += passes;
                        let mut fired = Vec::new();
                        wheel.advance(now, &mut fired);
                        for slot in fired {
                            let due = model.remove(&slot).expect("fired without a deadline");
                            let horizon = TICK_MS * (TICKS as u64 - 2);
                            prop_assert!(due <= now || due >= horizon);
                        }
                        for due in model.values() {
                            prop_assert!(*due + 2 * TICK_MS >= now);
                        }
                    }
                }
                if let Some(earliest) = model.values().min() {
                    let wait = wheel.next_ms(now).expect("a deadline is there");
                    prop_assert!(now + wait <= (*earliest).max(now) + 3 * TICK_MS);
                } else {
                    prop_assert_eq!(wheel.next_ms(now), None);
                }
            }
        }
    }
}
