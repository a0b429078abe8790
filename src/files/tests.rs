//! The file cache against real file systems: one in memory, where there is one, and one on a disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::stat::Mode;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::config::ETag;
use crate::http::{Body as _, Pull};

/// When no file of a test can have been touched a moment ago.
const LATER_S: u64 = 4_000_000_000;
const VALID_MS: u64 = 1000;
const SITE: SiteId = SiteId(0);

struct Fixture {
    root: TempDir,
    files: Files,
    now: Now,
}

/// What was answered, with the body wherever it came from.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
    from_file: bool,
}

fn cache() -> config::Cache {
    config::Cache {
        entries: 1000,
        bytes: 1 << 20,
        descriptors: 100,
        valid: Duration::from_millis(VALID_MS),
        inline_bytes: 1024,
        etag: ETag::MtimeSize,
    }
}

fn site(root: &Path) -> config::Site {
    config::Site {
        names: Vec::new(),
        root: config::Root::Directory(root.into()),
        index: vec!["index.html".into(), "index.htm".into()],
    }
}

impl Fixture {
    fn new() -> Self {
        Self::with(tempfile::tempdir().unwrap(), cache())
    }

    fn with(root: TempDir, cache: config::Cache) -> Self {
        let files = Files::open(&[site(root.path())], &cache).unwrap();
        Self { root, files, now: Now::new(LATER_S, 0) }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, body: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), body).unwrap();
    }

    fn set_modified(&self, path: &str, time: SystemTime) {
        let file = File::options().write(true).open(self.path(path)).unwrap();
        file.set_modified(time).unwrap();
    }

    fn reply(&mut self, target: &str) -> Reply {
        self.files.reply(SITE, target.as_bytes(), false, Persistence::KeepAlive, &self.now)
    }

    fn get(&mut self, target: &str) -> Answer {
        self.reply(target).into()
    }

    fn status(&mut self, target: &str) -> u16 {
        self.get(target).status
    }

    fn body(&mut self, target: &str) -> String {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}");
        String::from_utf8(answer.body).unwrap()
    }

    /// Lets the time of all entries run out.
    fn expire(&mut self) {
        self.now.advance(self.now.unix_s + 1, self.now.monotonic_ms + VALID_MS);
    }

    fn counters(&self) -> Counters {
        self.files.counters()
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        let bytes = reply.head.as_slice();
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut body = bytes[end..].to_vec();
        let from_file = reply.body.is_some();
        if let Some(mut rest) = reply.body {
            assert!(body.is_empty(), "the body is in one place");
            while let Pull::File { file, offset, bytes } = rest.next(1000) {
                let mut piece = vec![0; bytes];
                let file = File::from(file.try_clone().unwrap());
                file.read_exact_at(&mut piece, offset).unwrap();
                body.extend_from_slice(&piece);
            }
        }
        let answer = Self { status: reply.status.code(), head, body, from_file };
        assert!(answer.head.starts_with(&format!("HTTP/1.1 {} ", answer.status)));
        answer
    }
}

impl Answer {
    fn field(&self, name: &str) -> Option<&str> {
        let name = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&name))
    }
}

/// A directory on each kind of file system there is.
fn places() -> Vec<TempDir> {
    ["/dev/shm", "."].iter().filter_map(|place| TempDir::new_in(place).ok()).collect()
}

fn real_now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn small_files_are_inline_and_large_ones_are_not() {
    for place in places() {
        let mut fixture = Fixture::with(place, cache());
        for (name, bytes, from_file) in [("s", 1024, false), ("l", 1025, true), ("e", 0, false)] {
            let body = vec![b'x'; bytes];
            fixture.write(name, &body);
            for _ in 0..2 {
                let answer = fixture.get(&format!("/{name}"));
                assert_eq!((answer.status, answer.from_file), (200, from_file), "{name}");
                assert_eq!(answer.field("Content-Length"), Some(&*bytes.to_string()));
                assert!(answer.body == body, "{name}");
            }
        }
        let Counters { hits, misses, entries, descriptors, .. } = fixture.counters();
        assert_eq!((hits, misses, entries, descriptors), (3, 3, 3, 1));
    }
}

