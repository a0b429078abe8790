//! What the configuration says about files: header rules, charset, permission bits, links, dotfiles.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::time::UNIX_EPOCH;

use globset::{Glob, GlobBuilder};

use super::*;
use crate::config::{Answers, Dotfiles, HeaderRule, Modes, Symlinks};

const OLD: Duration = Duration::from_secs(1_704_067_200);

fn glob(pattern: &str) -> Glob {
    GlobBuilder::new(pattern).literal_separator(true).build().unwrap()
}

fn rule(answers: Answers, name: &str, value: &str) -> HeaderRule {
    HeaderRule { answers, set: vec![(name.into(), value.into())] }
}

fn matching(pattern: &str, name: &str, value: &str) -> HeaderRule {
    rule(Answers::Files(glob(pattern)), name, value)
}

impl Fixture {
    fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn ask_for(&mut self, target: &str, lines: &str) -> Answer {
        let request = Request { fields: FieldLines::of(lines), ..get(target) };
        self.files.reply(SITE, &request, &self.now).into()
    }
}

#[test]
fn rules_are_for_the_file_that_is_served() {
    let mut fixture = Fixture::told(|site| {
        site.headers = vec![
            matching("**/*.html", "Cache-Control", "no-cache"),
            matching("a/**", "Cache-Control", "max-age=60"),
            matching("**/*.css", "cache-control", "immutable"),
        ];
    });
    fixture.write("index.html", "index");
    fixture.write("a/index.html", "index");
    fixture.write("main.css", "css");
    fixture.write("main.css.gz", "gz");
    fixture.write("plain", "plain");
    for (target, value) in [
        ("/", Some("no-cache")),
        ("/index.html", Some("no-cache")),
        ("/a/", Some("max-age=60")),
        ("/a/../index.html", Some("no-cache")),
        ("/plain", None),
        ("/absent.html", None),
        ("/a", None),
    ] {
        for _ in 0..2 {
            assert_eq!(fixture.get(target).field("Cache-Control"), value, "{target}");
        }
    }
    let coded = fixture.ask_for("/main.css", "Accept-Encoding: gzip\r\n");
    assert_eq!(coded.field("Content-Encoding"), Some("gzip"));
    assert_eq!(coded.field("cache-control"), Some("immutable"), "it is the original's");
}

