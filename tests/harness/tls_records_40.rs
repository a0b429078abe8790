//! Layer 40: what a TLS listener says to peers that speak TLS badly, or none at all: the alert on the
//! wire, the counter, and nothing that stays behind.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ProtocolVersion;
use rustls::version::{TLS12, TLS13};

use crate::support::secure::{SecureServer, SecureSite, VERSIONS, alert_of, until_close_notify};
use crate::support::server::Stats;
use crate::support::wire::{
    ALERT, APPLICATION_DATA, CLOSE_NOTIFY, Crafted, HANDSHAKE, Seen, client_hello, last_alert,
    next, old_client_hello, record,
};
use crate::support::{Client, during, pattern, repeats, tools, wait_until};

const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const DECODE_ERROR: u8 = 50;
const PROTOCOL_VERSION: u8 = 70;
const NO_RENEGOTIATION: u8 = 100;
const NO_APPLICATION_PROTOCOL: u8 = 120;

const REQUEST: &[u8] = b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LAST_REQUEST: &[u8] = b"GET /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// No listener waits for the first byte: what says nothing is to be seen as well.
const AT_ONCE: &str = "[timeouts]\ndefer_accept = \"0s\"";

fn site() -> SecureSite {
    SecureSite::with("file", "content")
}

/// Runs `talk` with a server; a right client is served then, and no connection has stayed behind.
#[track_caller]
fn counted(settings: &str, talk: impl FnOnce(&SecureSite, &SecureServer)) -> Stats {
    let site = site();
    let server = SecureServer::start(site.serve_with(settings));
    let idle = server.sockets();
    talk(&site, &server);
    let mut client = Client::secure(server.address(), &Arc::new(site.client(&VERSIONS)));
    let answer = client.get("/file");
    assert_eq!((answer.status, &*answer.body), (200, &b"content"[..]));
    drop(client);
    wait_until("every connection is gone", || server.sockets() == idle);
    server.stop()
}

/// The alert that these bytes are answered by, as the last thing.
#[track_caller]
fn alert_to(address: SocketAddr, bytes: &[u8]) -> u8 {
    let mut client = Client::connect(address);
    client.send(bytes);
    last_alert(&client)
}

#[test]
fn a_plain_request_gets_a_plain_answer_that_says_so() {
    let requests = [REQUEST, b"HEAD / HTTP/1.0\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"];
    let stats = counted("", |_, server| {
        for request in requests {
            let mut client = Client::connect(server.address());
            client.send(request);
            let text = String::from_utf8(client.rest()).expect("a text");
            assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}");
            assert!(text.to_lowercase().contains("\r\nconnection: close\r\n"), "{text}");
            assert!(text.contains("https"), "{text}");
        }
    });
    assert_eq!((stats.total("tls_failed"), stats.total("tls_plain_http")), (3, 3));
    assert_eq!((stats.total("handshakes_full"), stats.total("requests")), (1, 1));
}

#[test]
fn garbage_is_answered_by_an_alert() {
    let garbage: [&[u8]; 4] = [&[0; 8], b"\x80\x05garbage", &[0xff; 300], b"SSH-2.0-client\r\n"];
    let stats = counted("", |_, server| {
        for bytes in garbage {
            assert_eq!(alert_to(server.address(), bytes), PROTOCOL_VERSION, "{bytes:?}");
        }
    });
    assert_eq!((stats.total("tls_failed"), stats.total("tls_not_tls")), (4, 4));
}

