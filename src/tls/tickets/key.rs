//! One key, and the tickets that are sealed and opened by it. The format is that of the table at
//! [`tickets`](super).

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use zeroize::{Zeroize, Zeroizing};

use super::super::context_id::ContextId;
use super::super::secret::Secret;

/// Bytes of the largest session: with the chain of a client's of several certificates. The client has
/// to return the ticket in its first flight, which beyond 14 KiB takes one round trip more.
pub const SESSION_BYTES_MAX: usize = 8 << 10;

/// What the keys are for. In the hosts of a fleet it changes with the format of a ticket and with the
/// encoding of a session, which is rustls's own: the next version of it that encodes differently is not
/// to misread this one's tickets while a fleet is brought up to date.
const LABEL: &[u8] = b"onering ticket 1, rustls 0.23";

const KEY_BYTES: usize = 32;
const NAME_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const LENGTH_BYTES: usize = 2;

/// What a session is padded to. Those without a client's chain mostly fit one block.
const BLOCK_BYTES: usize = 128;

/// A name, and the key that it is the name of.
pub(super) struct TicketKey {
    name: [u8; NAME_BYTES],
    key: LessSafeKey,
}

/// How much is derived: the key, then its name.
struct KeyAndName;

impl KeyType for KeyAndName {
    fn len(&self) -> usize {
        KEY_BYTES + NAME_BYTES
    }
}

impl TicketKey {
    /// HKDF-SHA256 of the secret; what distinguishes the keys is of fixed length but for the label.
    pub(super) fn derive(secret: &Secret, context: &ContextId, epoch: u64) -> TicketKey {
        let info = [LABEL, context.as_bytes(), &epoch.to_be_bytes()];
        let mut derived = Zeroizing::new([0; KEY_BYTES + NAME_BYTES]);
        Salt::new(HKDF_SHA256, &[])
            .extract(secret.expose())
            .expand(&info, KeyAndName)
            .and_then(|okm| okm.fill(&mut *derived))
            .expect("HKDF-SHA256 gives up to 8160 bytes");
        let (key, rest) = derived.split_at(KEY_BYTES);
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(rest);
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).expect("the key has the right length");
        TicketKey { name, key: LessSafeKey::new(key) }
    }

    /// What its tickets begin with.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// A ticket for a session of at most [`SESSION_BYTES_MAX`]. None if there are no random numbers.
    pub(super) fn seal(&self, session: &[u8]) -> Option<Vec<u8>> {
        let padded = (LENGTH_BYTES + session.len()).next_multiple_of(BLOCK_BYTES);
        let start = NAME_BYTES + NONCE_LEN;
        let mut ticket = Vec::with_capacity(start + padded + TAG_BYTES);
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        ticket.extend_from_slice(&self.name);
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(&(session.len() as u16).to_be_bytes());
        ticket.extend_from_slice(session);
        ticket.resize(start + padded, 0);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from(self.name);
        let sealed = self.key.seal_in_place_separate_tag(nonce, aad, &mut ticket[start..]);
        ticket.extend_from_slice(sealed.ok()?.as_ref());
        Some(ticket)
    }

    /// The session in a ticket that begins with this key's name; none if anything about it is wrong.
    pub(super) fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = ticket.get(NAME_BYTES..)?.split_at_checked(NONCE_LEN)?;
        let blocks = sealed.len().checked_sub(TAG_BYTES)? / BLOCK_BYTES;
        if blocks > (LENGTH_BYTES + SESSION_BYTES_MAX).div_ceil(BLOCK_BYTES) {
            return None;
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self.key.open_in_place(nonce, Aad::from(self.name), &mut sealed).ok();
        let session = plain.and_then(|plain| {
            let (length, padded) = plain.split_first_chunk()?;
            padded.get(..usize::from(u16::from_be_bytes(*length))).map(<[u8]>::to_vec)
        });
        // As a slice, at the speed of memory; vectors are wiped byte by byte.
        sealed.as_mut_slice().zeroize();
        session
    }
}
