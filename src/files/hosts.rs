//! Which site a request is for.

use hashbrown::HashMap;

use crate::config;
use crate::http::head::host_of;

/// A site, by its place in the configuration; and beyond these, a site as it is over TLS, where that
/// differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteId(pub(super) u16);

impl SiteId {
    /// The site of requests that name none: the first one.
    pub const DEFAULT: Self = Self(0);
}

/// The names of all sites.
#[derive(Debug)]
pub(super) struct Hosts {
    /// In lower case, without the dot at their end. Empty where there is no choice.
    names: HashMap<Box<[u8]>, SiteId>,
}

/// Longer than any DNS name (RFC 1035 §2.3.4), so that a name beyond is nobody's.
const NAME_BYTES_MAX: usize = 256;

impl Hosts {
    /// The names of these sites; of two sites with one name the first has it. `None`: they are more
    /// than a [`SiteId`] can tell apart.
    pub(super) fn of(sites: &[config::Site]) -> Option<Self> {
        let mut names = HashMap::new();
        for (at, site) in sites.iter().enumerate() {
            let id = SiteId(u16::try_from(at).ok()?);
            for name in &site.names {
                let name = without_dot(name.as_bytes()).to_ascii_lowercase();
                names.entry(name.into_boxed_slice()).or_insert(id);
            }
        }
        if sites.len() == 1 {
            names.clear();
        }
        Some(Self { names })
    }

    /// The site of an authority: its port does not matter, nor does the case of its name, nor a dot
    /// at its end. Without one, or with a name that no site has: the first site.
    #[inline]
    pub(super) fn site(&self, authority: Option<&[u8]>) -> SiteId {
        match authority {
            Some(authority) if !self.names.is_empty() => {
                self.find(authority).unwrap_or(SiteId::DEFAULT)
            }
            _ => SiteId::DEFAULT,
        }
    }

    fn find(&self, authority: &[u8]) -> Option<SiteId> {
        let host = without_dot(host_of(authority));
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..host.len())?;
        lower.copy_from_slice(host);
        lower.make_ascii_lowercase();
        self.names.get(&*lower).copied()
    }
}

fn without_dot(name: &[u8]) -> &[u8] {
    name.strip_suffix(b".").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(sites: &[&[&str]]) -> Hosts {
        let site = |names: &&[&str]| config::Site {
            names: names.iter().map(|&name| name.into()).collect(),
            ..config::Site::of(config::Root::Welcome)
        };
        Hosts::of(&sites.iter().map(site).collect::<Vec<_>>()).expect("few sites")
    }

    #[test]
    fn a_host_finds_its_site() {
        let hosts =
            hosts(&[&[], &["a.example", "www.a.example"], &["b.example", "[::1]", "a.example"]]);
        for (authority, expected) in [
            (&b"a.example"[..], 1),
            (b"A.Example:8080", 1),
            (b"www.a.example.", 1),
            (b"b.example.:80", 2),
            (b"[::1]:8080", 2),
            (b"[::1]", 2),
            (b"c.example", 0),
            (b"", 0),
            (b".", 0),
            (&[b'a'; 5000], 0),
        ] {
            let site = hosts.site(Some(authority));
            assert_eq!(site, SiteId(expected), "{}", authority.escape_ascii());
        }
        assert_eq!(hosts.site(None), SiteId(0));
    }

    #[test]
    fn a_single_site_is_everybodys() {
        assert_eq!(hosts(&[&["a.example"]]).site(Some(b"b.example")), SiteId(0));
    }
}
