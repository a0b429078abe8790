//! Which answer a request selects: conditions, ranges, codings.

use std::fs;
use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;
use crate::http::ImfDate;

/// The fixture's files are as old as this.
const OLD: Duration = Duration::from_secs(1_704_067_200);
const OLD_DATE: &str = "Mon, 01 Jan 2024 00:00:00 GMT";

fn alphabet(bytes: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(bytes).collect()
}

impl Fixture {
    /// A small file, a large one, and an empty one, all of them old.
    fn with_letters() -> Self {
        let mut fixture = Self::new();
        for (name, bytes) in [("small", 26), ("middle", 1000), ("large", 5000), ("empty", 0)] {
            fixture.write_old(name, alphabet(bytes));
        }
        fixture.now = Now::new(LATER_S, 0);
        fixture
    }

    fn write_old(&self, path: &str, body: impl AsRef<[u8]>) {
        self.write(path, body);
        self.set_modified(path, UNIX_EPOCH + OLD);
    }

    /// GET, with field lines.
    fn ask(&mut self, target: &str, lines: &str) -> Answer {
        let request = Request { fields: FieldLines::of(lines), ..get(target) };
        self.files.reply(SITE, &request, &self.now).into()
    }

    fn range(&mut self, target: &str, range: &str) -> Answer {
        self.ask(target, &format!("Range: bytes={range}\r\n"))
    }
}

/// RFC 9110 §15.4.5
#[test]
fn a_304_has_what_identifies_the_answer_and_no_more() {
    let mut fixture = Fixture::with_letters();
    for target in ["/small", "/large", "/empty"] {
        let whole = fixture.get(target);
        let tag = whole.field("ETag").unwrap();
        for lines in [
            format!("If-None-Match: {tag}\r\n"),
            format!("If-None-Match: \"x\"\r\nIf-None-Match: W/{tag}\r\nRange: bytes=0-0\r\n"),
            "If-None-Match: *\r\n".to_owned(),
            format!("If-Modified-Since: {OLD_DATE}\r\n"),
        ] {
            let answer = fixture.ask(target, &lines);
            assert_eq!(
                answer.head,
                format!(
                    "HTTP/1.1 304 Not Modified\r\nServer: onering\r\nDate: {}\r\nETag: {tag}\r\n\r\n",
                    whole.field("Date").unwrap()
                )
            );
            assert!(answer.body.is_empty() && !answer.from_file);
        }
        let lines = format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {OLD_DATE}\r\n");
        assert_eq!(fixture.ask(target, &lines), whole);
        assert_eq!(fixture.ask(target, "If-Modified-Since: yesterday\r\n"), whole);
    }
}

#[test]
fn without_a_tag_a_304_says_when() {
    let mut fixture =
        Fixture::with(tempfile::tempdir().unwrap(), config::Cache { etag: ETag::Off, ..cache() });
    fixture.write_old("file", "x");
    let answer = fixture.ask("/file", &format!("If-Modified-Since: {OLD_DATE}\r\n"));
    assert_eq!((answer.status, answer.field("Last-Modified")), (304, Some(OLD_DATE)));
}

#[test]
fn a_304_is_made_once_and_its_date_moves_on() {
    let mut fixture = Fixture::with_letters();
    let lines = "If-None-Match: *\r\n";
    let answers = |fixture: &mut Fixture| {
        let request = Request { fields: FieldLines::of(lines), ..get("/small") };
        fixture.files.reply(SITE, &request, &fixture.now).head.as_slice().as_ptr()
    };
    let first = answers(&mut fixture);
    let held = fixture.counters().bytes;
    for _ in 0..3 {
        fixture.now.advance(fixture.now.unix_s + 1, 1);
        assert_eq!(answers(&mut fixture), first, "the same buffer");
        let answer = fixture.ask("/small", lines);
        let date = fixture.now.date;
        assert_eq!(answer.field("Date").map(str::as_bytes), Some(&date.as_bytes()[..]));
    }
    assert_eq!(fixture.counters().bytes, held);
    let request = |persistence| Request {
        persistence,
        head_only: true,
        fields: FieldLines::of(lines),
        ..get("/small")
    };
    let reply = fixture.files.reply(SITE, &request(Persistence::Close), &fixture.now);
    assert_eq!(Answer::from(reply).field("Connection"), Some("close"));
    assert!(fixture.counters().bytes > held, "another answer, and known to be held");
}

