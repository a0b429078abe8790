//! The client against servers that speak TLS and misbehave, over sockets.

use crate::engine::tests::sockets::{OK, Run, only, plan, server};
use crate::engine::{Progress, Tls, Watcher};
use crate::result::window::Counts;
use crate::tls::TlsOptions;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

type TlsStream = StreamOwned<ServerConnection, TcpStream>;

/// How many exchanges a test waits for: more than there are connections, so that some of them are
/// over for the client too.
const ENOUGH: usize = 12;

/// What a server has done.
#[derive(Default)]
struct Served {
    done: AtomicUsize,
}

impl Served {
    fn one_more(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends the run when enough was served.
struct Enough(Arc<Served>);

impl Watcher for Enough {
    fn part(&mut self, _: &Progress<'_>) {}

    fn wants_to_stop(&mut self) -> bool {
        self.0.done.load(Ordering::Relaxed) >= ENOUGH
    }
}

/// The counts of a run, adapted by `adapt`, against a server that does `answer` with each connection
/// once TCP stands.
fn counts(
    adapt: impl FnOnce(&mut Run),
    answer: impl Fn(&mut TcpStream, &Served) + Send + Sync + 'static,
) -> Counts {
    let served = Arc::new(Served::default());
    let address = {
        let served = served.clone();
        server(move |_, stream| answer(stream, &served))
    };
    let mut run = plan(address);
    let settings = TlsOptions::default().check("localhost").unwrap();
    run.plan.tls = Some(Tls { settings, resume_percent: 0 });
    adapt(&mut run);
    run.counts_until(Enough(served))
}

/// The same, against a server that does `answer` with each connection once its handshake is done.
fn secured(
    adapt: impl FnOnce(&mut Run),
    answer: impl Fn(&mut TlsStream, &Served) + Send + Sync + 'static,
) -> Counts {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(identity.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    counts(adapt, move |stream, served| {
        let tls = ServerConnection::new(config.clone()).unwrap();
        let mut stream = StreamOwned::new(tls, stream.try_clone().unwrap());
        while stream.conn.is_handshaking() {
            if stream.conn.complete_io(&mut stream.sock).is_err() {
                return;
            }
        }
        answer(&mut stream, served);
    })
}

fn as_it_is(_: &mut Run) {}

fn one_request_each(run: &mut Run) {
    (run.get.requests_per_connection, run.plan.kept) = (Some(1), false);
}

fn errors(counts: &Counts) -> BTreeMap<String, u64> {
    counts.errors.kinds().map(|(kind, count)| (kind.to_owned(), count)).collect()
}

fn request(stream: &mut TlsStream) -> bool {
    stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0)
}

#[test]
fn requests_are_answered_and_only_plaintext_is_counted() {
    let counts = secured(as_it_is, |stream, served| {
        while request(stream) {
            served.one_more();
            if stream.write_all(OK).is_err() {
                return;
            }
        }
    });
    assert!(counts.requests > 0);
    assert_eq!(errors(&counts), BTreeMap::new());
    assert_eq!(counts.received_bytes, counts.requests * OK.len() as u64);
    let made = counts.connects;
    assert!((1..=4).contains(&made));
    assert_eq!((counts.handshakes.full, counts.handshakes.resumed), (made, 0));
    assert_eq!((counts.tls.count(), counts.connect.count()), (made, made));
}

#[test]
fn a_connection_may_end_without_a_word_when_nothing_is_awaited() {
    let counts = secured(one_request_each, |stream, served| {
        if request(stream) {
            let _ = stream.write_all(OK);
            let _ = stream.sock.shutdown(Shutdown::Both);
            served.one_more();
        }
    });
    assert!(counts.requests > 0);
    assert_eq!(errors(&counts), BTreeMap::new());
}

#[test]
fn a_connection_may_end_with_the_word_alone() {
    let counts = secured(one_request_each, |stream, served| {
        if request(stream) {
            let _ = stream.write_all(OK);
            stream.conn.send_close_notify();
            let _ = stream.flush();
            // TCP stays as it is until the client has said the same.
            let said = stream.read(&mut [0; 8]);
            if matches!(said, Ok(0)) {
                served.one_more();
            }
        }
    });
    assert!(counts.requests >= ENOUGH as u64, "the client's own word has come each time");
    assert_eq!(errors(&counts), BTreeMap::new());
}

#[test]
fn a_response_that_is_cut_off_has_ended_with_a_word_and_without() {
    for word in [false, true] {
        let counts = secured(as_it_is, move |stream, served| {
            if request(stream) {
                let _ = stream.write_all(&OK[..OK.len() - 1]);
                if word {
                    stream.conn.send_close_notify();
                }
                let _ = stream.flush();
                served.one_more();
            }
        });
        only(&errors(&counts), "ended");
        assert_eq!(counts.requests, 0);
    }
}

#[test]
fn a_record_that_cannot_be_decrypted_is_a_failure_of_tls() {
    let counts = secured(as_it_is, |stream, served| {
        if request(stream) {
            let _ = stream.sock.write_all(b"\x17\x03\x03\x00\x20 nobody has encrypted these bytes");
            // Until the client has given up: a close with bytes unread would be a reset.
            let _ = stream.sock.read_to_end(&mut Vec::new());
            served.one_more();
        }
    });
    only(&errors(&counts), "tls");
}

#[test]
fn a_handshake_that_comes_to_nothing_is_a_failure_of_tls() {
    const ALERT: &[u8] = b"\x15\x03\x03\x00\x02\x02\x28";
    const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    for answer in [PLAIN, b"", ALERT] {
        let counts = counts(as_it_is, move |stream, served| {
            let _ = stream.read(&mut [0; 2048]);
            let _ = stream.write_all(answer);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
            served.one_more();
        });
        only(&errors(&counts), "tls");
        assert_eq!((counts.requests, counts.connects), (0, 0));
    }
}

#[test]
fn a_handshake_that_stands_still_is_given_up() {
    let hasty = |run: &mut Run| run.plan.timeout = Duration::from_millis(100);
    let counts = counts(hasty, |stream, served| {
        let _ = stream.read_to_end(&mut Vec::new());
        served.one_more();
    });
    only(&errors(&counts), "timeout");
}

#[test]
fn new_keys_in_mid_run_do_no_harm() {
    let counts = secured(as_it_is, |stream, served| {
        while request(stream) {
            served.one_more();
            if stream.conn.refresh_traffic_keys().is_err() || stream.write_all(OK).is_err() {
                return;
            }
        }
    });
    assert!(counts.requests > 0);
    assert_eq!(errors(&counts), BTreeMap::new());
}
