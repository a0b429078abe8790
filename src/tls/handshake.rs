//! A handshake: rustls does it, one record at a time, and it ends in a [`Session`].
//!
//! It takes whole records ([`super::record_bytes`]), does the cryptography when it is told to, on
//! whatever thread that may be, and gives bytes to be sent. It bounds what it keeps, not how long it
//! takes.
//!
//! ```text
//!          push                  advance
//! records ─────► Hello ─ whole ─► Shaking ─ Finished ─► Done ── finish ──► Session
//!                  └─────────────────┴── Failed, its alert in `outgoing`
//! ```

use std::fmt;
use std::sync::Arc;

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{ProtocolVersion, ServerConfig};

use super::fault::{Alert, Fault};
use super::hello::{Assembly, Hello};
use super::open;
use super::record::{Content, Stage, record_bytes};
use super::session::{Info, Options, Session};

/// Bytes of records that are kept, for messages that are not whole. The largest handshake message that
/// rustls takes is as long.
pub const HANDSHAKE_BYTES_MAX: usize = 1 << 16;

/// A handshake in progress.
pub struct Handshake {
    state: State,
    /// Records that were pushed and of which rustls has not let go.
    incoming: Vec<u8>,
    /// Bytes of these that rustls has seen.
    seen_bytes: usize,
    outgoing: Vec<u8>,
    /// Whether what is outgoing is sealed by now.
    sealing: bool,
}

/// How far a handshake has come.
enum State {
    /// The client's first message is not whole.
    Hello { assembly: Assembly, choice: Arc<dyn Choose> },
    /// rustls has it.
    Shaking(Box<Shaking>),
    /// It has failed. The fault is returned again, and the alert is not queued again.
    Failed(Fault),
}

/// What belongs to a handshake between the client's first message and its end.
struct Shaking {
    connection: UnbufferedServerConnection,
    server_name: Option<Box<str>>,
}

/// Says which configuration answers a client. Asked once for each handshake.
pub trait Choose: Send + Sync {
    /// The configuration for this server name, in lower case; `None` if the client asks for none.
    fn choose(&self, server_name: Option<&str>) -> Arc<ServerConfig>;
}

/// One configuration for whatever name.
struct Always(Arc<ServerConfig>);

impl Choose for Always {
    fn choose(&self, _: Option<&str>) -> Arc<ServerConfig> {
        Arc::clone(&self.0)
    }
}

/// What became of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More records are needed.
    More,
    /// It has finished: send what is outgoing, and then [`Handshake::finish`].
    Done,
    /// It has failed: send what is outgoing, and close.
    Failed(Fault),
}

impl Handshake {
    /// A handshake by this configuration, which must have `enable_secret_extraction` set and
    /// `max_early_data_size` zero.
    pub fn new(config: Arc<ServerConfig>) -> Handshake {
        Handshake::choosing(Arc::new(Always(config)))
    }

    /// A handshake whose configuration depends on the name that the client asks for.
    pub fn choosing(choice: Arc<dyn Choose>) -> Handshake {
        Handshake {
            state: State::Hello { assembly: Assembly::default(), choice },
            incoming: Vec::new(),
            seen_bytes: 0,
            outgoing: Vec::new(),
            sealing: false,
        }
    }

    /// What the next record may be.
    pub fn stage(&self) -> Stage {
        match &self.state {
            State::Shaking(shaking) if !shaking.connection.is_handshaking() => {
                let suite = shaking.connection.negotiated_cipher_suite();
                suite.map_or(Stage::Handshake, |suite| Stage::Session(open::version(suite)))
            }
            State::Hello { .. } if self.incoming.is_empty() => Stage::First,
            _ => Stage::Handshake,
        }
    }

    /// Takes one whole record. Those after the handshake's last may be pushed too: see
    /// [`Handshake::unused`].
    pub fn push(&mut self, record: &[u8]) {
        self.incoming.extend_from_slice(record);
    }

    /// Goes on as far as the pushed records allow. Here is where the time goes: a signature, an
    /// agreement on keys, and the check of a client's certificates.
    pub fn advance(&mut self) -> Progress {
        match self.try_advance() {
            Ok(progress) => progress,
            Err(fault) => {
                self.fail(fault);
                Progress::Failed(fault)
            }
        }
    }

    fn try_advance(&mut self) -> Result<Progress, Fault> {
        loop {
            match &mut self.state {
                State::Failed(fault) => return Err(*fault),
                State::Hello { assembly, choice } => match assembly.read(&self.incoming) {
                    Hello::Partial => return self.bounded(),
                    Hello::TooOld => return Err(Fault::NoSharedVersion),
                    Hello::Whole(server_name) => {
                        let config = choice.choose(server_name.as_deref());
                        let connection = UnbufferedServerConnection::new(config)?;
                        self.state = State::Shaking(Box::new(Shaking { connection, server_name }));
                    }
                },
                State::Shaking(shaking) if !shaking.connection.is_handshaking() => {
                    return Ok(Progress::Done);
                }
                State::Shaking(_) => {
                    let unseen = &self.incoming[self.seen_bytes..];
                    match record_bytes(unseen, Stage::Handshake)? {
                        Some(bytes) if bytes <= unseen.len() => self.seen_bytes += bytes,
                        _ => return self.bounded(),
                    }
                    self.process()?;
                }
            }
        }
    }

