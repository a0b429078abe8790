//! What is asked for: URLs, and lists of them.
//!
//! Only `http` is spoken. A run has one server: every URL of it names the same host and port,
//! since a connection is reused for whichever URL comes next.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Something else than `http://`.
    #[error("`{0}`: only http:// is spoken; write http://HOST[:PORT]/PATH")]
    Scheme(String),
    /// A host, port or path which cannot be sent.
    #[error("`{url}`: {what}; write http://HOST[:PORT]/PATH")]
    Malformed {
        /// The URL as it was written.
        url: String,
        /// The part that is wrong.
        what: &'static str,
    },
    /// A list that cannot be read.
    #[error("cannot read the list of URLs {}: {error}", path.display())]
    List {
        /// The list.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No URL at all, such as an empty list.
    #[error("no URL to ask for: the list is empty")]
    Nothing,
    /// URLs of more than one server.
    #[error("`{0}` and `{1}` are on different servers: run once for each")]
    Servers(String, String),
    /// A host without an address.
    #[error("cannot resolve `{host}`: {error}")]
    Resolve {
        /// The host and port asked for.
        host: String,
        /// Why.
        error: io::Error,
    },
    /// A host that is not on this machine and was not named by `--allow-target`.
    #[error("{0} is not on this machine: load is sent there only with --allow-target {0}")]
    NotLocal(std::net::IpAddr),
}

/// One URL, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host and port as written: the value of the Host field.
    pub authority: String,
    /// The origin form: path and query, beginning with a slash.
    pub path: String,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, TargetError> {
        let rest =
            url.strip_prefix("http://").ok_or_else(|| TargetError::Scheme(url.to_owned()))?;
        let malformed = |what| TargetError::Malformed { url: url.to_owned(), what };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) if rest.as_bytes()[at] == b'/' => (&rest[..at], rest[at..].to_owned()),
            Some(at) => (&rest[..at], format!("/{}", &rest[at..])),
            None => (rest, "/".to_owned()),
        };
        if authority.is_empty() || authority.contains('@') {
            return Err(malformed("the host is missing or has a user in front"));
        }
        if !authority.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(malformed("a character of the host must not be sent as it is"));
        }
        if !path.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(malformed("a character of the path must be percent-encoded"));
        }
        let target = Self { authority: authority.to_owned(), path };
        match target.host_and_port() {
            Some(_) => Ok(target),
            None => Err(malformed("the port is not a number from 1 to 65535")),
        }
    }
}

impl Target {
    /// The host without brackets, and the port, 80 if none is written.
    fn host_and_port(&self) -> Option<(&str, u16)> {
        let (host, port) = match self.authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (self.authority.as_str(), 80),
        };
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        (port != 0 && !host.is_empty()).then_some((host, port))
    }

    /// The first address of the host.
    fn resolve(&self) -> Result<SocketAddr, TargetError> {
        let failed = |error| TargetError::Resolve { host: self.authority.clone(), error };
        let (host, port) =
            self.host_and_port().expect("a target is made only from a URL with host and port");
        let mut addresses = (host, port).to_socket_addrs().map_err(failed)?;
        addresses.next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
    }
}

/// The URLs of a run and the address of their server.
#[derive(Clone, Debug)]
pub struct Targets {
    /// The server.
    pub address: SocketAddr,
    /// The URLs in order; never empty.
    pub list: Vec<Target>,
}

impl Targets {
    /// Reads URLs and `@FILE` lists of them (one a line; empty lines and `#` lines are skipped).
    ///
    /// Addresses other than loopback must be among `allowed`: a load generator that is pointed
    /// at somebody else's server by a slip of the pen does harm.
    pub fn read(written: &[String], allowed: &[std::net::IpAddr]) -> Result<Self, TargetError> {
        let mut list = Vec::new();
        for word in written {
            match word.strip_prefix('@') {
                None => list.push(word.parse()?),
                Some(path) => {
                    let text = std::fs::read_to_string(path)
                        .map_err(|error| TargetError::List { path: path.into(), error })?;
                    let lines = text.lines().map(str::trim);
                    for line in lines.filter(|l| !l.is_empty() && !l.starts_with('#')) {
                        list.push(line.parse()?);
                    }
                }
            }
        }
        let first: &Target = list.first().ok_or(TargetError::Nothing)?;
        if let Some(other) = list.iter().find(|t| t.authority != first.authority) {
            return Err(TargetError::Servers(first.authority.clone(), other.authority.clone()));
        }
        let address = first.resolve()?;
        let host = address.ip();
        if !host.is_loopback() && !allowed.contains(&host) {
            return Err(TargetError::NotLocal(host));
        }
        Ok(Self { address, list })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn target(url: &str) -> Option<(String, String)> {
        url.parse::<Target>().ok().map(|t| (t.authority, t.path))
    }

    #[test]
    fn a_url_is_authority_and_path() {
        let parts = |a: &str, p: &str| Some((a.to_owned(), p.to_owned()));
        assert_eq!(target("http://a:81/x?y"), parts("a:81", "/x?y"));
        assert_eq!(target("http://a"), parts("a", "/"));
        assert_eq!(target("http://a?q"), parts("a", "/?q"));
        assert_eq!(target("http://a/b#c"), parts("a", "/b"));
        assert_eq!(target("http://[::1]:81/"), parts("[::1]:81", "/"));
        assert_eq!(target("http://[::1]/"), parts("[::1]", "/"));
        for wrong in [
            "a/b",
            "https://a/",
            "http:///x",
            "http://u@a/",
            "http://a:0/",
            "http://a:65536/",
            "http://a:/",
            "http://:80/",
            "http://a/b c",
            "http://a/\r\nX: y",
            "http://a/ä",
        ] {
            assert_eq!(target(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lists_and_urls_mix_on_one_server() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "# two\nhttp://127.0.0.1:81/b\n\n http://127.0.0.1:81/c").unwrap();
        let list = format!("@{}", file.path().display());
        let targets = Targets::read(&["http://127.0.0.1:81/a".into(), list], &[]).unwrap();
        assert_eq!(targets.address, "127.0.0.1:81".parse().unwrap());
        let paths: Vec<_> = targets.list.iter().map(|t| t.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/b", "/c"]);
    }

    #[test]
    fn other_machines_must_be_allowed() {
        let url = ["http://192.0.2.1/".to_owned()];
        assert!(matches!(Targets::read(&url, &[]), Err(TargetError::NotLocal(_))));
        assert!(Targets::read(&url, &["192.0.2.1".parse().unwrap()]).is_ok());
    }

    #[test]
    fn two_servers_or_none_are_refused() {
        let urls = ["http://127.0.0.1:81/".to_owned(), "http://127.0.0.1:82/".to_owned()];
        assert!(matches!(Targets::read(&urls, &[]), Err(TargetError::Servers(..))));
        assert!(matches!(Targets::read(&[], &[]), Err(TargetError::Nothing)));
    }
}
