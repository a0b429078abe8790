//! The records of a session: `tls::Session` against a client of rustls, in all that both may do.
//!
//! The input is lines. The first is a number that chooses one of six suites; each of the others is a
//! step. Numbers that are not said are zero.
//!
//! | step | happens |
//! |---|---|
//! | `data N` | the client sends N bytes, which must arrive |
//! | `send N M` | the server sends N bytes in two slices, the first of M, which must arrive |
//! | `update` | the client takes a new key and asks for one in return, which it gets |
//! | `renew` | the server takes a new key |
//! | `pause` | the server has not sent for a while |
//! | `flip N M` | the client sends data, of whose record byte N is changed by M: it must be refused |
//! | `cut N` | the client sends data, of whose record the last N bytes are missing: refused |
//! | `twice` | the client sends data, whose record comes again: refused |
//! | `raw BYTES` | these are given for a record: refused |
//! | `close` | the client ends; nothing of what follows from it arrives |
//! | `end` | the server ends; nothing can be sent any more |
//!
//! What is refused ends the session, and the client must understand the alert. TLS 1.2 has no new keys.

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};

use onering::tls::{Content, Fault, Opened, Session, Version};
use rustls::server::ResolvesServerCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConnection, ServerConfig};

use super::{first_line, tls};

/// More data in one step tells nothing new.
const DATA_BYTES_MAX: usize = 40_000;

/// What is in a record that is to be spoilt.
const SOME_DATA: &[u8] = b"some data";

/// More steps take long.
const STEPS_MAX: usize = 100;

/// Checks a script.
pub fn check(script: &[u8]) {
    let (suite, steps) = first_line(script);
    let suites = tls::suites();
    let suite = suites[number(suite) % suites.len()];
    let mut client = tls::client(suite);
    let session = tls::shake(&mut client, Arc::clone(&CONFIG));
    let mut run = Run { client, session, client_ended: false, server_ended: false };
    for step in steps.split(|&byte| byte == b'\n').take(STEPS_MAX) {
        if !run.step(step) {
            return;
        }
    }
}

static CONFIG: LazyLock<Arc<ServerConfig>> =
    LazyLock::new(|| Arc::new(tls::server(Arc::new(Resolver))));

#[derive(Debug)]
struct Resolver;

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&tls::IDENTITY))
    }
}