#[test]
fn a_head_says_what_the_body_is() {
    let mut fixture = Fixture::new();
    fixture.write("page.html", "<p>");
    let modified = UNIX_EPOCH + Duration::from_nanos(784_111_777_000_000_001);
    fixture.set_modified("page.html", modified);
    let answer = fixture.get("/page.html");
    assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.field("Last-Modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    assert_eq!(answer.field("ETag"), Some("\"ae1b981bc490a01-3\""));
    let date = fixture.now.date;
    assert_eq!(answer.field("Date").map(str::as_bytes), Some(&date.as_bytes()[..]));
}

#[test]
fn a_modification_in_the_future_is_told_as_now() {
    let mut fixture = Fixture::new();
    fixture.write("file", "x");
    fixture.now = Now::new(1_000_000_000, 0);
    let answer = fixture.get("/file");
    assert_eq!(answer.field("Last-Modified"), answer.field("Date"));
}

#[test]
fn head_gets_the_head_alone() {
    let mut fixture = Fixture::new();
    fixture.write("small", "body");
    fixture.write("large", [0; 2000]);
    for target in ["/small", "/large", "/absent"] {
        for _ in 0..2 {
            let now = fixture.now;
            let reply =
                fixture.files.reply(SITE, target.as_bytes(), true, Persistence::KeepAlive, &now);
            let head = Answer::from(reply);
            let get = fixture.get(target);
            assert_eq!(head, Answer { body: Vec::new(), from_file: false, ..get });
        }
    }
}

#[test]
fn every_persistence_is_said_and_has_the_body() {
    let mut fixture = Fixture::new();
    fixture.write("small", "body");
    let now = fixture.now;
    for _ in 0..2 {
        for (persistence, said) in [
            (Persistence::KeepAlive, None),
            (Persistence::KeepAliveExplicit, Some("keep-alive")),
            (Persistence::Close, Some("close")),
        ] {
            let answer: Answer =
                fixture.files.reply(SITE, b"/small", false, persistence, &now).into();
            assert_eq!((answer.field("Connection"), &*answer.body), (said, &b"body"[..]));
        }
    }
    // What was made later is held too, and known to be.
    let held = fixture.counters().bytes;
    assert!(held > 3 * 100, "{held}");
    fixture.write("small", "other");
    fixture.expire();
    assert_eq!(fixture.body("/small"), "other");
    assert!(fixture.counters().bytes < held, "one answer instead of three");
}

#[test]
fn a_query_does_not_select_a_file() {
    let mut fixture = Fixture::new();
    fixture.write("file", "x");
    for target in ["/file", "/file?", "/file?a", "/file?b/../c"] {
        assert_eq!(fixture.body(target), "x");
    }
    assert_eq!((fixture.counters().entries, fixture.counters().hits), (1, 3));
}

#[test]
fn directories_have_an_index_or_are_forbidden() {
    let mut fixture = Fixture::new();
    fixture.write("index.html", "root");
    fixture.write("both/index.html", "first");
    fixture.write("both/index.htm", "second");
    fixture.write("second/index.htm", "second");
    fixture.write("odd/index.html/below", "");
    fixture.write("odd/index.htm", "second");
    fs::create_dir(fixture.path("empty")).unwrap();
    assert_eq!(fixture.body("/"), "root");
    assert_eq!(fixture.body("/both/"), "first");
    assert_eq!(fixture.body("/second/"), "second");
    assert_eq!(fixture.body("/odd/"), "second");
    assert_eq!(fixture.status("/empty/"), 403);
    assert_eq!(fixture.status("/absent/"), 404);
    assert_eq!(fixture.status("/index.html/"), 404);
    assert_eq!(fixture.status("/index.html/below"), 404);
    fs::remove_file(fixture.path("index.html")).unwrap();
    fixture.expire();
    assert_eq!(fixture.status("/"), 403);
}

#[test]
fn a_preferred_index_that_appears_later_wins() {
    let mut fixture = Fixture::new();
    fixture.write("index.htm", "second");
    assert_eq!(fixture.body("/"), "second");
    fixture.expire();
    assert_eq!(fixture.body("/"), "second");
    fixture.write("index.html", "first");
    fixture.expire();
    assert_eq!(fixture.body("/"), "first");
}

