//! What a server is asked to keep to, and whether a measurement shows that it did.

use crate::result::RunResult;
use crate::result::latencies::Latencies;
use crate::result::window::Window;
use onering::config::units::parse_duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// One thing to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Objective {
    /// So many of the planned requests are answered within a time, counted from their planned start.
    ResponseTime {
        /// How many of a hundred: 99.9 for `p99.9`, 100 for `max`.
        percentile: f64,
        /// The time, ns.
        most_ns: u64,
    },
    /// No more of the planned requests fail, or are never answered.
    Errors {
        /// How many of a hundred.
        most_percent: f64,
    },
}

/// Why a text is no objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// It has another form.
    #[error("an objective is written as p99=5ms, p99.9=20ms, max=1s or errors=0.1%")]
    Form,
    /// No percentile.
    #[error("a percentile is above 0 and below 100, such as p99.9; the longest is max")]
    Percentile,
    /// No time.
    #[error("a time is above zero and has a unit, such as 500us, 5ms or 1s")]
    Time,
    /// No share.
    #[error("a share of errors is from 0% to below 100%, such as 0.1%")]
    Share,
}

/// What was measured at one rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Response times of the right responses, from their planned start.
    pub response: Latencies,
    /// Planned requests that had no right response: failed, never sent, or unanswered at the end.
    pub missing: u64,
    /// Whether the generator fell behind its own schedule.
    pub behind: bool,
    /// Right responses each second.
    pub answered_per_s: f64,
}

impl Observation {
    /// What a run at one rate says: all of its windows together.
    pub fn of(result: &RunResult) -> Self {
        let mut all = Self { behind: result.is_behind_schedule(), ..Self::default() };
        let (mut completed, mut seconds) = (0_u64, 0.0);
        for counts in result.windows.iter().map(Window::counts) {
            let waiting = counts.waiting();
            // More than can be counted is refused where results are read.
            all.response = all.response.and(&waiting).unwrap_or(waiting);
            let schedule = counts.schedule.as_ref();
            let unserved = schedule.map_or(0, |s| s.never_sent.saturating_add(s.unanswered));
            let missing = counts.errors.total().saturating_add(unserved);
            all.missing = all.missing.saturating_add(missing);
            completed = completed.saturating_add(counts.completed());
            seconds += counts.seconds_f64();
        }
        all.answered_per_s = completed as f64 / seconds;
        all
    }
}

