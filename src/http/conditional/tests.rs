//! Conditions by the section that judges them, then their order against a table.

use proptest::prelude::*;

use super::*;
use crate::http::ImfDate;

const NOW_S: u64 = 1_780_000_000;
const MODIFIED_S: u64 = 784_111_777;
const STRONG: Validators<'static> = Validators {
    etag: Some(b"\"a,b\""),
    modified: Some(Modified { unix_s: MODIFIED_S, strong: true }),
};
const WEAK: Validators<'static> = Validators {
    etag: Some(b"W/\"a,b\""),
    modified: Some(Modified { unix_s: MODIFIED_S, strong: false }),
};
const NONE: Validators<'static> = Validators { etag: None, modified: None };

const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn verdict(lines: &str, current: &Validators<'_>) -> Verdict {
    evaluate(&FieldLines::of(lines), current, NOW_S)
}

/// Whether the lists match the tag, strongly and weakly.
fn matches(list: &str, current: &Validators<'_>) -> (bool, bool) {
    let strongly = verdict(&format!("If-Match: {list}\r\n"), current) == Verdict::Perform;
    let weakly = verdict(&format!("If-None-Match: {list}\r\n"), current) == Verdict::NotModified;
    (strongly, weakly)
}

/// RFC 9110 §8.8.3, §8.8.3.2, §13.1.1, §13.1.2
#[test]
fn lists_of_entity_tags() {
    for (list, against_strong, against_weak) in [
        ("\"a,b\"", (true, true), (false, true)),
        ("W/\"a,b\"", (false, true), (false, true)),
        ("*", (true, true), (true, true)),
        ("\"x\", \"a,b\"", (true, true), (false, true)),
        ("\"x\",\"a,b\",\"y\"", (true, true), (false, true)),
        (", ,\"x\" ,\t\"a,b\",", (true, true), (false, true)),
        ("\"x,\", W/\"y\", W/\"a,b\"", (false, true), (false, true)),
        ("\"\", \"a,b\"", (true, true), (false, true)),
        ("\"\u{e9}\", \"a,b\"", (true, true), (false, true)),
        // None of these is the tag.
        ("\"x\"", (false, false), (false, false)),
        ("\"a,bx\"", (false, false), (false, false)),
        ("\"xa,b\"", (false, false), (false, false)),
        ("\"a\", \"b\"", (false, false), (false, false)),
        ("\"A,B\"", (false, false), (false, false)),
        ("a,b", (false, false), (false, false)),
        ("w/\"a,b\"", (false, false), (false, false)),
        ("W/ \"a,b\"", (false, false), (false, false)),
        ("\"a,b", (false, false), (false, false)),
        ("\"x a,b\"", (false, false), (false, false)),
        ("", (false, false), (false, false)),
        ("**", (false, false), (false, false)),
        // What follows something malformed is not believed.
        ("x, \"a,b\"", (false, false), (false, false)),
        ("\"x, \"a,b\"", (false, false), (false, false)),
        ("\"x\" \"a,b\"", (false, false), (false, false)),
        ("*, \"a,b\"", (false, false), (false, false)),
    ] {
        assert_eq!(matches(list, &STRONG), against_strong, "{list} and a strong tag");
        assert_eq!(matches(list, &WEAK), against_weak, "{list} and a weak tag");
    }
    assert_eq!(matches("*", &NONE), (true, true));
    assert_eq!(matches("\"a,b\"", &NONE), (false, false));
}

/// RFC 9110 §5.3
#[test]
fn several_lines_are_one_list() {
    let lines = "If-None-Match: \"x\"\r\nAccept: */*\r\nif-none-match: \"a,b\"\r\n";
    assert_eq!(verdict(lines, &STRONG), Verdict::NotModified);
    let lines = "If-Match: \"x\"\r\nIf-Match: \"y\"\r\n";
    assert_eq!(verdict(lines, &STRONG), Verdict::Failed);
}

/// RFC 9110 §13.1.3, §13.1.4
#[test]
fn dates() {
    for (date, since, unmodified) in [
        (EARLIER, Verdict::Perform, Verdict::Failed),
        (SAME, Verdict::NotModified, Verdict::Perform),
        (LATER, Verdict::NotModified, Verdict::Perform),
        ("Sunday, 06-Nov-94 08:49:36 GMT", Verdict::Perform, Verdict::Failed),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Verdict::NotModified, Verdict::Perform),
        ("Sun Nov  6 08:49:37 1994", Verdict::NotModified, Verdict::Perform),
        ("Sun, 06 Nov 1904 08:49:37 GMT", Verdict::Perform, Verdict::Failed),
        ("yesterday", Verdict::Perform, Verdict::Perform),
        ("Mon, 32 Jan 2024 00:00:00 GMT", Verdict::Perform, Verdict::Perform),
        ("", Verdict::Perform, Verdict::Perform),
        ("*", Verdict::Perform, Verdict::Perform),
    ] {
        let lines = format!("If-Modified-Since: {date}\r\n");
        assert_eq!(verdict(&lines, &STRONG), since, "{lines}");
        assert_eq!(verdict(&lines, &NONE), Verdict::Perform, "there is nothing to compare with");
        assert_eq!(verdict(&lines, &WEAK), Verdict::Perform, "it may name two versions");
        let lines = format!("If-Unmodified-Since: {date}\r\n");
        assert_eq!(verdict(&lines, &STRONG), unmodified, "{lines}");
        assert_eq!(verdict(&lines, &WEAK), unmodified, "{lines}");
        assert_eq!(verdict(&lines, &NONE), Verdict::Perform, "there is nothing to compare with");
    }
    let twice = format!("If-Modified-Since: {SAME}\r\n").repeat(2);
    assert_eq!(verdict(&twice, &STRONG), Verdict::Perform, "more than one member");
}

