//! The file cache against real file systems: one in memory, where there is one, and one on a disk.

mod bounds;
mod change;
mod channels;
mod names;
mod pages;
mod policies;
mod select;

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
        error_page_bytes: 1000,
        listing_entries: 100,
        etag: ETag::MtimeSize,
    }
}

fn site(root: &Path) -> config::Site {
    config::Site {
        index: vec!["index.html".into(), "index.htm".into()],
        ..config::Site::of(config::Root::Directory(root.into()))
    }
}

/// A plain request.
fn get(target: &str) -> Request<'_> {
    Request {
        target: target.as_bytes(),
        head_only: false,
        persistence: Persistence::KeepAlive,
        fields: FieldLines::NONE,
    }
}

impl Fixture {
    fn new() -> Self {
        Self::with(tempfile::tempdir().unwrap(), cache())
    }

    fn with(root: TempDir, cache: config::Cache) -> Self {
        Self::with_site(root, cache, |_| {})
    }

    /// One whose site is told something else than by default.
    fn told(tell: impl FnOnce(&mut config::Site)) -> Self {
        Self::with_site(tempfile::tempdir().unwrap(), cache(), tell)
    }

    fn with_site(
        root: TempDir,
        cache: config::Cache,
        tell: impl FnOnce(&mut config::Site),
    ) -> Self {
        let mut site = site(root.path());
        tell(&mut site);
        let files = Files::open(&[site], &cache).unwrap();
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
        self.files.reply(SITE, &get(target), &self.now)
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
            // The first text of a multipart body comes with the head.
            let multipart = head.contains("multipart/byteranges");
            assert!(body.is_empty() || multipart, "the body is in one place");
            loop {
                match rest.next(1000) {
                    Pull::File { file, offset, bytes } => {
                        let mut piece = vec![0; bytes];
                        let file = File::from(file.try_clone().unwrap());
                        file.read_exact_at(&mut piece, offset).unwrap();
                        body.extend_from_slice(&piece);
                    }
                    Pull::Bytes(text) => body.extend_from_slice(text.as_slice()),
                    Pull::Wait => panic!("files wait for nobody"),
                    Pull::End => break,
                }
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
            let request = Request { head_only: true, ..get(target) };
            let reply = fixture.files.reply(SITE, &request, &now);
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
            let request = Request { persistence, ..get("/small") };
            let answer: Answer = fixture.files.reply(SITE, &request, &now).into();
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
fn the_welcome_site_is_one_page() {
    let welcome = config::Site::of(config::Root::Welcome);
    let mut files = Files::open(&[welcome], &cache()).unwrap();
    let mut get =
        |target: &str, now: Now| -> Answer { files.reply(SITE, &get(target), &now).into() };
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
        SITE,
        Status::METHOD_NOT_ALLOWED,
        Persistence::Close,
        false,
        &Now::new(LATER_S, 0),
    );
    let answer = Answer::from(reply);
    assert_eq!(answer.field("Allow"), Some("GET, HEAD, OPTIONS"));
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
            let site = files.site(Some(host.as_bytes()), Channel::Plain);
            let reply = files.reply(site, &get("/file"), &now);
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
