//! The session cache: one table for all shards, of sessions that a client resumes by an id. Those are
//! TLS 1.2's, and TLS 1.3's where tickets are off.
//!
//! # How it is built
//!
//! The table has 16 parts or more for each thread, chosen by bits of the id, each behind its own
//! lock and on cache lines of its own. A part consists of sets of 16 slots; an id belongs
//! to one set. All memory is taken at the start. A slot holds its session inline, so a look-up is a
//! scan of the set's tags and one copy, and the lock is held for that and no longer: what is
//! allocated, is allocated outside. In a full set room is made by CLOCK: a hit marks its slot by one
//! bit, and the hand takes the first slot without a mark, removing marks as it goes.
//!
//! An id is random, from us, and is its own hash. A peer may *look up* what it likes, but only
//! handshakes that have succeeded *insert*, under ids that rustls has drawn: nobody can aim at one set.
//!
//! # What it promises
//!
//! - [`take`](rustls::server::StoresServerSessions::take), by which TLS 1.3 resumes, finds and deletes
//!   in one hold of the lock: of any number that take one session, one has it.
//! - A session is found only through the context that it was stored through: that context's identity
//!   stands beside the id, and both are compared, whole.
//! - Secrets are wiped as they leave: by eviction, deletion, replacement, expiry, and with the table.
//!   Expiry is noticed by a look-up, by whoever needs room, and by [`SessionCache::sweep`]. What rustls
//!   is given is its own, and it does not wipe that.
//! - What does not fit a slot is not stored, and is counted. That is the chain of a client's certificates;
//!   the rest of a session always fits ([`VALUE_BYTES`]).
//!
//! It does not know the time but by its [`Clock`], and does not tell TLS 1.2's sessions from 1.3's. So
//! someone who sees an id of TLS 1.2 pass, which is in the clear there, can make the cache forget that
//! session by offering the id as a ticket of TLS 1.3; the cost is one full handshake.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::server::StoresServerSessions;
use serde::Serialize;
use zeroize::Zeroize;

use super::clock::Clock;
use super::context_id::ContextId;

#[cfg(test)]
mod model;
mod parts;
mod table;
#[cfg(test)]
mod tests;

use parts::Parts;
pub use table::{ID_BYTES, VALUE_BYTES};
use table::{Key, Table};

/// How large a cache is, and how long it keeps a session.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Sessions that it has room for; rounded up to whole sets in every part.
    pub entries: NonZeroUsize,
    /// Threads that use it.
    pub threads: NonZeroUsize,
    /// How long a session may be resumed; at most [`LIFETIME_MAX`], and that is what a longer one means.
    pub lifetime: Duration,
}

/// A day: the bound of RFC 5246 §F.1.4 for TLS 1.2, and what rustls announces to a client of TLS 1.3.
pub const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The table that all shards share. It is reached through [`ContextSessions`] alone.
pub struct SessionCache {
    parts: Parts<Mutex<Table>>,
    clock: Arc<Clock>,
}

impl SessionCache {
    /// An empty table, with all the memory it will ever have.
    pub fn new(settings: Settings, clock: Arc<Clock>) -> SessionCache {
        let lifetime_s = settings.lifetime.min(LIFETIME_MAX).as_secs() as u32;
        SessionCache { parts: Parts::new(settings.entries, settings.threads, lifetime_s), clock }
    }

    /// Wipes what is over in a small piece of the table, another one at each call. Every shard calls it
    /// once a second: the work is bounded, whatever the size of the table, and sessions that
    /// nobody asks for go as well.
    pub fn sweep(&self) {
        self.parts.sweep(self.now_s());
    }

    /// The counters. Reading them takes no lock, and those of different parts may be a few
    /// operations apart.
    pub fn values(&self) -> Values {
        self.parts.values()
    }

    /// The time, as far as the table needs it: it compares times by their difference.
    fn now_s(&self) -> u32 {
        self.clock.unix_s() as u32
    }
}

impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCache").field("values", &self.values()).finish_non_exhaustive()
    }
}

/// The counters of a [`SessionCache`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Values {
    /// Sessions in the table, those included whose time is over but that are not wiped yet. A gauge.
    pub entries: u64,
    /// Sessions that the table has room for. A gauge.
    pub capacity: u64,
    /// Look-ups that found their session.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Sessions that made room for others before their time was over.
    pub evictions: u64,
    /// Sessions that were wiped because their time was over.
    pub expirations: u64,
    /// Sessions that were not stored because they do not fit a slot.
    pub too_large: u64,
    /// Operations that found the lock of their part taken, and waited.
    pub contended: u64,
}

/// The cache as the sessions of one context see it: what a `rustls::ServerConfig` has for its
/// `session_storage`.
///
/// The ids that rustls stores under are 32 bytes. A client may ask for any: one of another length is
/// none of ours and is not found.
#[derive(Clone, Debug)]
pub struct ContextSessions {
    cache: Arc<SessionCache>,
    context: ContextId,
}

impl ContextSessions {
    /// `cache` for the sessions of `context`.
    pub fn new(cache: Arc<SessionCache>, context: ContextId) -> ContextSessions {
        ContextSessions { cache, context }
    }

    fn key(&self, id: &[u8]) -> Option<Key> {
        Some(Key { context: self.context, id: id.try_into().ok()? })
    }

    /// What `look_up` copies. The memory is taken before, and not while the lock is held.
    fn found(look_up: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<Vec<u8>> {
        let mut copy = Vec::with_capacity(VALUE_BYTES);
        look_up(&mut copy).then_some(copy)
    }
}

impl StoresServerSessions for ContextSessions {
    fn put(&self, id: Vec<u8>, mut value: Vec<u8>) -> bool {
        let key = self.key(&id);
        let stored = key.is_some_and(|key| self.cache.parts.put(&key, &value, self.cache.now_s()));
        value.as_mut_slice().zeroize();
        stored
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(id)?;
        Self::found(|copy| self.cache.parts.get(&key, self.cache.now_s(), copy))
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(id)?;
        Self::found(|copy| self.cache.parts.take(&key, self.cache.now_s(), copy))
    }

    fn can_cache(&self) -> bool {
        true
    }
}
