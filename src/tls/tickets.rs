//! Session tickets: the session, encrypted for ourselves, that the client keeps for us (RFC 8446 §4.6.1,
//! RFC 5077).
//!
//! # Keys
//!
//! Time is cut into epochs of one [`Period`]. The key of an epoch and a context is derived by HKDF
//! (RFC 5869) from a secret, so that all hosts that have the secret have the same keys, and change them
//! together, without a word between them. A ticket is encrypted under the key of the current epoch, and
//! decrypted under that of the previous one, the current one, or the next: a host whose clock is ahead
//! may be in it already. So a ticket is accepted until the epoch after its own ends, and that is the
//! lifetime that the client is told.
//!
//! A key belongs to one [context](super::context_id): a ticket of another one names a key that is not
//! known here.
//!
//! # Tickets
//!
//! | bytes | |
//! |---|---|
//! | 16 | the key's name, derived with it: which key it is is seen by comparison, never by trial |
//! | 12 | a random nonce |
//! | 128 n | encrypted: 2 bytes of length, the session, zeros. The blocks hide how long its names are, and blur which chain of certificates a client has: of TLS 1.3's, nothing else can be seen |
//! | 16 | the tag, which covers the name as well |
//!
//! The cipher is AES-256-GCM-SIV (RFC 8452). Under AES-GCM a random nonce would bound a key to 2^32
//! tickets, which a large fleet reaches in one epoch (150 000 a second), and a nonce used twice would
//! betray the key. Here one used twice betrays whether two tickets are equal, which two sessions never
//! are; and a key for each nonce is derived within, so that the bound is far beyond any fleet.
//!
//! # Forward secrecy, and changing the secret
//!
//! - **TLS 1.3**: a resumed session has a fresh Diffie-Hellman exchange (`psk_dhe_ke`, the only mode
//!   that rustls speaks). Who comes to know the secret later cannot read what was recorded, neither the
//!   first session nor the resumed ones. Who knows it *now* can resume sessions in a client's stead,
//!   with the client's certificate, and stand in for the server towards one that resumes.
//! - **TLS 1.2**: a ticket holds the key that the session, and all that are resumed from it, are encrypted
//!   by. Who comes to know the secret can read every recorded session with a ticket, in either
//!   direction, back to the secret's first use. Epochs do not help: their keys follow from the secret.
//!   So a secret of a fleet must be replaced as often as recorded traffic must become safe, and erased
//!   everywhere. Without a file a secret is drawn at the start and is gone with the process.
//!
//! A secret is replaced in three steps, each on all hosts before the next, for which no host need be
//! restarted: add the new one as the *second* line of the file; swap the two lines; two periods later,
//! remove the old one. Between steps every host decrypts what every other has encrypted. To revoke a
//! secret that was betrayed, replace it at once: its tickets are refused, and cost a full handshake each.
//!
//! # Sharing
//!
//! [`TicketSecrets`] is one for all shards. Each shard has its own [`ContextTickets`] for every context,
//! with keys of its own; whether they are still the right ones is told by one number, which only a
//! reload writes. Nothing that another thread reads is written for a ticket.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::server::ProducesTickets;
use serde::Serialize;

use super::clock::Clock;
use super::context_id::ContextId;
use super::secret::Secrets;

mod key;
#[cfg(test)]
mod tests;

pub use key::SESSION_BYTES_MAX;
use key::TicketKey;

/// A week, beyond which RFC 8446 §4.6.1 forbids a ticket to last.
const LIFETIME_S_MAX: u64 = 7 * 24 * 60 * 60;

/// How long an epoch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(NonZeroU32);

impl Period {
    /// Seconds of the longest period, half a week: a ticket lasts two at most.
    pub const MAX_S: u32 = (LIFETIME_S_MAX / 2) as u32;

    /// 8 hours: a ticket then lasts 8 to 16 hours, so that who comes back within a working day resumes,
    /// and none lasts the whole day that is commonly taken as the bound.
    pub const DEFAULT: Period = Period(NonZeroU32::new(8 * 60 * 60).expect("it is not zero"));

    /// A period of `seconds`, from one to [`MAX_S`](Period::MAX_S).
    pub fn new(seconds: u32) -> Option<Period> {
        NonZeroU32::new(seconds).filter(|seconds| seconds.get() <= Period::MAX_S).map(Period)
    }

    fn seconds(self) -> u64 {
        self.0.get().into()
    }
}

/// The secrets that all shards derive their keys from, exchanged while they run.
#[derive(Debug)]
#[repr(align(128))]
pub struct TicketSecrets {
    /// Changes with the secrets. Written under their lock.
    generation: AtomicU64,
    secrets: Mutex<Secrets>,
}

impl TicketSecrets {
    /// Secrets to begin with.
    pub fn new(secrets: Secrets) -> TicketSecrets {
        TicketSecrets { generation: AtomicU64::new(0), secrets: Mutex::new(secrets) }
    }

