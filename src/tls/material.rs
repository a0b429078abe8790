//! Everything that shards make their TLS of: certificates, authorities, policies, and who gets which.
//!
//! It is loaded and judged as a whole, on the thread of the server, and never changes: a new one takes
//! its place when files have changed. What sessions are resumed from outlives it ([`Resumption`]).
//!
//! Which certificate a client is shown, by the name it asks for:
//!
//! 1. those of the site of that name, if it has its own;
//! 2. else those that name it, of the listener's and then of all sites; exactly before by wildcard;
//! 3. else the listener's first one, and its further ones for the same name.
//!
//! Of several the client is shown the first that it can verify, in the order of
//! [`KeyKind`](super::certificate::KeyKind).

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::config::{
    Admission, CertificateFiles, Certificates, ClientAuth, Config, Fault, Listener, ListenerTls,
    Policies, Site, Version,
};

use super::certificate::{Certificate, KeyKind};
use super::client_auth::Asked;
use super::context_id::ContextId;
use super::names::{self, Names};
use super::problem::{Problems, Severity};
use super::resumption::Resumption;
use super::self_signed;

/// What all shards make their configurations of.
#[derive(Debug)]
pub struct Material {
    pub(super) certificates: Vec<Arc<Certificate>>,
    /// By the listeners' places in the configuration; `None`: plain HTTP.
    pub(super) listeners: Vec<Option<OfListener>>,
    pub(super) min_version: Version,
    pub(super) offload_rsa_bits: usize,
    pub(super) resumption: Arc<Resumption>,
    /// Where each of `certificates` comes from; the one that was made here is not among them.
    files: BTreeMap<CertificateFiles, usize>,
    made: Option<Arc<Certificate>>,
}

/// What one listener shows and asks for.
#[derive(Debug)]
pub(super) struct OfListener {
    pub(super) choices: Arc<Names<Choice>>,
    /// Distinct ones; never empty.
    pub(super) policies: Vec<Policy>,
    /// Which of the policies a name has.
    pub(super) policy_of: Arc<Names<usize>>,
}

/// Places of certificates, the preferred one first; never empty.
pub(super) type Choice = Box<[usize]>;

/// What a client has to be, to reach a site.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) asked: Asked,
    pub(super) admission: Admission,
    pub(super) id: ContextId,
}

/// Certificates as they are being read.
struct Loading<'a> {
    now_s: i64,
    problems: &'a mut Problems,
    certificates: Vec<Arc<Certificate>>,
    files: BTreeMap<CertificateFiles, Option<usize>>,
    asked: BTreeMap<ClientAuth, Option<Asked>>,
}

impl Material {
    /// Reads everything that a configuration names. Everything that is wrong with it is added to
    /// `problems`; `None`: one of them is fatal. `running` is what this is to replace.
    pub fn load(
        config: &Config,
        resumption: &Arc<Resumption>,
        running: Option<&Material>,
        now_s: i64,
        problems: &mut Problems,
    ) -> Option<Material> {
        let mut found = Problems::default();
        let mut loading = Loading {
            now_s,
            problems: &mut found,
            certificates: Vec::new(),
            files: BTreeMap::new(),
            asked: BTreeMap::new(),
        };
        let mut made = None;
        let mut listeners = Vec::new();
        for listener in &config.listeners {
            let of_listener = listener.tls.as_ref().and_then(|tls| {
                if tls.certificates == Certificates::SelfSigned && made.is_none() {
                    made = loading.made(&config.sites, running);
                }
                loading.listener(config, tls, made)
            });
            listeners.push(of_listener);
        }
        let Loading { certificates, files, .. } = loading;
        let material = Material {
            made: made.map(|at| Arc::clone(&certificates[at])),
            files: files.into_iter().filter_map(|(files, at)| Some((files, at?))).collect(),
            certificates,
            listeners,
            min_version: config.tls.min_version,
            offload_rsa_bits: config.tls.offload_rsa_bits,
            resumption: Arc::clone(resumption),
        };
        let is_whole = found.worst() < Some(Severity::Fatal);
        if is_whole {
            material.warn_of_uncovered(config, &mut found);
        }
        problems.append(found);
        is_whole.then_some(material)
    }

