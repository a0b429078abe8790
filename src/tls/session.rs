//! A session: what a connection is after its handshake, records in and out.
//!
//! It holds one key for each direction, in the records' own state machines ([`super::open`],
//! [`super::seal`]), and what makes the next keys. The transmit side may be handed to the kernel,
//! which goes on with the same key at the next number; receiving stays here.
//!
//! | `Transmit` | who seals | event |
//! |---|---|---|
//! | `Own` | this session | `hand_over` → `Kernel`; `close_notify`, `alert` → `Closed` |
//! | `Kernel` | the kernel; records are counted here | – |
//! | `Closed` | nobody: the last record is an alert | – |

use std::fmt;
use std::sync::Arc;

use rustls::kernel::KernelConnection;
use rustls::pki_types::CertificateDer;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::{
    CipherSuite, ConnectionTrafficSecrets, ExtractedSecrets, HandshakeKind, SupportedCipherSuite,
};

use crate::sys::ktls::Keys;

use super::fault::{Alert, Fault};
use super::open::{self, Opened, Opener};
use super::record::{Content, PLAIN_BYTES_MAX, Stage, Version};
use super::seal::{Gather, Sealer};

/// Records of the last allowed ones that are kept for alerts and a KeyUpdate.
const RESERVED_RECORDS: u64 = 8;

/// What is sealed at once and is no longer than this is one record, however few bytes were sent before:
/// its packets fit any congestion window, and come together.
const WHOLE_BYTES: usize = 4096;

/// What a session is to be like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How long its records are.
    pub records: RecordSizes,
    /// Whether it may be handed to the kernel: its secrets for sending are kept for that.
    pub ktls: bool,
}

/// How much plaintext goes into a record: little at first, while the peer waits for the first byte and
/// cannot read it before the record's last; then as much as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSizes {
    small_bytes: usize,
    large_bytes: usize,
    small_until_bytes: usize,
    whole_bytes: usize,
}

impl RecordSizes {
    /// Records of `small_bytes` for the first `small_until_bytes`, and again after a pause
    /// ([`Session::paused`]); then records of `large_bytes`. Lengths that no record can have are taken
    /// for the nearest that it can.
    pub fn new(small_bytes: usize, large_bytes: usize, small_until_bytes: usize) -> RecordSizes {
        let possible = |bytes: usize| bytes.clamp(1, PLAIN_BYTES_MAX);
        RecordSizes {
            small_bytes: possible(small_bytes),
            large_bytes: possible(large_bytes),
            small_until_bytes,
            whole_bytes: 0,
        }
    }

    /// The same sizes, but small ones for so many bytes.
    pub fn until(self, small_until_bytes: usize) -> RecordSizes {
        RecordSizes { small_until_bytes, ..self }
    }

    /// The length of the next record.
    fn next_bytes(self, sent_bytes: usize) -> usize {
        if sent_bytes < self.small_until_bytes { self.small_bytes } else { self.large_bytes }
    }

    /// How many records `bytes` make.
    fn records(self, sent_bytes: usize, bytes: usize) -> usize {
        if bytes <= self.whole_bytes {
            return 1;
        }
        let small = self.small_until_bytes.saturating_sub(sent_bytes).div_ceil(self.small_bytes);
        match bytes.checked_sub(small.saturating_mul(self.small_bytes)) {
            Some(rest) => small + rest.div_ceil(self.large_bytes),
            None => bytes.div_ceil(self.small_bytes),
        }
    }
}

impl Default for RecordSizes {
    /// 1369 bytes fill a segment of Ethernet under IPv6 with any options of TCP, 64 KiB are about what a
    /// congestion window has grown to after two round trips.
    fn default() -> RecordSizes {
        let sizes = RecordSizes::new(1369, PLAIN_BYTES_MAX, 64 * 1024);
        RecordSizes { whole_bytes: WHOLE_BYTES, ..sizes }
    }
}

/// What a handshake has settled.
#[derive(Clone, Debug)]
pub struct Info {
    /// The version.
    pub version: Version,
    /// The cipher suite.
    pub suite: CipherSuite,
    /// The name that the client asked for, in lower case.
    pub server_name: Option<Box<str>>,
    /// The application protocol, if one was agreed on.
    pub protocol: Option<Box<[u8]>>,
    /// The client's certificates, its own first, as DER; checked.
    pub client: Option<Arc<[CertificateDer<'static>]>>,
    /// Whether the handshake was a full one.
    pub handshake: HandshakeKind,
}

impl Info {
    pub(crate) fn new(
        connection: &UnbufferedServerConnection,
        server_name: Option<Box<str>>,
    ) -> Result<Info, Fault> {
        let suite = connection.negotiated_cipher_suite().ok_or(Fault::Internal)?;
        Ok(Info {
            version: open::version(suite),
            suite: suite.suite(),
            server_name,
            protocol: connection.alpn_protocol().map(Box::from),
            client: connection.peer_certificates().map(Arc::from),
            handshake: connection.handshake_kind().ok_or(Fault::Internal)?,
        })
    }

