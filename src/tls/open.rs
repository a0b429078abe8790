//! Opens the records of a finished handshake's peer, where they lie, and reads what is none of the
//! application's: alerts, KeyUpdate, a wish for another handshake.
//!
//! What must be answered is for the session to answer: nothing is sent from here.

use std::fmt;
use std::ops::Range;

use rustls::crypto::cipher::{InboundOpaqueMessage, MessageDecrypter};
use rustls::{ConnectionTrafficSecrets, ContentType, ProtocolVersion, SupportedCipherSuite};

use super::fault::{Alert, Fault};
use super::record::{Content, HEADER_BYTES, Version};

/// Records in a row without data that a peer may send: empty ones, warnings, KeyUpdates, wishes for
/// another handshake. Each costs us as much as one with data, and takes the peer no further.
const UNPRODUCTIVE_MAX: u8 = 32;

/// The longest ClientHello that is skipped, where TLS 1.2 is asked for another handshake.
const HELLO_BYTES_MAX: usize = 1 << 16;

/// What was in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Data: where it now lies in the record. Never empty.
    Data(Range<usize>),
    /// Nothing that matters.
    Nothing,
    /// TLS 1.3: the peer seals with another key from now on, which is in use already.
    KeyUpdated {
        /// It wants us to change ours too, before we send more data ([`super::Session::update_keys`]).
        asked: bool,
    },
    /// TLS 1.2: the peer wants another handshake ([`super::Session::refuse_renegotiation`]).
    Renegotiation,
    /// The peer sends no more. So is everything that follows.
    Closed,
}

/// One key for receiving, and what the records so far leave open.
pub(crate) struct Opener {
    decrypter: Box<dyn MessageDecrypter>,
    suite: SupportedCipherSuite,
    /// Bytes between a record's header and its text: the part of the nonce that is sent.
    explicit_bytes: usize,
    sequence: u64,
    reading: Reading,
    /// Records since the last one with data.
    unproductive: u8,
}

/// What the next record may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Any.
    Records,
    /// TLS 1.3: the rest of a KeyUpdate, of which these bytes have come.
    KeyUpdate { bytes: [u8; KEY_UPDATE_BYTES], have: usize },
    /// TLS 1.2: the rest of a ClientHello, which nobody reads.
    Hello { missing_bytes: usize },
    /// None: the peer has ended.
    Closed,
}

/// Bytes of a KeyUpdate: type, length, and whether ours is asked for (RFC 8446 §4.6.3).
const KEY_UPDATE_BYTES: usize = 5;

/// Its beginning.
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];

/// The type of a ClientHello (RFC 5246 §7.4).
const CLIENT_HELLO: u8 = 1;

/// Bytes of a handshake message's type and length.
const MESSAGE_HEADER_BYTES: usize = 4;

impl Opener {
    /// Opens with `secrets` from the record `sequence` on.
    pub(crate) fn new(
        suite: SupportedCipherSuite,
        secrets: ConnectionTrafficSecrets,
        sequence: u64,
    ) -> Result<Opener, Fault> {
        let (decrypter, explicit_bytes) = decrypter(suite, secrets)?;
        let reading = Reading::Records;
        Ok(Opener { decrypter, suite, explicit_bytes, sequence, reading, unproductive: 0 })
    }

    /// Opens with other secrets from now on.
    pub(crate) fn rekey(&mut self, secrets: ConnectionTrafficSecrets) -> Result<(), Fault> {
        (self.decrypter, self.explicit_bytes) = decrypter(self.suite, secrets)?;
        self.sequence = 0;
        Ok(())
    }

    /// Opens one whole record where it lies. After [`Opened::KeyUpdated`] nothing more may be opened
    /// before [`Opener::rekey`].
    pub(crate) fn open(&mut self, record: &mut [u8]) -> Result<Opened, Fault> {
        if self.reading == Reading::Closed {
            return Ok(Opened::Closed);
        }
        let (content, text) = self.decrypt(record)?;
        if content != Content::Handshake && self.reading != Reading::Records {
            // No other record may come between those of one message (RFC 8446 §5.1).
            return Err(Fault::Unexpected);
        }
        let opened = match content {
            Content::ApplicationData if text.is_empty() => Opened::Nothing,
            Content::ApplicationData => {
                self.unproductive = 0;
                return Ok(Opened::Data(text));
            }
            Content::Alert => self.alert(&record[text])?,
            Content::Handshake => match version(self.suite) {
                Version::Tls13 => self.key_update(&record[text])?,
                Version::Tls12 => self.hello(&record[text])?,
            },
            Content::ChangeCipherSpec => return Err(Fault::Unexpected),
        };
        if self.unproductive == UNPRODUCTIVE_MAX {
            return Err(Fault::Unproductive);
        }
        self.unproductive += 1;
        Ok(opened)
    }

