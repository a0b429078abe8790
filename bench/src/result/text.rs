//! A result as lines for people.

use super::RunResult;
use std::fmt;

impl fmt::Display for RunResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for window in &self.windows {
            let (figures, counts) = (window.figures(), window.counts());
            write!(f, "{}: {:.0} requests/s", counts.name, figures.requests_per_s)?;
            if let Some(cpu) = figures.server_cpu_us_per_request {
                write!(f, ", server CPU {cpu:.2} µs/request")?;
            }
            if let Some(cpu) = figures.client_cpu_us_per_request {
                write!(f, ", client CPU {cpu:.2} µs/request")?;
            }
            let named = [("service", Some(counts.service())), ("response", counts.response())];
            for (name, times) in named {
                let Some(times) = times else { continue };
                write!(f, "\n  {name} time µs:")?;
                for (percentile, quantile) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
                    write!(f, " {percentile} {:.1}", times.quantile_us(quantile))?;
                }
            }
            for (kind, count) in counts.errors.kinds() {
                write!(f, "\n  errors: {kind} {count}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
