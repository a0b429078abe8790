//! Pages: those of errors, and listings of directories.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::UNIX_EPOCH;

use nix::sys::stat::Mode;

use super::*;
use crate::config::{Answers, Dotfiles, HeaderRule, Symlinks};

/// A fixture with a page for 404, 412 and 416 each, not written yet.
fn with_pages() -> Fixture {
    Fixture::told(|site| {
        site.error_pages =
            [404, 412, 416, 503].map(|code| (code, format!("/.e/{code}.html"))).into();
        let glob = globset::Glob::new("**/*.html").unwrap();
        let set = vec![("Cache-Control".into(), "no-store".into())];
        site.headers = vec![HeaderRule { answers: Answers::Files(glob), set }];
    })
}

#[test]
fn a_page_of_the_site_is_sent_with_the_error() {
    let mut fixture = with_pages();
    fixture.write("file", "x");
    for code in [404, 412, 416, 503] {
        fixture.write(&format!(".e/{code}.html"), format!("<p>{code} of ours"));
    }
    fixture.expire();
    let now = fixture.now;
    for (target, lines, code) in [
        ("/absent", "", 404),
        ("/absent", "Range: bytes=0-0\r\nIf-None-Match: *\r\nIf-Match: \"x\"\r\n", 404),
        ("/a%2Fb", "", 404),
        ("/.e/404.html", "", 404),
        ("/file", "If-Match: \"x\"\r\n", 412),
        ("/file", "Range: bytes=7-\r\n", 416),
    ] {
        let request = Request { fields: FieldLines::of(lines), ..get(target) };
        let answer: Answer = fixture.files.reply(SITE, &request, &now).into();
        let body = format!("<p>{code} of ours");
        assert_eq!((answer.status, &*answer.body), (code, body.as_bytes()), "{target} {lines}");
        assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
        assert_eq!(answer.field("Content-Length"), Some(&*body.len().to_string()));
        assert_eq!(answer.field("Cache-Control"), Some("no-store"), "the page's own rules");
        assert_eq!((answer.field("ETag"), answer.field("Accept-Ranges")), (None, None));
        let head = Request { head_only: true, ..request };
        let head: Answer = fixture.files.reply(SITE, &head, &now).into();
        // RFC 9110 §14.2: HEAD has no ranges.
        if code != 416 {
            assert_eq!(head, Answer { body: Vec::new(), ..answer });
        }
    }
    let answer: Answer = fixture
        .files
        .status(SITE, Status::SERVICE_UNAVAILABLE, Persistence::Close, false, &now)
        .into();
    assert_eq!((answer.field("Retry-After"), &*answer.body), (Some("1"), &b"<p>503 of ours"[..]));
    let range = fixture.files.counters();
    assert_eq!(range.error_pages_missing, 4, "none was there at first");
}

#[test]
fn a_page_that_cannot_be_sent_is_ours_and_counted() {
    let mut fixture = with_pages();
    let page = ".e/404.html";
    let built_in = fixture.get("/absent");
    assert!(built_in.status == 404 && built_in.body.starts_with(b"<!doctype html>"));
    let mut missing = fixture.counters().error_pages_missing;
    let mut is_built_in = |fixture: &mut Fixture, why: &str| {
        fixture.expire();
        let answer = fixture.get("/absent");
        assert_eq!((answer.status, answer.body == built_in.body), (404, true), "{why}");
        let before = std::mem::replace(&mut missing, fixture.counters().error_pages_missing);
        assert_eq!(missing, before + 1, "{why}");
    };
    is_built_in(&mut fixture, "it is not there");
    fixture.write(page, [b'x'; 1001]);
    is_built_in(&mut fixture, "it is too large");
    fs::remove_file(fixture.path(page)).unwrap();
    symlink("/etc/passwd", fixture.path(page)).unwrap();
    is_built_in(&mut fixture, "it leads out of the root");
    fs::remove_file(fixture.path(page)).unwrap();
    nix::unistd::mkfifo(&fixture.path(page), Mode::S_IRUSR).unwrap();
    is_built_in(&mut fixture, "it is no file");
    fs::remove_file(fixture.path(page)).unwrap();
    fixture.write(page, [b'x'; 1000]);
    assert_eq!(fixture.get("/absent").body, built_in.body, "until its time is up");
    fixture.expire();
    assert_eq!(fixture.get("/absent").body, [b'x'; 1000]);
}

#[test]
fn a_page_that_changes_is_read_again() {
    let mut fixture = with_pages();
    // Of two lengths: before 6.13 a change within the same jiffy has the same time, and the clock of
    // this test is not the one of the file system, by which such a time would be too young.
    for text in ["first", "another"] {
        fixture.write(".e/404.html", text);
        fixture.set_modified(".e/404.html", UNIX_EPOCH + Duration::from_secs(1));
        fixture.expire();
        for _ in 0..3 {
            assert_eq!(fixture.get("/absent").body, text.as_bytes());
        }
    }
    let calls = sys::calls();
    fixture.get("/absent");
    assert_eq!(sys::calls(), calls, "not until its time is up");
}

/// The links of a listing, decoded as a browser does.
fn links(answer: &Answer) -> Vec<Vec<u8>> {
    let text = std::str::from_utf8(&answer.body).unwrap();
    let hrefs = text.split("<a href=\"").skip(1);
    hrefs.map(|rest| rest.split_once('"').unwrap().0.as_bytes().to_vec()).collect()
}

fn listing() -> Fixture {
    Fixture::told(|site| site.listing = true)
}

