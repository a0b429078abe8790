//! Certificates of a running server: loaded at the start, and anew when their files have changed or
//! SIGHUP asks for it. What runs is kept where the new ones are bad.
//!
//! Files are looked at once a second rather than watched: a certificate is often behind several symbolic
//! links, of which any may be exchanged (certbot, Kubernetes), and a look is a few µs.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{self, Certificates, ClientAuth, Config};
use crate::sys::clock;
use crate::tls::clock::Clock;
use crate::tls::{Material, Problem, Problems, Resumption, Severity};

/// How often files are looked at. A change is taken when two looks in a row have found the same: whoever
/// exchanges a certificate and its key writes one after the other.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What runs, and the files that it came from.
pub(super) struct Keeper {
    config: Arc<Config>,
    running: Arc<Material>,
    files: Vec<PathBuf>,
    /// How the files were when they were last loaded.
    loaded: Vec<Option<Stamp>>,
    /// How they were at the last look.
    seen: Vec<Option<Stamp>>,
}

/// What a change of a file changes: its time of change is set by the kernel alone, for permissions too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed_ns: i128,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let changed_ns = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), changed_ns })
    }
}

/// Whether a configuration's certificates can be used, and everything that is wrong with them. Nothing is
/// kept.
pub fn check(config: &Config) -> Problems {
    let mut problems = Problems::default();
    load(config, &mut problems);
    problems
}

fn load(config: &Config, problems: &mut Problems) -> Option<Material> {
    let now_s = clock::realtime_s();
    let clock = Arc::new(Clock::at(now_s));
    let speaks_tls = super::speaks_tls(config);
    // A server without TLS has no memory for sessions.
    let session_cache_entries = if speaks_tls { config.tls.session_cache_entries } else { 0 };
    let tls = config::Tls { session_cache_entries, ..config.tls.clone() };
    let resumption = Resumption::new(&tls, config.cpus.len(), clock, problems);
    Material::load(config, &Arc::new(resumption?), None, now_s as i64, problems)
}

impl Keeper {
    /// Loads what a configuration names. Whatever does not keep it from being used is said in the log.
    pub(super) fn start(config: &Arc<Config>) -> Result<Self, Problems> {
        let files = files(config);
        let stamps: Vec<_> = files.iter().map(|path| Stamp::of(path)).collect();
        let mut problems = Problems::default();
        let running = load(config, &mut problems);
        say(&problems);
        let running = Arc::new(running.ok_or(problems)?);
        if let Some(names) = running.made_for() {
            tracing::warn!(
                "no certificate is configured: clients are shown one that was made just now, which nobody \
                 vouches for, for {}; name files by `--cert` and `--key`, or in `[tls]`",
                names.join(", ")
            );
        }
        let config = Arc::clone(config);
        Ok(Self { config, running, files, loaded: stamps.clone(), seen: stamps })
    }

    /// How often files are to be looked at; `None`: there are none.
    pub(super) fn look_every(&self) -> Option<Duration> {
        self.has_files().then_some(LOOK_EVERY)
    }

    /// Whether there is anything to look at.
    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// What runs.
    pub(super) fn running(&self) -> &Arc<Material> {
        &self.running
    }

    /// Looks at the files, once in [`LOOK_EVERY`]; what has changed for good is loaded.
    pub(super) fn look(&mut self) -> Outcome {
        let now: Vec<_> = self.files.iter().map(|path| Stamp::of(path)).collect();
        let (is_new, is_settled) = (now != self.loaded, now == self.seen);
        self.seen = now;
        match is_new && is_settled {
            true => self.reload(),
            false => Outcome::Same,
        }
    }

    /// Loads everything anew.
    pub(super) fn reload(&mut self) -> Outcome {
        self.loaded = self.files.iter().map(|path| Stamp::of(path)).collect();
        self.seen = self.loaded.clone();
        let mut problems = Problems::default();
        let resumption = self.running.resumption();
        resumption.reload(&self.config.tls, &mut problems);
        let running = Some(&*self.running);
        let now_s = clock::realtime_s() as i64;
        let loaded = Material::load(&self.config, resumption, running, now_s, &mut problems);
        match loaded {
            Some(next)
                if problems.worst() < Some(Severity::Fatal)
                    && !self.running.is_worsened_by(&next, &problems) =>
            {
                say(&problems);
                tracing::info!(
                    "certificates are read again; connections that are open keep theirs"
                );
                self.running = Arc::new(next);
                Outcome::Changed
            }
            _ => {
                tracing::error!(
                    "the new certificates are not taken, and the ones before stay in use:\n{}",
                    problems.at_least(Severity::Refused)
                );
                Outcome::Refused
            }
        }
    }
}

/// What a look at the files has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing.
    Same,
    /// Something else runs.
    Changed,
    /// What runs stays, for what is there is bad. It is not said again until that changes.
    Refused,
}

/// Every file that is read, once; none where there is no TLS.
fn files(config: &Config) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if !super::speaks_tls(config) {
        return files;
    }
    let mut add = |path: &PathBuf| {
        if !files.contains(path) {
            files.push(path.clone());
        }
    };
    let listeners = config.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let certificates = listeners.clone().filter_map(|tls| match &tls.certificates {
        Certificates::Files(files) => Some(files),
        Certificates::SelfSigned => None,
    });
    let of_sites = config.sites.iter().map(|site| &site.tls.certificates);
    for pair in certificates.chain(of_sites).flatten() {
        add(&pair.chain);
        add(&pair.key);
    }
    let of_sites = config.sites.iter().filter_map(|site| site.tls.client_auth.as_ref());
    for client_auth in listeners.map(|tls| &tls.client_auth).chain(of_sites) {
        match client_auth {
            ClientAuth::Off => {}
            ClientAuth::Optional { authorities } | ClientAuth::Required { authorities } => {
                add(authorities);
            }
        }
    }
    config.tls.ticket_secret.iter().for_each(add);
    files
}

/// What can be lived with goes into the log.
fn say(problems: &Problems) {
    for problem @ Problem { severity, .. } in problems.iter() {
        match severity {
            Severity::Warning => tracing::warn!("{problem}"),
            Severity::Refused => tracing::error!("{problem} (until then clients refuse it)"),
            // The start, or the reload, ends with these.
            Severity::Fatal => {}
        }
    }
}

#[cfg(test)]
mod tests;
