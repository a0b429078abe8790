//! Where the TLS connections of one thread come from.

use super::connection::TlsConnection;
use super::error::TlsError;
use super::options::TlsSettings;
use super::sessions::Sessions;
use rustls::client::{ClientConfig, Resumption, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use std::fmt;
use std::sync::Arc;

/// What a thread makes its connections with. Nothing in it is shared with another thread: not
/// even a count of references.
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    sessions: Arc<Sessions>,
    /// Of a hundred connections, how many are to resume a session.
    resume_percent: u8,
    random: fastrand::Rng,
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config: _, name, sessions: _, resume_percent, random: _ } = self;
        f.debug_struct("TlsClient")
            .field("name", name)
            .field("resume_percent", resume_percent)
            .finish_non_exhaustive()
    }
}

impl TlsClient {
    /// A client that has `resume_percent` (at most 100) of its connections resume a session, drawn
    /// for each from `seed`.
    pub fn new(settings: &TlsSettings, resume_percent: u8, seed: u64) -> Self {
        let sessions = Arc::new(Sessions::default());
        Self {
            config: Arc::new(settings.config(Resumption::store(sessions.clone()))),
            name: settings.name().clone(),
            sessions,
            resume_percent,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// A new connection, whose first flight is to be sent.
    pub fn connect(&mut self) -> Result<TlsConnection, TlsError> {
        let resume = self.draw();
        let make = || UnbufferedClientConnection::new(self.config.clone(), self.name.clone());
        let (rustls, intent) = self.sessions.connect(resume, make);
        TlsConnection::begin(rustls?, intent)
    }

    /// Whether the next connection is to resume a session.
    pub(super) fn draw(&mut self) -> bool {
        self.random.u8(0..100) < self.resume_percent
    }
}
