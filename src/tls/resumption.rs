//! What sessions are resumed from, by all shards: it lives as long as the server, whatever becomes of
//! certificates meanwhile.

use std::fmt;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::config::{self, Fault};

use super::cache::{ContextSessions, SessionCache, Settings};
use super::clock::Clock;
use super::context_id::ContextId;
use super::problem::Problems;
use super::secret::{SecretError, Secrets};
use super::tickets::{ContextTickets, Period, TicketCounters, TicketSecrets};

/// What sessions are resumed from.
pub struct Resumption {
    clock: Arc<Clock>,
    cache: Option<Arc<SessionCache>>,
    tickets: Option<Tickets>,
}

struct Tickets {
    secrets: Arc<TicketSecrets>,
    period: Period,
}

impl Resumption {
    /// What the configuration asks for, for so many shards. `None`: what is wrong has been added to
    /// `problems`.
    pub fn new(
        tls: &config::Tls,
        shards: usize,
        clock: Arc<Clock>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let cache = NonZeroUsize::new(tls.session_cache_entries).map(|entries| {
            let threads = NonZeroUsize::new(shards).unwrap_or(NonZeroUsize::MIN);
            let settings = Settings { entries, threads, lifetime: tls.session_lifetime };
            Arc::new(SessionCache::new(settings, Arc::clone(&clock)))
        });
        let tickets = match tls.tickets {
            true => Some(Tickets {
                secrets: Arc::new(TicketSecrets::new(secrets(tls, problems)?)),
                period: u32::try_from(tls.ticket_period.as_secs())
                    .ok()
                    .and_then(Period::new)
                    .unwrap_or(Period::DEFAULT),
            }),
            false => None,
        };
        Some(Self { clock, cache, tickets })
    }

    /// Reads the secret of tickets again, if it is in a file. Sessions go on to be resumed.
    pub fn reload(&self, tls: &config::Tls, problems: &mut Problems) {
        if let (Some(tickets), Some(_)) = (&self.tickets, &tls.ticket_secret)
            && let Some(secrets) = secrets(tls, problems)
        {
            tickets.secrets.replace(secrets);
        }
    }

    /// The time of TLS, which every shard keeps going.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// The table of sessions; `None`: it is off.
    pub fn cache(&self) -> Option<&Arc<SessionCache>> {
        self.cache.as_ref()
    }

    /// The sessions of one context.
    pub(super) fn sessions(&self, context: ContextId) -> Option<ContextSessions> {
        self.cache.as_ref().map(|cache| ContextSessions::new(Arc::clone(cache), context))
    }

    /// The tickets of one context, for one shard; `None`: they are off.
    pub(super) fn tickets(
        &self,
        context: ContextId,
        counters: &Arc<TicketCounters>,
    ) -> Option<ContextTickets> {
        let Tickets { secrets, period } = self.tickets.as_ref()?;
        let (clock, counters) = (Arc::clone(&self.clock), Arc::clone(counters));
        Some(ContextTickets::new(Arc::clone(secrets), context, *period, clock, counters))
    }
}

/// The secret from the file that the configuration names, or a new one.
fn secrets(tls: &config::Tls, problems: &mut Problems) -> Option<Secrets> {
    let read = tls.ticket_secret.as_deref().map_or_else(Secrets::random, Secrets::read);
    read.map_err(|error| {
        let fault = match &error {
            SecretError::Unreadable { error, .. }
                if error.kind() == ErrorKind::PermissionDenied =>
            {
                Fault::Permission
            }
            SecretError::Random => Fault::Environment,
            _ => Fault::Configuration,
        };
        problems.fatal(fault, error);
    })
    .ok()
}

impl fmt::Debug for Resumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resumption").field("cache", &self.cache).finish_non_exhaustive()
    }
}
