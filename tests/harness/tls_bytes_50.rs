//! Layer 50: every byte over TLS, sealed by us and by the kernel, around the moment in which the kernel
//! takes over.

use std::ops::Range;

use onering::sys::ktls;

use crate::support::secure::{SecureServer, SecureSite};
use crate::support::tls::{Pace, SUITES, Stream};
use crate::support::{Client, pattern, repeats, skip};

const MIB: usize = 1 << 20;

/// Who seals, if the kernel can be asked to at all.
fn settings(ktls: &str) -> Option<String> {
    if ktls == "on"
        && let Err(why) = ktls::available()
    {
        skip(&why.to_string());
        return None;
    }
    // A machine may stand still for longer than a connection may usually be idle.
    let patience = "[timeouts]\nidle = \"10m\"\nhead = \"10m\"\nhandshake = \"10m\"\n";
    Some(format!("ktls = \"{ktls}\"\nktls_from = \"64KiB\"\n{patience}"))
}

/// A server of a file of a mebibyte and a small one, and what the large one holds.
fn serve(settings: &str) -> (SecureServer, SecureSite, Vec<u8>) {
    let large = pattern(MIB);
    let site = SecureSite::with("large", &large);
    site.site.write("small", "small\n");
    let server = SecureServer::start(site.serve_with(settings));
    (server, site, large)
}

/// Asks for a part of the large file, and compares what comes.
#[track_caller]
fn fetch_range(client: &mut Client<Stream>, large: &[u8], range: Range<usize>) {
    let field = format!("Range: bytes={}-{}\r\n", range.start, range.end - 1);
    let response = client.get_with("/large", &field);
    assert_eq!(response.status, 206, "{range:?}");
    assert!(response.body == large[range.clone()], "other bytes than those of {range:?}");
}

/// Downloads one after another, by every suite, by fast readers and slow ones.
fn downloads_are_whole(ktls: &str) {
    let Some(settings) = settings(ktls) else { return };
    let (server, site, large) = serve(&settings);
    // Where time is short, they are fewer, and of as many kinds.
    let downloads = repeats(200).max(4);
    let mut large_ones = 0;
    for download in 0..downloads {
        let suite = SUITES[download % SUITES.len()];
        let pace = if download % 2 == 0 { Pace::Fast } else { Pace::Slow };
        let mut client = Client::paced(server.address(), &site.authority, suite, pace);
        if download % 4 < 2 {
            large_ones += 1;
            let response = client.get("/large");
            assert_eq!(response.status, 200);
            assert!(response.body == large, "{:?} {pace:?}", suite.suite());
        }
        let start = download * 4099 % (MIB / 2);
        fetch_range(&mut client, &large, start..start + 100_001);
        fetch_range(&mut client, &large, MIB - 16_385..MIB);
        assert_eq!(client.get("/small").body, b"small\n");
    }
    let stats = server.stop();
    let handed_over = stats.total("ktls_connections");
    if ktls == "on" {
        // A part of the file may leave before: with the end of the handshake, or from the first quantum.
        assert!(handed_over >= large_ones, "{handed_over} of at least {large_ones}");
    } else {
        assert_eq!(handed_over, 0);
    }
    assert_eq!(stats.total("ktls_refused"), 0);
    assert_eq!(stats.total("resets"), 0);
}

#[test]
fn downloads_that_we_seal_are_whole() {
    downloads_are_whole("off");
}

#[test]
fn downloads_that_the_kernel_seals_are_whole() {
    downloads_are_whole("on");
}

