//! The table's promises, with the time injected.

use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use super::table::WAYS;
use super::*;

const LIFETIME_S: u64 = 3600;
const START_S: u64 = 1_800_000_000;

/// A cache with a clock of its own, and what random ids are drawn from.
struct Fixture {
    cache: Arc<SessionCache>,
    clock: Arc<Clock>,
    random: fastrand::Rng,
}

impl Fixture {
    fn new(entries: usize, threads: usize) -> Fixture {
        let clock = Arc::new(Clock::at(START_S));
        let settings = Settings {
            entries: NonZeroUsize::new(entries).unwrap(),
            threads: NonZeroUsize::new(threads).unwrap(),
            lifetime: Duration::from_secs(LIFETIME_S),
        };
        let cache = Arc::new(SessionCache::new(settings, Arc::clone(&clock)));
        Fixture { cache, clock, random: fastrand::Rng::with_seed(1) }
    }

    fn context(&self, name: &str) -> ContextSessions {
        ContextSessions::new(Arc::clone(&self.cache), ContextId::of(&[name.as_bytes()]))
    }

    fn id(&mut self) -> Vec<u8> {
        std::iter::repeat_with(|| self.random.u8(..)).take(ID_BYTES).collect()
    }

    fn ids(&mut self, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.id()).collect()
    }

    fn residue(&self) -> usize {
        self.cache.parts.residue()
    }
}

#[test]
fn a_session_is_got_as_often_as_wanted_and_taken_once() {
    let mut fixture = Fixture::new(64, 1);
    let (sessions, id) = (fixture.context("a"), fixture.id());
    assert!(sessions.put(id.clone(), b"session".to_vec()));
    for _ in 0..3 {
        assert_eq!(sessions.get(&id).as_deref(), Some(&b"session"[..]));
    }
    assert_eq!(sessions.take(&id).as_deref(), Some(&b"session"[..]));
    assert_eq!(sessions.take(&id), None);
    assert_eq!(sessions.get(&id), None);
    let values = fixture.cache.values();
    assert_eq!((values.hits, values.misses, values.entries), (4, 2, 0));
    assert_eq!(fixture.residue(), 0);
}

#[test]
fn a_session_of_one_context_is_in_no_other() {
    let mut fixture = Fixture::new(64, 1);
    let (one, other, id) = (fixture.context("one"), fixture.context("other"), fixture.id());
    assert!(one.put(id.clone(), b"session".to_vec()));
    assert_eq!(other.get(&id), None);
    assert_eq!(other.take(&id), None);
    assert!(other.put(id.clone(), b"another".to_vec()), "the same id may be used by both");
    assert_eq!(one.take(&id).as_deref(), Some(&b"session"[..]));
    assert_eq!(other.take(&id).as_deref(), Some(&b"another"[..]));
}

#[test]
fn a_second_session_under_an_id_replaces_the_first() {
    let mut fixture = Fixture::new(16, 1);
    let (sessions, id) = (fixture.context("a"), fixture.id());
    assert!(sessions.put(id.clone(), vec![1; VALUE_BYTES]));
    assert!(sessions.put(id.clone(), b"short".to_vec()));
    assert_eq!(fixture.cache.values().entries, 1);
    assert_eq!(fixture.cache.values().evictions, 0);
    assert_eq!(sessions.take(&id).as_deref(), Some(&b"short"[..]));
    assert_eq!(fixture.residue(), 0);
}

#[test]
fn what_does_not_fit_a_slot_is_not_stored_and_is_counted() {
    let mut fixture = Fixture::new(16, 1);
    let (sessions, ids) = (fixture.context("a"), fixture.ids(2));
    assert!(sessions.put(ids[0].clone(), vec![7; VALUE_BYTES]));
    assert!(!sessions.put(ids[1].clone(), vec![7; VALUE_BYTES + 1]));
    assert_eq!(sessions.get(&ids[0]), Some(vec![7; VALUE_BYTES]));
    assert_eq!(sessions.get(&ids[1]), None);
    assert_eq!(fixture.cache.values().too_large, 1);
}

#[test]
fn an_id_that_is_none_of_ours_is_not_found() {
    let fixture = Fixture::new(16, 1);
    let sessions = fixture.context("a");
    for length in [0, 1, 31, 33, 65_535] {
        assert!(!sessions.put(vec![0; length], b"session".to_vec()));
        assert_eq!(sessions.get(&vec![0; length]), None);
        assert_eq!(sessions.take(&vec![0; length]), None);
    }
    // An id of zeros is not that of a free slot.
    assert_eq!(sessions.get(&[0; ID_BYTES]), None);
    assert!(sessions.put(vec![0; ID_BYTES], b"zeros".to_vec()));
    assert_eq!(sessions.take(&[0; ID_BYTES]).as_deref(), Some(&b"zeros"[..]));
}

