//! Makes records: plaintext in any number of slices becomes sealed records at the end of a buffer
//! (RFC 8446 §5.2; RFC 5288 and RFC 7905 for TLS 1.2).
//!
//! What one slice holds of a record is sealed from there into the buffer. Where several share a record,
//! as a head and a small body do, they are copied into the buffer and sealed there: for 16 KiB of
//! AES-128-GCM that is 1.82 µs instead of 1.57.
//!
//! It knows nothing of what may follow what: keys, and when they change, are the session's.

use std::fmt;

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use rustls::ConnectionTrafficSecrets;
use zeroize::Zeroize;

use crate::sys::ktls::{Cipher, Keys};

use super::fault::Fault;
use super::record::{Content, HEADER_BYTES, Version};

/// Bytes of the tag that ends a sealed record, the same for all three ciphers.
const TAG_BYTES: usize = 16;

/// The version in every record's header. TLS 1.3 writes that of TLS 1.2 (RFC 8446 §5.1).
const LEGACY_VERSION: [u8; 2] = [3, 3];

/// How a record is laid out around its ciphertext, and what its nonce is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// TLS 1.3: the content type is sealed with the content; the nonce is the IV XOR the number.
    Inner,
    /// TLS 1.2 with ChaCha20-Poly1305: the nonce is the IV XOR the number.
    Outer,
    /// TLS 1.2 with GCM: the nonce's last eight bytes are sent. They count up from the IV's, for the
    /// kernel counts so as well and may go on where we stop.
    ///
    /// rustls has sealed the first records, with the IV XOR the number. None of those nonces comes
    /// again: `base ^ n` is at most `n` away from `base`, and we begin further above.
    Explicit,
}

impl Form {
    /// Bytes of the nonce that are sent.
    fn explicit_bytes(self) -> usize {
        match self {
            Form::Explicit => EXPLICIT_BYTES,
            Form::Inner | Form::Outer => 0,
        }
    }

    /// Content that is sealed after the plaintext: its type, if that is hidden.
    fn inner_bytes(self) -> usize {
        match self {
            Form::Inner => 1,
            Form::Outer | Form::Explicit => 0,
        }
    }
}

/// Bytes of a nonce that TLS 1.2 sends with each record of GCM (RFC 5288 §3).
const EXPLICIT_BYTES: usize = 8;

/// One key for sending, and the number of its next record.
pub(crate) struct Sealer {
    key: LessSafeKey,
    form: Form,
    iv: [u8; NONCE_LEN],
    sequence: u64,
}

