//! What a server is told about TLS: who it says it is, to whom, and what that may cost.
//!
//! Only names of files stand here. What is in them is read and judged where they are used, since it
//! changes while the server runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::problem::Origin;
use super::resolve::Draft;
use super::table::{Table, boolean, bytes, choice, duration, elements, path, text, texts, whole};
use super::units;
use super::{Endpoint, Listener, Site};

/// TLS in general, for all listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The oldest version that is spoken. A client that knows only older ones gets the alert
    /// `protocol_version`.
    pub min_version: Version,
    /// Whether the kernel encrypts.
    pub ktls: Ktls,
    /// Bytes of a body from which on its connection is handed to the kernel for encryption.
    pub ktls_from_bytes: u64,
    /// Whether sessions are resumed by tickets, which clients keep; otherwise by the session cache
    /// alone.
    pub tickets: bool,
    /// The file with the secret that ticket keys are made of, for servers that resume each other's
    /// sessions; `None`: a random one, which ends with the process.
    pub ticket_secret: Option<PathBuf>,
    /// For how long tickets are made with one key.
    pub ticket_period: Duration,
    /// Sessions that the cache holds, of all shards together; 0 switches it off. Beyond: one that
    /// has not been asked for lately makes room.
    pub session_cache_entries: usize,
    /// For how long a session may be resumed. Beyond: a full handshake.
    pub session_lifetime: Duration,
    /// Handshakes that a shard has under way. Beyond: the oldest makes room.
    pub handshakes: usize,
    /// Handshakes that a shard takes a step with in one turn of the loop. Beyond: the next turn.
    pub handshakes_per_turn: usize,
    /// Bytes of a connection that are sent in small records, at its start and after a pause, before
    /// they become large.
    pub records_small_bytes: u64,
    /// Bits of an RSA key from which on a thread aside signs with it, so that a shard's other
    /// connections need not wait.
    pub offload_rsa_bits: usize,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// Whether the kernel encrypts what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ktls {
    /// Wherever it can.
    Auto,
    /// It must: without it the server does not start.
    On,
    /// Never.
    Off,
}

/// TLS on one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// Who it is for clients that name no site with certificates of its own.
    pub certificates: Certificates,
    /// Whether its clients have to say who they are, where a site does not say otherwise.
    pub client_auth: ClientAuth,
}

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// Files, in the order of preference; never empty. The first answers for names that none covers.
    Files(Vec<CertificateFiles>),
    /// One that is made in memory at the start, for this host and all sites, and signed by itself.
    SelfSigned,
}

/// A chain of certificates and the key of its first one, both PEM.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateFiles {
    /// The server's certificate, then those that lead to a root.
    pub chain: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Whether clients have to say who they are, and who vouches for them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientAuth {
    /// They are not asked.
    Off,
    /// They are asked; one without a certificate is served too, one with a wrong one is not.
    Optional {
        /// The certificates, PEM, that must have signed theirs.
        authorities: PathBuf,
    },
    /// Without a right certificate there is no connection.
    Required {
        /// The certificates, PEM, that must have signed theirs.
        authorities: PathBuf,
    },
}

/// The policies that sites have of their own, numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies(Vec<ClientAuth>);

/// What clients have to be: equal numbers, equal policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyId(u16);

/// What the client of a connection had to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// What the listener asks for.
    pub of_listener: PolicyId,
    /// What was asked for: that, or what the site asks for that the client has named.
    pub asked: PolicyId,
}

impl Policies {
    /// Those of these sites.
    pub fn of(sites: &[Site]) -> Self {
        let mut distinct: Vec<ClientAuth> = Vec::new();
        for client_auth in sites.iter().filter_map(|site| site.tls.client_auth.as_ref()) {
            if !distinct.contains(client_auth) {
                distinct.push(client_auth.clone());
            }
        }
        Self(distinct)
    }

    /// The number of a policy. All that no site has are one: a listener's, which is not told apart from
    /// another listener's.
    pub fn id(&self, client_auth: &ClientAuth) -> PolicyId {
        let place = self.0.iter().position(|other| other == client_auth);
        PolicyId(place.and_then(|place| u16::try_from(place).ok()).unwrap_or(u16::MAX))
    }
}

impl Admission {
    /// Whether it is good for a site, which has this policy of its own or none.
    pub fn is_for(self, site: Option<PolicyId>) -> bool {
        site.unwrap_or(self.of_listener) == self.asked
    }
}

/// TLS of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteTls {
    /// Who the site is, on every listener; empty: whatever the listener says.
    pub certificates: Vec<CertificateFiles>,
    /// Whether its clients have to say who they are; `None`: as on the listener.
    pub client_auth: Option<ClientAuth>,
    /// The value of `Strict-Transport-Security` in answers over TLS (RFC 6797 §6.1).
    pub hsts: Option<String>,
    /// Whether requests without TLS are sent on to the same place with it.
    pub redirect: Redirect,
}

