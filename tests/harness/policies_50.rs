//! Layer 50: what a site may be told about its files, over a socket.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::{Client, Server, Site, repeats, wait_until};

#[test]
fn a_site_says_and_serves_what_it_is_told_to() {
    let site = Site::with("page.html", "<p>");
    site.write("private", "x");
    site.write(".e/404.html", "<p>not here");
    site.write("a/.dot", "x");
    fs::set_permissions(site.path("private"), Permissions::from_mode(0o640)).expect("it is ours");
    let server = Server::start(site.serve_with(
        "charset = \"latin1\"
        listing = true
        error_pages = { 404 = \"/.e/404.html\", 501 = \"/.e/absent.html\" }
        mode_allowed = \"0004\"
        symlinks = \"off\"
        dotfiles = \"serve\"
        [[site.headers]]
        match = \"*.html\"
        set = { Cache-Control = \"no-cache\" }
        [[site.headers]]
        always = true
        set = { X-Always = \"yes\" }",
    ));
    let mut client = Client::connect(server.address());
    let page = client.get("/page.html");
    assert_eq!(page.field("content-type"), Some("text/html; charset=latin1"));
    assert_eq!(page.field("cache-control"), Some("no-cache"));
    let absent = client.get("/absent");
    assert_eq!((absent.status, &*absent.body), (404, &b"<p>not here"[..]));
    assert_eq!(absent.field("content-type"), Some("text/html; charset=latin1"));
    assert_eq!(client.get("/private").status, 403);
    assert_eq!(client.get("/a/.dot").status, 200);
    assert_eq!(client.get("/a").field("location"), Some("/a/"));
    let listing = String::from_utf8(client.get("/a/").body).expect("UTF-8");
    assert!(listing.contains("<a href=\"./.dot\">.dot</a>"), "{listing}");
    client.send("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let unknown = client.response();
    assert_eq!((unknown.status, unknown.field("x-always")), (501, Some("yes")));
    // Nobody knows which site this was meant for: the first one.
    client.send("GET / HTTP/9.9\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.response().field("x-always"), Some("yes"));
    server.stop();
}

#[test]
fn a_page_that_is_not_there_is_said_once_and_counted() {
    let site = Site::new();
    let settings = "error_pages = { 404 = \"/absent.html\" }\n[cache]\nvalid = \"1ms\"";
    let server = Server::start(site.serve_with(settings).cpus("0"));
    let mut client = Client::connect(server.address());
    let mut get = |status| {
        let response = client.get("/absent");
        assert_eq!(response.status, status);
        response.body
    };
    for _ in 0..20 {
        assert!(get(404).starts_with(b"<!doctype html>"));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    site.write("absent.html", "here");
    wait_until("the page is sent", || {
        // Now there is something at that name, it is no error to ask for it elsewhere.
        client.get("/other").body == b"here"
    });
    let (stats, said) = server.stop_and_say();
    assert_eq!(said.matches("absent.html").count(), 1, "{said}");
    assert!(stats.total("error_pages_missing") >= 2);
}

/// The bound holds, the page says so, and others are served.
#[test]
fn a_directory_of_very_many_names_is_listed() {
    let site = Site::with("small", "small");
    let names = repeats(100_000).max(3000);
    fs::create_dir(site.path("many")).expect("the root is ours");
    for n in 0..names {
        fs::File::create(site.path(&format!("many/{n:06}"))).expect("there is room");
    }
    let server = Server::start(site.serve_with("listing = true").cpus("0"));
    let mut client = Client::connect(server.address());
    let mut other = Client::connect(server.address());
    assert_eq!(client.get("/many").field("location"), Some("/many/"));
    for _ in 0..3 {
        client.send("GET /many/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(other.get("/small").body, b"small");
        let listing = client.response();
        assert_eq!(listing.status, 200);
        let text = String::from_utf8(listing.body).expect("UTF-8");
        assert_eq!(text.matches("<a href=\"./").count(), LISTED);
        assert!(text.contains(&format!("There are more than the {LISTED} names")));
    }
    assert!(server.stop().total("listings_cut") >= 1);
}

const LISTED: usize = onering::config::defaults::LISTING_ENTRIES;