    /// Whether a client that this one serves would be refused by `next`: it has a certificate with a
    /// problem that is not already being shown.
    pub fn is_worsened_by(&self, next: &Material, problems: &Problems) -> bool {
        problems.at_least(Severity::Refused).iter().any(|problem| {
            let of_file =
                next.files.iter().filter(|(files, _)| Some(&files.chain) == problem.file.as_ref());
            of_file.into_iter().any(|(files, &at)| match self.files.get(files) {
                Some(&before) => !next.certificates[at].is_same(&self.certificates[before]),
                None => false,
            })
        })
    }

    /// What sessions are resumed from.
    pub fn resumption(&self) -> &Arc<Resumption> {
        &self.resumption
    }

    /// The names of the certificate that was made here; `None`: there is none.
    pub fn made_for(&self) -> Option<&[String]> {
        self.made.as_deref().map(Certificate::names)
    }

    /// A name that no certificate covers makes its visitors' browsers warn them.
    fn warn_of_uncovered(&self, config: &Config, problems: &mut Problems) {
        let listeners: Vec<&OfListener> = self.listeners.iter().flatten().collect();
        let chain_of =
            |at: usize| self.files.iter().find(|(_, of)| **of == at).map(|(f, _)| &f.chain);
        for name in config.sites.iter().flat_map(|site| &site.names) {
            let bare = name.trim_start_matches('[').trim_end_matches(']');
            let is_covered = |listener: &&OfListener| {
                let choice = listener.choices.find(Some(name));
                let mut names = choice.iter().flat_map(|&at| self.certificates[at].names());
                names.any(|pattern| names::covers(pattern, bare))
            };
            let Some(first) = listeners.first() else { return };
            if !listeners.iter().any(is_covered)
                && let Some(chain) = chain_of(first.choices.find(Some(name))[0])
            {
                let message = format!(
                    "does not cover `{name}`, whose visitors are shown it: browsers will warn them; have \
                     the name added to it, or give that site `certificates` of its own in `[site.tls]`"
                );
                problems.add(Severity::Warning, chain, message);
            }
        }
    }
}

