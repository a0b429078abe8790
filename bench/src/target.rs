//! What is asked for: URLs, and lists of them.
//!
//! A run has one server: every URL of it names the same scheme, host and port, since a connection
//! is reused for whichever URL comes next.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Something else than `http://` and `https://`.
    #[error("`{0}`: only http:// and https:// are spoken; write http://HOST[:PORT]/PATH")]
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

/// What is spoken with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP over TCP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// The port if a URL names none (RFC 9110 §4.2).
    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// The scheme that `url` begins with, and what follows it.
    fn split(url: &str) -> Option<(Self, &str)> {
        let after = |prefix| url.strip_prefix(prefix);
        let http = || Some((Self::Http, after("http://")?));
        http().or_else(|| Some((Self::Https, after("https://")?)))
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

/// One URL, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether TLS is spoken.
    pub scheme: Scheme,
    /// Host and port as written: the value of the Host field.
    pub authority: String,
    /// The origin form: path and query, beginning with a slash.
    pub path: String,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, TargetError> {
        let (scheme, rest) =
            Scheme::split(url).ok_or_else(|| TargetError::Scheme(url.to_owned()))?;
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
        let target = Self { scheme, authority: authority.to_owned(), path };
        match target.host_and_port() {
            Some(_) => Ok(target),
            None => Err(malformed(
                "the port is not a number from 1 to 65535, or an IPv6 address lacks its brackets",
            )),
        }
    }
}

/// Why a target has a host and a port.
const CHECKED: &str = "a target is made only from a URL with host and port";

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, authority, path } = self;
        write!(f, "{scheme}://{authority}{path}")
    }
}

impl Target {
    /// The host without brackets: a name or an address.
    pub fn host(&self) -> &str {
        let (host, _) = self.host_and_port().expect(CHECKED);
        host
    }

    /// Scheme, host and port, as written: `https://localhost:8443`.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// The host without brackets, and the port, that of the scheme if none is written.
    fn host_and_port(&self) -> Option<(&str, u16)> {
        let (host, port) = match self.authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (self.authority.as_str(), self.scheme.default_port()),
        };
        let host = match host.strip_prefix('[') {
            Some(address) => address.strip_suffix(']')?,
            // Where an address ended and its port began, nobody could tell.
            None if host.contains([':', ']']) => return None,
            None => host,
        };
        (port != 0 && !host.is_empty()).then_some((host, port))
    }

    /// The first address of the host.
    fn resolve(&self) -> Result<SocketAddr, TargetError> {
        let failed = |error| TargetError::Resolve { host: self.authority.clone(), error };
        let (host, port) = self.host_and_port().expect(CHECKED);
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
        let elsewhere = |t: &&Target| (t.scheme, &t.authority) != (first.scheme, &first.authority);
        if let Some(other) = list.iter().find(elsewhere) {
            return Err(TargetError::Servers(first.origin(), other.origin()));
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
            "ftp://a/",
            "HTTPS//a/",
            "https://",
            "http:///x",
            "http://u@a/",
            "http://a:0/",
            "http://a:65536/",
            "http://a:/",
            "http://:80/",
            "http://a/b c",
            "http://a/\r\nX: y",
            "http://a/ä",
            "http://::1/",
            "http://::1:80/",
            "http://[::1/",
            "http://::1]/",
        ] {
            assert_eq!(target(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_scheme_gives_the_port() {
        let address = |url: &str| Targets::read(&[url.to_owned()], &[]).unwrap().address;
        assert_eq!(address("http://127.0.0.1/"), "127.0.0.1:80".parse().unwrap());
        assert_eq!(address("https://127.0.0.1/"), "127.0.0.1:443".parse().unwrap());
        assert_eq!(address("https://[::1]:8443/"), "[::1]:8443".parse().unwrap());
    }

    #[test]
    fn a_target_is_written_as_it_was_read() {
        for url in ["http://a:81/x?y", "https://[::1]:8443/", "https://localhost/"] {
            let target: Target = url.parse().unwrap();
            assert_eq!(target.to_string(), url);
        }
        let host = |url: &str| url.parse::<Target>().unwrap().host().to_owned();
        assert_eq!(host("https://[::1]:8443/"), "::1");
        assert_eq!(host("https://example.org:8443/"), "example.org");
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
        let urls = ["http://127.0.0.1:81/".to_owned(), "https://127.0.0.1:81/".to_owned()];
        let error = Targets::read(&urls, &[]).unwrap_err().to_string();
        assert!(error.contains("`http://127.0.0.1:81` and `https://127.0.0.1:81`"), "{error}");
        assert!(matches!(Targets::read(&[], &[]), Err(TargetError::Nothing)));
    }
}