/// A number in decimal digits; zero if it is none.
fn number(digits: &[u8]) -> usize {
    str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Both ends of a connection.
struct Run {
    client: ClientConnection,
    session: Session,
    client_ended: bool,
    server_ended: bool,
}

impl Run {
    /// Takes one step: whether the session goes on.
    fn step(&mut self, step: &[u8]) -> bool {
        let mut words = step.splitn(3, |&byte| byte == b' ');
        let mut word = || words.next().unwrap_or_default();
        let verb = word();
        let (first, second) = (word(), word());
        let (first, second) = (number(first), number(second));
        match verb {
            b"data" => self.data(first),
            b"send" => self.send(first, second),
            b"update" => self.update(),
            b"renew" => self.renew(),
            b"pause" => self.session.paused(),
            b"flip" => {
                let record = self.record();
                let mut changed = record.clone();
                let place = first % record.len();
                // The version and the length are not what is sealed: they are looked at before.
                if !(1..5).contains(&place) {
                    changed[place] ^= second as u8;
                }
                return self.changed(record, changed);
            }
            b"cut" => {
                let record = self.record();
                let missing = first % record.len();
                let changed = record[..record.len() - missing].to_vec();
                return self.changed(record, changed);
            }
            b"twice" => {
                let record = self.record();
                self.open_data(record.clone());
                return self.refused(record);
            }
            b"raw" => return self.refused(step.get(4..).unwrap_or_default().to_vec()),
            b"close" if !self.client_ended => {
                self.client.send_close_notify();
                for mut record in tls::sent(&mut self.client) {
                    assert_eq!(self.session.open(&mut record), Ok(Opened::Closed));
                }
                self.client_ended = true;
            }
            b"end" => {
                let mut out = Vec::new();
                self.session.close_notify(&mut out);
                assert_eq!(out.is_empty(), self.server_ended);
                self.server_ended = true;
                self.receive(&out).expect("it is in order");
            }
            _ => {}
        }
        true
    }

    fn data(&mut self, bytes: usize) {
        if self.client_ended {
            return;
        }
        let data = vec![b'd'; bytes.min(DATA_BYTES_MAX)];
        self.client.writer().write_all(&data).expect("there is room");
        let mut arrived = Vec::new();
        for mut record in tls::sent(&mut self.client) {
            match self.session.open(&mut record) {
                Ok(Opened::Data(range)) => arrived.extend_from_slice(&record[range]),
                other => panic!("{other:?} is no data"),
            }
        }
        assert!(arrived == data, "{} bytes arrived as {}", data.len(), arrived.len());
    }

    fn send(&mut self, bytes: usize, head_bytes: usize) {
        let data: Vec<u8> = (0..bytes.min(DATA_BYTES_MAX)).map(|place| place as u8).collect();
        let (head, body) = data.split_at(head_bytes.min(data.len()));
        let mut out = Vec::new();
        let sealed = self.session.seal(Content::ApplicationData, &[head, body], &mut out);
        if self.server_ended {
            assert_eq!(sealed, Err(Fault::Closed));
        } else {
            sealed.expect("it can be sealed");
            assert!(self.receive(&out).expect("it is in order") == data);
        }
    }

    fn update(&mut self) {
        if self.session.info().version == Version::Tls12 || self.client_ended {
            return;
        }
        self.client.refresh_traffic_keys().expect("the version has it");
        for mut record in tls::sent(&mut self.client) {
            assert_eq!(self.session.open(&mut record), Ok(Opened::KeyUpdated { asked: true }));
        }
        self.renew();
        // So many in a row would be an attack.
        self.data(1);
    }

    fn renew(&mut self) {
        let mut out = Vec::new();
        match self.session.update_keys(&mut out) {
            Ok(()) => {
                self.receive(&out).expect("it is in order");
                assert!(!self.server_ended && self.session.info().version == Version::Tls13);
            }
            Err(Fault::LimitReached) => assert_eq!(self.session.info().version, Version::Tls12),
            Err(fault) => assert!(fault == Fault::Closed && self.server_ended),
        }
    }

    /// A record of the client's, with data; no record if it has ended.
    fn record(&mut self) -> Vec<u8> {
        if self.client_ended {
            return vec![0];
        }
        self.client.writer().write_all(SOME_DATA).expect("there is room");
        tls::sent(&mut self.client).remove(0)
    }

    /// Gives a record of [`Run::record`] as it is.
    fn open_data(&mut self, mut record: Vec<u8>) {
        match self.session.open(&mut record) {
            Ok(Opened::Data(range)) => assert_eq!(&record[range], SOME_DATA),
            Ok(Opened::Closed) => assert!(self.client_ended),
            other => panic!("{other:?} is no data"),
        }
    }

    /// Gives what was made of a record: it must be refused unless nothing was changed.
    fn changed(&mut self, record: Vec<u8>, changed: Vec<u8>) -> bool {
        if changed == record {
            self.open_data(record);
            return true;
        }
        self.refused(changed)
    }

    /// Gives a record that must be refused: whether the session goes on, which it does only if the
    /// client has ended, for then nothing is looked at.
    fn refused(&mut self, mut record: Vec<u8>) -> bool {
        match self.session.open(&mut record) {
            Ok(opened) => {
                assert!(opened == Opened::Closed && self.client_ended, "{opened:?} is accepted");
                true
            }
            Err(fault) => {
                let mut out = Vec::new();
                self.session.alert(fault, &mut out);
                assert_eq!(out.is_empty(), self.server_ended);
                if !self.server_ended {
                    let told = self.receive(&out).expect_err("an alert is an error");
                    let rustls::Error::AlertReceived(alert) = told else { panic!("{told:?}") };
                    let number = fault.alert().map(|alert| alert.number());
                    assert_eq!(number, Some(u8::from(alert)), "{fault:?}");
                }
                false
            }
        }
    }

    /// Gives the client what was sealed, and returns the data in it.
    fn receive(&mut self, mut bytes: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let mut data = Vec::new();
        while !bytes.is_empty() {
            self.client.read_tls(&mut bytes).expect("there is room");
            let state = self.client.process_new_packets()?;
            let start = data.len();
            data.resize(start + state.plaintext_bytes_to_read(), 0);
            self.client.reader().read_exact(&mut data[start..]).expect("it is there");
        }
        Ok(data)
    }
}