#[test]
fn a_directory_is_listed_where_that_is_said() {
    let mut fixture = listing();
    for path in ["b", "a", "Z", "d/x", "c/x", ".hidden", ".well-known/x"] {
        fixture.write(path, "12345");
        fixture.set_modified(path, UNIX_EPOCH + Duration::from_secs(784_111_777));
    }
    nix::unistd::mkfifo(&fixture.path("fifo"), Mode::S_IRUSR).unwrap();
    symlink("/etc/passwd", fixture.path("outside")).unwrap();
    symlink("a", fixture.path("link")).unwrap();
    symlink("d", fixture.path("e")).unwrap();
    symlink("absent", fixture.path("dangling")).unwrap();
    let answer = fixture.get("/");
    let expected = ["./.well-known/", "./c/", "./d/", "./e/", "./Z", "./a", "./b", "./link"];
    assert_eq!(links(&answer), expected.map(|link| link.as_bytes().to_vec()));
    assert_eq!((answer.status, answer.from_file), (200, false));
    assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.field("Content-Length"), Some(&*answer.body.len().to_string()));
    assert_eq!((answer.field("ETag"), answer.field("Accept-Ranges")), (None, None));
    let text = String::from_utf8_lossy(&answer.body);
    assert!(text.contains("Sun, 06 Nov 1994 08:49:37 GMT</td><td class=\"n\">5<"), "{text}");
    assert!(text.contains("<meta charset=\"utf-8\">") && !text.contains("There are more"));
    let request = Request { head_only: true, ..get("/") };
    let head: Answer = fixture.files.reply(SITE, &request, &fixture.now).into();
    assert_eq!(head, Answer { body: Vec::new(), ..answer });
    // No part of it: the next one may be another.
    let request = Request { fields: FieldLines::of("Range: bytes=0-3\r\n"), ..get("/") };
    let whole: Answer = fixture.files.reply(SITE, &request, &fixture.now).into();
    assert_eq!(whole.status, 200);

    assert_eq!(fixture.get("/c").field("Location"), Some("/c/"));
    assert_eq!(links(&fixture.get("/c/"))[0], b"../");
    fixture.write("c/index.html", "index");
    fixture.expire();
    assert_eq!(fixture.body("/c/"), "index");
}

#[test]
fn a_listing_is_as_old_as_any_entry() {
    let mut fixture = listing();
    fixture.write("a", "x");
    assert_eq!(links(&fixture.get("/")).len(), 1);
    fixture.write("b", "x");
    assert_eq!(links(&fixture.get("/")).len(), 1);
    assert_eq!((fixture.counters().hits, fixture.counters().misses), (1, 1));
    fixture.expire();
    assert_eq!(links(&fixture.get("/")).len(), 2);
}

/// Whatever bytes a name has: the link in the listing leads to it.
#[test]
fn every_name_is_reached_by_its_link() {
    let mut fixture = listing();
    let names: [&[u8]; 18] = [
        b"a?b",
        b"a:b",
        b"<b>",
        b"\"",
        b"'",
        b"#",
        b"%",
        b"%41",
        b"&amp;",
        b"new\nline",
        b"\r",
        b"\xff\xfe",
        "\u{e4}".as_bytes(),
        b"back\\slash",
        b"javascript:x",
        b" ",
        b"+",
        b"~",
    ];
    for place in ["", "d <>\"?#%/"] {
        for name in names {
            let path = [place.as_bytes(), name].concat();
            let path = std::ffi::OsStr::from_bytes(&path).to_str().map(str::to_owned);
            match path {
                Some(path) => fixture.write(&path, name),
                None => {
                    let directory = fixture.path(place);
                    fs::write(directory.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
                }
            }
        }
    }
    for directory in ["/", "/d%20%3C%3E%22%3F%23%25/"] {
        let answer = fixture.get(directory);
        let mut reached = Vec::new();
        for link in links(&answer) {
            let link = String::from_utf8(link).unwrap();
            let Some(name) = link.strip_prefix("./") else { continue };
            let answer = fixture.get(&format!("{directory}{name}"));
            assert_eq!(answer.status, 200, "{link}");
            if !link.ends_with('/') {
                reached.push(answer.body);
            }
        }
        let mut expected: Vec<_> = names.iter().map(|name| name.to_vec()).collect();
        expected.sort();
        assert_eq!(reached, expected);
    }
}

#[test]
fn what_the_policies_refuse_is_not_listed() {
    let mut fixture = Fixture::told(|site| {
        site.listing = true;
        site.modes.forbidden = 0o002;
        site.symlinks = Symlinks::Off;
        site.dotfiles = Dotfiles::Serve;
    });
    for (name, mode) in [("open", 0o666), ("file", 0o644), (".dot", 0o644)] {
        fixture.write(name, "x");
        fs::set_permissions(fixture.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    symlink("file", fixture.path("link")).unwrap();
    fs::create_dir(fixture.path("directory")).unwrap();
    fs::set_permissions(fixture.path("directory"), PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(links(&fixture.get("/")), [&b"./directory/"[..], b"./.dot", b"./file"]);
}

#[test]
fn a_listing_has_a_bound_and_says_so() {
    let mut fixture = listing();
    for n in 0..100 {
        fixture.write(&format!("{n:03}"), "");
    }
    assert_eq!(links(&fixture.get("/")).len(), 100);
    assert_eq!(fixture.counters().listings_cut, 0);
    fixture.write("100", "");
    fixture.expire();
    let answer = fixture.get("/");
    assert_eq!((links(&answer).len(), fixture.counters().listings_cut), (100, 1));
    assert!(String::from_utf8_lossy(&answer.body).contains("more than the 100 names"));
    assert!(links(&answer).is_sorted());
}