/// What becomes of a request without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirect {
    /// It is answered.
    #[default]
    Off,
    /// It is sent on to `https`, at the port of the first listener with TLS.
    ToListener,
    /// It is sent on to `https`, at this port: the one that visitors use, where something between
    /// changes it.
    ToPort(u16),
}

/// Reads `[tls]`. `base` is the directory that relative paths start from.
pub(super) fn read(mut table: Table<'_>, base: &Path, draft: &mut Draft) {
    const HALF_A_WEEK: Duration = Duration::from_secs(302_400);
    const DAY: Duration = Duration::from_secs(86_400);
    const SECOND: Duration = Duration::from_secs(1);
    let t = &mut table;
    t.set("certificates", draft, certificates(base), |draft, files| draft.certificates = files);
    let versions = [("1.2", Version::Tls12), ("1.3", Version::Tls13)];
    t.set("min_version", draft, choice(&versions), |draft, version| {
        draft.config.tls.min_version = version;
    });
    let ktls = [("auto", Ktls::Auto), ("on", Ktls::On), ("off", Ktls::Off)];
    t.set("ktls", draft, choice(&ktls), |draft, ktls| draft.config.tls.ktls = ktls);
    t.set("ktls_from", draft, bytes(0..=1 << 50), |draft, bytes| {
        draft.config.tls.ktls_from_bytes = bytes;
    });
    t.set("tickets", draft, boolean, |draft, tickets| draft.config.tls.tickets = tickets);
    t.set("ticket_secret", draft, path(base), |draft, path| {
        draft.config.tls.ticket_secret = Some(path);
    });
    t.set("ticket_period", draft, duration(SECOND, HALF_A_WEEK), |draft, period| {
        draft.config.tls.ticket_period = period;
    });
    t.set("session_cache", draft, whole(0..=1 << 24), |draft, entries| {
        draft.config.tls.session_cache_entries = entries;
    });
    t.set("session_lifetime", draft, duration(SECOND, DAY), |draft, lifetime| {
        draft.config.tls.session_lifetime = lifetime;
    });
    t.set("handshakes", draft, whole(1..=1 << 20), |draft, count| {
        draft.config.tls.handshakes = count;
    });
    t.set("handshakes_per_turn", draft, whole(1..=65_536), |draft, count| {
        draft.config.tls.handshakes_per_turn = count;
    });
    t.set("records_small", draft, bytes(0..=1 << 30), |draft, bytes| {
        draft.config.tls.records_small_bytes = bytes;
    });
    t.set("offload_rsa", draft, whole(1024..=16_384), |draft, bits| {
        draft.config.tls.offload_rsa_bits = bits;
    });
    table.finish(draft);
}

/// Reads a `[[listener]]`.
pub(super) fn read_listener(mut table: Table<'_>, base: &Path, draft: &mut Draft) {
    let origin = Origin::File(table.place());
    let problems = draft.problems.len();
    let t = &mut table;
    let (mut address, mut fd, mut is_tls, mut files) = (None, None, false, None);
    let parse_address = |value: &DeValue<'_>| {
        units::parse_address(&text(value)?).map_err(|error| error.to_string())
    };
    t.set("address", draft, parse_address, |_, parsed| address = Some(parsed));
    t.set("fd", draft, whole(0..=i32::MAX), |_, number| fd = Some(number));
    t.set("tls", draft, boolean, |_, tls| is_tls = tls);
    t.set("certificates", draft, certificates(base), |_, parsed| files = Some(parsed));
    let client_auth = client_auth(t, base, draft);
    table.finish(draft);
    if draft.problems.len() > problems {
        return;
    }
    let endpoint = match (address, fd) {
        (Some(address), None) => Endpoint::Address(address),
        (None, Some(fd)) => Endpoint::Descriptor(fd),
        (Some(_), Some(_)) => {
            let message = "is another place to listen than `address`: write two listeners";
            return draft.problem(origin, "listener.fd", message);
        }
        (None, None) => {
            let message = "missing: where to listen, such as \"0.0.0.0:443\"; or `fd = 3`";
            return draft.problem(origin, "listener.address", message);
        }
    };
    let tls = match is_tls {
        true => Some(ListenerTls {
            certificates: files.map_or(Certificates::SelfSigned, Certificates::Files),
            client_auth: client_auth.unwrap_or(ClientAuth::Off),
        }),
        false if files.is_some() || client_auth.is_some() => {
            let message =
                "missing: without `tls = true` nobody is shown a certificate or asked for one";
            return draft.problem(origin, "listener.tls", message);
        }
        false => None,
    };
    draft.listen(Listener { endpoint, tls }, "listener", origin);
}

