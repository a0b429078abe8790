//! From what is written to what holds: defaults, overlaid by the file, overlaid by the command line,
//! completed from the host's facts, and checked for contradictions.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use super::problem::{ConfigError, Fault, Origin, Place, Problem};
use super::tls::{CertificateFiles, Certificates, Redirect};
use super::{Config, Endpoint, Listener, Root, Site, Steer, defaults, file};

/// What the host says; whoever calls finds it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// CPUs that this process may run on.
    pub allowed_cpus: Vec<usize>,
    /// Files that this process may have open, once the limit is raised as far as it goes.
    pub nofile: u64,
}

/// A configuration file's name and text.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name, for messages, and for the paths that are relative to its directory.
    pub path: &'a Path,
    /// What it says.
    pub text: &'a str,
}

/// What the command line says. It wins over the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The directory to serve, instead of sites of the file.
    pub directory: Option<PathBuf>,
    /// Addresses to listen on. These, `listen_fds` and `tls_listen` together replace the file's.
    pub listen: Vec<SocketAddr>,
    /// Inherited listening sockets.
    pub listen_fds: Vec<RawFd>,
    /// Addresses to listen on for TLS.
    pub tls_listen: Vec<SocketAddr>,
    /// Certificates, instead of the file's general ones.
    pub certificates: Vec<CertificateFiles>,
    /// The CPUs that serve.
    pub cpus: Option<Vec<usize>>,
    /// How new connections find their shard.
    pub steer: Option<Steer>,
    /// Where the counters are written at exit.
    pub stats: Option<PathBuf>,
}

/// A configuration in the making.
pub(super) struct Draft {
    pub(super) config: Config,
    /// Certificates of all listeners that name none.
    pub(super) certificates: Vec<CertificateFiles>,
    /// By which key each listener was named, and where.
    listener_keys: Vec<(&'static str, Origin)>,
    /// Where each key that was set comes from.
    pub(super) origins: BTreeMap<String, Origin>,
    /// Where each site of the file begins.
    pub(super) site_places: Vec<Place>,
    pub(super) problems: Vec<Problem>,
}

/// Makes a configuration out of everything that is known.
///
/// # Errors
/// Every problem there is. A text that is not TOML ends the search early: what it says is not known.
pub fn resolve(
    file: Option<File<'_>>,
    overrides: &Overrides,
    facts: &Facts,
) -> Result<Config, ConfigError> {
    let mut draft = Draft::new(facts);
    if let Some(File { path, text }) = file {
        file::apply(text, path.parent().unwrap_or(Path::new("")), &mut draft);
    }
    draft.apply(overrides);
    draft.complete(facts);
    draft.check_cpus(facts);
    draft.check_listeners();
    draft.check_sites();
    draft.check_sizes(facts);
    let Draft { config, mut problems, .. } = draft;
    if problems.is_empty() {
        return Ok(config);
    }
    problems.sort_by_key(|problem| problem.origin);
    Err(ConfigError { file: file.map(|file| file.path.to_owned()), problems })
}

impl Draft {
    fn new(facts: &Facts) -> Self {
        Self {
            config: Config {
                listeners: Vec::new(),
                cpus: facts.allowed_cpus.clone(),
                steer: defaults::STEER,
                sites: Vec::new(),
                limits: defaults::limits(),
                timeouts: defaults::timeouts(),
                tls: defaults::tls(),
                cache: defaults::cache(),
                transfer: defaults::transfer(),
                ring: defaults::ring(),
                stats: None,
            },
            certificates: Vec::new(),
            listener_keys: Vec::new(),
            origins: BTreeMap::new(),
            site_places: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds a listener, which was named by this key.
    pub(super) fn listen(&mut self, listener: Listener, key: &'static str, origin: Origin) {
        self.config.listeners.push(listener);
        self.listener_keys.push((key, origin));
    }

    /// Adds listeners, which were named by this key all together.
    pub(super) fn listen_all(
        &mut self,
        key: &'static str,
        listeners: impl Iterator<Item = Listener>,
    ) {
        let origin = self.origin(key);
        listeners.for_each(|listener| self.listen(listener, key, origin));
    }

    /// Adds a problem of what is written.
    pub(super) fn problem(&mut self, origin: Origin, key: &str, message: impl Into<String>) {
        self.problem_by(Fault::Configuration, origin, key, message);
    }

    fn problem_by(&mut self, fault: Fault, origin: Origin, key: &str, message: impl Into<String>) {
        self.problems.push(Problem { fault, origin, key: key.into(), message: message.into() });
    }

    /// Adds a problem of a key, at the place where the key was set.
    fn problem_of(&mut self, key: &str, message: impl Into<String>) {
        let origin = self.origin(key);
        self.problem(origin, key, message);
    }

    fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).copied().unwrap_or(Origin::Default)
    }