/// RFC 9110 §15.4.5, §15.3.7
#[test]
fn a_304_and_a_206_have_what_the_200_has() {
    let mut fixture = Fixture::told(|site| {
        site.headers = vec![
            matching("**/*", "Cache-Control", "max-age=60"),
            matching("**/*", "Expires", "0"),
            matching("**/*", "Vary", "Origin"),
            matching("**/*", "Content-Location", "/x"),
            matching("**/*", "Content-Language", "de"),
        ];
    });
    for (name, bytes) in [("small", 26), ("large", 5000)] {
        fixture.write(name, vec![b'x'; bytes]);
        fixture.write(&format!("{name}.gz"), "coded");
        fixture.set_modified(name, UNIX_EPOCH + OLD);
        let target = format!("/{name}");
        let whole = fixture.get(&target);
        assert_eq!(whole.field("Vary"), Some("Accept-Encoding, Origin"));
        let not_modified = fixture.ask_for(&target, "If-None-Match: *\r\n");
        let part = fixture.ask_for(&target, "Range: bytes=0-1\r\n");
        let tag = whole.field("ETag").unwrap();
        let rest = fixture.ask_for(&target, &format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n"));
        assert_eq!([not_modified.status, part.status, rest.status], [304, 206, 206]);
        for field in ["Cache-Control", "Expires", "Vary", "Content-Location", "ETag"] {
            for answer in [&not_modified, &part, &rest] {
                assert!(answer.field(field).is_some());
                assert_eq!(answer.field(field), whole.field(field), "{field}");
            }
        }
        assert_eq!(part.field("Content-Language"), Some("de"));
        assert_eq!(not_modified.field("Content-Language"), None);
        assert_eq!(rest.field("Content-Language"), None);
        let failed = fixture.ask_for(&target, "If-Match: \"x\"\r\n");
        assert_eq!((failed.status, failed.field("Cache-Control")), (412, None));
        assert_eq!(failed.field("Vary"), whole.field("Vary"));
        let beyond = fixture.ask_for(&target, "Range: bytes=9000-\r\n");
        assert_eq!((beyond.status, beyond.field("Vary")), (416, whole.field("Vary")));
    }
}

#[test]
fn what_is_said_always_is_said_of_everything() {
    let mut fixture = Fixture::told(|site| {
        site.headers = vec![rule(Answers::All, "X-Always", "yes")];
        site.listing = true;
    });
    fixture.write("file", "x");
    fixture.write("directory/file", "x");
    for (target, lines, status) in [
        ("/file", "", 200),
        ("/file", "If-None-Match: *\r\n", 304),
        ("/file", "If-Match: \"x\"\r\n", 412),
        ("/file", "Range: bytes=0-0\r\n", 206),
        ("/file", "Range: bytes=9-\r\n", 416),
        ("/directory", "", 301),
        ("/directory?query", "", 301),
        ("/directory/", "", 200),
        ("/absent", "", 404),
        ("/%zz", "", 400),
    ] {
        let answer = fixture.ask_for(target, lines);
        assert_eq!((answer.status, answer.field("X-Always")), (status, Some("yes")), "{target}");
    }
    for status in [Status::NO_CONTENT, Status::NOT_IMPLEMENTED] {
        let reply = fixture.files.status(SITE, status, Persistence::KeepAlive, false, &fixture.now);
        assert_eq!(Answer::from(reply).field("X-Always"), Some("yes"));
    }
}

#[test]
fn a_rule_may_give_a_type() {
    let mut fixture = Fixture::told(|site| {
        site.headers = vec![matching("**/*.pck", "Content-Type", "application/x-pack")];
    });
    fixture.write("a.pck", "x");
    assert_eq!(fixture.get("/a.pck").field("Content-Type"), Some("application/x-pack"));
}

#[test]
fn texts_have_the_charset_of_the_site() {
    for (charset, text, json) in [
        (Some("utf-8"), "text/plain; charset=utf-8", "application/json"),
        (Some("koi8-r"), "text/plain; charset=koi8-r", "application/json"),
        (None, "text/plain", "application/json"),
    ] {
        let mut fixture = Fixture::told(|site| site.charset = charset.map(str::to_owned));
        fixture.write("a.txt", "x");
        fixture.write("a.json", "x");
        assert_eq!(fixture.get("/a.txt").field("Content-Type"), Some(text));
        assert_eq!(fixture.get("/a.json").field("Content-Type"), Some(json));
    }
}

/// As TUX had it: none of the one, one of the other.
#[test]
fn files_are_filtered_by_their_permission_bits() {
    let modes =
        |allowed, forbidden| Fixture::told(|site| site.modes = Modes { allowed, forbidden });
    for (mut fixture, mode, status) in [
        (modes(None, 0), 0o600, 200),
        (modes(None, 0), 0o4777, 200),
        (modes(Some(0o004), 0), 0o644, 200),
        (modes(Some(0o004), 0), 0o640, 403),
        (modes(Some(0o044), 0), 0o640, 200),
        (modes(None, 0o002), 0o666, 403),
        (modes(None, 0o002), 0o664, 200),
        (modes(None, 0o111), 0o755, 403),
        (modes(Some(0o377), 0o002), 0o644, 200),
        (modes(None, 0o7000), 0o2644, 403),
    ] {
        for path in ["file", "directory/index.html"] {
            fixture.write(path, "x");
            fixture.chmod(path, mode);
        }
        for target in ["/file", "/directory/"] {
            assert_eq!(fixture.status(target), status, "{target} {mode:o}");
        }
        assert_eq!(fixture.status("/directory"), 301, "it is of files");
    }
}

#[test]
fn a_file_whose_bits_change_is_refused_when_it_is_looked_at() {
    let mut fixture = Fixture::told(|site| site.modes.forbidden = 0o002);
    for (name, bytes) in [("small", 10), ("large", 5000)] {
        let target = format!("/{name}");
        fixture.write(name, vec![b'x'; bytes]);
        fixture.chmod(name, 0o644);
        assert_eq!(fixture.status(&target), 200);
        fixture.chmod(name, 0o646);
        fixture.expire();
        assert_eq!(fixture.status(&target), 403);
        fixture.chmod(name, 0o644);
        fixture.expire();
        assert_eq!(fixture.status(&target), 200);
    }
}

#[test]
fn a_compressed_sibling_is_filtered_too() {
    let mut fixture = Fixture::told(|site| site.modes.forbidden = 0o002);
    for name in ["a", "a.gz"] {
        fixture.write(name, name);
        fixture.chmod(name, 0o644);
        fixture.set_modified(name, UNIX_EPOCH + OLD);
    }
    let gzip = "Accept-Encoding: gzip\r\n";
    assert_eq!(fixture.ask_for("/a", gzip).body, b"a.gz");
    fixture.chmod("a.gz", 0o646);
    fixture.expire();
    assert_eq!(fixture.ask_for("/a", gzip).body, b"a");
    assert_eq!(fixture.status("/a.gz"), 403);
    fixture.chmod("a.gz", 0o644);
    fixture.chmod("a", 0o646);
    fixture.expire();
    assert_eq!(fixture.ask_for("/a", gzip).status, 403, "it is the original that is asked for");
}

#[test]
fn without_links_none_is_followed() {
    let mut fixture = Fixture::told(|site| site.symlinks = Symlinks::Off);
    fixture.write("real/file", "x");
    fixture.write("real/index.html", "x");
    symlink("real/file", fixture.path("link")).unwrap();
    symlink("real", fixture.path("directory")).unwrap();
    fs::create_dir(fixture.path("indexed")).unwrap();
    symlink("../real/index.html", fixture.path("indexed/index.html")).unwrap();
    symlink("file", fixture.path("real/file.gz")).unwrap();
    for target in ["/link", "/directory", "/directory/", "/directory/file"] {
        assert_eq!(fixture.status(target), 404, "{target}");
    }
    assert_eq!(fixture.status("/indexed/"), 403);
    let answer = fixture.ask_for("/real/file", "Accept-Encoding: gzip\r\n");
    assert_eq!((answer.status, answer.field("Content-Encoding")), (200, None));
    // What was a directory is a link to it now: the same file, by a way that is not to be gone.
    fs::rename(fixture.path("real"), fixture.path("moved")).unwrap();
    symlink("moved", fixture.path("real")).unwrap();
    fixture.expire();
    assert_eq!(fixture.status("/real/file"), 404);
    assert_eq!(fixture.status("/moved/file"), 200);
}

#[test]
fn a_link_is_followed_to_what_its_owner_owns() {
    let mut fixture = Fixture::told(|site| site.symlinks = Symlinks::Owner);
    fixture.write("real/file", "x");
    symlink("real/file", fixture.path("link")).unwrap();
    symlink("real", fixture.path("directory")).unwrap();
    for target in ["/real/file", "/link", "/directory/file"] {
        assert_eq!(fixture.body(target), "x", "{target}");
    }
    if lchown(fixture.path("link"), Some(1234), None).is_err() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    fixture.expire();
    assert_eq!(fixture.status("/link"), 404);
    assert_eq!(fixture.status("/directory/file"), 200);
    chown(fixture.path("real/file"), Some(1234), None).unwrap();
    fixture.expire();
    assert_eq!(fixture.status("/link"), 200);
    chown(fixture.path("real"), Some(1234), None).unwrap();
    fixture.expire();
    assert_eq!(fixture.status("/directory/file"), 404);
}

/// RFC 8615: what is meant for strangers is beneath `.well-known`.
#[test]
fn dotfiles_are_served_where_that_is_said() {
    for (dotfiles, status) in [(Dotfiles::Refuse, 404), (Dotfiles::Serve, 200)] {
        let mut fixture = Fixture::told(|site| site.dotfiles = dotfiles);
        for path in [".git/config", "a/.htpasswd", ".well-known/security.txt", "..a"] {
            fixture.write(path, "x");
        }
        for target in ["/.git/config", "/a/.htpasswd", "/..a", "/%2e.a"] {
            assert_eq!(fixture.status(target), status, "{target}");
        }
        assert_eq!(fixture.status("/.well-known/security.txt"), 200);
    }
}
