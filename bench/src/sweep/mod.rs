//! The highest rate at which a server keeps to objectives: rates in geometric steps up to one that
//! is too high, then halving the interval between the highest that is known to be good and the
//! lowest that is known not to be.
//!
//! Pure: who measures a rate is a closure, and time is its business. One measurement may be bad
//! luck, or good: what is near an objective is measured again, and the majority decides. A rate at
//! which the *generator* falls behind its own schedule says nothing about the server, and ends the
//! search with that as the reason.

mod objective;

pub use objective::{Objective, ObjectiveError, Observation};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name and version of the JSON that `sweep` writes.
pub const SWEEP_SCHEMA: &str = "onering-bench/sweep/1";

/// Below this many requests a second nothing is searched.
const RATE_MIN: f64 = 1.0;

/// How a rate is searched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The first rate, requests per second.
    pub from_per_s: f64,
    /// By what a rate is multiplied for the next, or divided by where the first is too high; above 1.
    pub step: f64,
    /// The search ends where the lowest bad rate is less than this share above the highest good one.
    pub tolerance: f64,
    /// No higher rate is tried.
    pub most_per_s: f64,
    /// A rate is measured again where what was measured is within this factor of an objective.
    pub near: f64,
    /// How often a rate is measured at most; odd, so that there is a majority.
    pub repeats: u32,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            from_per_s: 1000.0,
            step: 2.0,
            tolerance: 0.02,
            most_per_s: 1e8,
            near: 1.5,
            repeats: 3,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// [`SWEEP_SCHEMA`].
    pub schema: String,
    /// What was to be kept to.
    pub objectives: Vec<Objective>,
    /// How it was searched.
    pub search: Search,
    /// Every measurement, in the order in which they were made.
    pub steps: Vec<Step>,
    /// The highest rate that met the objectives, requests per second; absent if none did.
    pub best_per_s: Option<f64>,
    /// Why the search ended.
    pub end: End,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What was asked for, requests per second.
    pub rate_per_s: f64,
    /// Right responses per second.
    pub answered_per_s: f64,
    /// Response times, µs: median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Planned requests without a right response.
    pub missing: u64,
    /// How it went.
    pub verdict: Verdict,
}

/// How a measurement went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// All objectives were met.
    Met,
    /// This one was missed by the greatest factor.
    Missed {
        /// Which.
        objective: Objective,
    },
    /// The generator could not keep its own schedule.
    Behind,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// The knee lies between the best rate and this one.
    Knee {
        /// The lowest that was too high, requests per second.
        missed_per_s: f64,
    },
    /// The generator fell behind its own schedule at this rate: the server may have more to give.
    GeneratorBehind {
        /// The rate, requests per second.
        rate_per_s: f64,
    },
    /// No higher rate was to be tried.
    Highest,
    /// Not even the lowest rate met the objectives.
    NoneMet,
    /// Somebody asked to stop.
    Interrupted,
}

/// Searches. `measure` loads the server at a rate (requests per second) and says what it saw, or
/// `None` where somebody asks to stop; `watch` is told of each measurement.
pub fn sweep<E>(
    objectives: &[Objective],
    search: Search,
    mut measure: impl FnMut(f64) -> Result<Option<Observation>, E>,
    mut watch: impl FnMut(&Step),
) -> Result<Sweep, E> {
    let mut steps = Vec::new();
    let mut trial = |rate_per_s: f64| {
        let mut votes = Votes::default();
        loop {
            let Some(observation) = measure(rate_per_s)? else { return Ok(Trial::Interrupted) };
            let (verdict, is_near) = judge(objectives, search.near, &observation);
            let step = Step::new(rate_per_s, &observation, verdict);
            watch(&step);
            steps.push(step);
            if let Some(trial) = votes.add(verdict, is_near, search.repeats) {
                return Ok(trial);
            }
        }
    };
    let (best_per_s, end) = find(search, &mut trial)?;
    Ok(Sweep {
        schema: SWEEP_SCHEMA.to_owned(),
        objectives: objectives.to_vec(),
        search,
        steps,
        best_per_s,
        end,
    })
}

/// What the measurements of one rate say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    Met,
    Missed,
    Behind,
    Interrupted,
}