    /// Decrypts a record: what it holds, and where in it that lies now.
    fn decrypt(&mut self, record: &mut [u8]) -> Result<(Content, Range<usize>), Fault> {
        let (header, text) = record.split_first_chunk_mut().ok_or(Fault::Malformed)?;
        let &mut [kind, major, minor, _, _]: &mut [u8; HEADER_BYTES] = header;
        let kind = Content::from_byte(kind).ok_or(Fault::Unexpected)?;
        if version(self.suite) == Version::Tls13 && kind != Content::ApplicationData {
            // Whatever is sealed looks like data from outside (RFC 8446 §5).
            return Err(Fault::Unexpected);
        }
        let message = InboundOpaqueMessage::new(
            ContentType::from(kind as u8),
            ProtocolVersion::from(u16::from_be_bytes([major, minor])),
            text,
        );
        let plain = self.decrypter.decrypt(message, self.sequence)?;
        self.sequence = self.sequence.checked_add(1).ok_or(Fault::LimitReached)?;
        let content = Content::from_byte(u8::from(plain.typ)).ok_or(Fault::Unexpected)?;
        let start = HEADER_BYTES + self.explicit_bytes;
        Ok((content, start..start + plain.payload.len()))
    }

    /// Reads an alert. An error is final in either version; in TLS 1.3 there are no warnings but one
    /// (RFC 8446 §6).
    fn alert(&mut self, text: &[u8]) -> Result<Opened, Fault> {
        const WARNING: u8 = 1;
        let &[level, alert] = text else { return Err(Fault::Malformed) };
        let alert = Alert::from_byte(alert);
        match (version(self.suite), alert) {
            (_, Alert::CLOSE_NOTIFY) => {
                self.reading = Reading::Closed;
                Ok(Opened::Closed)
            }
            (_, Alert::USER_CANCELED) => Ok(Opened::Nothing),
            (Version::Tls12, _) if level == WARNING => Ok(Opened::Nothing),
            _ => Err(Fault::PeerAlert(alert)),
        }
    }

    /// Reads the next piece of the only message that a client may send after the handshake of TLS 1.3.
    fn key_update(&mut self, piece: &[u8]) -> Result<Opened, Fault> {
        let (mut bytes, have) = match self.reading {
            Reading::KeyUpdate { bytes, have } => (bytes, have),
            _ => ([0; KEY_UPDATE_BYTES], 0),
        };
        // An empty piece is none (RFC 8446 §5.1), and with what follows a KeyUpdate the peer has used
        // the old key once too often.
        let room = bytes[have..].get_mut(..piece.len()).filter(|room| !room.is_empty());
        room.ok_or(Fault::Unexpected)?.copy_from_slice(piece);
        let have = have + piece.len();
        let known = have.min(KEY_UPDATE.len());
        if bytes[..known] != KEY_UPDATE[..known] {
            return Err(Fault::Unexpected);
        }
        if have < KEY_UPDATE_BYTES {
            self.reading = Reading::KeyUpdate { bytes, have };
            return Ok(Opened::Nothing);
        }
        self.reading = Reading::Records;
        match bytes[KEY_UPDATE_BYTES - 1] {
            0 => Ok(Opened::KeyUpdated { asked: false }),
            1 => Ok(Opened::KeyUpdated { asked: true }),
            _ => Err(Fault::IllegalParameter),
        }
    }

    /// Skips the next piece of the only message that a client may send after the handshake of TLS 1.2.
    fn hello(&mut self, piece: &[u8]) -> Result<Opened, Fault> {
        let missing_bytes = match self.reading {
            Reading::Hello { missing_bytes } => missing_bytes,
            _ => match piece {
                &[CLIENT_HELLO, high, middle, low, ..] => {
                    let bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
                    if bytes > HELLO_BYTES_MAX {
                        return Err(Fault::HandshakeTooLarge);
                    }
                    MESSAGE_HEADER_BYTES + bytes
                }
                _ => return Err(Fault::Unexpected),
            },
        };
        match missing_bytes.checked_sub(piece.len()) {
            None => Err(Fault::Unexpected),
            Some(0) => {
                self.reading = Reading::Records;
                Ok(Opened::Renegotiation)
            }
            Some(missing_bytes) => {
                self.reading = Reading::Hello { missing_bytes };
                Ok(Opened::Nothing)
            }
        }
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Opener")
            .field("suite", &self.suite)
            .field("sequence", &self.sequence)
            .field("reading", &self.reading)
            .finish_non_exhaustive()
    }
}

/// The version that a suite belongs to.
pub(crate) fn version(suite: SupportedCipherSuite) -> Version {
    match suite {
        SupportedCipherSuite::Tls12(_) => Version::Tls12,
        SupportedCipherSuite::Tls13(_) => Version::Tls13,
    }
}

/// What opens records of this suite with these secrets, and how many bytes of the nonce each carries.
fn decrypter(
    suite: SupportedCipherSuite,
    secrets: ConnectionTrafficSecrets,
) -> Result<(Box<dyn MessageDecrypter>, usize), Fault> {
    let (key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
        _ => return Err(Fault::Internal),
    };
    Ok(match suite {
        SupportedCipherSuite::Tls13(suite) => (suite.aead_alg.decrypter(key, iv), 0),
        SupportedCipherSuite::Tls12(suite) => {
            // Of a nonce of GCM only the salt is agreed upon, the rest comes with each record.
            let shape = suite.aead_alg.key_block_shape();
            let salt = &iv.as_ref()[..shape.fixed_iv_len];
            (suite.aead_alg.decrypter(key, salt), shape.explicit_nonce_len)
        }
    })
}