/// SSL 2 has records of its own; the others a version in their hello, and no extension that names more.
#[test]
fn a_hello_of_an_old_version_is_answered_by_an_alert() {
    // CLIENT-HELLO of SSL 2: seven kinds of cipher, no session, a challenge of 16 bytes.
    let ciphers =
        b"\x01\x00\x80\x02\x00\x80\x03\x00\x80\x04\x00\x80\x05\x00\x80\x06\x00\x40\x07\x00\xc0";
    let ssl2 = [b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10", &ciphers[..], &[7; 16]].concat();
    let stats = counted("", |_, server| {
        assert_eq!(alert_to(server.address(), &ssl2), PROTOCOL_VERSION);
        for version in [[3, 0], [3, 1], [3, 2]] {
            let hello = old_client_hello(version);
            assert_eq!(alert_to(server.address(), &hello), PROTOCOL_VERSION, "{version:?}");
        }
    });
    assert_eq!(stats.total("tls_failed"), 4);
    assert_eq!((stats.total("tls_not_tls"), stats.total("tls_nothing_shared")), (1, 3));
}

#[test]
fn a_minimal_version_is_kept_to() {
    let stats = counted("min_version = \"1.3\"", |site, server| {
        let config = Arc::new(site.client(&[&TLS12]));
        let error = Client::try_secure(server.address(), &config, "localhost").err();
        assert_eq!(error.as_ref().and_then(alert_of), Some(PROTOCOL_VERSION), "{error:?}");
    });
    assert_eq!(stats.total("tls_nothing_shared"), 1);
}

/// What is longer than any record may be is refused by its header: nothing of it is waited for.
#[test]
fn an_oversized_record_is_refused_before_it_comes() {
    let stats = counted("", |site, server| {
        assert_eq!(alert_to(server.address(), b"\x16\x03\x01\xff\xff"), RECORD_OVERFLOW);
        assert_eq!(alert_to(server.address(), b"\x16\x03\x01\x40\x01"), RECORD_OVERFLOW);
        for version in VERSIONS {
            let mut crafted = Crafted::connect(server.address(), &site.authority, version);
            crafted.send_raw(b"\x17\x03\x03\x48\x01");
            assert_eq!(crafted.until_the_end().1, Some(RECORD_OVERFLOW), "{version:?}");
        }
    });
    assert_eq!((stats.total("tls_failed"), stats.total("tls_bad_records")), (4, 4));
}

/// Two records, cut at every byte; a record for each byte; and one record in segments of a byte.
#[test]
fn a_hello_may_come_in_any_pieces() {
    let stats = counted("", |site, server| {
        let hello = client_hello(&Arc::new(site.client(&VERSIONS)), "localhost");
        let message = &hello[5..];
        let is_answered = |pieces: &[Vec<u8>]| {
            let mut client = Client::connect(server.address());
            pieces.iter().for_each(|piece| client.send(piece));
            match next(client.stream()) {
                // A ServerHello.
                Seen::Record(HANDSHAKE, payload) => assert_eq!(payload[0], 2),
                other => panic!("{other:?} to {} pieces", pieces.len()),
            }
        };
        let step = message.len().div_ceil(repeats(message.len()));
        for place in (1..message.len()).step_by(step) {
            let (first, second) = message.split_at(place);
            is_answered(&[[record(HANDSHAKE, first), record(HANDSHAKE, second)].concat()]);
        }
        let records: Vec<_> = message.chunks(1).map(|byte| record(HANDSHAKE, byte)).collect();
        is_answered(&[records.concat()]);
        is_answered(&records);
        is_answered(&hello.chunks(1).map(<[u8]>::to_vec).collect::<Vec<_>>());
    });
    assert_eq!(stats.total("tls_failed"), 0);
}

#[test]
fn a_hello_without_end_is_not_kept() {
    let stats = counted("", |_, server| {
        // It says that it has 16 MiB, and would bring a part of them.
        let mut client = Client::connect(server.address());
        client.send(record(HANDSHAKE, &[1, 0xff, 0xff, 0xff]));
        let more = record(HANDSHAKE, &[0; 1 << 14]);
        while client.stream_mut().write_all(&more).is_ok() {}
        client.until_the_end();
    });
    assert_eq!((stats.total("tls_failed"), stats.total("tls_oversized_handshakes")), (1, 1));
}

#[test]
fn messages_whose_time_it_is_not_are_refused() {
    let stats = counted("", |_, server| {
        let data = record(APPLICATION_DATA, REQUEST);
        assert_eq!(alert_to(server.address(), &data), UNEXPECTED_MESSAGE);
        let finished = record(HANDSHAKE, &[&[20, 0, 0, 12][..], &[7; 12]].concat());
        assert_eq!(alert_to(server.address(), &finished), UNEXPECTED_MESSAGE);
        // A hello that cannot be read.
        let hello = record(HANDSHAKE, &[1, 0, 0, 2, 3, 3]);
        assert_eq!(alert_to(server.address(), &hello), DECODE_ERROR);
    });
    assert_eq!(stats.total("tls_failed"), 3);
}

#[test]
fn a_client_that_speaks_other_protocols_alone_is_told() {
    let stats = counted("", |site, server| {
        for version in VERSIONS {
            let mut config = site.client(&[version]);
            config.alpn_protocols = vec![b"h2".to_vec()];
            let client = Client::try_secure(server.address(), &Arc::new(config), "localhost");
            let error = client.err();
            let alert = error.as_ref().and_then(alert_of);
            assert_eq!(alert, Some(NO_APPLICATION_PROTOCOL), "{error:?}");
            let mut config = site.client(&[version]);
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            let client = Client::secure(server.address(), &Arc::new(config));
            assert_eq!(client.stream().conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        }
    });
    assert_eq!((stats.total("tls_failed"), stats.total("tls_nothing_shared")), (2, 2));
}

#[test]
fn a_record_that_its_key_does_not_open_is_refused() {
    let stats = counted("", |site, server| {
        for version in VERSIONS {
            let mut crafted = Crafted::connect(server.address(), &site.authority, version);
            let mut record = crafted.seal(APPLICATION_DATA, REQUEST);
            *record.last_mut().expect("a tag") ^= 1;
            crafted.send_raw(&record);
            assert_eq!(crafted.until_the_end(), (vec![], Some(BAD_RECORD_MAC)), "{version:?}");
        }
    });
    assert_eq!((stats.total("tls_failed"), stats.total("tls_bad_records")), (2, 2));
}

/// A few records without data are no harm; a flood of them is.
#[test]
fn a_flood_of_empty_records_is_refused() {
    let stats = counted("", |site, server| {
        for version in VERSIONS {
            let mut crafted = Crafted::connect(server.address(), &site.authority, version);
            (0..16).for_each(|_| crafted.send(APPLICATION_DATA, b""));
            crafted.send(APPLICATION_DATA, REQUEST);
            let answer = crafted.data(b"content");
            assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{version:?}");
            (0..64).for_each(|_| crafted.send(APPLICATION_DATA, b""));
            assert_eq!(crafted.until_the_end().1, Some(UNEXPECTED_MESSAGE), "{version:?}");
        }
    });
    assert_eq!((stats.total("tls_failed"), stats.total("tls_unproductive")), (2, 2));
}

#[test]
fn new_keys_of_the_peer_are_taken_and_a_flood_of_them_is_refused() {
    let stats = counted("", |site, server| {
        let mut client = Client::secure(server.address(), &Arc::new(site.client(&[&TLS13])));
        for _ in 0..3 {
            client.stream_mut().conn.refresh_traffic_keys().expect("TLS 1.3");
            assert_eq!(client.get("/file").body, b"content");
        }
        for _ in 0..64 {
            client.stream_mut().conn.refresh_traffic_keys().expect("TLS 1.3");
            if client.stream_mut().flush().is_err() {
                break;
            }
        }
        let error = until_close_notify(&mut client).err();
        assert_eq!(error.as_ref().and_then(alert_of), Some(UNEXPECTED_MESSAGE), "{error:?}");
    });
    assert_eq!((stats.total("tls_failed"), stats.total("tls_unproductive")), (1, 1));
    assert!(stats.total("tls_key_updates") >= 3);
}

/// TLS 1.2: the attempt is declined by a warning, and the connection goes on.
#[test]
fn a_second_handshake_is_declined() {
    let stats = counted("", |site, server| {
        let mut crafted = Crafted::connect(server.address(), &site.authority, &TLS12);
        let hello = client_hello(&Arc::new(site.client(&[&TLS12])), "localhost");
        crafted.send(HANDSHAKE, &hello[5..]);
        assert_eq!(crafted.next(), Seen::Record(ALERT, vec![1, NO_RENEGOTIATION]));
        crafted.send(APPLICATION_DATA, REQUEST);
        assert!(crafted.data(b"content").starts_with(b"HTTP/1.1 200 OK\r\n"));
        if let Some(openssl) = tools::find("openssl") {
            let address = server.address().to_string();
            let words = ["s_client", "-connect", &address, "-tls1_2", "-servername", "localhost"];
            let said = tools::run(openssl, words, "R\n");
            assert!(said.text.contains("RENEGOTIATING"), "{}", said.text);
            assert!(said.text.contains("no renegotiation"), "{}", said.text);
        }
    });
    assert!(stats.total("tls_renegotiations") >= 1);
    assert_eq!(stats.total("requests"), 2);
}

/// TLS 1.3 has no such thing.
#[test]
fn a_second_hello_is_refused() {
    let stats = counted("", |site, server| {
        let mut crafted = Crafted::connect(server.address(), &site.authority, &TLS13);
        assert_eq!(crafted.version(), ProtocolVersion::TLSv1_3);
        let hello = client_hello(&Arc::new(site.client(&[&TLS13])), "localhost");
        crafted.send(HANDSHAKE, &hello[5..]);
        assert_eq!(crafted.until_the_end().1, Some(UNEXPECTED_MESSAGE));
    });
    assert_eq!(stats.total("tls_failed"), 1);
}

#[test]
fn who_ends_in_the_midst_of_a_handshake_leaves_nothing_behind() {
    let stats = counted(AT_ONCE, |site, server| {
        let hello = client_hello(&Arc::new(site.client(&VERSIONS)), "localhost");
        for bytes in [&hello[..0], &hello[..3], &hello[..hello.len() / 2], &hello] {
            let mut client = Client::connect(server.address());
            client.send(bytes);
            client.end_sending();
            client.until_the_end();
            let mut client = Client::connect(server.address());
            client.send(bytes);
            client.reset();
        }
    });
    // A connection that was reset at once may not have been taken from its listener.
    assert!((4..=8).contains(&stats.total("handshakes_abandoned")));
    assert_eq!(stats.total("tls_failed"), 0);
}

/// RFC 8446 §6.1: whoever ends TLS is answered in kind.
#[test]
fn an_end_in_good_order_is_answered_in_kind() {
    let stats = counted("", |site, server| {
        for version in VERSIONS {
            for before in [&b""[..], &REQUEST[..20], REQUEST] {
                let mut crafted = Crafted::connect(server.address(), &site.authority, version);
                crafted.send(APPLICATION_DATA, before);
                if before == REQUEST {
                    crafted.data(b"content");
                }
                crafted.send(ALERT, &[1, CLOSE_NOTIFY]);
                let (_, alert) = crafted.until_the_end();
                assert_eq!(alert, Some(CLOSE_NOTIFY), "{version:?} after {}", before.len());
            }
        }
    });
    assert!(stats.total("tls_closed_by_peer") >= 6);
    assert_eq!((stats.total("tls_failed"), stats.total("tls_truncated")), (0, 1));
}

/// The answer to what was asked before is whole.
#[test]
fn an_end_in_the_midst_of_an_answer_does_not_cut_it_short() {
    let body = pattern(4 << 20);
    let site = SecureSite::with("large", &body);
    let server = site.start();
    for version in VERSIONS {
        let mut client = Client::secure(server.address(), &Arc::new(site.client(&[version])));
        client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let head = client.head();
        client.close_sending();
        assert_eq!(head.field("content-length"), Some(&*body.len().to_string()));
        assert!(client.take(body.len()) == body, "{version:?}");
        assert_eq!(until_close_notify(&mut client).expect("the end of TLS"), b"", "{version:?}");
    }
    assert_eq!(server.stop().total("tls_closed_by_peer"), 2);
}

#[test]
fn an_end_without_a_word_is_counted() {
    let stats = counted("", |site, server| {
        for version in VERSIONS {
            for before in [&b""[..], &REQUEST[..20]] {
                let mut crafted = Crafted::connect(server.address(), &site.authority, version);
                crafted.send(APPLICATION_DATA, before);
                crafted.end_sending();
                crafted.until_the_end();
            }
        }
    });
    assert!(stats.total("tls_truncated") >= 4);
    assert_eq!((stats.total("tls_closed_by_peer"), stats.total("tls_failed")), (0, 0));
}

/// Each answer that is the last one is followed by the end of TLS, and then by that of TCP.
#[test]
fn the_last_answer_is_followed_by_the_end_of_tls() {
    counted("", |site, server| {
        for version in VERSIONS {
            let mut crafted = Crafted::connect(server.address(), &site.authority, version);
            crafted.send(APPLICATION_DATA, LAST_REQUEST);
            let (data, alert) = crafted.until_the_end();
            assert!(data.ends_with(b"content"));
            assert_eq!((alert, crafted.next()), (Some(CLOSE_NOTIFY), Seen::End), "{version:?}");
        }
    });
}

/// 200 connections that say nothing, while others are served; then their time is up.
#[test]
fn silence_ends_with_the_time_for_a_handshake() {
    let silent = repeats(200);
    let timeouts = "[timeouts]\nhandshake = \"1s\"\ndefer_accept = \"0s\"";
    let stats = counted(timeouts, |site, server| {
        let clients: Vec<_> = (0..silent).map(|_| Client::connect(server.address())).collect();
        let config = Arc::new(site.client(&VERSIONS));
        let served = AtomicUsize::new(0);
        let ask = || {
            assert_eq!(Client::secure(server.address(), &config).get("/file").body, b"content");
            served.fetch_add(1, Ordering::Relaxed);
        };
        during(ask, || {
            for mut client in clients {
                assert_eq!(client.rest(), b"");
            }
        });
        assert!(served.into_inner() > 0);
    });
    assert_eq!(stats.total("timeouts_handshake") as usize, silent);
}

/// A shard has so many handshakes under way, and no more: the oldest makes room.
#[test]
fn the_oldest_of_too_many_handshakes_makes_room() {
    let site = site();
    let settings = site.serve_with(&format!("handshakes = 4\n{AT_ONCE}"));
    let server = SecureServer::start(settings.cpus("0"));
    let begin = |_| {
        let mut client = Client::connect(server.address());
        // The first byte of a ClientHello.
        client.send(record(HANDSHAKE, &[1]));
        client
    };
    let mut clients: Vec<_> = (0..6).map(begin).collect();
    for client in &mut clients[..2] {
        assert_eq!(client.rest(), b"");
    }
    assert_eq!(server.stop().total("handshakes_evicted"), 2);
}