    /// Puts others in their place, and says whether they are others. Every shard derives its keys anew at
    /// its next ticket; tickets of secrets that are no longer among them are refused from then on.
    pub fn replace(&self, secrets: Secrets) -> bool {
        let mut current = lock(&self.secrets);
        if *current == secrets {
            return false;
        }
        *current = secrets;
        self.generation.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Relaxed: who sees it change takes the lock, which orders what it reads then.
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }
}

/// What became of tickets, of all contexts of one shard. Written by that shard's thread, and by a worker
/// that does one of its handshakes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct TicketCounters {
    issued: AtomicU64,
    accepted: AtomicU64,
    unknown: AtomicU64,
    forged: AtomicU64,
    too_large: AtomicU64,
}

/// The values of [`TicketCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TicketValues {
    /// Tickets made.
    pub issued: u64,
    /// Tickets decrypted.
    pub accepted: u64,
    /// Tickets refused because their key is not known: of another context or secret, too old, or not ours.
    pub unknown: u64,
    /// Tickets refused although they name a key of ours: they were changed on their way.
    pub forged: u64,
    /// Tickets not made because the session, with the client's chain, has more than [`SESSION_BYTES_MAX`].
    pub too_large: u64,
}

impl TicketCounters {
    /// The values now.
    pub fn values(&self) -> TicketValues {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TicketValues {
            issued: value(&self.issued),
            accepted: value(&self.accepted),
            unknown: value(&self.unknown),
            forged: value(&self.forged),
            too_large: value(&self.too_large),
        }
    }
}

/// The keys of one context in one shard: what a `rustls::ServerConfig` has for its `ticketer`.
pub struct ContextTickets {
    secrets: Arc<TicketSecrets>,
    context: ContextId,
    period: Period,
    clock: Arc<Clock>,
    counters: Arc<TicketCounters>,
    /// Locked by the shard's thread alone, but for a worker that does one of its handshakes; and then
    /// for as long as a comparison takes, or once an epoch the derivation.
    keys: Mutex<Arc<Keys>>,
}

impl ContextTickets {
    /// Tickets of `context`. All that a shard has may share its `counters`.
    pub fn new(
        secrets: Arc<TicketSecrets>,
        context: ContextId,
        period: Period,
        clock: Arc<Clock>,
        counters: Arc<TicketCounters>,
    ) -> ContextTickets {
        let keys = Keys::derive(&secrets, &context, clock.unix_s() / period.seconds());
        let keys = Mutex::new(Arc::new(keys));
        ContextTickets { secrets, context, period, clock, counters, keys }
    }

    fn epoch(&self) -> u64 {
        self.clock.unix_s() / self.period.seconds()
    }

    /// The keys of now.
    fn keys(&self) -> Arc<Keys> {
        let mut keys = lock(&self.keys);
        let epoch = self.epoch();
        if keys.epoch != epoch || keys.generation != self.secrets.generation() {
            *keys = Arc::new(Keys::derive(&self.secrets, &self.context, epoch));
        }
        Arc::clone(&keys)
    }
}

impl fmt::Debug for ContextTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextTickets").field("context", &self.context).finish_non_exhaustive()
    }
}

impl ProducesTickets for ContextTickets {
    fn enabled(&self) -> bool {
        true
    }

    /// Until the epoch after this one ends: a client does not offer what would be refused.
    fn lifetime(&self) -> u32 {
        let period = self.period.seconds();
        // At most two periods, which are within the bound.
        (2 * period - self.clock.unix_s() % period) as u32
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        if session.len() > SESSION_BYTES_MAX {
            count(&self.counters.too_large);
            return None;
        }
        let ticket = self.keys().current().seal(session)?;
        count(&self.counters.issued);
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys();
        let Some(key) = keys.named(ticket) else {
            count(&self.counters.unknown);
            return None;
        };
        let session = key.open(ticket);
        count(if session.is_some() { &self.counters.accepted } else { &self.counters.forged });
        session
    }
}

/// The keys of three epochs under each secret. The first is the one that encrypts.
struct Keys {
    generation: u64,
    epoch: u64,
    keys: Vec<TicketKey>,
}

impl Keys {
    fn derive(secrets: &TicketSecrets, context: &ContextId, epoch: u64) -> Keys {
        let guard = lock(&secrets.secrets);
        let epochs = [epoch, epoch.wrapping_sub(1), epoch.wrapping_add(1)];
        let keys = guard
            .iter()
            .flat_map(|secret| epochs.map(|epoch| TicketKey::derive(secret, context, epoch)));
        Keys { generation: secrets.generation(), epoch, keys: keys.collect() }
    }

    fn current(&self) -> &TicketKey {
        &self.keys[0]
    }

    fn named(&self, ticket: &[u8]) -> Option<&TicketKey> {
        self.keys.iter().find(|key| ticket.starts_with(key.name()))
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What these locks guard is replaced as a whole: a panic leaves nothing half done behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