/// RFC 9110 §13.1.5
#[test]
fn if_range_wants_exactly_the_same() {
    let applies = |value: &str, current| {
        range_applies(&FieldLines::of(&format!("If-Range: {value}\r\n")), current, NOW_S)
    };
    for (value, expected) in [
        ("\"a,b\"", true),
        (SAME, true),
        ("Sunday, 06-Nov-94 08:49:37 GMT", true),
        ("W/\"a,b\"", false),
        ("\"x\"", false),
        ("\"a,b\", \"x\"", false),
        ("\"a,b", false),
        ("*", false),
        (EARLIER, false),
        (LATER, false),
        ("what", false),
        ("", false),
    ] {
        assert_eq!(applies(value, &STRONG), expected, "{value}");
        assert!(!applies(value, &WEAK) && !applies(value, &NONE), "{value}");
    }
    assert!(range_applies(&FieldLines::NONE, &NONE, NOW_S), "without If-Range it does");
    let twice = FieldLines::of("If-Range: \"a,b\"\r\nIf-Range: \"a,b\"\r\n");
    assert!(!range_applies(&twice, &STRONG, NOW_S));
}

/// How one field stands to the current representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Absent,
    Invalid,
    Fits,
    Differs,
}

/// RFC 9110 §13.2.2, transcribed step by step.
fn steps(im: Says, ius: Says, inm: Says, ims: Says) -> Verdict {
    use Says::{Absent, Differs, Fits, Invalid};
    match (im, ius) {
        (Fits, _) | (Absent, Absent | Invalid | Fits) => match (inm, ims) {
            (Fits, _) => Verdict::NotModified,
            (Differs | Invalid, _) => Verdict::Perform,
            (Absent, Fits) => Verdict::NotModified,
            (Absent, Absent | Invalid | Differs) => Verdict::Perform,
        },
        (Differs | Invalid, _) | (Absent, Differs) => Verdict::Failed,
    }
}

#[test]
fn the_order_is_that_of_the_table() {
    use Says::{Absent, Differs, Fits, Invalid};
    let all = [Absent, Invalid, Fits, Differs];
    let line = |name: &str, says, fits: &str, differs: &str| match says {
        Absent => String::new(),
        Invalid => format!("{name}: ?\r\n"),
        Fits => format!("{name}: {fits}\r\n"),
        Differs => format!("{name}: {differs}\r\n"),
    };
    for im in all {
        for ius in all {
            for inm in all {
                for ims in all {
                    let lines = [
                        line("If-Modified-Since", ims, SAME, EARLIER),
                        line("If-None-Match", inm, "\"a,b\"", "\"x\""),
                        line("If-Unmodified-Since", ius, SAME, EARLIER),
                        line("If-Match", im, "\"a,b\"", "\"x\""),
                    ]
                    .concat();
                    assert_eq!(verdict(&lines, &STRONG), steps(im, ius, inm, ims), "{lines}");
                }
            }
        }
    }
}

proptest! {
    /// A tag is found wherever it stands among others, and only if it is there.
    #[test]
    fn a_tag_is_found_in_any_list(
        tags in prop::collection::vec("(W/)?\"[!#-~]{0,6}\"", 0..8),
        separators in prop::collection::vec("[ \t]{0,2},[ \t,]{0,3}", 8),
        sought in "\"[!#-~]{0,2}\"",
    ) {
        let list: String =
            tags.iter().zip(&separators).flat_map(|(tag, separator)| [&**tag, separator]).collect();
        let read: Vec<_> = EntityTags(list.as_bytes()).collect();
        prop_assert_eq!(&read, &tags.iter().map(|tag| tag.as_bytes()).collect::<Vec<_>>());
        let current = Validators { etag: Some(sought.as_bytes()), modified: None };
        let there = tags.iter().any(|tag| tag.trim_start_matches("W/") == sought);
        prop_assert_eq!(matches(&list, &current).1, there);
    }

    /// Whatever bytes come: no panic; and dates are ordered as times are.
    #[test]
    fn any_bytes_are_judged(list in "[\"W/a*, \t\u{e9}]{0,20}", unix_s in 0..4_000_000_000_u64) {
        matches(&list, &STRONG);
        let date = ImfDate::from_unix_s(unix_s as i64);
        let date = std::str::from_utf8(date.as_bytes()).expect("ASCII");
        let since = verdict(&format!("If-Modified-Since: {date}\r\n"), &STRONG);
        prop_assert_eq!(since == Verdict::NotModified, unix_s >= MODIFIED_S);
        let unmodified = verdict(&format!("If-Unmodified-Since: {date}\r\n"), &STRONG);
        prop_assert_eq!(unmodified == Verdict::Perform, unix_s >= MODIFIED_S);
    }
}
