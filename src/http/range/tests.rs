//! Ranges by the section that judges them, then against sets of bytes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn parts(value: &str, complete_bytes: u64) -> Vec<(u64, u64)> {
    match resolve(value.as_bytes(), complete_bytes) {
        Resolved::Parts(parts) => {
            parts.as_slice().iter().map(|range| (range.first, range.last)).collect()
        }
        other => panic!("{value:?} of {complete_bytes} gives {other:?}"),
    }
}

/// RFC 9110 §14.1.2
#[test]
fn one_range() {
    for (value, expected) in [
        ("bytes=0-0", (0, 0)),
        ("bytes=25-25", (25, 25)),
        ("bytes=10-15", (10, 15)),
        ("bytes=20-", (20, 25)),
        ("bytes=0-", (0, 25)),
        ("bytes=-5", (21, 25)),
        ("bytes=-26", (0, 25)),
        ("bytes=-100", (0, 25)),
        ("bytes=20-100", (20, 25)),
        ("bytes=0-26", (0, 25)),
        ("bytes=0007-8", (7, 8)),
        ("bytes=5-9223372036854775807", (5, 25)),
        ("bytes=5-18446744073709551615", (5, 25)),
        ("bytes=5-99999999999999999999999", (5, 25)),
        ("bytes=-99999999999999999999999", (0, 25)),
        ("Bytes=3-4", (3, 4)),
        ("bytes= 3-4 ", (3, 4)),
        ("bytes=,0-4,", (0, 4)),
        ("bytes=100-,3-4", (3, 4)),
    ] {
        assert_eq!(parts(value, 26), [expected], "{value}");
    }
}

/// RFC 9110 §14.1.1, §14.2: what is malformed or of another unit is as if it were not there.
#[test]
fn what_is_malformed_is_ignored() {
    for value in [
        "",
        "0-4",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=abc",
        "bytes=-",
        "bytes=--5",
        "bytes=5",
        "bytes=0x0-0x4",
        "bytes=0 -4",
        "bytes=0- 4",
        "bytes=+0-4",
        "bytes=4-2",
        "bytes=0-4-8",
        "bytes=0-4;8-9",
        "bytes =0-4",
        "items=0-4",
        "bytes=0-1,x",
        "bytes=100-,x",
        "bytes=0-1,4-2",
        "bytes=0-1, bytes=3-4",
        "bytes:0-4",
        "bytes=\u{b2}-4",
    ] {
        assert_eq!(resolve(value.as_bytes(), 26), Resolved::Whole, "{value}");
    }
}

/// RFC 9110 §15.5.17
#[test]
fn what_begins_beyond_the_end_cannot_be_satisfied() {
    for value in [
        "bytes=26-",
        "bytes=100-200",
        "bytes=100-,200-",
        "bytes=-0",
        "bytes=-0,26-",
        "bytes=9223372036854775808-",
        "bytes=18446744073709551616-18446744073709551620",
        "bytes=99999999999999999999-",
    ] {
        assert_eq!(resolve(value.as_bytes(), 26), Resolved::Unsatisfiable, "{value}");
    }
}

#[test]
fn of_nothing_there_is_no_part() {
    for value in ["bytes=0-", "bytes=-1", "bytes=-0", "bytes=0-0"] {
        assert_eq!(resolve(value.as_bytes(), 0), Resolved::Whole, "{value}");
    }
}

/// RFC 9110 §15.3.7.2
#[test]
fn several_ranges_keep_their_order() {
    for (value, expected) in [
        ("bytes=0-1,4-5", &[(0, 1), (4, 5)][..]),
        ("bytes=20-,0-0", &[(20, 25), (0, 0)]),
        ("bytes=-1, ,0-0", &[(25, 25), (0, 0)]),
        ("bytes=0-0,100-,2-2", &[(0, 0), (2, 2)]),
        ("bytes=0-0,9-9,20-20,8-10", &[(0, 0), (8, 10), (20, 20)]),
        ("bytes=9-9,0-0,20-20,0-9", &[(0, 9), (20, 20)]),
    ] {
        assert_eq!(parts(value, 26), expected, "{value}");
    }
}

/// RFC 9110 §17.15
#[test]
fn what_overlaps_or_adjoins_is_sent_once() {
    for (value, expected) in [
        ("bytes=0-,0-,0-", &[(0, 25)][..]),
        ("bytes=0-1,2-3", &[(0, 3)]),
        ("bytes=2-3,0-1", &[(0, 3)]),
        ("bytes=0-1,3-4,2-2", &[(0, 4)]),
        ("bytes=0-5,3-4,10-", &[(0, 5), (10, 25)]),
        ("bytes=0-18446744073709551615,5-", &[(0, 25)]),
    ] {
        assert_eq!(parts(value, 26), expected, "{value}");
    }
    assert_eq!(parts("bytes=0-,-1", u64::MAX), [(0, u64::MAX - 1)]);
}

