//! Certificates of a server: read and judged as a whole.

use std::sync::Arc;

use crate::config::{self, Config};
use crate::sys::clock;
use crate::tls::clock::Clock;
use crate::tls::{Material, Problems, Resumption, Severity};

use super::Error;

/// Everything that is wrong with the certificates, authorities and secrets of a configuration. Nothing is
/// kept.
pub fn check(config: &Config) -> Problems {
    let mut problems = Problems::default();
    load(config, &mut problems);
    problems
}

/// Reads what a server starts with. What is wrong with it and does not keep it from working is said.
pub(super) fn start(config: &Config) -> Result<Material, Error> {
    let mut problems = Problems::default();
    let material = load(config, &mut problems)
        .ok_or_else(|| Error::Material(problems.at_least(Severity::Fatal)))?;
    for problem in problems.iter() {
        tracing::warn!("{problem}");
    }
    Ok(material)
}

fn load(config: &Config, problems: &mut Problems) -> Option<Material> {
    let now_s = clock::realtime_s();
    let clock = Arc::new(Clock::at(now_s));
    let speaks_tls = config.listeners.iter().any(|listener| listener.tls.is_some());
    // A server without TLS has no memory for sessions.
    let session_cache_entries = if speaks_tls { config.tls.session_cache_entries } else { 0 };
    let tls = config::Tls { session_cache_entries, ..config.tls.clone() };
    let resumption = Resumption::new(&tls, config.cpus.len(), clock, problems);
    Material::load(config, &Arc::new(resumption?), None, now_s as i64, problems)
}
