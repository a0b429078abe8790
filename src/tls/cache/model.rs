//! The cache under a model checker: every order in which threads can come by the locks, up to a bound
//! of preemptions, by loom.
//!
//! What is checked is [`Parts`] as it is; only the lock is loom's. The table is one set, so that
//! whatever the threads do, they do it to each other.

use std::num::NonZeroUsize;

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::super::context_id::ContextId;
use super::parts::{Lock, Parts};
use super::table::{ID_BYTES, Key, Table, WAYS};

impl Lock for Mutex<Table> {
    fn new(table: Table) -> Self {
        Mutex::new(table)
    }

    fn hold<R>(&self, f: impl FnOnce(&mut Table, bool) -> R) -> R {
        f(&mut self.lock().expect("no thread panics"), false)
    }
}

const LIFETIME_S: u32 = 100;
const YOUNG: u32 = 50;
const OVER: u32 = 100;

type Cache = Parts<Mutex<Table>>;

/// A cache of one set.
fn cache() -> Arc<Cache> {
    let entries = NonZeroUsize::new(WAYS).expect("not zero");
    Arc::new(Cache::new(entries, NonZeroUsize::MIN, LIFETIME_S))
}

fn key(n: u8) -> Key {
    Key { context: ContextId::of(&[]), id: [n; ID_BYTES] }
}

/// The session under `key(n)`: its length and every byte of it say which one it is, and `mark`.
fn session(n: u8, mark: u8) -> Vec<u8> {
    vec![n ^ mark; 40 + usize::from(n)]
}

type LookUp = fn(&Cache, &Key, u32, &mut Vec<u8>) -> bool;

fn look_up(how: LookUp, cache: &Cache, n: u8, now_s: u32) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    how(cache, &key(n), now_s, &mut copy).then_some(copy)
}

fn take(cache: &Cache, n: u8, now_s: u32) -> Option<Vec<u8>> {
    look_up(Cache::take, cache, n, now_s)
}

fn get(cache: &Cache, n: u8, now_s: u32) -> Option<Vec<u8>> {
    look_up(Cache::get, cache, n, now_s)
}

fn put(cache: &Cache, n: u8, mark: u8, now_s: u32) {
    assert!(cache.put(&key(n), &session(n, mark), now_s));
}

/// Every schedule with at most three preemptions: the bound that loom's authors advise, beyond which
/// faults are hardly ever found.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Three threads take one session, in the way given; says how many may have had it.
fn three_take(how: LookUp) {
    check(move || {
        let cache = cache();
        put(&cache, 1, 0, 0);
        let taker = || {
            let cache = Arc::clone(&cache);
            thread::spawn(move || look_up(how, &cache, 1, YOUNG))
        };
        let others = [taker(), taker()];
        let mut had = vec![look_up(how, &cache, 1, YOUNG)];
        had.extend(others.map(|other| other.join().expect("no thread panics")));
        let had: Vec<_> = had.into_iter().flatten().collect();
        assert_eq!(had, [session(1, 0)], "it was had {} times", had.len());
        assert_eq!(cache.residue(), 0);
    });
}

#[test]
fn a_session_that_is_taken_by_three_is_had_by_one() {
    three_take(Cache::take);
}

/// That the checker would find a `take` that looks first, and deletes in a second hold.
#[test]
#[should_panic(expected = "it was had ")]
fn a_take_in_two_holds_of_the_lock_would_be_found() {
    three_take(|cache, key, now_s, copy| {
        let found = cache.get(key, now_s, copy);
        cache.take(key, now_s, &mut Vec::new());
        found
    });
}

#[test]
fn what_is_read_while_it_is_replaced_is_one_of_the_two() {
    check(|| {
        let cache = cache();
        put(&cache, 1, 0, 0);
        let writer = |mark| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || put(&cache, 1, mark, YOUNG))
        };
        let writers = [writer(0x40), writer(0x80)];
        let seen = get(&cache, 1, YOUNG).expect("it is always there");
        assert!([0, 0x40, 0x80].map(|mark| session(1, mark)).contains(&seen), "torn: {seen:?}");
        for writer in writers {
            writer.join().expect("no thread panics");
        }
        assert!(matches!(take(&cache, 1, YOUNG), Some(last) if last != session(1, 0)));
        assert_eq!(take(&cache, 1, YOUNG), None, "a replaced one is left behind");
    });
}

#[test]
fn what_is_looked_up_while_it_is_evicted_is_whole_or_gone() {
    check(|| {
        let cache = cache();
        for n in 0..WAYS as u8 {
            put(&cache, n, 0, 0);
        }
        // The hand is at the first.
        let evicts = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                put(&cache, 100, 0, YOUNG);
                assert_eq!(get(&cache, 100, YOUNG), Some(session(100, 0)));
            })
        };
        let takes = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || take(&cache, 0, YOUNG))
        };
        let seen = get(&cache, 0, YOUNG);
        let taken = takes.join().expect("no thread panics");
        evicts.join().expect("no thread panics");
        for found in [&seen, &taken].into_iter().flatten() {
            assert_eq!(*found, session(0, 0));
        }
        assert_eq!(take(&cache, 0, YOUNG), None, "it was taken, or else evicted");
        let values = cache.values();
        assert_eq!(values.entries + values.evictions + u64::from(taken.is_some()), WAYS as u64 + 1);
    });
}

#[test]
fn what_is_looked_up_while_it_expires_is_whole_or_gone() {
    check(|| {
        let cache = cache();
        put(&cache, 1, 0, 0);
        let sweeps = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.sweep(OVER))
        };
        let stores = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || put(&cache, 1, 0x40, OVER))
        };
        // This thread's clock is a little behind.
        let taken = take(&cache, 1, OVER - 1);
        sweeps.join().expect("no thread panics");
        stores.join().expect("no thread panics");
        let left = take(&cache, 1, OVER);
        match taken {
            None => assert_eq!(left, Some(session(1, 0x40))),
            Some(old) if old == session(1, 0) => assert_eq!(left, Some(session(1, 0x40))),
            Some(new) => assert_eq!((new, left), (session(1, 0x40), None)),
        }
        assert_eq!(cache.residue(), 0);
        assert_eq!(cache.values().entries, 0);
    });
}
