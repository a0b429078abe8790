//! One TLS connection of the client, without a socket: ciphertext goes in, cut anywhere; plaintext
//! comes out of it, and ciphertext to be sent.
//!
//! It stands on rustls' unbuffered connection. The buffered one reads its input through
//! `std::io::Read` in pieces of 4 KiB into a buffer of its own, once for each connection; here a
//! receive buffer is decrypted record by record where it lies, in a buffer that all connections of
//! a thread share, and only the beginning of an incomplete record is kept with its connection.
//!
//! | state | what comes | then |
//! |---|---|---|
//! | handshake | the server's flights | open, once this side's last flight is written |
//! | open | application data | handed out, a record at a time |
//! | open | tickets, key updates, requests to renegotiate | answered by rustls (renegotiation is refused) |
//! | open | `close_notify` | ended |
//! | ended | anything | ignored (RFC 8446 §6.1) |
//! | any | an alert, or what is no TLS | failed: an alert is to be sent, nothing else can follow |

use super::error::TlsError;
use super::sessions::Intent;
use super::suites::{Cipher, TlsVersion};
use onering::ring::SendBuf;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedStatus, WriteTraffic,
};
use rustls::{CommonState, HandshakeKind};
use std::fmt;
use std::rc::Rc;

/// What a record may be longer than the plaintext in it: header, explicit nonce and tag of TLS 1.2's
/// AES-GCM (RFC 5288 §3), the longest of the suites spoken.
const RECORD_OVERHEAD_BYTES: usize = 5 + 8 + 16;

/// Most plaintext of one record (RFC 8446 §5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;

/// Level and description (RFC 8446 §6).
const ALERT_BYTES: usize = 2;

/// What a handshake has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Whether a session was resumed; otherwise the handshake was a full one.
    pub resumed: bool,
    /// What was wanted.
    pub intent: Intent,
    /// Whether the server asked for another key share first, at the cost of a round trip.
    pub retried: bool,
    /// What both sides speak from here on.
    pub negotiated: Negotiated,
}

/// What both sides of a connection speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The version.
    pub version: TlsVersion,
    /// The cipher suite.
    pub cipher: Cipher,
}

impl Negotiated {
    /// That of a connection of rustls; `None` before it is known.
    pub(crate) fn of(connection: &CommonState) -> Option<Self> {
        Some(Self {
            version: TlsVersion::negotiated(connection.protocol_version()?)?,
            cipher: Cipher::negotiated(connection.negotiated_cipher_suite()?.suite())?,
        })
    }
}

/// See the head of this file.
pub struct TlsConnection {
    rustls: UnbufferedClientConnection,
    intent: Intent,
    /// The beginning of a record, or of a handshake message, whose end was not received.
    partial: Vec<u8>,
    /// Ciphertext to be sent.
    outgoing: Vec<u8>,
    life: Life,
}

/// How far the server has brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Handshake, or open.
    Alive,
    /// The server has said that nothing more will come.
    Ended,
    /// It has failed. rustls must not be asked again: it takes that for a mistake of its own.
    Failed(TlsError),
}

impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rustls: _, intent, partial, outgoing, life } = self;
        f.debug_struct("TlsConnection")
            .field("intent", intent)
            .field("partial_bytes", &partial.len())
            .field("outgoing_bytes", &outgoing.len())
            .field("life", life)
            .finish_non_exhaustive()
    }
}

impl TlsConnection {
    /// A new connection; its first flight is to be sent at once.
    pub(super) fn begin(
        rustls: UnbufferedClientConnection,
        intent: Intent,
    ) -> Result<Self, TlsError> {
        let mut connection =
            Self { rustls, intent, partial: Vec::new(), outgoing: Vec::new(), life: Life::Alive };
        connection.drive::<TlsError>(&mut [], |_| Ok(()))?;
        Ok(connection)
    }

    /// Takes in what was received and hands out the plaintext in it, a record at a time.
    ///
    /// `scratch` is the thread's: what is in it before and after has no meaning. After an error
    /// nothing can be received or sent but [`TlsConnection::outgoing`], which has the alert.
    pub fn received<E: From<TlsError>>(
        &mut self,
        ciphertext: &[u8],
        scratch: &mut Vec<u8>,
        plaintext: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.life {
            Life::Alive => {}
            Life::Ended => return Ok(()),
            Life::Failed(error) => return Err(error.into()),
        }
        scratch.clear();
        scratch.extend_from_slice(&self.partial);
        scratch.extend_from_slice(ciphertext);
        self.partial.clear();
        let done = self.drive(scratch, plaintext)?;
        self.partial.extend_from_slice(&scratch[done..]);
        Ok(())
    }

    /// Encrypts a request. Only to be called once [`TlsConnection::handshake`] has one.
    pub fn send(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        self.write(|traffic, room| traffic.encrypt(plaintext, room), plaintext.len())
    }