    fn apply(&mut self, overrides: &Overrides) {
        let Overrides {
            directory,
            listen,
            listen_fds,
            tls_listen,
            certificates,
            cpus,
            steer,
            stats,
        } = overrides.clone();
        if let Some(directory) = directory {
            if let Some(&place) = self.site_places.first() {
                self.problem(
                    Origin::File(place),
                    "site",
                    "the command line names a directory too: leave out one of them",
                );
            }
            self.origins.insert("site.root".into(), Origin::CommandLine);
            self.config.sites = vec![Site::of(Root::Directory(directory))];
            self.site_places.clear();
        }
        if !(listen.is_empty() && listen_fds.is_empty() && tls_listen.is_empty()) {
            let keys = ["listen", "listen_fds", "tls_listen"];
            self.origins.extend(keys.map(|key| (key.into(), Origin::CommandLine)));
            self.config.listeners.clear();
            self.listener_keys.clear();
            let plain = Listener::plain;
            self.listen_all("listen", listen.into_iter().map(Endpoint::Address).map(plain));
            let descriptors = listen_fds.into_iter().map(Endpoint::Descriptor);
            self.listen_all("listen_fds", descriptors.map(plain));
            let addresses = tls_listen.into_iter().map(Endpoint::Address);
            self.listen_all("tls_listen", addresses.map(Listener::with_tls));
        }
        if !certificates.is_empty() {
            self.origins.insert("tls.certificates".into(), Origin::CommandLine);
            self.certificates = certificates;
        }
        if let Some(cpus) = cpus {
            self.origins.insert("cpus".into(), Origin::CommandLine);
            self.config.cpus = cpus;
        }
        if let Some(steer) = steer {
            self.origins.insert("steer".into(), Origin::CommandLine);
            self.config.steer = steer;
        }
        if let Some(stats) = stats {
            self.origins.insert("stats".into(), Origin::CommandLine);
            self.config.stats = Some(stats);
        }
    }

    /// Fills in what nobody said.
    fn complete(&mut self, facts: &Facts) {
        let set = |key: &str| self.origins.contains_key(key);
        let sets_listeners = ["listen", "listen_fds", "tls_listen"].into_iter().any(set);
        let sets_descriptors = set("cache.descriptors");
        let sets_connections = set("limits.connections_per_shard");
        let config = &mut self.config;
        if config.listeners.is_empty() && !sets_listeners {
            config.listeners = vec![
                Listener::plain(Endpoint::Address(defaults::LISTEN)),
                Listener::with_tls(Endpoint::Address(defaults::TLS_LISTEN)),
            ];
            self.listener_keys = vec![("listen", Origin::Default), ("tls_listen", Origin::Default)];
        }
        if config.sites.is_empty() {
            config.sites.push(Site::of(Root::Welcome));
        }
        let general = match self.certificates.is_empty() {
            false => Some(&self.certificates),
            true => config.sites.iter().map(|site| &site.tls.certificates).find(|c| !c.is_empty()),
        };
        if let Some(general) = general {
            for tls in config.listeners.iter_mut().filter_map(|listener| listener.tls.as_mut()) {
                if tls.certificates == Certificates::SelfSigned {
                    tls.certificates = Certificates::Files(general.clone());
                }
            }
        }
        let shards = config.cpus.len();
        if !sets_descriptors {
            config.cache.descriptors =
                defaults::descriptors(facts.nofile, shards, config.cache.entries);
        }
        if !sets_connections {
            config.limits.connections_per_shard =
                defaults::connections_per_shard(facts.nofile, shards, config.cache.descriptors);
        }
    }