/// RFC 9110 §13.1.1, §13.1.4, §13.2.1
#[test]
fn a_412_where_the_condition_fails_and_the_answer_would_be_200() {
    let mut fixture = Fixture::with_letters();
    for (target, lines, status) in [
        ("/small", "If-Match: \"x\"\r\n", 412),
        ("/large", "If-Match: \"x\"\r\nRange: bytes=0-0\r\n", 412),
        ("/small", "If-Match: *\r\n", 200),
        ("/small", "If-Unmodified-Since: Sun, 31 Dec 2023 23:59:59 GMT\r\n", 412),
        ("/small", "If-Unmodified-Since: Mon, 01 Jan 2024 00:00:00 GMT\r\n", 200),
        ("/absent", "If-Match: *\r\n", 404),
        ("/absent", "If-None-Match: *\r\n", 404),
        ("/absent", "Range: bytes=0-4\r\n", 404),
    ] {
        assert_eq!(fixture.ask(target, lines).status, status, "{target} {lines}");
    }
}

/// Two versions within one step of the file system's clock: nobody who has the first is told that he
/// has the second, neither at once nor when the time has settled.
#[test]
fn a_rewrite_of_equal_size_in_the_same_second_gives_no_stale_304() {
    let mut fixture = Fixture::new();
    let second = UNIX_EPOCH + Duration::from_secs(real_now_s());
    fixture.now = Now::new(real_now_s(), 0);
    fixture.write("file", "A".repeat(26));
    fixture.set_modified("file", second);
    let first = fixture.get("/file");
    let tag = first.field("ETag").unwrap();
    assert_eq!(first.field("Last-Modified"), None, "it could name both");
    fixture.write("file", "B".repeat(26));
    fixture.set_modified("file", second);
    let date = ImfDate::from_unix_s(real_now_s() as i64);
    let date = std::str::from_utf8(date.as_bytes()).unwrap().to_owned();
    for later_s in [0, 10] {
        fixture.now = Now::new(fixture.now.unix_s + later_s, VALID_MS * later_s);
        for lines in [
            format!("If-None-Match: {tag}\r\n"),
            format!("If-None-Match: {}\r\n", tag.trim_start_matches("W/")),
            format!("If-Range: {tag}\r\nRange: bytes=13-\r\n"),
        ] {
            let answer = fixture.ask("/file", &lines);
            assert_eq!((answer.status, answer.body), (200, vec![b'B'; 26]), "{later_s} {lines}");
        }
    }
    let lines = format!("If-Modified-Since: {date}\r\n");
    assert_eq!(fixture.ask("/file", &lines).status, 304, "it has settled");
}

/// RFC 9110 §15.3.7
#[test]
fn one_range_is_a_part_of_the_whole() {
    let mut fixture = Fixture::with_letters();
    for (target, bytes, from_file) in [("/small", 26, false), ("/large", 5000, true)] {
        let whole = fixture.get(target);
        for (range, first, last) in
            [("0-0", 0, 0), ("20-22", 20, 22), ("3-", 3, bytes - 1), ("-5", bytes - 5, bytes - 1)]
        {
            let answer = fixture.range(target, range);
            assert_eq!((answer.status, answer.from_file), (206, from_file));
            assert_eq!(answer.body, whole.body[first..=last]);
            let content_range = format!("bytes {first}-{last}/{bytes}");
            assert_eq!(answer.field("Content-Range"), Some(&*content_range));
            assert_eq!(answer.field("Content-Length"), Some(&*(last - first + 1).to_string()));
            for name in ["ETag", "Last-Modified", "Content-Type", "Accept-Ranges", "Date"] {
                assert!(answer.field(name).is_some(), "{name}");
                assert_eq!(answer.field(name), whole.field(name));
            }
        }
        for ignored in ["x-", "", "4-2"] {
            assert_eq!(fixture.range(target, ignored), whole);
        }
        let twice = "Range: bytes=0-1\r\nRange: bytes=3-4\r\n";
        assert_eq!(fixture.ask(target, twice), whole);
    }
    assert_eq!(fixture.range("/empty", "0-").status, 200);
}

/// RFC 9110 §14.2: a range is of GET alone.
#[test]
fn head_has_no_ranges() {
    let mut fixture = Fixture::with_letters();
    let fields = FieldLines::of("Range: bytes=0-4\r\n");
    let request = Request { head_only: true, fields, ..get("/small") };
    let answer: Answer = fixture.files.reply(SITE, &request, &fixture.now).into();
    assert_eq!((answer.status, answer.field("Content-Range")), (200, None));
}

