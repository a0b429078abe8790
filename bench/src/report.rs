//! The result of a run, as JSON for programs and as text for people.
//!
//! The JSON is [`RunReport`] as it stands. [`RUN_SCHEMA`] names its version; a field may be added
//! under the same name, any other change takes a new one.

use crate::process::Usage;
use crate::tally::{Errors, Latency};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The name and version of the JSON that `run` writes.
pub const RUN_SCHEMA: &str = "onering-bench/run/1";

/// Above this share of busy time a client thread is taken for the limit of the run.
pub const CLIENT_LIMIT: f64 = 0.97;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// What was asked of the generator.
    pub load: Load,
    /// Seconds measured, warm-up excluded.
    pub measured_s: f64,
    /// Right responses: the expected status and length.
    pub requests: u64,
    /// Right responses per second.
    pub requests_per_s: f64,
    /// Bytes received per second, heads included, in units of 10^6.
    pub megabytes_per_s: f64,
    /// Connections established.
    pub connects: u64,
    /// What went wrong, by kind.
    pub errors: Errors,
    /// From a request's send being queued to the last byte of its response, µs; absent if nothing
    /// was answered.
    pub latency_us: Option<Latency>,
    /// What the generator consumed.
    pub client: ClientCost,
    /// What the server consumed, if its process was named.
    pub server: Option<Cost>,
}

/// The load of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// `get`.
    pub workload: String,
    /// The first URL.
    pub target: String,
    /// How many URLs are asked for in turn.
    pub targets: usize,
    /// Connections held open.
    pub connections: usize,
    /// Requests in flight on each.
    pub pipeline: usize,
    /// After how many requests a connection is closed; absent: never.
    pub requests_per_connection: Option<u64>,
    /// More fields of each request.
    pub fields: Vec<String>,
    /// The status of right responses.
    pub status: u16,
    /// `1.0` or `1.1`.
    pub http: String,
    /// The CPUs of the generator's threads.
    pub cpus: Vec<usize>,
}

/// Consumed by some processes or threads during the measured interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time, in CPUs: 1 is one CPU busy all the time.
    pub cpus_busy: f64,
    /// CPU time per right response, µs; absent if there was none.
    pub cpu_us_per_request: Option<f64>,
    /// Voluntary context switches per right response.
    pub voluntary_switches_per_request: Option<f64>,
    /// Involuntary context switches per right response.
    pub involuntary_switches_per_request: Option<f64>,
}

impl Cost {
    /// The cost of `requests` right responses in the interval `measured`.
    pub fn new(usage: Usage, requests: u64, measured: Duration) -> Self {
        Self {
            cpus_busy: usage.cpu.as_secs_f64() / measured.as_secs_f64(),
            cpu_us_per_request: per(usage.cpu.as_secs_f64() * 1e6, requests),
            voluntary_switches_per_request: per(usage.voluntary_switches as f64, requests),
            involuntary_switches_per_request: per(usage.involuntary_switches as f64, requests),
        }
    }
}

/// `amount / requests`, unless there were none.
pub fn per(amount: f64, requests: u64) -> Option<f64> {
    (requests > 0).then(|| amount / requests as f64)
}

/// Consumed by the generator's threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientCost {
    /// All threads together.
    #[serde(flatten)]
    pub cost: Cost,
    /// Share of the interval for which the busiest thread ran.
    pub busiest_thread: f64,
    /// Calls of `io_uring_enter(2)` per right response.
    pub enters_per_request: Option<f64>,
}

impl RunReport {
    /// Whether the generator had no time left, so that it may have held the server back.
    pub fn client_is_the_limit(&self) -> bool {
        self.client.busiest_thread > CLIENT_LIMIT
    }
}

/// A number that may be missing, with so many decimals.
struct Maybe(Option<f64>, usize);

