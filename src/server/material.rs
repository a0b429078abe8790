//! Certificates of a server: read and judged as a whole.

use std::sync::Arc;

use crate::config::Config;
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
    let resumption = Resumption::new(&config.tls, config.cpus.len(), clock, problems);
    Material::load(config, &Arc::new(resumption?), None, now_s as i64, problems)
}