#[test]
fn a_directory_without_its_slash_is_redirected() {
    let mut fixture = Fixture::new();
    fs::create_dir_all(fixture.path("a dir/sub")).unwrap();
    for (target, place) in [
        ("/a%20dir", "/a%20dir/"),
        ("/a%20dir/sub", "/a%20dir/sub/"),
        ("//a%20dir//sub", "/a%20dir/sub/"),
        ("/a%20dir?q=%20/", "/a%20dir/?q=%20/"),
        ("/a%20dir?q=%20/", "/a%20dir/?q=%20/"),
        ("/a%20dir", "/a%20dir/"),
    ] {
        let answer = fixture.get(target);
        assert_eq!((answer.status, answer.field("Location")), (301, Some(place)), "{target}");
        assert_eq!(answer.field("Content-Length"), Some(&*answer.body.len().to_string()));
    }
    assert_eq!(fixture.counters().entries, 3);
}

#[test]
fn odd_names_are_names() {
    let mut fixture = Fixture::new();
    let long = "n".repeat(255);
    for (name, target) in [
        ("a b", "/a%20b"),
        ("50%", "/50%25"),
        ("ü", "/%C3%BC"),
        ("back\\slash", "/back\\slash"),
        ("new\nline", "/new%0Aline"),
        ("?", "/%3F"),
        ("..x", "/x/../no/../%2e.x"),
        (&long, &*format!("/{long}")),
    ] {
        fixture.write(name, name);
        // Of all these only one is hidden.
        if name == "..x" {
            assert_eq!(fixture.status(target), 404);
        } else {
            assert_eq!(fixture.body(target), name);
        }
    }
    let beyond = format!("/{}", "n".repeat(256));
    let deep = format!("/{}", "d/".repeat(3000));
    for target in [&beyond, &deep, "/a%2Fb"] {
        assert_eq!(fixture.status(target), 404, "{target}");
    }
    for target in ["/%00", "/..", "/%zz", "/a#b", "a"] {
        assert_eq!(fixture.status(target), 400, "{target}");
    }
    assert_eq!(fixture.counters().bad_targets, 6);
}

#[test]
fn hidden_files_are_not_found() {
    let mut fixture = Fixture::new();
    for path in [".git/config", "a/.htpasswd", ".well-known/token", ".well-known/.x"] {
        fixture.write(path, "x");
    }
    for target in ["/.git/config", "/.git", "/.git/", "/a/.htpasswd", "/.well-known/.x", "/%2egit"]
    {
        assert_eq!(fixture.status(target), 404, "{target}");
    }
    assert_eq!(fixture.body("/.well-known/token"), "x");
}

#[test]
fn links_out_of_the_root_are_not_found() {
    let mut fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fixture.write("inside/file", "x");
    for (target, link) in [
        (outside.path().join("secret"), "absolute"),
        (outside.path().into(), "directory"),
        ("../inside/file".into(), "upwards"),
        ("circle".into(), "circle"),
        ("inside/file".into(), "good"),
        ("inside".into(), "good_directory"),
    ] {
        symlink(target, fixture.path(link)).unwrap();
    }
    for target in
        ["/absolute", "/directory", "/directory/", "/directory/secret", "/upwards", "/circle"]
    {
        assert_eq!(fixture.status(target), 404, "{target}");
    }
    assert_eq!(fixture.body("/good"), "x");
    assert_eq!(fixture.body("/good_directory/file"), "x");
}

/// A link that is turned outwards after its target was cached.
#[test]
fn a_link_turned_outwards_is_found_out() {
    let mut fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fixture.write("file", "public");
    symlink("file", fixture.path("link")).unwrap();
    assert_eq!(fixture.body("/link"), "public");
    fs::remove_file(fixture.path("link")).unwrap();
    symlink(outside.path().join("secret"), fixture.path("link")).unwrap();
    fixture.expire();
    assert_eq!(fixture.status("/link"), 404);
}

#[test]
fn what_is_no_file_is_not_found_and_not_waited_for() {
    let mut fixture = Fixture::new();
    nix::unistd::mkfifo(&fixture.path("fifo"), Mode::S_IRUSR).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(fixture.path("socket")).unwrap();
    assert_eq!(fixture.status("/fifo"), 404);
    assert_eq!(fixture.status("/socket"), 404);
    assert_eq!(fixture.counters().descriptors, 0);
}

