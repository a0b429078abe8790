//! What a session may be resumed under: nothing but the policy that it was made under.
//!
//! A resumed session skips the certificates, the client's as well. So one that was made where no
//! client certificate is asked for must not be found where one is: nginx (CVE-2025-23419) and Apache
//! (CVE-2025-23048) both let a session cross from one virtual host to another. Here every place
//! that sessions are kept in, the [cache](super::cache) and the [tickets](super::tickets), is
//! reached through an adapter that is bound to a [`ContextId`]; there is no other way in.

use std::fmt;

use aws_lc_rs::digest;

/// The identity of a TLS policy: what has the same one may resume each other's sessions.
///
/// It is a digest of what the policy consists of. The hosts of a fleet resume each other's sessions
/// only if they come to the same one, so addresses, paths and other things that differ from host
/// to host do not belong among the parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContextId([u8; ContextId::BYTES]);

impl ContextId {
    /// Bytes of an identity.
    pub const BYTES: usize = 32;

    /// That of no policy: what a free slot of the cache holds.
    pub(super) const NONE: ContextId = ContextId([0; ContextId::BYTES]);

    /// The identity of the policy that consists of `parts`, in this order: SHA-256 over each part
    /// after its length, so that no two lists of parts are the same bytes.
    pub fn of(parts: &[&[u8]]) -> ContextId {
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in parts {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut id = [0; ContextId::BYTES];
        id.copy_from_slice(hash.finish().as_ref());
        ContextId(id)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; ContextId::BYTES] {
        &self.0
    }
}

/// The first bytes in hexadecimal: enough to tell contexts apart in a log.
impl fmt::Debug for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "ContextId({a:02x}{b:02x}{c:02x}{d:02x})")
    }
}

#[cfg(test)]
mod crossing;
#[cfg(test)]
mod tests;
