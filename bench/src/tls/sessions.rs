//! Which connections resume a session, and the sessions that they may resume.
//!
//! Each thread has its own [`Sessions`]: no two threads ever wait for each other, and every session
//! is of the thread's own server. rustls asks for a session while a connection is made, and only
//! then; whether it is given one was drawn just before. What servers send is kept in either case, so
//! that full handshakes supply the resumed ones.

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most TLS 1.3 tickets kept, the oldest of which then go. One is needed for each connection of
/// the thread whose handshake is under way; a ticket and its keys take about 1 KiB.
const TICKETS_MAX: usize = 4096;

/// What a connection set out to do, as far as sessions go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A full handshake.
    Full,
    /// To resume a session, which was offered to the server.
    Resume,
    /// To resume a session, but there was none: none was received yet, or all are used.
    ResumeWithout,
}

/// The sessions of one thread with one server. See the head of this file.
///
/// rustls requires a store that threads could share; the lock is never contended.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Whether the connection being made may have a session.
    wanted: bool,
    /// Whether it was given one.
    given: bool,
    /// Single-use (RFC 8446 appendix C.4), oldest first; at most [`TICKETS_MAX`].
    tickets: VecDeque<Tls13ClientSessionValue>,
    /// A TLS 1.2 session may be resumed any number of times: the last one does.
    tls12: Option<Tls12ClientSessionValue>,
    /// The group which the server last chose, so that the first key share is the right one.
    group: Option<NamedGroup>,
}

impl Sessions {
    /// Makes one connection by `make`, with a session if it is to `resume` and there is one.
    pub(super) fn connect<T>(&self, resume: bool, make: impl FnOnce() -> T) -> (T, Intent) {
        (self.kept().wanted, self.kept().given) = (resume, false);
        let made = make();
        let intent = match (resume, self.kept().given) {
            (false, _) => Intent::Full,
            (true, true) => Intent::Resume,
            (true, false) => Intent::ResumeWithout,
        };
        (made, intent)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Every change is one assignment: there is no half-made state to be afraid of.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.kept().tls12 = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let mut kept = self.kept();
        let session = kept.tls12.clone().filter(|_| kept.wanted)?;
        kept.given = true;
        Some(session)
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tickets.len() == TICKETS_MAX {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = self.kept();
        if !kept.wanted {
            return None;
        }
        let ticket = kept.tickets.pop_back()?;
        kept.given = true;
        Some(ticket)
    }
}