/// Requests that stand before and behind the one with which the kernel takes over, all sent at once.
fn answers_come_in_their_order(ktls: &str) {
    let Some(settings) = settings(ktls) else { return };
    let (server, site, large) = serve(&settings);
    for suite in SUITES {
        let mut client = Client::paced(server.address(), &site.authority, suite, Pace::Slow);
        let request = |path: &str, fields: &str| {
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
        };
        client.send(
            [
                request("/small", ""),
                request("/large", "Range: bytes=1-1000\r\n"),
                request("/large", "Range: bytes=0-99999\r\n"),
                request("/small", ""),
                request("/large", "Range: bytes=5-5\r\n"),
                request("/nothing", ""),
                request("/large", "Range: bytes=77-100000\r\n"),
                request("/small", "Connection: close\r\n"),
            ]
            .concat(),
        );
        let mut next = |status: u16, body: Option<&[u8]>| {
            let response = client.response();
            assert_eq!(response.status, status);
            assert!(body.is_none_or(|body| response.body == body), "{:?}", suite.suite());
        };
        next(200, Some(b"small\n"));
        next(206, Some(&large[1..=1000]));
        next(206, Some(&large[..100_000]));
        next(200, Some(b"small\n"));
        next(206, Some(&large[5..=5]));
        next(404, None);
        next(206, Some(&large[77..=100_000]));
        next(200, Some(b"small\n"));
        assert_eq!(client.rest(), b"");
    }
    server.stop();
}

#[test]
fn answers_that_we_seal_come_in_their_order() {
    answers_come_in_their_order("off");
}

#[test]
fn answers_that_the_kernel_seals_in_between_come_in_their_order() {
    answers_come_in_their_order("on");
}

/// A peer changes its keys before the kernel takes over, and has us change ours.
fn a_peer_may_change_its_keys(ktls: &str) {
    let Some(settings) = settings(ktls) else { return };
    let (server, site, large) = serve(&settings);
    let ends_then = ktls == "on" && !ktls::available().is_ok_and(|support| support.rekey);
    for suite in SUITES.into_iter().filter(|suite| suite.tls13().is_some()) {
        let mut client = Client::paced(server.address(), &site.authority, suite, Pace::Fast);
        assert_eq!(client.get("/small").body, b"small\n");
        client.update_keys();
        assert_eq!(client.get("/small").body, b"small\n");
        client.update_keys();
        // What answers the change may go ahead of the first of them, sealed by us.
        assert!(client.get("/large").body == large);
        assert!(client.get("/large").body == large);
        client.update_keys();
        if ends_then {
            // The kernel cannot change its own keys, so that it may send no more (RFC 8446 section 4.6.3):
            // the connection ends, in order, with nothing or with a whole answer.
            client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let rest = client.rest();
            assert!(rest.is_empty() || rest.ends_with(&large), "{} bytes", rest.len());
        } else {
            assert!(client.get("/large").body == large);
            assert_eq!(client.get("/small").body, b"small\n");
        }
    }
    let stats = server.stop();
    assert_eq!(stats.total("tls_key_updates"), 9);
    assert_eq!(stats.total("timeouts_idle"), 0);
}

#[test]
fn a_peer_may_change_its_keys_where_we_seal() {
    a_peer_may_change_its_keys("off");
}

#[test]
fn a_peer_may_change_its_keys_where_the_kernel_seals() {
    a_peer_may_change_its_keys("on");
}

/// The last answer of a connection is whole, and ends in good order, although its peer reads it when the
/// server has long been done with it.
fn a_last_answer_is_whole(ktls: &str) {
    let Some(settings) = settings(ktls) else { return };
    let (server, site, large) = serve(&settings);
    for suite in [SUITES[0], SUITES[3]] {
        for bytes in [65_536, 300_000, MIB] {
            let mut client = Client::paced(server.address(), &site.authority, suite, Pace::Slow);
            client.send(format!(
                "GET /large HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-{}\r\n\
                 Connection: close\r\n\r\n",
                bytes - 1
            ));
            let head = client.head();
            assert_eq!(head.status, 206);
            assert!(client.rest() == large[..bytes], "{:?}: {bytes}", suite.suite());
        }
    }
    let stats = server.stop();
    assert_eq!(stats.total("tls_close_unsent"), 0);
}

#[test]
fn a_last_answer_that_we_seal_is_whole() {
    a_last_answer_is_whole("off");
}

#[test]
fn a_last_answer_that_the_kernel_seals_is_whole() {
    a_last_answer_is_whole("on");
}
