//! What TLS, or its absence, makes of a site.
//!
//! A site that says something over TLS alone (`hsts`), or that is served by TLS alone (`redirect`), is
//! two sites here: one for each way. So nothing that is kept for the one can be sent in the other, and
//! nothing has to be asked of a request whose answer is ready.

use crate::config::{self, Policies};
use crate::http::{FieldLines, Method, Persistence, RequestHead, Status};

use super::entry::{self, Asked};
use super::error_pages::About;
use super::ready::Ready;
use super::site::Site;
use super::{Channel, Files, Now, OpenError, Reply, SiteId, redirect};

/// The sites of a configuration, open.
pub(super) struct BothWays<'c> {
    /// In the order of the configuration, as they are without TLS; then some as they are over TLS.
    pub(super) open: Vec<Site>,
    /// What each of those was configured as.
    pub(super) configured: Vec<&'c config::Site>,
    /// What each of those configured is over TLS.
    pub(super) over_tls: Box<[SiteId]>,
}

impl<'c> BothWays<'c> {
    pub(super) fn of(sites: &'c [config::Site]) -> Result<Self, OpenError> {
        let policies = Policies::of(sites);
        let open = sites.iter().map(|site| Site::open(site, &policies));
        let mut open: Vec<_> = open.collect::<Result<_, _>>()?;
        let mut configured: Vec<&config::Site> = sites.iter().collect();
        let mut over_tls = Vec::new();
        for (at, site) in sites.iter().enumerate() {
            let place = match open[at].over_tls(site) {
                None => at,
                Some(other) => {
                    open.push(other?);
                    configured.push(site);
                    open.len() - 1
                }
            };
            let place = u16::try_from(place).map_err(|_| OpenError::TooManySites(open.len()))?;
            over_tls.push(SiteId(place));
        }
        Ok(Self { open, configured, over_tls: over_tls.into() })
    }
}

impl Files {
    /// The site that a request is for, by its authority: the first one if no other has that name.
    #[inline]
    pub fn site(&self, host: Option<&[u8]>, channel: Channel) -> SiteId {
        self.through(self.hosts.site(host), channel)
    }

    /// The site of requests that were not understood: the first one.
    pub fn default_site(&self, channel: Channel) -> SiteId {
        self.through(SiteId::DEFAULT, channel)
    }

    /// What a site is for those who come this way.
    #[inline]
    fn through(&self, site: SiteId, channel: Channel) -> SiteId {
        match channel {
            Channel::Plain => site,
            Channel::Tls(_) => self.over_tls[usize::from(site.0)],
        }
    }

    /// Whether those who come this way may reach a site: its clients may have to be somebody else.
    #[inline]
    pub(super) fn is_reached(&self, site: SiteId, channel: Channel) -> bool {
        match channel {
            Channel::Plain => !self.sites[usize::from(site.0)].is_for_clients,
            Channel::Tls(admission) => admission.is_for(self.sites[usize::from(site.0)].policy),
        }
    }

    /// Where a request is to be made again, with TLS; `None`: here, or nowhere.
    #[cold]
    pub(super) fn send_on(
        &mut self,
        site: SiteId,
        head: &RequestHead<'_>,
        persistence: Persistence,
        now: &Now,
    ) -> Option<Reply> {
        let elsewhere = self.sites[usize::from(site.0)].elsewhere.as_ref()?;
        let location = redirect::with_tls(head.host, elsewhere, head.target)?;
        let fields = FieldLines::NONE;
        let head_only = head.method == Method::Head;
        let asked = Asked { site, persistence, head_only, query: None, fields, now };
        let Some(location) = location else {
            return Some(self.supplies.page(Status::FORBIDDEN, About::default(), &asked));
        };
        let status = Status::PERMANENT_REDIRECT;
        let ready = &mut Ready::default();
        let head = entry::make_redirect(ready, status, &location, &asked, &mut self.supplies);
        Some(Reply { status, head, body: None })
    }
}