    fn check_cpus(&mut self, facts: &Facts) {
        if self.config.cpus.is_empty() {
            self.problem_of("cpus", "no CPU to serve on; name one: \"0\"");
        }
        let allowed = &facts.allowed_cpus;
        let cpus = self.config.cpus.iter().copied();
        let missing: Vec<usize> = cpus.filter(|cpu| !allowed.contains(cpu)).collect();
        if !missing.is_empty() {
            let (missing, allowed) = (shown(&missing), shown(allowed));
            let message = format!(
                "this process may not run on CPU {missing}; choose from {allowed}, or widen its \
                 affinity (`taskset`, the cgroup's `cpuset.cpus`)"
            );
            self.problem_of("cpus", message);
        }
    }

    fn check_listeners(&mut self) {
        if self.config.listeners.is_empty() {
            self.problem_of("listen", "nowhere to listen; name an address: [\"127.0.0.1:8080\"]");
        }
        let mut seen = HashSet::new();
        for (listener, (key, origin)) in
            self.config.listeners.clone().iter().zip(self.listener_keys.clone())
        {
            let endpoint = listener.endpoint;
            match endpoint {
                // Port 0 is a different port each time.
                Endpoint::Address(address) if address.port() != 0 && !seen.insert(endpoint) => {
                    self.problem(origin, key, format!("{address} is there twice"));
                }
                Endpoint::Descriptor(fd) if !seen.insert(endpoint) => {
                    self.problem(origin, key, format!("descriptor {fd} is there twice"));
                }
                Endpoint::Address(_) | Endpoint::Descriptor(_) => {}
            }
        }
        let is_used = self.config.listeners.iter().any(|listener| listener.tls.is_some());
        if !is_used && self.origin("tls.certificates") == Origin::CommandLine {
            let message = "no listener has TLS; add `--tls-listen 127.0.0.1:8443`";
            self.problem_of("tls.certificates", message);
        }
        let defer_accept = self.config.timeouts.defer_accept;
        if defer_accept.subsec_nanos() != 0 {
            self.problem_of("timeouts.defer_accept", "the kernel takes whole seconds only");
        }
    }

    fn check_sites(&mut self) {
        let mut seen = HashSet::new();
        for (index, site) in self.config.sites.clone().into_iter().enumerate() {
            let origin =
                self.site_places.get(index).map_or(Origin::CommandLine, |&at| Origin::File(at));
            if index > 0 && site.names.is_empty() {
                self.problem(
                    origin,
                    "site.names",
                    "missing: only the first site, the default one, is found without a name",
                );
            }
            for name in site.names {
                if seen.contains(&name) {
                    let message = format!(
                        "`{name}` is a name of two sites, or twice of one; leave it in one place"
                    );
                    self.problem(origin, "site.names", message);
                }
                seen.insert(name);
            }
            if site.tls.redirect == Redirect::ToListener
                && self.config.listeners.iter().all(|listener| listener.tls.is_none())
            {
                let message = "no listener has TLS to send requests on to: add `tls_listen`, or write \
                               the port that visitors find it at: `redirect = 443`";
                self.problem(origin, "site.tls.redirect", message);
            }
            if let Root::Directory(path) = site.root {
                self.check_root(origin, &path);
            }
        }
    }