    /// Says that nothing more will be sent (RFC 8446 §6.1), if the handshake has come so far.
    pub fn close(&mut self) -> Result<(), TlsError> {
        match self.handshake() {
            Some(_) => self.write(|traffic, room| traffic.queue_close_notify(room), ALERT_BYTES),
            None => Ok(()),
        }
    }

    /// What is to be sent now: the caller owes it to the server before anything later.
    pub fn outgoing(&mut self) -> Option<SendBuf> {
        if self.outgoing.is_empty() {
            return None;
        }
        let bytes: Rc<[u8]> = self.outgoing.as_slice().into();
        self.outgoing.clear();
        let end = u32::try_from(bytes.len()).expect("requests and flights are far below 4 GiB");
        Some(SendBuf::Shared(bytes, 0..end))
    }

    /// What the handshake has come to; `None` while it is under way.
    pub fn handshake(&self) -> Option<Handshake> {
        if self.rustls.is_handshaking() {
            return None;
        }
        let kind = self.rustls.handshake_kind()?;
        Some(Handshake {
            resumed: kind == HandshakeKind::Resumed,
            intent: self.intent,
            retried: kind == HandshakeKind::FullWithHelloRetryRequest,
            negotiated: Negotiated::of(&self.rustls)?,
        })
    }

    /// Whether the server has said that nothing more will come. A connection that ends without it
    /// was cut off, by whomever; where responses have lengths, only one that is incomplete is
    /// thereby wrong (RFC 9112 §9.8).
    pub fn ended(&self) -> bool {
        self.life == Life::Ended
    }

    /// Processes the records at the front of `buffer`; returns how many bytes are done with.
    fn drive<E: From<TlsError>>(
        &mut self,
        buffer: &mut [u8],
        mut plaintext: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut done = 0;
        loop {
            let UnbufferedStatus { mut discard, state, .. } =
                self.rustls.process_tls_records(&mut buffer[done..]);
            let blocked = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(TlsError::from)?;
                        discard += record.discard;
                        plaintext(record.payload)?;
                    }
                    false
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode(data, &mut self.outgoing)?;
                    false
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    false
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.life = Life::Ended;
                    true
                }
                Ok(_) => true,
                Err(error) => {
                    let error = TlsError::from(error);
                    self.life = Life::Failed(error);
                    self.alert();
                    return Err(error.into());
                }
            };
            done += discard;
            if blocked {
                return Ok(done);
            }
        }
    }

    /// Writes the alert that tells the server what was wrong, if one is due.
    fn alert(&mut self) {
        while self.rustls.wants_write() {
            match self.rustls.process_tls_records(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    // The connection has failed already: how else does not matter.
                    let _ = encode(data, &mut self.outgoing);
                }
                _ => return,
            }
        }
    }

    /// Has `encrypt` write records of `plaintext_bytes` behind what is to be sent already.
    fn write(
        &mut self,
        encrypt: impl Fn(
            &mut WriteTraffic<'_, ClientConnectionData>,
            &mut [u8],
        ) -> Result<usize, EncryptError>,
        plaintext_bytes: usize,
    ) -> Result<(), TlsError> {
        if let Life::Failed(error) = self.life {
            return Err(error);
        }
        let records = plaintext_bytes / RECORD_BYTES_MAX + 1;
        let mut room = plaintext_bytes + records * RECORD_OVERHEAD_BYTES;
        // What was received in part lies where rustls has seen it: it must see it again.
        let mut partial = std::mem::take(&mut self.partial);
        let written = loop {
            let UnbufferedStatus { discard, state, .. } =
                self.rustls.process_tls_records(&mut partial);
            match state {
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut self.outgoing)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let before = self.outgoing.len();
                    self.outgoing.resize(before + room, 0);
                    let written = encrypt(&mut traffic, &mut self.outgoing[before..]);
                    self.outgoing.truncate(before + written.as_ref().map_or(0, |&bytes| bytes));
                    match written {
                        // Such as an answer to a key update in front.
                        Err(EncryptError::InsufficientSize(InsufficientSizeError {
                            required_size,
                        })) => room = required_size,
                        Err(EncryptError::EncryptExhausted) => break Err(TlsError::Local),
                        Ok(_) => break Ok(()),
                    }
                }
                Ok(_) => break Err(TlsError::Local),
                Err(error) => break Err(error.into()),
            }
            partial.drain(..discard);
        };
        self.partial = partial;
        written
    }
}

/// Writes a handshake message or an alert behind what is to be sent already.
fn encode(
    mut data: EncodeTlsData<'_, ClientConnectionData>,
    outgoing: &mut Vec<u8>,
) -> Result<(), TlsError> {
    let before = outgoing.len();
    loop {
        match data.encode(&mut outgoing[before..]) {
            Ok(written) => {
                outgoing.truncate(before + written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                outgoing.resize(before + required_size, 0);
            }
            Err(EncodeError::AlreadyEncoded) => return Err(TlsError::Local),
        }
    }
}
