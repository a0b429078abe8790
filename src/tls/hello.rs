//! The name in a ClientHello (RFC 6066 §3), which decides who answers it.
//!
//! rustls reads the same bytes later and is the judge of them: what is malformed has no name here, and
//! is refused there.

use rustls::pki_types::DnsName;

use super::record::{Content, HEADER_BYTES};

/// The type of a ClientHello (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;

/// The extension `server_name`, and the only kind of name in it.
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// The extension `supported_versions` (RFC 8446 §4.2.1), and a version as a client without it names it.
const SUPPORTED_VERSIONS: u16 = 43;
const TLS_1_2: u16 = 0x0303;

/// Bytes of a handshake message's type and length.
const MESSAGE_HEADER_BYTES: usize = 4;

/// What is known of a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// It is incomplete.
    Partial,
    /// It is all there. The name in it, in lower case, if it has one and that is a name of DNS.
    Whole(Option<Box<str>>),
    /// It is all there, and of a client that speaks no version that we do. rustls first misses what those
    /// versions do not have, and would say that instead.
    TooOld,
}

/// Puts a ClientHello together that may come in many records, each of which is looked at once.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    message: Vec<u8>,
    seen_bytes: usize,
}

impl Assembly {
    /// Reads on in whole `records`: those of the last call, and any number after them.
    pub(crate) fn read(&mut self, records: &[u8]) -> Hello {
        let mut unseen = Reader(&records[self.seen_bytes..]);
        while let Some((kind, piece)) = unseen.record() {
            if kind != Content::Handshake as u8 {
                return Hello::Whole(None);
            }
            self.message.extend_from_slice(piece);
            self.seen_bytes += HEADER_BYTES + piece.len();
            let Some((&[kind, high, middle, low], body)) =
                self.message.split_first_chunk::<MESSAGE_HEADER_BYTES>()
            else {
                continue;
            };
            if kind != CLIENT_HELLO {
                return Hello::Whole(None);
            }
            if let Some(body) = body.get(..u32::from_be_bytes([0, high, middle, low]) as usize) {
                return if is_too_old(body) {
                    Hello::TooOld
                } else {
                    Hello::Whole(server_name(body))
                };
            }
        }
        Hello::Partial
    }
}

/// Whether the body of a ClientHello names a version before TLS 1.2, and has no list of others.
fn is_too_old(body: &[u8]) -> bool {
    let version = Reader(body).number();
    version.is_some_and(|version| version < TLS_1_2)
        && extension(body, SUPPORTED_VERSIONS).is_none()
}

/// The name in the body of a ClientHello.
fn server_name(body: &[u8]) -> Option<Box<str>> {
    let mut names = Reader(extension(body, SERVER_NAME)?);
    host_name(Reader(names.vector()?))
}

/// An extension in the body of a ClientHello (RFC 8446 §4.1.2).
fn extension(body: &[u8], wanted: u16) -> Option<&[u8]> {
    const VERSION_AND_RANDOM_BYTES: usize = 2 + 32;
    let mut body = Reader(body);
    body.take(VERSION_AND_RANDOM_BYTES)?;
    let _session_id = body.short_vector()?;
    let _suites = body.vector()?;
    let _compressions = body.short_vector()?;
    let mut extensions = Reader(body.vector()?);
    loop {
        let kind = extensions.number()?;
        let extension = extensions.vector()?;
        if kind == wanted {
            return Some(extension);
        }
    }
}

/// The host in a list of names, without the dot of the root. Nobody has defined names of other kinds,
/// nor how long they are.
fn host_name(mut names: Reader<'_>) -> Option<Box<str>> {
    if names.byte()? != HOST_NAME {
        return None;
    }
    let name = str::from_utf8(names.vector()?).ok()?.to_ascii_lowercase();
    let name = DnsName::try_from(name.as_str()).ok()?;
    let name = name.as_ref();
    Some(name.strip_suffix('.').unwrap_or(name).into())
}

/// Bytes that are still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (now, later) = self.0.split_at_checked(bytes)?;
        self.0 = later;
        Some(now)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Bytes after their length in one byte.
    fn short_vector(&mut self) -> Option<&'a [u8]> {
        let bytes = self.byte()?;
        self.take(usize::from(bytes))
    }

    /// Bytes after their length in two bytes.
    fn vector(&mut self) -> Option<&'a [u8]> {
        let bytes = self.number()?;
        self.take(usize::from(bytes))
    }

    /// A record: its type and what is in it.
    fn record(&mut self) -> Option<(u8, &'a [u8])> {
        let &[kind, _, _, high, low]: &[u8; HEADER_BYTES] = self.0.first_chunk()?;
        self.take(HEADER_BYTES)?;
        let piece = self.take(usize::from(u16::from_be_bytes([high, low])))?;
        Some((kind, piece))
    }
}