    /// Checks that the files of a root can be reached, for which each directory down to it, and it
    /// itself, must be searchable: else every answer would be 403. Its names need not be readable.
    fn check_root(&mut self, origin: Origin, path: &Path) {
        // A root that the file lacks was found missing there.
        if path.as_os_str().is_empty() {
            return;
        }
        let (fault, message) = match path.join(".").metadata() {
            Ok(_) => return,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let path = path.display();
                let message = format!(
                    "{path} cannot be searched by this user; `chmod o+x` it and every directory above \
                     it that lacks it (`namei -l {path}` shows which), or run as one who may"
                );
                (Fault::Permission, message)
            }
            Err(error) => {
                let path = path.display();
                let message =
                    format!("{path} is no directory ({error}); create it, or correct the name");
                (Fault::Configuration, message)
            }
        };
        self.problem_by(fault, origin, "site.root", message);
    }

    fn check_sizes(&mut self, facts: &Facts) {
        let Config { limits, transfer, ring, cache, cpus, .. } = self.config.clone();
        if limits.request_line_bytes >= limits.head_bytes {
            let message = format!(
                "a request line of {} bytes leaves no room in a head of {}; lower the one or raise \
                 `limits.head`",
                limits.request_line_bytes, limits.head_bytes
            );
            self.problem_of(self.set_one_of(["limits.request_line", "limits.head"]), message);
        }
        if limits.pipeline_bytes < limits.head_bytes {
            let message = format!(
                "{} bytes would not hold one head of {}; raise `limits.pipeline`",
                limits.pipeline_bytes, limits.head_bytes
            );
            self.problem_of(self.set_one_of(["limits.pipeline", "limits.head"]), message);
        }
        if !ring.recv_buffers.is_power_of_two() {
            let near = ring.recv_buffers.checked_next_power_of_two().unwrap_or(32_768);
            let message = format!("the kernel takes a power of two: write {near}");
            self.problem_of("ring.recv_buffers", message);
        }
        if !transfer.cold_window_bytes.is_multiple_of(4096) {
            self.problem_of("transfer.cold_window", "must be whole pages of 4KiB");
        }
        self.check_descriptors(facts, cpus.len(), limits.connections_per_shard, cache.descriptors);
    }

    fn check_descriptors(
        &mut self,
        facts: &Facts,
        shards: usize,
        connections: usize,
        cached: usize,
    ) {
        let available = defaults::descriptors_per_shard(facts.nofile, shards);
        let wanted = (connections as u64).saturating_add(cached as u64);
        if connections == 0 || wanted > available {
            let message = format!(
                "{connections} connections and {cached} cached files do not fit into the {available} \
                 descriptors that each of {shards} shards has of this process's {}; lower \
                 `limits.connections_per_shard` or `cache.descriptors`, serve on fewer `cpus`, or \
                 raise the limit (`ulimit -n 524288` as root, systemd's `LimitNOFILE=524288`)",
                facts.nofile
            );
            let key = self.set_one_of(["limits.connections_per_shard", "cache.descriptors"]);
            let origin = self.origin(key);
            let fault = match origin {
                Origin::Default => Fault::Environment,
                Origin::File(_) | Origin::CommandLine => Fault::Configuration,
            };
            self.problem_by(fault, origin, key, message);
        }
    }

    /// The first of some keys that someone set, for a problem that lies between them.
    fn set_one_of(&self, keys: [&'static str; 2]) -> &'static str {
        keys.into_iter().find(|key| self.origins.contains_key(*key)).unwrap_or(keys[0])
    }
}

/// CPUs as they are written in a list, three and more in a row as a range.
fn shown(cpus: &[usize]) -> String {
    let in_a_row = cpus.chunk_by(|&one, &next| one.checked_add(1) == Some(next));
    let runs = in_a_row.map(|run| match run {
        [first, _, .., last] => format!("{first}-{last}"),
        few => few.iter().map(usize::to_string).collect::<Vec<_>>().join(","),
    });
    runs.collect::<Vec<_>>().join(",")
}