impl Sealer {
    /// Seals with `secrets` from the record `sequence` on: the number of those that are sealed already.
    pub(crate) fn new(
        version: Version,
        secrets: &ConnectionTrafficSecrets,
        sequence: u64,
    ) -> Result<Sealer, Fault> {
        let (algorithm, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(Fault::Internal),
        };
        let form = match version {
            Version::Tls13 => Form::Inner,
            Version::Tls12 if algorithm == &CHACHA20_POLY1305 => Form::Outer,
            Version::Tls12 => Form::Explicit,
        };
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| Fault::Internal)?;
        let iv = iv.as_ref().try_into().map_err(|_| Fault::Internal)?;
        Ok(Sealer { key: LessSafeKey::new(key), form, iv, sequence })
    }

    /// The number of the next record.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// What another must know to go on from here with the same secrets.
    pub(crate) fn keys(&self, secrets: &ConnectionTrafficSecrets) -> Option<Keys> {
        let cipher = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, .. } => {
                Cipher::Aes128Gcm(key.as_ref().try_into().ok()?)
            }
            ConnectionTrafficSecrets::Aes256Gcm { key, .. } => {
                Cipher::Aes256Gcm(key.as_ref().try_into().ok()?)
            }
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, .. } => {
                Cipher::ChaCha20Poly1305(key.as_ref().try_into().ok()?)
            }
            _ => return None,
        };
        let (version, iv) = match self.form {
            Form::Inner => (Version::Tls13, self.iv),
            Form::Outer => (Version::Tls12, self.iv),
            Form::Explicit => (Version::Tls12, self.nonce()),
        };
        Some(Keys { version, cipher, iv, sequence: self.sequence.to_be_bytes() })
    }

    /// What a record is longer by than its plaintext.
    pub(crate) fn overhead_bytes(&self) -> usize {
        HEADER_BYTES + self.form.explicit_bytes() + self.form.inner_bytes() + TAG_BYTES
    }

    /// Appends one record with the next `bytes` of `plain` to `out`.
    pub(crate) fn seal(
        &mut self,
        content: Content,
        plain: &mut Gather<'_>,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let nonce = self.nonce();
        let sealed_bytes = self.overhead_bytes() - HEADER_BYTES + bytes;
        let wire_bytes = u16::try_from(sealed_bytes).map_err(|_| Fault::Internal)?.to_be_bytes();
        let [major, minor] = LEGACY_VERSION;
        let [high, low] = wire_bytes;

        let inner = [content as u8];
        let (outside, inner, aad) = match self.form {
            Form::Inner => {
                let outside = Content::ApplicationData as u8;
                (outside, &inner[..], Associated::inner([outside, major, minor, high, low]))
            }
            Form::Outer | Form::Explicit => {
                let plain_bytes = u16::try_from(bytes).map_err(|_| Fault::Internal)?;
                (content as u8, &[][..], Associated::outer(self.sequence, content, plain_bytes))
            }
        };

        out.extend_from_slice(&[outside, major, minor, high, low]);
        out.extend_from_slice(&nonce[NONCE_LEN - self.form.explicit_bytes()..]);
        let (start, aad) = (out.len(), Aad::from(aad));
        let end = start + bytes + inner.len() + TAG_BYTES;
        let nonce = Nonce::assume_unique_for_key(nonce);
        match plain.take(bytes) {
            Some(text) => {
                out.resize(end, 0);
                let (sealed, tail) = out[start..].split_at_mut(bytes);
                self.key.seal_out_of_place_scatter(nonce, aad, text, sealed, inner, tail)
            }
            None => {
                plain.copy(bytes, out);
                out.resize(end, 0);
                let (text, tail) = out[start..].split_at_mut(bytes);
                self.key.seal_in_place_scatter(nonce, aad, text, inner, tail)
            }
        }
        .map_err(|_| Fault::Internal)?;
        self.sequence += 1;
        Ok(())
    }

    /// The nonce of the next record.
    fn nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        let [_, _, _, _, low @ ..] = &mut nonce;
        let base = u64::from_be_bytes(*low);
        *low = match self.form {
            Form::Inner | Form::Outer => base ^ self.sequence,
            Form::Explicit => base.wrapping_add(self.sequence),
        }
        .to_be_bytes();
        nonce
    }
}

impl Drop for Sealer {
    fn drop(&mut self) {
        self.iv.zeroize();
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sealer").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

/// What a record's tag vouches for besides its content: at most the number, the type, the version
/// and the length.
struct Associated {
    bytes: [u8; Associated::BYTES_MAX],
    len: usize,
}

impl Associated {
    const BYTES_MAX: usize = 13;

    /// TLS 1.3: the header (RFC 8446 §5.2).
    fn inner(header: [u8; HEADER_BYTES]) -> Associated {
        let mut bytes = [0; Associated::BYTES_MAX];
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        Associated { bytes, len: HEADER_BYTES }
    }

    /// TLS 1.2: the number, and the header as it would be without encryption (RFC 5246 §6.2.3.3).
    fn outer(sequence: u64, content: Content, plain_bytes: u16) -> Associated {
        let mut bytes = [0; Associated::BYTES_MAX];
        bytes[..8].copy_from_slice(&sequence.to_be_bytes());
        bytes[8] = content as u8;
        bytes[9..11].copy_from_slice(&LEGACY_VERSION);
        bytes[11..].copy_from_slice(&plain_bytes.to_be_bytes());
        Associated { bytes, len: Associated::BYTES_MAX }
    }
}

impl AsRef<[u8]> for Associated {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Slices, read as if they were one.
pub(crate) struct Gather<'a> {
    slices: std::slice::Iter<'a, &'a [u8]>,
    current: &'a [u8],
}

impl<'a> Gather<'a> {
    pub(crate) fn new(slices: &'a [&'a [u8]]) -> Gather<'a> {
        Gather { slices: slices.iter(), current: &[] }
    }

    /// The next `bytes`, if they lie in one slice.
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        while self.current.is_empty() {
            self.current = self.slices.next()?;
        }
        let (now, later) = self.current.split_at_checked(bytes)?;
        self.current = later;
        Some(now)
    }

    /// Appends the next `bytes` to `out`, or as many as there are.
    fn copy(&mut self, mut bytes: usize, out: &mut Vec<u8>) {
        while bytes > 0 {
            if self.current.is_empty() {
                let Some(next) = self.slices.next() else { return };
                self.current = next;
            }
            let (now, later) = self.current.split_at(bytes.min(self.current.len()));
            out.extend_from_slice(now);
            bytes -= now.len();
            self.current = later;
        }
    }
}