/// RFC 9110 §15.5.17
#[test]
fn what_cannot_be_satisfied_is_told_the_length() {
    let mut fixture = Fixture::with_letters();
    for (target, bytes) in [("/small", 26), ("/large", 5000)] {
        let answer = fixture.range(target, "100000-");
        assert_eq!(answer.status, 416);
        assert_eq!(answer.field("Content-Range"), Some(&*format!("bytes */{bytes}")));
        assert_eq!(answer.field("Content-Length"), Some(&*answer.body.len().to_string()));
    }
}

/// RFC 9110 §13.1.5, §15.3.7
#[test]
fn if_range_wants_the_strong_tag_or_the_very_date() {
    let mut fixture = Fixture::with_letters();
    let whole = fixture.get("/large");
    let tag = whole.field("ETag").unwrap();
    let range = "Range: bytes=1-2\r\n";
    for (validator, status) in [
        (tag, 206),
        (OLD_DATE, 206),
        (&*format!("W/{tag}"), 200),
        ("Tue, 02 Jan 2024 00:00:00 GMT", 200),
        ("\"x\"", 200),
    ] {
        let answer = fixture.ask("/large", &format!("{range}If-Range: {validator}\r\n"));
        assert_eq!(answer.status, status, "{validator}");
        if status == 206 {
            assert_eq!(answer.field("ETag"), Some(tag));
            assert_eq!(answer.field("Content-Type"), None, "he has it");
        }
    }
    assert_eq!(fixture.ask("/large", &format!("If-Range: {tag}\r\n")), whole);
}

/// The parts of a multipart body: what Content-Range says, and the bytes.
fn parts_of(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    assert_eq!(answer.field("Content-Length"), Some(&*answer.body.len().to_string()));
    assert_eq!(answer.field("Content-Range"), None);
    let content_type = answer.field("Content-Type").unwrap();
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let body = String::from_utf8(answer.body.clone()).unwrap();
    let body = format!("\r\n{body}");
    let mut pieces: Vec<_> = body.split(&format!("\r\n--{boundary}")).collect();
    assert_eq!((pieces.remove(0), pieces.pop()), ("", Some("--\r\n")));
    let part = |piece: &str| {
        let (head, bytes) = piece.split_once("\r\n\r\n").unwrap();
        let head = head.strip_prefix("\r\nContent-Type: application/octet-stream\r\n").unwrap();
        let range = head.strip_prefix("Content-Range: ").unwrap();
        (range.to_owned(), bytes.as_bytes().to_vec())
    };
    pieces.into_iter().map(part).collect()
}

/// RFC 9110 §14.6, §15.3.7.2
#[test]
fn several_ranges_are_parts_in_order() {
    let mut fixture = Fixture::with_letters();
    for (target, bytes, from_file) in [("/middle", 1000, false), ("/large", 5000, true)] {
        let letters = alphabet(bytes);
        let answer = fixture.range(target, "900-904,0-0,-1");
        assert_eq!((answer.status, answer.from_file), (206, from_file));
        let last = bytes - 1;
        assert_eq!(
            parts_of(&answer),
            [
                (format!("bytes 900-904/{bytes}"), letters[900..905].to_vec()),
                (format!("bytes 0-0/{bytes}"), letters[..1].to_vec()),
                (format!("bytes {last}-{last}/{bytes}"), letters[last..].to_vec()),
            ]
        );
        let again = fixture.range(target, "900-904,0-0,-1");
        assert_ne!(answer.field("Content-Type"), again.field("Content-Type"), "another boundary");
        assert_eq!(
            fixture.range(target, "0-1,1-5").field("Content-Range").unwrap(),
            format!("bytes 0-5/{bytes}")
        );
        let bomb: Vec<_> = (0..200).map(|n| format!("{n}-{n}")).collect();
        assert_eq!(fixture.range(target, &bomb.join(",")).status, 200);
    }
    // The text around them would be more than the whole.
    assert_eq!(fixture.range("/small", "0-1,4-5").status, 200);
}

