//! What a target means: directories, links, odd names, and what is not for strangers.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::sys::stat::Mode;

use super::*;

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
    for target in ["/%00", "/..", "/%zz", "/a#b", "/..x?#", "a"] {
        assert_eq!(fixture.status(target), 400, "{target}");
    }
    assert_eq!(fixture.counters().bad_targets, 7);
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