/// The file system checks permissions by the thread's own user, so only this thread gives up root.
#[test]
fn what_may_not_be_read_is_forbidden() {
    std::thread::spawn(|| {
        let mut fixture = Fixture::new();
        fixture.write("file", "x");
        fixture.write("closed/file", "x");
        fixture.write("unlisted/index.html", "x");
        let mode = |path, mode| {
            fs::set_permissions(fixture.path(path), PermissionsExt::from_mode(mode)).unwrap();
        };
        mode("", 0o755);
        mode("file", 0o000);
        mode("closed", 0o000);
        mode("unlisted", 0o311);
        nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
        for target in ["/file", "/closed/file", "/closed/", "/closed/absent"] {
            assert_eq!(fixture.status(target), 403, "{target}");
        }
        assert_eq!(fixture.body("/unlisted/"), "x");
        assert_eq!(fixture.status("/unlisted"), 301);
        nix::unistd::setfsuid(nix::unistd::getuid());
        fs::set_permissions(fixture.path("closed"), PermissionsExt::from_mode(0o755)).unwrap();
        fixture.expire();
        assert_eq!(fixture.body("/closed/file"), "x");
    })
    .join()
    .unwrap();
}

#[test]
fn entries_are_looked_at_when_their_time_is_up() {
    for place in places() {
        let mut fixture = Fixture::with(place, cache());
        fixture.write("small", "old");
        fixture.write("large", [b'o'; 2000]);
        for target in ["/small", "/large", "/absent"] {
            fixture.get(target);
        }
        fixture.write("small", "new");
        fixture.write("large", [b'n'; 3000]);
        fixture.write("absent", "here");
        fixture.now.advance(LATER_S, VALID_MS - 1);
        assert_eq!(fixture.body("/small"), "old");
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
    assert_eq!(weak, format!("W/{strong}"));
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
        let name = "files::tests::a_want_of_descriptors_is_met_from_the_cache";
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

#[test]
fn the_welcome_site_is_one_page() {
    let welcome =
        config::Site { names: Vec::new(), root: config::Root::Welcome, index: Vec::new() };
    let mut files = Files::open(&[welcome], &cache()).unwrap();
    let mut get = |target: &str, now: Now| -> Answer {
        files.reply(SITE, target.as_bytes(), false, Persistence::KeepAlive, &now).into()
    };
    let first = get("/", Now::new(LATER_S, 0));
    assert_eq!((first.status, &*first.body), (200, welcome::PAGE));
    assert_eq!(first.field("Content-Type"), Some("text/html; charset=utf-8"));
    let much_later = get("/index.html", Now::new(LATER_S, u64::MAX - 1));
    assert_eq!(much_later, first, "the tag is the same too");
    assert_eq!(get("/other", Now::new(LATER_S, 0)).status, 404);
    assert_eq!(get("/", Now::new(LATER_S, u64::MAX - 1)), first);
    assert_eq!(files.counters().revalidations, 0);
}

#[test]
fn refusals_have_a_page() {
    let mut fixture = Fixture::new();
    let reply = fixture.files.status(
        Status::METHOD_NOT_ALLOWED,
        Persistence::Close,
        false,
        &Now::new(LATER_S, 0),
    );
    let answer = Answer::from(reply);
    assert_eq!(answer.field("Allow"), Some("GET, HEAD"));
    assert_eq!(answer.field("Connection"), Some("close"));
}

#[test]
fn sites_are_told_apart() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(first.path().join("file"), "first").unwrap();
    fs::write(second.path().join("file"), "second").unwrap();
    let named = config::Site { names: vec!["b.example".into()], ..site(second.path()) };
    let mut files = Files::open(&[site(first.path()), named], &cache()).unwrap();
    let now = Now::new(LATER_S, 0);
    for _ in 0..2 {
        for (host, body) in [("a.example", "first"), ("B.example:80", "second")] {
            let site = files.site(Some(host.as_bytes()));
            let reply = files.reply(site, b"/file", false, Persistence::KeepAlive, &now);
            assert_eq!(Answer::from(reply).body, body.as_bytes());
        }
    }
}

#[test]
fn a_root_that_cannot_be_opened_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for name in ["absent", "file"] {
        let error = Files::open(&[site(&dir.path().join(name))], &cache()).unwrap_err();
        assert!(matches!(error, OpenError::NotFound { .. }));
        assert!(error.to_string().contains(name) && error.to_string().contains("create it"));
    }
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
