//! What the cache may hold, and what outlives it.

use super::*;

#[test]
fn the_bounds_hold() {
    let mut fixture = Fixture::with(
        tempfile::tempdir().unwrap(),
        config::Cache { entries: 20, bytes: 20_000, descriptors: 3, ..cache() },
    );
    for n in 0..50 {
        fixture.write(&format!("small{n}"), vec![b'x'; 500]);
        fixture.write(&format!("large{n}"), vec![b'x'; 2000]);
    }
    for round in 0..3 {
        for n in 0..50 {
            assert_eq!(fixture.get(&format!("/small{n}")).body.len(), 500);
            assert_eq!(fixture.get(&format!("/large{n}")).body.len(), 2000);
            assert_eq!(fixture.status(&format!("/absent{round}{n}")), 404);
            let Counters { entries, bytes, descriptors, .. } = fixture.counters();
            assert!(entries <= 20 && bytes <= 20_000 && descriptors <= 3);
        }
    }
    assert!(fixture.counters().evictions > 300);
}

#[test]
fn what_is_too_large_to_keep_is_served_all_the_same() {
    let none = config::Cache { entries: 0, bytes: 0, descriptors: 0, ..cache() };
    let mut fixture = Fixture::with(tempfile::tempdir().unwrap(), none);
    fixture.write("small", "x");
    fixture.write("large", [b'x'; 2000]);
    for _ in 0..2 {
        assert_eq!(fixture.body("/small"), "x");
        assert_eq!(fixture.body("/large").len(), 2000);
        assert_eq!(fixture.status("/absent"), 404);
    }
    let counters = fixture.counters();
    assert_eq!((counters.entries, counters.too_heavy, counters.hits), (0, 6, 0));
}

#[test]
fn a_response_on_its_way_outlives_its_entry() {
    let mut fixture =
        Fixture::with(tempfile::tempdir().unwrap(), config::Cache { entries: 1, ..cache() });
    fixture.write("small", "small");
    fixture.write("large", [b'l'; 2000]);
    let small = fixture.reply("/small");
    let large = fixture.reply("/large");
    fixture.status("/absent");
    assert_eq!((fixture.counters().evictions, fixture.counters().descriptors), (2, 0));
    assert_eq!(Answer::from(small).body, b"small");
    assert_eq!(Answer::from(large).body, [b'l'; 2000]);
}

/// The limit is the process's, so this runs in one of its own.
#[test]
fn a_want_of_descriptors_is_met_from_the_cache() {
    const CHILD: &str = "ONERING_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let name = "files::tests::bounds::a_want_of_descriptors_is_met_from_the_cache";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1"])
            .env(CHILD, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let mut fixture = Fixture::new();
    for n in 0..60 {
        fixture.write(&format!("{n}"), [b'x'; 2000]);
    }
    let (soft, hard) = (40, 40);
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    for n in 0..60 {
        assert_eq!(fixture.reply(&format!("/{n}")).status, Status::OK, "{n}");
    }
    assert!(fixture.counters().descriptors_short > 0 && fixture.counters().evictions > 0);
    // Descriptors that responses hold cannot be had back from the cache.
    let held: Vec<_> = (0..60).map(|n| fixture.reply(&format!("/{n}"))).collect();
    let refused = held.iter().filter(|reply| reply.status == Status::SERVICE_UNAVAILABLE).count();
    assert!(refused > 0 && fixture.counters().troubles == refused as u64);
    drop(held);
    assert!((0..60).all(|n| fixture.reply(&format!("/{n}")).status == Status::OK));
}