#[test]
fn a_session_is_over_at_the_end_of_its_lifetime_and_wiped_when_looked_for() {
    for take in [false, true] {
        let mut fixture = Fixture::new(16, 1);
        let (sessions, id) = (fixture.context("a"), fixture.id());
        let look_up = |id: &[u8]| if take { sessions.take(id) } else { sessions.get(id) };
        assert!(sessions.put(id.clone(), b"session".to_vec()));
        fixture.clock.tick(START_S + LIFETIME_S - 1);
        assert!(sessions.get(&id).is_some(), "in its last second");
        fixture.clock.tick(START_S + LIFETIME_S);
        assert_eq!(look_up(&id), None);
        assert_eq!(fixture.residue(), 0);
        let values = fixture.cache.values();
        assert_eq!((values.expirations, values.entries, values.misses), (1, 0, 1));
    }
}

#[test]
fn a_clock_that_is_set_back_loses_no_session() {
    let mut fixture = Fixture::new(16, 1);
    let (sessions, id) = (fixture.context("a"), fixture.id());
    assert!(sessions.put(id.clone(), b"session".to_vec()));
    fixture.clock.tick(START_S - 10 * LIFETIME_S);
    fixture.cache.sweep();
    assert!(sessions.get(&id).is_some());
}

#[test]
fn a_lifetime_is_a_day_at_most() {
    let clock = Arc::new(Clock::at(START_S));
    let one = NonZeroUsize::MIN;
    let settings = Settings { entries: one, threads: one, lifetime: Duration::MAX };
    let cache = Arc::new(SessionCache::new(settings, Arc::clone(&clock)));
    let sessions = ContextSessions::new(cache, ContextId::of(&[]));
    assert!(sessions.put(vec![1; ID_BYTES], b"session".to_vec()));
    clock.tick(START_S + LIFETIME_MAX.as_secs() - 1);
    assert!(sessions.get(&[1; ID_BYTES]).is_some());
    clock.tick(START_S + LIFETIME_MAX.as_secs());
    assert!(sessions.get(&[1; ID_BYTES]).is_none());
}

#[test]
fn sweeping_wipes_everything_that_is_over_and_nothing_else() {
    let mut fixture = Fixture::new(4096, 2);
    let (sessions, old, young) = (fixture.context("a"), fixture.ids(900), fixture.ids(300));
    for id in &old {
        assert!(sessions.put(id.clone(), vec![0xee; 100]));
    }
    fixture.clock.tick(START_S + LIFETIME_S / 2);
    for id in &young {
        assert!(sessions.put(id.clone(), vec![0xdd; 100]));
    }
    assert_eq!(fixture.cache.values().evictions, 0, "or the counts below are others");
    fixture.clock.tick(START_S + LIFETIME_S);
    // 32 parts of 8 sets, a part at a time.
    for _ in 0..32 {
        fixture.cache.sweep();
    }
    let values = fixture.cache.values();
    assert_eq!((values.expirations, values.entries), (900, 300));
    for id in &young {
        assert!(sessions.take(id).is_some());
    }
    assert_eq!(fixture.residue(), 0);
}

#[test]
fn a_full_set_evicts_what_was_not_hit() {
    // One set, so that the order is known.
    let mut fixture = Fixture::new(WAYS, 1);
    let (sessions, ids) = (fixture.context("a"), fixture.ids(WAYS + 2));
    assert_eq!(fixture.cache.values().capacity, WAYS as u64);
    let (first, rest) = ids.split_at(WAYS);
    for id in first {
        assert!(sessions.put(id.clone(), b"session".to_vec()));
    }
    // All but the fourth and the sixth are hit.
    let unused = [3, 5];
    for (way, id) in first.iter().enumerate() {
        assert!(unused.contains(&way) || sessions.get(id).is_some());
    }
    for (id, gone) in rest.iter().zip(unused) {
        assert!(sessions.put(id.clone(), b"session".to_vec()));
        assert_eq!(sessions.get(&first[gone]), None);
    }
    let kept = ids.iter().filter(|id| sessions.get(id).is_some()).count();
    assert_eq!(kept, WAYS);
    assert_eq!(fixture.cache.values().evictions, 2);
}

#[test]
fn a_set_whose_slots_are_all_marked_evicts_all_the_same() {
    let mut fixture = Fixture::new(WAYS, 1);
    let (sessions, ids) = (fixture.context("a"), fixture.ids(10 * WAYS));
    for id in &ids {
        assert!(sessions.put(id.clone(), b"session".to_vec()));
        assert!(sessions.get(id).is_some(), "what was just stored is there");
    }
    let values = fixture.cache.values();
    assert_eq!((values.entries, values.evictions), (16, 9 * 16));
}

#[test]
fn what_is_over_makes_room_before_anything_is_evicted() {
    let mut fixture = Fixture::new(WAYS, 1);
    let (sessions, ids) = (fixture.context("a"), fixture.ids(WAYS + 1));
    for (n, id) in ids.iter().enumerate() {
        if n == 4 {
            fixture.clock.tick(START_S + LIFETIME_S - 1);
        }
        if n == WAYS {
            fixture.clock.tick(START_S + LIFETIME_S);
        }
        assert!(sessions.put(id.clone(), b"session".to_vec()));
    }
    let values = fixture.cache.values();
    assert_eq!((values.evictions, values.expirations, values.entries), (0, 4, 13));
}