impl Loading<'_> {
    /// One listener's; `None`: something of it is fatal, or missing.
    fn listener(
        &mut self,
        config: &Config,
        tls: &ListenerTls,
        made: Option<usize>,
    ) -> Option<OfListener> {
        let own: Vec<usize> = match &tls.certificates {
            Certificates::Files(files) => self.all(files),
            Certificates::SelfSigned => made.into_iter().collect(),
        };
        let of_sites: Vec<Vec<usize>> =
            config.sites.iter().map(|site| self.all(&site.tls.certificates)).collect();
        let policies = self.policies(config, tls);
        let choices = self.choices(&own, &config.sites, &of_sites);
        let (policies, policy_of) = policies?;
        Some(OfListener { choices: Arc::new(choices?), policies, policy_of: Arc::new(policy_of) })
    }

    /// The places of certificates that could be read.
    fn all(&mut self, files: &[CertificateFiles]) -> Vec<usize> {
        files.iter().filter_map(|files| self.one(files)).collect()
    }

    fn one(&mut self, files: &CertificateFiles) -> Option<usize> {
        if let Some(place) = self.files.get(files) {
            return *place;
        }
        let loaded = Certificate::load(files, self.now_s, self.problems);
        let place = loaded.map(|certificate| self.add(Arc::new(certificate)));
        self.files.insert(files.clone(), place);
        place
    }

    fn add(&mut self, certificate: Arc<Certificate>) -> usize {
        self.certificates.push(certificate);
        self.certificates.len() - 1
    }

    /// The certificate for a trial: the running one, while it lasts.
    fn made(&mut self, sites: &[Site], running: Option<&Material>) -> Option<usize> {
        let names = sites.iter().flat_map(|site| &site.names).map(String::as_str);
        let running = running.and_then(|running| running.made.clone());
        let certificate = match running {
            Some(running) if !self_signed::is_half_over(&running, self.now_s) => Some(running),
            _ => self_signed::make(names, self.now_s).map(Arc::new),
        };
        if certificate.is_none() {
            let message = "a self-signed certificate cannot be made: the cryptographic library refuses; name \
                           files in `certificates`";
            self.problems.fatal(Fault::Environment, message);
        }
        certificate.map(|certificate| self.add(certificate))
    }

    /// Who is shown which certificate.
    fn choices(
        &self,
        own: &[usize],
        sites: &[Site],
        of_sites: &[Vec<usize>],
    ) -> Option<Names<Choice>> {
        let first = *own.first()?;
        let alike = |&at: &usize| {
            let name = self.certificates[first].names().first();
            at == first || name.is_some_and(|name| self.certificates[at].names().contains(name))
        };
        let mut names = Names::all(self.preferred(own.iter().copied().filter(alike)));
        for (site, certificates) in sites.iter().zip(of_sites).filter(|(_, of)| !of.is_empty()) {
            for name in &site.names {
                names.insert(name, self.preferred(certificates.iter().copied()));
            }
        }
        let mut pool: Vec<usize> = Vec::new();
        for &at in own.iter().chain(of_sites.iter().flatten()) {
            if !pool.contains(&at) {
                pool.push(at);
            }
        }
        let mut naming: HashMap<&str, Vec<usize>> = HashMap::new();
        for &at in &pool {
            for name in self.certificates[at].names() {
                naming.entry(name).or_default().push(at);
            }
        }
        for (name, exact) in &naming {
            let wildcard = name.split_once('.').map(|(_, parent)| format!("*.{parent}"));
            let by_wildcard = wildcard.filter(|wildcard| wildcard != name);
            let by_wildcard = by_wildcard.and_then(|wildcard| naming.get(&*wildcard));
            let all = [&exact[..], by_wildcard.map_or(&[], |places| &places[..])];
            names
                .insert(name, all.map(|some| self.preferred(some.iter().copied())).concat().into());
        }
        Some(names)
    }

    /// Certificates in the order of preference, and of those alike in the order given.
    fn preferred(&self, places: impl Iterator<Item = usize>) -> Choice {
        let mut places: Vec<usize> = places.collect();
        let rank = |kind| match kind {
            KeyKind::Ecdsa => 0,
            KeyKind::Ed25519 => 1,
            KeyKind::Rsa { .. } => 2,
        };
        places.sort_by_key(|&at| rank(self.certificates[at].kind()));
        places.into()
    }

    /// The distinct policies of a listener, and who has which. A name that no site has is the first
    /// site's, as it is for requests.
    fn policies(
        &mut self,
        config: &Config,
        tls: &ListenerTls,
    ) -> Option<(Vec<Policy>, Names<usize>)> {
        let mut distinct: Vec<&ClientAuth> = Vec::new();
        let mut of_sites = Vec::new();
        for site in &config.sites {
            let client_auth = site.tls.client_auth.as_ref().unwrap_or(&tls.client_auth);
            let place = distinct.iter().position(|other| *other == client_auth);
            of_sites.push(place.unwrap_or_else(|| {
                distinct.push(client_auth);
                distinct.len() - 1
            }));
        }
        let mut names = Names::all(of_sites[0]);
        if config.sites.len() > 1 {
            for (site, place) in config.sites.iter().zip(of_sites) {
                site.names.iter().for_each(|name| names.insert(name, place));
            }
        }
        let group = group(&config.listeners, tls);
        let numbers = Policies::of(&config.sites);
        let of_listener = numbers.id(&tls.client_auth);
        let policies: Vec<Option<Policy>> = distinct
            .into_iter()
            .map(|client_auth| {
                let asked = self.asked(client_auth)?;
                let id = context_id(group, config.tls.min_version, &asked);
                let admission = Admission { of_listener, asked: numbers.id(client_auth) };
                Some(Policy { asked, admission, id })
            })
            .collect();
        Some((policies.into_iter().collect::<Option<_>>()?, names))
    }

    fn asked(&mut self, client_auth: &ClientAuth) -> Option<Asked> {
        if let Some(asked) = self.asked.get(client_auth) {
            return asked.clone();
        }
        let asked = Asked::load(client_auth, self.problems);
        self.asked.insert(client_auth.clone(), asked.clone());
        asked
    }
}

/// Listeners of which the same is said are one to their clients, who come back by IPv4 or IPv6: the
/// place of the first of them. It is the same on every host of a fleet, where addresses are not.
fn group(listeners: &[Listener], tls: &ListenerTls) -> usize {
    listeners.iter().position(|listener| listener.tls.as_ref() == Some(tls)).unwrap_or(0)
}

/// What a session is bound to. Certificates are not part of it, so that sessions outlive them.
fn context_id(group: usize, min_version: Version, asked: &Asked) -> ContextId {
    let group = (group as u64).to_be_bytes();
    let version = match min_version {
        Version::Tls12 => b"1.2",
        Version::Tls13 => b"1.3",
    };
    let (asked, authorities) = asked.identity();
    let mut parts: Vec<&[u8]> = vec![b"onering", &group, version, asked];
    parts.extend(authorities.iter().map(|der| der.as_ref()));
    ContextId::of(&parts)
}

#[cfg(test)]
mod tests;
