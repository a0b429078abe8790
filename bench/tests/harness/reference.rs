//! The reference responder over real sockets: a thread for each connection, idle but for what it is
//! asked. It counts requests and connections for the laws.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onering_fileset::plan::Directories;

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
    on_fetch: Mutex<OnFetch>,
    fetch_asked: AtomicBool,
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
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
        let address = listener.local_addr().expect("it is bound");
        let mut responder = Responder::new(SET_SEED);
        responder.set_fault(fault);
        let (responder, observed) = (Mutex::new(responder), Mutex::new(Observed::new(set)));
        let shared = Arc::new(Shared {
            responder,
            observed,
            late,
            on_fetch: Mutex::new(OnFetch::Answer),
            fetch_asked: AtomicBool::new(false),
        });
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = Arc::clone(&server);
                // A client that is gone ends a connection; what it means is the client's to tell.
                thread::spawn(move || server.serve(stream));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
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
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
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