#[test]
fn secrets_are_wiped_as_they_are_evicted() {
    let mut fixture = Fixture::new(WAYS, 1);
    let sessions = fixture.context("a");
    for id in fixture.ids(WAYS) {
        assert!(sessions.put(id, vec![0xaa; VALUE_BYTES]));
    }
    assert!(fixture.residue() > WAYS * VALUE_BYTES, "they were there");
    for id in fixture.ids(WAYS) {
        assert!(sessions.put(id, vec![0xbb; 1]));
    }
    // Of the long ones nothing is left beyond the short ones' ids and a byte each.
    assert!(fixture.residue() <= WAYS * (ID_BYTES + 1));
}

#[test]
fn of_three_quarters_of_the_capacity_three_in_a_hundred_are_evicted_at_most() {
    for threads in [1, 2, 64] {
        let mut fixture = Fixture::new(16_384, threads);
        let (sessions, ids) = (fixture.context("a"), fixture.ids(16_384 * 3 / 4));
        for id in &ids {
            assert!(sessions.put(id.clone(), b"session".to_vec()));
        }
        let values = fixture.cache.values();
        assert!(values.evictions * 100 < 3 * ids.len() as u64, "{threads} threads: {values:?}");
        assert_eq!(values.entries + values.evictions, ids.len() as u64);
    }
}

#[test]
fn capacity_is_rounded_up_and_no_further_than_to_a_set_for_each_part() {
    for entries in [1, 15, 16, 17, 100, 1000, 7573, 100_000] {
        for threads in [1, 2, 3, 48, usize::MAX >> 8] {
            let values = Fixture::new(entries, threads).cache.values();
            assert!(values.capacity >= entries as u64, "{entries}, {threads}: {values:?}");
            assert!(values.capacity < 2 * entries as u64 + 16, "{entries}, {threads}: {values:?}");
        }
    }
}

/// Real threads: whatever they do, a session is whole, and is taken once.
#[test]
fn many_threads_see_whole_sessions_and_take_each_once() {
    const THREADS: usize = 8;
    let mut fixture = Fixture::new(1024, THREADS);
    let (ids, churned) = (fixture.ids(800), fixture.ids(2000));
    let sessions = fixture.context("a");
    // Each byte of a session is the first byte of its id.
    let session = |id: &[u8]| vec![id[0]; 111];
    for id in &ids {
        assert!(sessions.put(id.clone(), session(id)));
    }
    let work = |thread: usize| {
        let mut taken = Vec::new();
        for (n, id) in ids.iter().enumerate() {
            let other = &churned[(n * 7 + thread * 13) % churned.len()];
            assert!(sessions.put(other.clone(), session(other)));
            for (id, found) in [id, other].map(|id| (id, sessions.get(id))) {
                assert!(found.is_none_or(|found| found == session(id)));
            }
            if let Some(found) = sessions.take(id) {
                assert_eq!(found, session(id));
                taken.push(id.clone());
            }
        }
        taken
    };
    let taken: Vec<Vec<u8>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let distinct: HashSet<_> = taken.iter().collect();
    assert_eq!(distinct.len(), taken.len(), "a session was taken twice");
    assert!(!taken.is_empty());
}

#[test]
fn counters_are_read_while_a_part_is_locked() {
    let mut fixture = Fixture::new(16, 1);
    let (sessions, id) = (fixture.context("a"), fixture.id());
    assert!(sessions.put(id, b"session".to_vec()));
    fixture.cache.parts.while_locked(|| assert_eq!(fixture.cache.values().entries, 1));
}

#[test]
fn who_finds_the_lock_taken_is_counted() {
    let mut fixture = Fixture::new(16, 1);
    let (sessions, id) = (fixture.context("a"), fixture.id());
    let began = Instant::now();
    // How long it takes until the other thread has tried is not known: longer each time.
    for hold in (0..).map(|n| Duration::from_millis(1 << n)) {
        let about_to_look = Barrier::new(2);
        thread::scope(|scope| {
            fixture.cache.parts.while_locked(|| {
                scope.spawn(|| {
                    about_to_look.wait();
                    sessions.get(&id)
                });
                about_to_look.wait();
                thread::sleep(hold);
            });
        });
        if fixture.cache.values().contended > 0 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "never counted");
    }
    assert_eq!(fixture.cache.values().contended, 1);
}

#[test]
fn nothing_secret_is_shown() {
    let mut fixture = Fixture::new(16, 1);
    let (sessions, id) = (fixture.context("a"), fixture.id());
    assert!(sessions.put(id, b"session".to_vec()));
    let shown = format!("{sessions:?}");
    assert!(
        shown.starts_with("ContextSessions { cache: SessionCache { values: Values { entries: 1")
    );
    assert!(!shown.contains("115, 101, 115"), "{shown}");
}