impl Objective {
    /// What was measured over what is allowed: up to 1 the objective is met. Infinite where nothing
    /// was answered.
    pub fn strain(&self, observation: &Observation) -> f64 {
        let answered = observation.response.count();
        let planned = answered.saturating_add(observation.missing);
        if answered == 0 {
            return f64::INFINITY;
        }
        match *self {
            Self::ResponseTime { percentile, most_ns } => {
                // Requests without a right response have taken longer than any that had one. A rank
                // is whole; what a product is off by is far less than a hundredth.
                let rank = (percentile * planned as f64 / 100.0 - 0.01).ceil().max(1.0);
                if rank > answered as f64 {
                    return f64::INFINITY;
                }
                // Half a rank less is still that rank, however the quotient is rounded.
                let ns = observation.response.quantile_ns((rank - 0.5) / answered as f64);
                ns as f64 / most_ns as f64
            }
            Self::Errors { most_percent } => {
                let percent = observation.missing as f64 / planned as f64 * 100.0;
                match (percent, most_percent) {
                    (0.0, _) => 0.0,
                    (_, 0.0) => f64::INFINITY,
                    (percent, most) => percent / most,
                }
            }
        }
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let (name, bound) = text.split_once('=').ok_or(ObjectiveError::Form)?;
        if name == "errors" {
            let percent = bound.strip_suffix('%').ok_or(ObjectiveError::Share)?;
            let percent: f64 = percent.trim().parse().map_err(|_| ObjectiveError::Share)?;
            if !(0.0..100.0).contains(&percent) {
                return Err(ObjectiveError::Share);
            }
            return Ok(Self::Errors { most_percent: percent });
        }
        let percentile = if name == "max" {
            100.0
        } else {
            let percentile = name.strip_prefix('p').ok_or(ObjectiveError::Form)?;
            let percentile: f64 = percentile.parse().map_err(|_| ObjectiveError::Percentile)?;
            if !(percentile > 0.0 && percentile < 100.0) {
                return Err(ObjectiveError::Percentile);
            }
            percentile
        };
        let most = parse_duration(bound).map_err(|_| ObjectiveError::Time)?;
        let most_ns = u64::try_from(most.as_nanos()).map_err(|_| ObjectiveError::Time)?;
        if most_ns == 0 {
            return Err(ObjectiveError::Time);
        }
        Ok(Self::ResponseTime { percentile, most_ns })
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ResponseTime { percentile, most_ns } => {
                let most = Duration::from_nanos(most_ns);
                if percentile >= 100.0 {
                    write!(f, "max={most:?}")
                } else {
                    write!(f, "p{percentile}={most:?}")
                }
            }
            Self::Errors { most_percent } => write!(f, "errors={most_percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram;

    fn observation(response_ms: impl Iterator<Item = u64>, missing: u64) -> Observation {
        let mut histogram = histogram::empty();
        response_ms.for_each(|ms| histogram.saturating_record(ms * 1_000_000));
        Observation { response: Latencies::from(&histogram), missing, ..Observation::default() }
    }

    fn strain(objective: &str, observation: &Observation) -> f64 {
        objective.parse::<Objective>().unwrap().strain(observation)
    }

    #[test]
    fn objectives_are_read_and_written() {
        for text in ["p99=5ms", "p99.9=20ms", "p50=500µs", "max=1s", "errors=0.1%", "errors=0%"] {
            let read = text.replace("µs", "us").parse::<Objective>().unwrap();
            assert_eq!(read.to_string(), text);
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Objective>(&json).unwrap(), read);
        }
    }

    #[test]
    fn what_is_no_objective_is_refused_with_the_form() {
        let error = |text: &str| text.parse::<Objective>().unwrap_err();
        for text in ["", "p99", "99=5ms", "mean=5ms", "latency=1s"] {
            assert_eq!(error(text), ObjectiveError::Form, "{text}");
        }
        for text in ["p0=5ms", "p100=5ms", "p-1=5ms", "pNaN=5ms", "px=5ms"] {
            assert_eq!(error(text), ObjectiveError::Percentile, "{text}");
        }
        for text in ["p99=5", "p99=0ms", "p99=x"] {
            assert_eq!(error(text), ObjectiveError::Time, "{text}");
        }
        for text in ["errors=1", "errors=100%", "errors=-1%", "errors=x%", "errors=NaN%"] {
            assert_eq!(error(text), ObjectiveError::Share, "{text}");
        }
    }

    #[test]
    fn strain_is_what_was_measured_over_what_is_allowed() {
        let observation = observation(1..=100, 0);
        for (objective, expected) in
            [("p99=99ms", 1.0), ("p50=100ms", 0.5), ("max=50ms", 2.0), ("errors=1%", 0.0)]
        {
            let strain = strain(objective, &observation);
            assert!((strain - expected).abs() < 0.01, "{objective}: {strain}");
        }
    }

    #[test]
    fn requests_without_an_answer_are_the_slowest() {
        // 2 of 100 planned are missing: their 98th percentile is the longest answer, and there is
        // no 99th.
        let observation = observation(1..=98, 2);
        assert!((strain("p98=98ms", &observation) - 1.0).abs() < 0.01);
        assert_eq!(strain("p99=10s", &observation), f64::INFINITY);
        assert!((strain("errors=4%", &observation) - 0.5).abs() < 1e-9);
        assert_eq!(strain("errors=0%", &observation), f64::INFINITY);
        let nothing = Observation { missing: 5, ..Observation::default() };
        assert_eq!(strain("p50=1s", &nothing), f64::INFINITY);
        assert_eq!(strain("errors=50%", &Observation::default()), f64::INFINITY);
    }
}