proptest! {
    /// However the answer comes: the bytes asked for, and never more than the whole.
    #[test]
    fn parts_have_the_files_bytes(
        ranges in prop::collection::vec((0..5000_usize, 0..600_usize), 1..6),
        large: bool,
    ) {
        let mut fixture = Fixture::with_letters();
        let (target, bytes) = if large { ("/large", 5000) } else { ("/middle", 1000) };
        let letters = alphabet(bytes);
        let list: Vec<_> =
            ranges.iter().map(|(first, more)| format!("{first}-{}", first + more)).collect();
        let answer = fixture.range(target, &list.join(","));
        let slice = |range: &str| {
            let (first, last) = range.strip_prefix("bytes ").unwrap().split_once('-').unwrap();
            let last = last.split_once('/').unwrap().0;
            letters[first.parse().unwrap()..=last.parse().unwrap()].to_vec()
        };
        match (answer.status, answer.field("Content-Range")) {
            (200, _) => prop_assert_eq!(answer.body, letters),
            (206, Some(range)) => prop_assert_eq!(&answer.body, &slice(range)),
            (206, None) => {
                prop_assert!(answer.body.len() < bytes);
                for (range, part) in parts_of(&answer) {
                    prop_assert_eq!(part, slice(&range));
                }
            }
            (status, _) => {
                prop_assert_eq!(status, 416);
                prop_assert!(ranges.iter().all(|&(first, _)| first >= bytes));
            }
        }
    }
}

/// RFC 9110 §8.4, §8.8.3, §12.5.3, §12.5.5
#[test]
fn a_compressed_sibling_is_sent_to_who_accepts_it() {
    let mut fixture = Fixture::new();
    fixture.write_old("app.css", alphabet(26));
    fixture.write_old("app.css.gz", "gzipped");
    fixture.write_old("app.css.br", alphabet(2000));
    fixture.write_old("plain.css", "plain");
    let mut tags = Vec::new();
    for _ in 0..2 {
        for (accept, coding, body) in [
            ("", None, alphabet(26)),
            ("Accept-Encoding: identity\r\n", None, alphabet(26)),
            ("Accept-Encoding: zstd\r\n", None, alphabet(26)),
            ("Accept-Encoding: gzip, zstd\r\n", Some("gzip"), b"gzipped".to_vec()),
            ("Accept-Encoding: gzip, br\r\n", Some("br"), alphabet(2000)),
            ("Accept-Encoding: gzip, br;q=0.1\r\n", Some("gzip"), b"gzipped".to_vec()),
        ] {
            let answer = fixture.ask("/app.css", accept);
            assert_eq!((answer.status, answer.field("Content-Encoding")), (200, coding));
            assert!(answer.body == body, "{accept}");
            assert_eq!(answer.field("Content-Type"), Some("text/css; charset=utf-8"));
            assert_eq!(answer.field("Vary"), Some("Accept-Encoding"));
            tags.push(answer.field("ETag").unwrap().to_owned());

            let tag = tags.last().unwrap();
            let not_modified =
                fixture.ask("/app.css", &format!("{accept}If-None-Match: {tag}\r\n"));
            assert_eq!((not_modified.status, not_modified.field("ETag")), (304, Some(&**tag)));
            assert_eq!(not_modified.field("Vary"), Some("Accept-Encoding"));
        }
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 3, "each has its own");
    let counters = fixture.counters();
    assert_eq!((counters.entries, counters.misses), (3, 3));

    let plain = fixture.ask("/plain.css", "Accept-Encoding: gzip, br\r\n");
    assert_eq!((plain.status, plain.field("Vary")), (200, None));
    let direct = fixture.ask("/app.css.gz", "Accept-Encoding: gzip\r\n");
    assert_eq!(direct.field("Content-Type"), Some("application/gzip"));
    assert_eq!((direct.field("Content-Encoding"), direct.field("Vary")), (None, None));
}

/// A range of a coding is of its bytes, and several would need a coding that multipart cannot name.
#[test]
fn a_range_of_a_coding_is_of_its_bytes() {
    let mut fixture = Fixture::new();
    fixture.write_old("app.css", alphabet(26));
    fixture.write_old("app.css.gz", "gzipped".repeat(200));
    let accept = "Accept-Encoding: gzip\r\n";
    let answer = fixture.ask("/app.css", &format!("{accept}Range: bytes=2-4\r\n"));
    assert_eq!((answer.status, &*answer.body), (206, &b"ipp"[..]));
    assert_eq!(answer.field("Content-Encoding"), Some("gzip"));
    assert_eq!(answer.field("Content-Range"), Some("bytes 2-4/1400"));
    assert_eq!(answer.field("Vary"), Some("Accept-Encoding"));
    let answer = fixture.ask("/app.css", &format!("{accept}Range: bytes=2-4,9-9\r\n"));
    assert_eq!((answer.status, answer.field("Content-Encoding")), (200, Some("gzip")));
}

