//! Where a record ends, and what is none: the five bytes in front of each (RFC 8446 §5.1, RFC 5246 §6.2.1).
//!
//! It looks at headers alone: whether what follows can be decrypted is for others to find out. A
//! client that speaks something else entirely is recognised by its first bytes.

pub use crate::sys::ktls::Version;

use super::fault::Fault;

/// Bytes of a record's header: type, version, length.
pub const HEADER_BYTES: usize = 5;

/// The most plaintext that a record may hold (RFC 8446 §5.1).
pub const PLAIN_BYTES_MAX: usize = 1 << 14;

/// What sealing may add to it in TLS 1.3 (RFC 8446 §5.2).
const GROWTH_BYTES_MAX_13: usize = 256;

/// What sealing may add to it in TLS 1.2 (RFC 5246 §6.2.3).
const GROWTH_BYTES_MAX_12: usize = 2048;

/// Capitals at the beginning of a connection that may still become a method of HTTP.
const METHOD_BYTES_MAX: usize = 16;

/// What is in a record, and its number on the wire (RFC 8446 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Content {
    /// The end of a handshake's plaintext in TLS 1.2; padding for old middleboxes in TLS 1.3.
    ChangeCipherSpec = 20,
    /// An end, or a warning.
    Alert = 21,
    /// A message of the handshake, or after it.
    Handshake = 22,
    /// What TLS is for; in TLS 1.3 the outside of every sealed record.
    ApplicationData = 23,
}

impl Content {
    /// The content that has this number, if there is one.
    pub(crate) fn from_byte(byte: u8) -> Option<Content> {
        [Content::ChangeCipherSpec, Content::Alert, Content::Handshake, Content::ApplicationData]
            .into_iter()
            .find(|content| *content as u8 == byte)
    }
}

/// How far a connection has come, which bounds what its next record may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing has been received.
    First,
    /// The handshake is under way.
    Handshake,
    /// It has finished.
    Session(Version),
}

/// The bytes of the record that `prefix` begins with, its header included; `None` while the header is
/// incomplete.
pub fn record_bytes(prefix: &[u8], stage: Stage) -> Result<Option<usize>, Fault> {
    let Some(&kind) = prefix.first() else { return Ok(None) };
    if Content::from_byte(kind).is_none() {
        return match stage {
            Stage::First => not_tls(prefix),
            Stage::Handshake | Stage::Session(_) => Err(Fault::Unexpected),
        };
    }
    if prefix.get(1).is_some_and(|&major| major != 3) {
        return Err(Fault::NotTls);
    }
    let Some(&[_, _, _, high, low]) = prefix.first_chunk() else { return Ok(None) };
    let bytes = usize::from(u16::from_be_bytes([high, low]));
    let growth_bytes = match stage {
        Stage::First => 0,
        Stage::Handshake | Stage::Session(Version::Tls12) => GROWTH_BYTES_MAX_12,
        Stage::Session(Version::Tls13) => GROWTH_BYTES_MAX_13,
    };
    if bytes > PLAIN_BYTES_MAX + growth_bytes {
        return Err(Fault::RecordOverflow);
    }
    Ok(Some(HEADER_BYTES + bytes))
}

/// What the first bytes of a connection are, if they are no record: `None` as long as they may still
/// become a request of HTTP, or a hello of SSL 2.
fn not_tls(prefix: &[u8]) -> Result<Option<usize>, Fault> {
    let method_bytes = prefix.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    match (method_bytes, prefix.get(method_bytes)) {
        (1..=METHOD_BYTES_MAX, None) => Ok(None),
        (3..=METHOD_BYTES_MAX, Some(b' ')) => Err(Fault::PlainHttp),
        // A length with its highest bit set, and the message CLIENT-HELLO.
        _ if prefix[0] & 0x80 != 0 => match prefix.get(2) {
            None => Ok(None),
            Some(1) => Err(Fault::Ssl2Hello),
            Some(_) => Err(Fault::NotTls),
        },
        _ => Err(Fault::NotTls),
    }
}
