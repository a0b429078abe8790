//! The reference responder over real sockets: a thread for each connection, idle but for what it is
//! asked. It counts requests and connections for the laws.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onering_fileset::plan::Directories;

use crate::laws::Observed;
use crate::responder::{Fault, Responder, request_bytes};

/// The seed of the file set and of users and ads.
pub(crate) const SET_SEED: u64 = 1;

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
        let shared = Arc::new(Shared { responder, observed, late });
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