    /// Whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.handshake == HandshakeKind::Resumed
    }
}

/// A connection after its handshake.
pub struct Session {
    info: Box<Info>,
    opener: Opener,
    transmit: Transmit,
    /// Makes the next secrets, in TLS 1.3.
    next: Option<Box<KernelConnection<ServerConnectionData>>>,
    /// The records that one key may seal (RFC 8446 §5.5).
    records_max: u64,
    sizes: RecordSizes,
    /// Bytes of data sent since the start, or the last pause.
    sent_bytes: usize,
}

/// Who seals.
enum Transmit {
    Own {
        sealer: Sealer,
        /// What the sealer was made of, if the kernel may want it.
        secrets: Option<ConnectionTrafficSecrets>,
    },
    Kernel {
        /// An estimate of the records sealed with the key, from above.
        records: u64,
    },
    Closed,
}

impl Session {
    /// The content of a record, of the handshake's kind, that says that the next one is sealed with
    /// another key. It asks for none in return (RFC 8446 §4.6.3).
    pub const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];

    pub(crate) fn new(
        info: Info,
        secrets: ExtractedSecrets,
        next: KernelConnection<ServerConnectionData>,
        options: &Options,
    ) -> Result<Session, Fault> {
        let suite = next.negotiated_cipher_suite();
        let ExtractedSecrets { tx: (sent, tx), rx: (received, rx) } = secrets;
        let version = open::version(suite);
        Ok(Session {
            opener: Opener::new(suite, rx, received)?,
            transmit: Transmit::Own {
                sealer: Sealer::new(version, &tx, sent)?,
                secrets: options.ktls.then_some(tx),
            },
            next: (version == Version::Tls13).then(|| Box::new(next)),
            records_max: match suite {
                SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit,
                SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
            },
            sizes: options.records,
            sent_bytes: 0,
            info: Box::new(info),
        })
    }

    /// Lets each key seal fewer records than it may.
    #[cfg(test)]
    pub(crate) fn limit_records(&mut self, records_max: u64) {
        self.records_max = records_max;
    }

    /// What the handshake has settled.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// What the next record may be.
    pub fn stage(&self) -> Stage {
        Stage::Session(self.info.version)
    }

    /// Opens one whole record where it lies. A fault ends the session: see [`Session::alert`].
    pub fn open(&mut self, record: &mut [u8]) -> Result<Opened, Fault> {
        let opened = self.opener.open(record)?;
        if let Opened::KeyUpdated { .. } = opened {
            let next = self.next.as_mut().ok_or(Fault::Internal)?;
            let (_, secrets) = next.update_rx_secret()?;
            self.opener.rekey(secrets)?;
        }
        Ok(opened)
    }

    /// Appends `plain` to `out` in records. Nothing is appended for nothing.
    pub fn seal(
        &mut self,
        content: Content,
        plain: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let mut left = plain.iter().map(|slice| slice.len()).sum();
        let records = self.sizes.records(self.sent_bytes, left);
        let Transmit::Own { sealer, .. } = &self.transmit else { return Err(Fault::Closed) };
        out.reserve(left + records * sealer.overhead_bytes());
        let mut plain = Gather::new(plain);
        let is_whole = left <= self.sizes.whole_bytes;
        while left > 0 {
            if self.is_used_up() {
                self.update_keys(out)?;
            }
            let most = if is_whole { left } else { self.sizes.next_bytes(self.sent_bytes) };
            let bytes = most.min(left);
            self.seal_record(content, &mut plain, bytes, out)?;
            self.sent_bytes = self.sent_bytes.saturating_add(bytes);
            left -= bytes;
        }
        Ok(())
    }

    fn seal_record(
        &mut self,
        content: Content,
        plain: &mut Gather<'_>,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        match &mut self.transmit {
            Transmit::Own { sealer, .. } if sealer.sequence() < self.records_max => {
                sealer.seal(content, plain, bytes, out)
            }
            Transmit::Own { .. } => Err(Fault::LimitReached),
            Transmit::Kernel { .. } | Transmit::Closed => Err(Fault::Closed),
        }
    }

    /// Nothing has been sent for a while: the next records are small again.
    pub fn paused(&mut self) {
        self.sent_bytes = 0;
    }

    /// Appends a KeyUpdate and seals with the next key from then on. It is done without being asked
    /// before a key is used up; there is no such thing in TLS 1.2, where that is the end.
    pub fn update_keys(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.next.is_none() {
            return Err(Fault::LimitReached);
        }
        self.seal_message(Content::Handshake, &Session::KEY_UPDATE, out)?;
        let Some(next) = &mut self.next else { return Err(Fault::Internal) };
        let (sequence, secrets) = next.update_tx_secret()?;
        if let Transmit::Own { sealer, secrets: kept } = &mut self.transmit {
            *sealer = Sealer::new(Version::Tls13, &secrets, sequence)?;
            *kept = kept.is_some().then_some(secrets);
        }
        Ok(())
    }

    /// Appends the answer to [`Opened::Renegotiation`]: a warning, after which the session goes on.
    pub fn refuse_renegotiation(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.seal_alert(Alert::NO_RENEGOTIATION, out)
    }

    /// Appends close_notify, after which nothing more is sealed. Once is enough.
    pub fn close_notify(&mut self, out: &mut Vec<u8>) {
        self.end(Alert::CLOSE_NOTIFY, out);
    }

    /// Appends the alert that tells the peer of a fault, if there is one, after which nothing more is sealed.
    pub fn alert(&mut self, fault: Fault, out: &mut Vec<u8>) {
        if let Some(alert) = fault.alert() {
            self.end(alert, out);
        }
    }

    /// Ends with an alert. If it cannot be sealed, then the session has ended before, or has no key left:
    /// the peer is told by the end of the connection.
    fn end(&mut self, alert: Alert, out: &mut Vec<u8>) {
        if let Transmit::Own { .. } = self.transmit {
            let _ = self.seal_alert(alert, out);
            self.transmit = Transmit::Closed;
        }
    }

    fn seal_alert(&mut self, alert: Alert, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.seal_message(Content::Alert, &alert.to_bytes(), out)
    }

    fn seal_message(
        &mut self,
        content: Content,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.seal_record(content, &mut Gather::new(&[message]), message.len(), out)
    }

    /// Whether the connection should end soon, because the key for sending is nearly used up and there is
    /// no other: after the last sixteenth of the records that it may seal, sealing fails.
    pub fn is_limit_near(&self) -> bool {
        let renewable = matches!(self.transmit, Transmit::Own { .. }) && self.next.is_some();
        !renewable && self.sealed_records() >= self.records_max - self.records_max / 16
    }

    /// Whether only records that are no data may still be sealed.
    fn is_used_up(&self) -> bool {
        self.sealed_records() >= self.records_max.saturating_sub(RESERVED_RECORDS)
    }

    /// The records that the key for sending has sealed, or the most that it may have.
    fn sealed_records(&self) -> u64 {
        match &self.transmit {
            Transmit::Own { sealer, .. } => sealer.sequence(),
            Transmit::Kernel { records } => *records,
            Transmit::Closed => 0,
        }
    }

    /// What the kernel must know to seal the next record and those after it; `None` if
    /// [`Options::ktls`] was not set, or there is no next record.
    pub fn transmit_secrets(&self) -> Option<Keys> {
        match &self.transmit {
            Transmit::Own { sealer, secrets } => sealer.keys(secrets.as_ref()?),
            Transmit::Kernel { .. } | Transmit::Closed => None,
        }
    }

    /// Lets the kernel seal from now on: it was given what [`Session::transmit_secrets`] has returned,
    /// and nothing was sealed since.
    pub fn hand_over(&mut self) {
        if let Transmit::Own { sealer, .. } = &self.transmit {
            self.transmit = Transmit::Kernel { records: sealer.sequence() };
        }
    }

    /// The keys with which the kernel is to seal from now on, where it can change them: after the caller
    /// has sent [`Session::KEY_UPDATE`] in a record of its own, and nothing else since.
    pub fn rekey_kernel(&mut self) -> Result<Keys, Fault> {
        let (Transmit::Kernel { records }, Some(next)) = (&mut self.transmit, &mut self.next)
        else {
            return Err(Fault::LimitReached);
        };
        let (sequence, secrets) = next.update_tx_secret()?;
        *records = sequence;
        let sealer = Sealer::new(Version::Tls13, &secrets, sequence)?;
        sealer.keys(&secrets).ok_or(Fault::Internal)
    }

    /// Counts what the kernel was given to seal in one call. [`Fault::LimitReached`] is the last moment to
    /// end the connection: the kernel would go on.
    pub fn sent_by_kernel(&mut self, bytes: u64) -> Result<(), Fault> {
        if let Transmit::Kernel { records } = &mut self.transmit {
            *records += 1 + bytes / PLAIN_BYTES_MAX as u64;
        }
        if self.is_used_up() { Err(Fault::LimitReached) } else { Ok(()) }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("info", &self.info).finish_non_exhaustive()
    }
}