#[test]
fn siblings_that_come_go_and_age_are_noticed() {
    let mut fixture = Fixture::new();
    fixture.write_old("a", "plain");
    let accept = "Accept-Encoding: gzip\r\n";
    let coding = |fixture: &mut Fixture| {
        fixture.expire();
        let answer = fixture.ask("/a", accept);
        assert_eq!(answer.body == b"plain", answer.field("Content-Encoding").is_none());
        answer.field("Content-Encoding").is_some()
    };
    assert!(!coding(&mut fixture));
    fixture.write_old("a.gz", "one");
    assert!(coding(&mut fixture));
    fixture.write_old("a.gz", "other");
    assert!(coding(&mut fixture));
    assert_eq!(fixture.ask("/a", accept).body, b"other");
    // The original is newer: its compressed form was forgotten.
    fixture.set_modified("a", UNIX_EPOCH + OLD + Duration::from_secs(1));
    assert!(!coding(&mut fixture));
    fixture.set_modified("a.gz", UNIX_EPOCH + OLD + Duration::from_secs(1));
    assert!(coding(&mut fixture));
    fs::remove_file(fixture.path("a.gz")).unwrap();
    assert!(!coding(&mut fixture));
    fs::create_dir(fixture.path("a.gz")).unwrap();
    assert!(!coding(&mut fixture));
}

#[test]
fn a_sibling_outside_of_the_root_is_not_sent() {
    let mut fixture = Fixture::new();
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), "secret").unwrap();
    fixture.write_old("a", "plain");
    std::os::unix::fs::symlink(outside.path(), fixture.path("a.gz")).unwrap();
    for _ in 0..3 {
        let answer = fixture.ask("/a", "Accept-Encoding: gzip\r\n");
        assert_eq!((answer.field("Content-Encoding"), &*answer.body), (None, &b"plain"[..]));
    }
    // That it cannot be opened is kept too.
    assert_eq!((fixture.counters().entries, fixture.counters().misses), (2, 2));
}

/// Offsets and lengths beyond 32 bits, and beyond what one sendfile(2) moves.
#[test]
fn a_range_beyond_four_gibibytes_is_exact() {
    const GIB: u64 = 1 << 30;
    let mut fixture = Fixture::new();
    fixture.write("huge", "");
    let file = File::options().write(true).open(fixture.path("huge")).unwrap();
    file.set_len(5 * GIB).unwrap();
    file.write_all_at(b"here", 4 * GIB + 1).unwrap();
    fixture.set_modified("huge", UNIX_EPOCH + OLD);
    let answer = fixture.range("/huge", "4294967297-4294967300");
    assert_eq!((answer.status, &*answer.body), (206, &b"here"[..]));
    assert_eq!(answer.field("Content-Range"), Some("bytes 4294967297-4294967300/5368709120"));
    let answer = fixture.range("/huge", "4294967299-4294967300,-3");
    assert_eq!(
        parts_of(&answer),
        [
            ("bytes 4294967299-4294967300/5368709120".to_owned(), b"re".to_vec()),
            ("bytes 5368709117-5368709119/5368709120".to_owned(), vec![0; 3]),
        ]
    );
    let request = Request { head_only: true, ..get("/huge") };
    let head: Answer = fixture.files.reply(SITE, &request, &fixture.now).into();
    assert_eq!(head.field("Content-Length"), Some("5368709120"));
}

/// What takes an old entry's place may be the one that has to leave: where all others were asked for
/// too, the hand comes round to it.
#[test]
fn an_entry_that_has_outgrown_the_cache_is_served_coded_all_the_same() {
    let mut evicted_at_once = 0;
    for bytes in (500..4000).step_by(50) {
        let mut fixture =
            Fixture::with(tempfile::tempdir().unwrap(), config::Cache { bytes, ..cache() });
        fixture.write_old("page", "short");
        fixture.write_old("other", [b'x'; 500]);
        for target in ["/page", "/other", "/page", "/other"] {
            assert_eq!(fixture.status(target), 200);
        }
        fixture.write_old("page", [b'y'; 1000]);
        fixture.write_old("page.gz", "coded");
        fixture.expire();
        let answer = fixture.ask("/page", "Accept-Encoding: gzip\r\n");
        match answer.field("Content-Encoding") {
            Some(_) => assert_eq!(answer.body, b"coded"),
            None => {
                assert_eq!(answer.body, [b'y'; 1000]);
                evicted_at_once += 1;
            }
        }
    }
    assert!(evicted_at_once > 0, "none had to leave");
}