    /// Waits for more, unless too much is waiting already.
    fn bounded(&self) -> Result<Progress, Fault> {
        if self.incoming.len() > HANDSHAKE_BYTES_MAX {
            return Err(Fault::HandshakeTooLarge);
        }
        Ok(Progress::More)
    }

    /// Gives rustls what it has not let go of, until it wants more.
    fn process(&mut self) -> Result<(), Fault> {
        let State::Shaking(shaking) = &mut self.state else { return Ok(()) };
        loop {
            let records = &mut self.incoming[..self.seen_bytes];
            let UnbufferedStatus { discard, state } =
                shaking.connection.process_tls_records(records);
            let wants_more = match state? {
                ConnectionState::EncodeTlsData(data) => {
                    let kind = encode(data, &mut self.outgoing)?;
                    let version = shaking.connection.protocol_version();
                    self.sealing |= match kind {
                        Some(Content::ApplicationData) => true,
                        Some(Content::ChangeCipherSpec) => {
                            version == Some(ProtocolVersion::TLSv1_2)
                        }
                        _ => false,
                    };
                    false
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    false
                }
                ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => true,
                // There is no early data, and nothing was given that follows the handshake.
                _ => return Err(Fault::Unexpected),
            };
            self.incoming.drain(..discard);
            self.seen_bytes -= discard;
            if wants_more {
                return Ok(());
            }
        }
    }

    /// Ends the handshake for a reason that may be the caller's. The alert is then outgoing, if the
    /// fault has one.
    pub fn fail(&mut self, fault: Fault) {
        match std::mem::replace(&mut self.state, State::Failed(fault)) {
            State::Failed(first) => self.state = State::Failed(first),
            State::Hello { .. } => self.queue_alert(fault),
            State::Shaking(mut shaking) => {
                if !shaking.connection.wants_write() {
                    if !self.sealing || fault.alert().is_none() {
                        return self.queue_alert(fault);
                    }
                    // Only rustls can seal an alert, and it decides itself which: for a record of
                    // unknown type it is decode_error. What it says to that is no news.
                    let mut records = self.incoming[..self.seen_bytes].to_vec();
                    records.extend_from_slice(&[0; 6]);
                    let _ = shaking.connection.process_tls_records(&mut records).state;
                }
                while shaking.connection.wants_write() {
                    match shaking.connection.process_tls_records(&mut []).state {
                        Ok(ConnectionState::EncodeTlsData(data)) => {
                            if encode(data, &mut self.outgoing).is_err() {
                                return;
                            }
                        }
                        _ => return,
                    }
                }
            }
        }
    }

    /// Queues an alert that is not sealed.
    fn queue_alert(&mut self, fault: Fault) {
        if let Some(alert) = fault.alert() {
            let [level, description] = Alert::to_bytes(alert);
            let record = [Content::Alert as u8, 3, 3, 0, 2, level, description];
            self.outgoing.extend_from_slice(&record);
        }
    }

    /// What is to be sent now; empty if nothing is. Whatever [`Handshake::advance`] says, it comes first.
    pub fn outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Records that were pushed and are not the handshake's: the session's.
    pub fn unused(&mut self) -> Vec<u8> {
        self.incoming.split_off(self.seen_bytes)
    }

    /// The session, once [`Progress::Done`] was returned.
    pub fn finish(self, options: &Options) -> Result<Session, Fault> {
        let State::Shaking(shaking) = self.state else { return Err(Fault::Internal) };
        let Shaking { connection, server_name } = *shaking;
        let info = Info::new(&connection, server_name)?;
        let (secrets, keys) = connection.dangerous_into_kernel_connection()?;
        Session::new(info, secrets, keys, options)
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Handshake")
            .field("stage", &self.stage())
            .field("incoming_bytes", &self.incoming.len())
            .field("outgoing_bytes", &self.outgoing.len())
            .finish_non_exhaustive()
    }
}

/// Appends a record of rustls's, and says what it is from outside.
fn encode<Data>(
    mut record: EncodeTlsData<'_, Data>,
    out: &mut Vec<u8>,
) -> Result<Option<Content>, Fault> {
    let start = out.len();
    match record.encode(&mut []) {
        Err(EncodeError::InsufficientSize(needed)) => out.resize(start + needed.required_size, 0),
        _ => return Err(Fault::Internal),
    }
    record.encode(&mut out[start..]).map_err(|_| Fault::Internal)?;
    Ok(out.get(start).and_then(|&kind| Content::from_byte(kind)))
}