#[test]
fn too_many_ranges_are_none() {
    let list = |count: u64| {
        let specs: Vec<_> = (0..count).map(|n| format!("{}-{}", 10 * n, 10 * n)).collect();
        format!("bytes={}", specs.join(","))
    };
    let most = RANGES_MAX as u64;
    assert_eq!(parts(&list(most), 1 << 20).len(), RANGES_MAX);
    assert_eq!(resolve(list(most + 1).as_bytes(), 1 << 20), Resolved::Whole);
    let killer: String = (0..1000).map(|n| format!(",5-{n}")).collect();
    assert_eq!(resolve(format!("bytes=0-{killer}").as_bytes(), 1 << 20), Resolved::Whole);
}

#[test]
fn content_ranges_are_written() {
    let written = |range, complete_bytes| {
        let mut out = Vec::new();
        ContentRange { range, complete_bytes }.write(&mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(written(Some(ByteRange { first: 0, last: 4 }), 26), "bytes 0-4/26");
    assert_eq!(written(None, u64::MAX), "bytes */18446744073709551615");
}

/// One range as a client would write it.
fn spec() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..40_u64, 0..40_u64).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (0..40_u64).prop_map(|first| format!("{first}-")),
        (0..40_u64).prop_map(|bytes| format!("-{bytes}")),
        Just(String::new()),
    ]
}

/// The bytes that a range asks for, by the letter of RFC 9110 §14.1.2.
fn model(spec: &str, complete_bytes: u64) -> BTreeSet<u64> {
    let Some((first, last)) = spec.split_once('-') else { return BTreeSet::new() };
    (0..complete_bytes)
        .filter(|&byte| match (first.parse::<u64>(), last.parse::<u64>()) {
            (Ok(first), Ok(last)) => first <= byte && byte <= last,
            (Ok(first), Err(_)) => first <= byte,
            (Err(_), Ok(suffix)) => complete_bytes - byte <= suffix,
            (Err(_), Err(_)) => false,
        })
        .collect()
}

proptest! {
    /// The parts are the bytes asked for: all of them, no others, each once, in order.
    #[test]
    fn parts_are_the_bytes_asked_for(
        specs in prop::collection::vec(spec(), 1..12),
        complete_bytes in 1..50_u64,
    ) {
        let asked: Vec<_> = specs.iter().map(|spec| model(spec, complete_bytes)).collect();
        let all: BTreeSet<u64> = asked.iter().flatten().copied().collect();
        match resolve(format!("bytes={}", specs.join(",")).as_bytes(), complete_bytes) {
            Resolved::Whole => prop_assert!(specs.iter().all(String::is_empty)),
            Resolved::Unsatisfiable => prop_assert!(all.is_empty()),
            Resolved::Parts(parts) => {
                let sent: Vec<u64> =
                    parts.as_slice().iter().flat_map(|range| range.first..=range.last).collect();
                prop_assert_eq!(sent.len() as u64, parts.as_slice().iter().map(|r| r.bytes()).sum::<u64>());
                prop_assert_eq!(sent.len(), all.len(), "each once");
                prop_assert_eq!(sent.iter().copied().collect::<BTreeSet<_>>(), all);
                for (one, other) in parts.as_slice().iter().zip(&parts.as_slice()[1..]) {
                    prop_assert!(!one.touches(*other));
                    let first_asked = |range: &ByteRange| {
                        asked.iter().position(|bytes| {
                            bytes.iter().any(|byte| (range.first..=range.last).contains(byte))
                        })
                    };
                    prop_assert!(first_asked(one) < first_asked(other), "in order");
                }
            }
        }
    }

    /// Whatever bytes come, of whatever length the file: no panic, and nothing beyond its end.
    #[test]
    fn nothing_overflows(value in "(bytes=)?([0-9]{0,21}-?[0-9]{0,21},?){0,6}", complete_bytes: u64) {
        if let Resolved::Parts(parts) = resolve(value.as_bytes(), complete_bytes) {
            prop_assert!(!parts.as_slice().is_empty());
            let mut sum = 0_u64;
            for range in parts.as_slice() {
                prop_assert!(range.first <= range.last && range.last < complete_bytes);
                sum = sum.checked_add(range.bytes()).expect("no more than the whole");
            }
            prop_assert!(sum <= complete_bytes);
        }
    }
}