impl fmt::Display for Maybe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value:.*}", self.1),
            None => f.write_str("–"),
        }
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load { target, targets, connections, pipeline, requests_per_connection, http, .. } =
            &self.load;
        write!(f, "{target}")?;
        if *targets > 1 {
            write!(f, " and {} more", targets - 1)?;
        }
        write!(f, ", HTTP/{http}, {connections} connections")?;
        if *pipeline > 1 {
            write!(f, ", {pipeline} requests in flight on each")?;
        }
        if let Some(count) = requests_per_connection {
            write!(f, ", closed after {count}")?;
        }
        writeln!(f, ", {:.2} s", self.measured_s)?;
        writeln!(
            f,
            "  {:.0} requests/s, {:.1} MB/s; {} requests, {} connects",
            self.requests_per_s, self.megabytes_per_s, self.requests, self.connects
        )?;
        match &self.latency_us {
            Some(Latency { mean, p50, p90, p99, p999, max }) => writeln!(
                f,
                "  latency µs: p50 {p50:.0}, p90 {p90:.0}, p99 {p99:.0}, p99.9 {p999:.0}, max {max:.0}, mean {mean:.0}"
            )?,
            None => writeln!(f, "  latency: nothing was answered")?,
        }
        let ClientCost { cost, busiest_thread, enters_per_request } = &self.client;
        writeln!(
            f,
            "  client: {} µs CPU/request, {:.0} % busy, {} enters/request",
            Maybe(cost.cpu_us_per_request, 2),
            busiest_thread * 100.0,
            Maybe(*enters_per_request, 3)
        )?;
        if let Some(server) = &self.server {
            writeln!(
                f,
                "  server: {} µs CPU/request, {:.2} CPUs busy, context switches/request: {} voluntary, {} involuntary",
                Maybe(server.cpu_us_per_request, 2),
                server.cpus_busy,
                Maybe(server.voluntary_switches_per_request, 4),
                Maybe(server.involuntary_switches_per_request, 4)
            )?;
        }
        if self.errors.total() > 0 {
            write!(f, "  errors:")?;
            for (kind, count) in self.errors.kinds().iter().filter(|(_, count)| *count > 0) {
                write!(f, " {kind} {count}")?;
            }
            writeln!(f)?;
        }
        if self.client_is_the_limit() {
            writeln!(f, "  client is the limit: compare CPU per request")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> RunReport {
        let usage = Usage {
            cpu: Duration::from_millis(500),
            voluntary_switches: 10,
            involuntary_switches: 0,
        };
        let cost = Cost::new(usage, 1000, Duration::from_secs(1));
        RunReport {
            schema: RUN_SCHEMA.into(),
            load: Load {
                workload: "get".into(),
                target: "http://127.0.0.1:80/".into(),
                targets: 1,
                connections: 8,
                pipeline: 1,
                requests_per_connection: None,
                fields: Vec::new(),
                status: 200,
                http: "1.1".into(),
                cpus: vec![1],
            },
            measured_s: 1.0,
            requests: 1000,
            requests_per_s: 1000.0,
            megabytes_per_s: 1.25,
            connects: 0,
            errors: Errors::default(),
            latency_us: Some(Latency {
                mean: 1.0,
                p50: 1.0,
                p90: 1.0,
                p99: 1.0,
                p999: 1.0,
                max: 2.0,
            }),
            client: ClientCost { cost, busiest_thread: 0.5, enters_per_request: Some(0.1) },
            server: Some(cost),
        }
    }

    #[test]
    fn json_reads_back_as_it_was() {
        let json = serde_json::to_string(&report()).unwrap();
        assert!(json.starts_with(r#"{"schema":"onering-bench/run/1","#), "{json}");
        assert_eq!(serde_json::from_str::<RunReport>(&json).unwrap(), report());
    }

    #[test]
    fn cost_is_per_request() {
        let cost = report().client.cost;
        assert_eq!(cost.cpus_busy, 0.5);
        assert_eq!(cost.cpu_us_per_request, Some(500.0));
        assert_eq!(cost.voluntary_switches_per_request, Some(0.01));
        let none = Cost::new(Usage::default(), 0, Duration::from_secs(1));
        assert_eq!(none.cpu_us_per_request, None);
    }

    #[test]
    fn text_names_the_limit_and_the_errors_only_when_there_are_any() {
        let mut report = report();
        let text = report.to_string();
        assert!(!text.contains("limit") && !text.contains("errors"), "{text}");
        report.client.busiest_thread = 0.98;
        report.errors.reset = 3;
        report.latency_us = None;
        let text = report.to_string();
        assert!(text.contains("client is the limit: compare CPU per request"), "{text}");
        assert!(text.contains("errors: reset 3\n"), "{text}");
        assert!(text.contains("nothing was answered"), "{text}");
    }
}