/// Reads a `[site.tls]`.
pub(super) fn read_site(mut table: Table<'_>, base: &Path, draft: &mut Draft) -> SiteTls {
    let mut site = SiteTls::default();
    let t = &mut table;
    t.set("certificates", draft, certificates(base), |_, files| site.certificates = files);
    site.client_auth = client_auth(t, base, draft);
    t.set("hsts", draft, hsts, |_, hsts| site.hsts = Some(hsts));
    t.set("redirect", draft, redirect, |_, redirect| site.redirect = redirect);
    table.finish(draft);
    site
}

/// Reads `client_ca` and `client_auth`; `None` where neither is there.
fn client_auth(table: &mut Table<'_>, base: &Path, draft: &mut Draft) -> Option<ClientAuth> {
    #[derive(Clone, Copy)]
    enum Asked {
        Off,
        Optional,
        Required,
    }
    let (mut authorities, mut asked) = (None, None);
    let words = [("off", Asked::Off), ("optional", Asked::Optional), ("required", Asked::Required)];
    table.set("client_ca", draft, path(base), |_, path| authorities = Some(path));
    table.set("client_auth", draft, choice(&words), |_, word| asked = Some(word));
    match (asked, authorities) {
        (None, None) => None,
        (Some(Asked::Off), _) => Some(ClientAuth::Off),
        (Some(Asked::Optional), Some(authorities)) => Some(ClientAuth::Optional { authorities }),
        (Some(Asked::Required) | None, Some(authorities)) => {
            Some(ClientAuth::Required { authorities })
        }
        (Some(Asked::Optional | Asked::Required), None) => {
            let message = "missing: the file with the certificates that vouch for clients";
            table.problem("client_ca", message, draft);
            None
        }
    }
}

/// A list of certificates and their keys.
fn certificates(
    base: &Path,
) -> impl FnOnce(&DeValue<'_>) -> Result<Vec<CertificateFiles>, super::table::Complaints> {
    const SHAPE: &str = "a list of certificates: [{ cert = \"site.pem\", key = \"site.key\" }]";
    move |value| {
        let files = elements(SHAPE, |item| certificate(item, base))(value)?;
        match files.is_empty() {
            true => Err(format!("is empty; write {SHAPE}, or leave it out").into()),
            false => Ok(files),
        }
    }
}

/// One certificate. A file may hold both the chain and its key.
fn certificate(item: &DeValue<'_>, base: &Path) -> Result<CertificateFiles, String> {
    let (mut chain, mut key) = (None, None);
    for (name, written) in
        texts(item, "the two files: { cert = \"site.pem\", key = \"site.key\" }")?
    {
        if written.is_empty() {
            return Err(format!("`{name}` is empty; name a file"));
        }
        match &*name {
            "cert" => chain = Some(base.join(written)),
            "key" => key = Some(base.join(written)),
            _ => return Err(format!("`{name}` is unknown; known here: cert, key")),
        }
    }
    let chain = chain.ok_or("`cert` is missing: the file with the certificate and its chain")?;
    let key = key.unwrap_or_else(|| chain.clone());
    Ok(CertificateFiles { chain, key })
}

/// A policy of RFC 6797 §6.1: `max-age` is needed, and no directive may be there twice.
fn hsts(value: &DeValue<'_>) -> Result<String, String> {
    let policy = text(value)?;
    let wrong = |why: &str| {
        Err(format!(
            "`{}` {why}; write \"max-age=63072000\", or \"max-age=63072000; includeSubDomains\"",
            policy.escape_debug()
        ))
    };
    let trimmed = |text: &'_ str| text.trim_matches([' ', '\t']).to_owned();
    let mut seen: Vec<String> = Vec::new();
    for directive in policy.split(';') {
        let (name, value) = match directive.split_once('=') {
            Some((name, value)) => (trimmed(name), Some(trimmed(value))),
            None => (trimmed(directive), None),
        };
        if name.is_empty() && value.is_none() {
            continue;
        }
        let name = name.to_ascii_lowercase();
        match (&*name, value) {
            ("max-age", Some(seconds)) if is_number(&seconds) => {}
            ("max-age", _) => return wrong("does not say for how many seconds"),
            ("includesubdomains" | "preload", None) => {}
            _ => return wrong("has a directive that browsers do not know"),
        }
        if seen.contains(&name) {
            return wrong("has a directive twice");
        }
        seen.push(name);
    }
    match seen.iter().any(|name| name == "max-age") {
        true => Ok(policy),
        false => wrong("lacks `max-age`"),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether plain requests are sent on, and to which port.
fn redirect(value: &DeValue<'_>) -> Result<Redirect, String> {
    match value.as_bool() {
        Some(true) => Ok(Redirect::ToListener),
        Some(false) => Ok(Redirect::Off),
        None => whole(1..=u16::MAX)(value)
            .map(Redirect::ToPort)
            .map_err(|message| format!("{message}; or write `true`")),
    }
}
