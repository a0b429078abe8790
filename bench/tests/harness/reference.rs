//! The reference responder over real sockets: a thread for each connection, idle but for what it is
//! asked, over TCP or over TLS. It counts requests and connections for the laws, and handshakes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onering_fileset::plan::Directories;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

use crate::laws::Observed;
use crate::responder::{Fault, Responder, request_bytes};

/// The seed of the file set and of users and ads.
pub(crate) const SET_SEED: u64 = 1;

const FETCH: &[u8] = b"command/Fetch";

/// A server that runs until the test's process ends.
pub(crate) struct Reference {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    responder: Mutex<Responder>,
    observed: Mutex<Observed>,
    /// Before the first byte of each answer.
    late: Duration,
    tls: Option<Arc<ServerConfig>>,
    handshakes: Mutex<Handshakes>,
    on_fetch: Mutex<OnFetch>,
    fetch_asked: AtomicBool,
}

/// TLS handshakes that were completed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Handshakes {
    pub(crate) full: u64,
    pub(crate) resumed: u64,
}

/// What becomes of the command Fetch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFetch {
    Answer,
    /// The connection is closed.
    Close,
    /// Nothing comes, for as long as the client waits.
    Hang,
}

impl Reference {
    /// Of a file set of that many directories. It lets `late` pass before the first byte of each
    /// answer.
    pub(crate) fn start(set: Directories, fault: Option<Fault>, late: Duration) -> Self {
        Self::serving(set, fault, late, None)
    }

    /// Without fault, over TLS, whose sessions may be resumed.
    pub(crate) fn start_secured(set: Directories) -> Self {
        let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(identity.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("suites for both versions")
            .with_no_client_auth()
            .with_single_cert(vec![identity.cert.der().clone()], key)
            .expect("a certificate and its key");
        Self::serving(set, None, Duration::ZERO, Some(Arc::new(config)))
    }

    fn serving(
        set: Directories,
        fault: Option<Fault>,
        late: Duration,
        tls: Option<Arc<ServerConfig>>,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
        let address = listener.local_addr().expect("it is bound");
        let mut responder = Responder::new(SET_SEED);
        responder.set_fault(fault);
        let (responder, observed) = (Mutex::new(responder), Mutex::new(Observed::new(set)));
        let shared = Arc::new(Shared {
            responder,
            observed,
            late,
            tls,
            handshakes: Mutex::default(),
            on_fetch: Mutex::new(OnFetch::Answer),
            fetch_asked: AtomicBool::new(false),
        });
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = Arc::clone(&server);
                // A client that is gone ends a connection; what it means is the client's to tell.
                thread::spawn(move || server.accept(stream));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    pub(crate) fn handshakes(&self) -> Handshakes {
        *self.shared.handshakes.lock().expect("no thread has panicked")
    }

    pub(crate) fn set_on_fetch(&self, on_fetch: OnFetch) {
        *self.shared.on_fetch.lock().expect("no thread has panicked") = on_fetch;
    }

    /// Whether the command Fetch has come.
    pub(crate) fn fetch_asked(&self) -> bool {
        self.shared.fetch_asked.load(Ordering::Relaxed)
    }

    /// What was requested, and how many connections had not come to their end.
    pub(crate) fn observed<T>(&self, look: impl FnOnce(&Observed) -> T) -> T {
        look(&self.shared.observed.lock().expect("no thread has panicked"))
    }
}

impl Shared {
    fn accept(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let Some(config) = &self.tls else { return self.serve(&mut stream) };
        let mut tls = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut stream)?;
        }
        {
            let mut handshakes = self.handshakes.lock().expect("no thread has panicked");
            match tls.handshake_kind() {
                Some(HandshakeKind::Resumed) => handshakes.resumed += 1,
                _ => handshakes.full += 1,
            }
        }
        let mut stream = StreamOwned::new(tls, stream);
        let served = self.serve(&mut stream);
        stream.conn.send_close_notify();
        stream.flush()?;
        served
    }

    fn serve(&self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let (mut input, mut requests) = (Vec::new(), 0);
        let mut piece = [0; 4096];
        loop {
            let Some(length) = request_bytes(&input) else {
                let length = stream.read(&mut piece)?;
                if length == 0 {
                    return Ok(());
                }
                input.extend_from_slice(&piece[..length]);
                continue;
            };
            let request: Vec<u8> = input.drain(..length).collect();
            if request.windows(FETCH.len()).any(|window| window == FETCH) {
                self.fetch_asked.store(true, Ordering::Relaxed);
                match *self.on_fetch.lock().expect("no thread has panicked") {
                    OnFetch::Answer => {}
                    OnFetch::Close => return Ok(()),
                    // Until the client closes.
                    OnFetch::Hang => return stream.read_to_end(&mut input).map(drop),
                }
            }
            let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let answer = {
                let mut responder = self.responder.lock().expect("no thread has panicked");
                responder.answer(&request, now_s)
            };
            if let Some((kind, name)) = answer.request {
                let mut observed = self.observed.lock().expect("no thread has panicked");
                observed.request(kind, name);
                requests += 1;
                if requests == 1 {
                    observed.opened(answer.persistent);
                } else if !answer.persistent {
                    observed.ended(requests);
                }
            }
            thread::sleep(self.late);
            stream.write_all(&answer.bytes)?;
            if !answer.persistent {
                return Ok(());
            }
        }
    }
}
