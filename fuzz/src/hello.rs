//! The first bytes of a connection: `tls::record_bytes` and `tls::Handshake`, given whatever comes.
//!
//! The input is what a client sends. It is run three times: in one piece, in two, and byte by byte. The
//! same must come of it:
//!
//! - the same progress, at the same byte, and the same fault;
//! - the name that was found is the one that rustls finds, if it comes that far;
//! - a fault is told by its alert, if it has one, and nothing follows that;
//! - what the client made us keep is bounded.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock, Mutex};

use onering::tls::{Choose, Fault, HANDSHAKE_BYTES_MAX, Handshake, Progress, record_bytes};
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::tls;

/// Checks a client's bytes.
pub fn check(input: &[u8]) {
    let whole = run(&[input]);
    let (first, second) = input.split_at(input.len() / 2);
    assert_eq!(whole, run(&[first, second]), "in two pieces");
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(whole, run(&bytes), "byte by byte");
}

/// What became of a client's bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// Bytes that were taken as records.
    taken: usize,
    fault: Option<Fault>,
    /// The name by which a configuration was chosen, if one was.
    name: Option<Option<String>>,
}

fn run(pieces: &[&[u8]]) -> Outcome {
    let names = Arc::new(Names::default());
    let mut handshake = Handshake::choosing(Arc::clone(&names) as Arc<dyn Choose>);
    let (mut received, mut outcome) = (Vec::new(), Outcome::default());
    let mut out = Vec::new();
    for piece in pieces {
        received.extend_from_slice(piece);
        while outcome.fault.is_none() {
            match record_bytes(&received, handshake.stage()) {
                Ok(Some(length)) if length <= received.len() => {
                    handshake.push(&received[..length]);
                    received.drain(..length);
                    outcome.taken += length;
                    match handshake.advance() {
                        Progress::Failed(fault) => outcome.fault = Some(fault),
                        Progress::More => {}
                        Progress::Done => panic!("without a key it is never done"),
                    }
                }
                Ok(_) => break,
                Err(fault) => {
                    handshake.fail(fault);
                    outcome.fault = Some(fault);
                }
            }
            out.append(&mut handshake.outgoing());
        }
    }
    assert!(handshake.unused().len() <= HANDSHAKE_BYTES_MAX);
    out.append(&mut handshake.outgoing());
    if let Some(fault) = outcome.fault {
        assert_eq!(handshake.advance(), Progress::Failed(fault), "once and for all");
        assert!(handshake.outgoing().is_empty(), "and told once");
        let tells = |record: &Vec<u8>| matches!(record[..], [21, ..]) || record[0] == 23;
        let told = tls::split(&out).last().is_some_and(tells);
        // An alert that is malformed is answered, any other is not: rustls decides.
        if !matches!(fault, Fault::PeerAlert(_)) {
            assert_eq!(told, fault.alert().is_some(), "{fault:?}");
        }
    }
    let chosen = names.chosen.lock().expect("nobody panics with it").take();
    let resolved = RESOLVED.take();
    if let Some(resolved) = resolved {
        assert_eq!(chosen.as_ref(), Some(&resolved), "rustls finds another name");
    }
    outcome.name = chosen;
    outcome
}

/// Remembers the name by which it was asked.
#[derive(Default)]
struct Names {
    chosen: Mutex<Option<Option<String>>>,
}

impl Choose for Names {
    fn choose(&self, server_name: Option<&str>) -> Arc<ServerConfig> {
        *self.chosen.lock().expect("nobody panics with it") = Some(server_name.map(str::to_owned));
        Arc::clone(&CONFIG)
    }
}

static CONFIG: LazyLock<Arc<ServerConfig>> =
    LazyLock::new(|| Arc::new(tls::server(Arc::new(Resolver))));

thread_local! {
    /// The name that rustls has asked a certificate for.
    static RESOLVED: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct Resolver;

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        RESOLVED.set(Some(name));
        Some(Arc::clone(&tls::IDENTITY))
    }
}
