//! Files that change, and files that are not in memory.

use std::fs::{self, File};
use std::io;
use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;

#[test]
fn entries_are_looked_at_when_their_time_is_up() {
    for place in places() {
        let mut fixture = Fixture::with(place, cache());
        fixture.write("small", "the old one");
        fixture.write("large", [b'o'; 2000]);
        for target in ["/small", "/large", "/absent"] {
            fixture.get(target);
        }
        fixture.write("small", "new");
        fixture.write("large", [b'n'; 3000]);
        fixture.write("absent", "here");
        fixture.now.advance(LATER_S, VALID_MS - 1);
        assert_eq!(fixture.body("/small"), "the old one");
        assert_eq!(fixture.status("/absent"), 404);
        assert_eq!(fixture.counters().revalidations, 0);
        fixture.expire();
        assert_eq!(fixture.body("/small"), "new");
        assert_eq!(fixture.body("/large"), "n".repeat(3000));
        assert_eq!(fixture.body("/absent"), "here");
        let counters = fixture.counters();
        assert_eq!((counters.revalidations, counters.stale_changed), (3, 2));
        fixture.expire();
        assert_eq!(fixture.body("/small"), "new");
        let counters = fixture.counters();
        assert_eq!((counters.revalidations, counters.stale_changed), (4, 2));
        fs::remove_file(fixture.path("small")).unwrap();
        fixture.expire();
        assert_eq!(fixture.status("/small"), 404);
    }
}

#[test]
fn a_file_replaced_by_rename_is_whole_before_and_after() {
    let mut fixture = Fixture::new();
    fixture.write("file", [b'o'; 2000]);
    let in_flight = fixture.reply("/file");
    fixture.write("next", [b'n'; 2500]);
    fs::rename(fixture.path("next"), fixture.path("file")).unwrap();
    assert_eq!(fixture.body("/file"), "o".repeat(2000), "the old one, for as long as it is valid");
    fixture.expire();
    assert_eq!(fixture.body("/file"), "n".repeat(2500));
    assert_eq!(Answer::from(in_flight).body, [b'o'; 2000]);
    assert_eq!(fixture.counters().descriptors, 1);
}

#[test]
fn files_that_grow_and_shrink_change_family() {
    let mut fixture = Fixture::new();
    for (bytes, from_file) in [(10, false), (5000, true), (20, false), (0, false), (4000, true)] {
        fixture.write("file", vec![b'x'; bytes]);
        fixture.expire();
        let answer = fixture.get("/file");
        assert_eq!((answer.body.len(), answer.from_file), (bytes, from_file));
        assert_eq!(fixture.counters().descriptors, usize::from(from_file));
    }
}

/// Within one step of the file system's clock nothing but another reading shows the change.
#[test]
fn a_file_rewritten_within_the_same_second_is_found_out() {
    for place in places() {
        let mut fixture = Fixture::with(place, cache());
        fixture.now = Now::new(real_now_s(), 0);
        for n in 0..400 {
            let set_back = n % 2 == 1;
            fixture.write("file", format!("{n:06}"));
            if set_back {
                fixture.set_modified("file", UNIX_EPOCH + Duration::from_secs(784_111_777));
            }
            fixture.now.advance(real_now_s(), fixture.now.monotonic_ms + VALID_MS);
            let answer = fixture.get("/file");
            assert_eq!(answer.body, format!("{n:06}").as_bytes());
            assert_eq!(answer.field("ETag").unwrap().starts_with("W/"), !set_back);
            // As quickly as can be, so that the change's time is often the same.
            fs::write(fixture.path("file"), "after.").unwrap();
            if set_back {
                fixture.set_modified("file", UNIX_EPOCH + Duration::from_secs(784_111_777));
            }
            fixture.now.advance(real_now_s(), fixture.now.monotonic_ms + VALID_MS);
            assert_eq!(fixture.body("/file"), "after.");
        }
    }
}

#[test]
fn a_weak_tag_becomes_strong_when_its_time_has_settled() {
    let mut fixture = Fixture::new();
    fixture.now = Now::new(real_now_s(), 0);
    fixture.write("file", "x");
    let weak = fixture.get("/file").field("ETag").unwrap().to_owned();
    fixture.now.advance(real_now_s() + 5, VALID_MS);
    let strong = fixture.get("/file").field("ETag").unwrap().to_owned();
    let state = strong.trim_end_matches('"');
    assert!(weak.starts_with(&format!("W/{state}-")), "{weak} {strong}");
}

#[test]
fn a_cold_file_is_served_from_the_file_until_it_is_in_memory() {
    let Ok(place) = TempDir::new_in(".") else { return };
    let mut fixture = Fixture::with(place, cache());
    fixture.write("file", "cold");
    let file = File::open(fixture.path("file")).unwrap();
    file.sync_all().unwrap();
    let drop_pages = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
    nix::fcntl::posix_fadvise(&file, 0, 0, drop_pages).unwrap();
    if sys::file::residency(&file, 0) != sys::file::Residency::Cold {
        eprintln!("skipped: this file system does not let go of a page");
        return;
    }
    // The look may have begun to bring it in, and a page that is on its way cannot be let go of.
    fs::read(fixture.path("file")).unwrap();
    nix::fcntl::posix_fadvise(&file, 0, 0, drop_pages).unwrap();
    let first = fixture.get("/file");
    assert_eq!((&*first.body, first.from_file), (&b"cold"[..], true));
    // Sending it has brought it in.
    let second = fixture.get("/file");
    assert_eq!((&*second.body, second.from_file), (&b"cold"[..], false));
    assert_eq!(first.head.replace("\r\n\r\n", ""), second.head.replace("\r\n\r\n", ""));
    let counters = fixture.counters();
    assert_eq!((counters.promotions, counters.descriptors), (1, 0));
}

proptest! {
    /// Whatever is asked for, in whatever order, is answered as the file system stands.
    #[test]
    fn answers_agree_with_the_file_system(
        steps in prop::collection::vec((0..4u8, 0..6u8, 0..3000usize), 1..60)
    ) {
        let small = config::Cache { entries: 4, bytes: 5000, descriptors: 2, ..cache() };
        let mut fixture = Fixture::with(tempfile::tempdir().unwrap(), small);
        for (step, name, bytes) in steps {
            let path = fixture.path(&name.to_string());
            match step {
                0 => fs::write(&path, vec![name; bytes]).unwrap(),
                1 => match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("{error}"),
                    _ => {}
                },
                _ => {
                    let answer = fixture.get(&format!("/{name}"));
                    match fs::read(&path) {
                        Ok(body) => prop_assert_eq!((answer.status, answer.body), (200, body)),
                        Err(_) => prop_assert_eq!(answer.status, 404),
                    }
                }
            }
            fixture.expire();
        }
    }
}