/// Steps up, or down, until one rate is good and one is not; then halves what is between.
fn find<E>(
    search: Search,
    trial: &mut impl FnMut(f64) -> Result<Trial, E>,
) -> Result<(Option<f64>, End), E> {
    let (mut good, mut bad) = (None::<f64>, None::<f64>);
    loop {
        let rate = match (good, bad) {
            (None, None) => search.from_per_s.min(search.most_per_s),
            (Some(good), None) if good >= search.most_per_s => {
                return Ok((Some(good), End::Highest));
            }
            (Some(good), None) => (good * search.step).min(search.most_per_s),
            (None, Some(bad)) if bad <= RATE_MIN => return Ok((None, End::NoneMet)),
            (None, Some(bad)) => (bad / search.step).max(RATE_MIN),
            (Some(good), Some(bad)) if bad <= good * (1.0 + search.tolerance) => {
                return Ok((Some(good), End::Knee { missed_per_s: bad }));
            }
            // Rates are compared by their ratio, so that is what is halved.
            (Some(good), Some(bad)) => (good * bad).sqrt(),
        };
        match trial(rate)? {
            Trial::Met => good = Some(rate),
            Trial::Missed => bad = Some(rate),
            Trial::Behind => return Ok((good, End::GeneratorBehind { rate_per_s: rate })),
            Trial::Interrupted => return Ok((good, End::Interrupted)),
        }
    }
}

/// The verdict on one measurement, and whether it might as well have been another.
fn judge(objectives: &[Objective], near: f64, observation: &Observation) -> (Verdict, bool) {
    if observation.behind {
        return (Verdict::Behind, true);
    }
    let strains = objectives.iter().map(|objective| (objective.strain(observation), objective));
    let worst = strains.max_by(|a, b| a.0.total_cmp(&b.0));
    match worst {
        Some((strain, &objective)) if strain > 1.0 => {
            (Verdict::Missed { objective }, strain <= near)
        }
        Some((strain, _)) => (Verdict::Met, strain * near >= 1.0),
        None => (Verdict::Met, false),
    }
}

/// The verdicts on one rate.
#[derive(Debug, Default)]
struct Votes {
    met: u32,
    missed: u32,
    behind: u32,
}

impl Votes {
    /// Adds one; gives the decision once there is one.
    fn add(&mut self, verdict: Verdict, is_near: bool, repeats: u32) -> Option<Trial> {
        match verdict {
            Verdict::Met => self.met += 1,
            Verdict::Missed { .. } => self.missed += 1,
            Verdict::Behind => self.behind += 1,
        }
        let (first, majority) = (self.met + self.missed + self.behind == 1, repeats / 2 + 1);
        let decided = |votes: u32| votes >= majority || (first && !is_near && votes > 0);
        if decided(self.met) {
            Some(Trial::Met)
        } else if decided(self.missed) {
            Some(Trial::Missed)
        } else if decided(self.behind) || self.met + self.missed + self.behind >= repeats {
            // Where one of each was seen, the generator could not be relied on.
            Some(Trial::Behind)
        } else {
            None
        }
    }
}

impl Step {
    fn new(rate_per_s: f64, observation: &Observation, verdict: Verdict) -> Self {
        let response = &observation.response;
        Self {
            rate_per_s,
            answered_per_s: observation.answered_per_s,
            p50_us: response.quantile_us(0.5),
            p99_us: response.quantile_us(0.99),
            p999_us: response.quantile_us(0.999),
            max_us: response.max_us(),
            missing: observation.missing,
            verdict,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9.0}/s  answered {:>9.0}/s  response ms p50 {:>8.3} p99 {:>8.3} p99.9 {:>8.3} max {:>8.3}  missing {:>6}  {}",
            self.rate_per_s,
            self.answered_per_s,
            self.p50_us / 1e3,
            self.p99_us / 1e3,
            self.p999_us / 1e3,
            self.max_us / 1e3,
            self.missing,
            self.verdict
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Met => f.write_str("met"),
            Self::Missed { objective } => write!(f, "missed {objective}"),
            Self::Behind => f.write_str("generator behind"),
        }
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objectives: Vec<_> = self.objectives.iter().map(ToString::to_string).collect();
        let objectives = objectives.join(", ");
        match self.best_per_s {
            Some(best) => {
                writeln!(f, "{best:.0} requests/s is the highest rate that met {objectives}")?
            }
            None => writeln!(f, "no rate met {objectives}")?,
        }
        match self.end {
            End::Knee { missed_per_s } => writeln!(f, "  {missed_per_s:.0}/s did not"),
            End::GeneratorBehind { rate_per_s } => writeln!(
                f,
                "  at {rate_per_s:.0}/s the generator fell behind its own schedule: that is its \
                 limit, not the server's\n  fix: more --cpus, more --connections, or several \
                 generators"
            ),
            End::Highest => writeln!(f, "  no higher rate was to be tried"),
            End::NoneMet => writeln!(f, "  not even {RATE_MIN} request/s"),
            End::Interrupted => writeln!(f, "  interrupted: there may be a higher one"),
        }
    }
}

#[cfg(test)]
mod tests;
