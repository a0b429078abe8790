//! A result as text for a terminal: plain lines, figures that can be cut out by column.

use super::RunResult;
use super::cost::{ServerCost, Usage};
use super::curve::Curve;
use super::disclosure::Disclosure;
use super::latencies::Latencies;
use super::load::{Arrivals, Load, Model, Pacing, RequestsPerConnection, Tls};
use super::window::{Counts, Handshakes, Window};
use crate::histogram;
use crate::tls::ResumeBy;
use std::fmt;

/// Why a closed loop prints one latency where an open loop prints two.
pub(super) const CLOSED_LOOP: &str = "Closed loop: a request is planned when it is sent, so response time is \
     service time; while the server stands still nothing is asked, so a stall shows in the maximum \
     and hardly in p99 (use --rate to measure tails)";

/// What a response time is, beside a service time.
pub(super) const OPEN_LOOP: &str =
    "Service time runs from the actual send, response time from the planned start";

/// The customary quantiles and their names.
pub(super) const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];

/// A figure that may be missing, with so many decimals.
pub(super) struct Maybe(pub(super) Option<f64>, pub(super) usize);

impl fmt::Display for Maybe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => f.pad(&format!("{value:.*}", self.1)),
            None => f.pad("–"),
        }
    }
}

/// µs with three digits or more.
pub(super) fn microseconds(us: f64) -> String {
    let decimals = if us < 10.0 { 2 } else { usize::from(us < 100.0) };
    format!("{us:.decimals$}")
}

/// A table: the first column to the left, the others to the right.
pub(super) struct Table(Vec<Vec<String>>);

impl Table {
    pub(super) fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self(vec![head.into_iter().map(Into::into).collect()])
    }

    /// Of rates and costs, a line for each window; with errors only if there are any.
    pub(super) fn rates(errors: bool) -> Self {
        let head = [
            "",
            "server µs/request",
            "client µs/request",
            "requests/s",
            "MB/s",
            "requests",
            "connects",
            "seconds",
        ];
        Self::new(head.into_iter().chain(errors.then_some("errors")))
    }

    pub(super) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.0.push(cells.into_iter().map(Into::into).collect());
    }

    /// The rows, the head first.
    pub(super) fn rows(&self) -> &[Vec<String>] {
        &self.0
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.0.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.0 {
            for (column, cell) in row.iter().enumerate() {
                let width = self.width(column);
                match column {
                    0 => write!(f, "  {cell:<width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for RunResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.headline())?;
        write!(f, "\n{}", self.rates())?;
        if let Some(disclosure) = Disclosure::of(self) {
            write!(f, "\n{disclosure}")?;
        }
        if let Some(curve) = Curve::of(self) {
            write!(f, "\n{curve}")?;
        }
        for window in &self.windows {
            self.fmt_window(f, window.counts())?;
        }
        writeln!(f, "\n  {}", if self.is_open_loop() { OPEN_LOOP } else { CLOSED_LOOP })?;
        for warning in self.warnings() {
            writeln!(f, "  {warning}")?;
        }
        Ok(())
    }
}

impl RunResult {
    /// What was measured, in one line.
    pub(super) fn headline(&self) -> String {
        format!("{}, {}", self.load, self.model())
    }

    /// The model of all generators together.
    fn model(&self) -> String {
        let connections = self.connections();
        let rate_per_s: f64 = self
            .generators
            .iter()
            .filter_map(|g| match g.model {
                Model::Open { rate_per_s, .. } => Some(rate_per_s),
                Model::Closed { .. } => None,
            })
            .sum();
        let mut text = match self.generators.first().map(|generator| generator.model) {
            Some(Model::Open { arrivals, .. }) => {
                let arrivals = match arrivals {
                    Arrivals::Constant => "constant",
                    Arrivals::Poisson => "Poisson",
                };
                format!("open loop at {rate_per_s:.0}/s ({arrivals}), {connections} connections")
            }
            _ => format!("closed loop, {connections} connections"),
        };
        if self.generators.len() > 1 {
            text += &format!(", {} generators", self.generators.len());
        }
        text
    }

    /// A line for each window: cost, rate, errors.
    pub(super) fn rates(&self) -> Table {
        let errors = self.errors() > 0;
        let mut table = Table::rates(errors);
        self.add_rates(&mut table, "", errors);
        table
    }

    /// Adds its lines to a table of rates, each named by the result and the window.
    pub(super) fn add_rates(&self, table: &mut Table, name: &str, errors: bool) {
        for window in &self.windows {
            let (figures, counts) = (window.figures(), window.counts());
            let mut row = vec![
                format!("{name} {}", counts.name).trim().to_owned(),
                Maybe(figures.server_cpu_us_per_request, 2).to_string(),
                Maybe(figures.client_cpu_us_per_request, 2).to_string(),
                format!("{:.0}", figures.requests_per_s),
                format!("{:.1}", figures.received_mb_per_s),
                counts.requests.to_string(),
                counts.connects.to_string(),
                format!("{:.2}", counts.seconds_f64()),
            ];
            row.extend(errors.then(|| counts.errors.total().to_string()));
            table.row(row);
        }
    }

    fn fmt_window(&self, f: &mut fmt::Formatter<'_>, counts: &Counts) -> fmt::Result {
        writeln!(f)?;
        if self.windows.len() > 1 {
            writeln!(f, "  -- {}", counts.name)?;
        }
        if counts.requests == 0 {
            writeln!(f, "  {}: nothing was answered", counts.name)?;
        } else {
            write!(f, "{}", counts.latencies())?;
        }
        if counts.classes.len() > 1 {
            write!(f, "\n{}", counts.by_class())?;
        }
        writeln!(f, "\n  client: {}", counts.client_line())?;
        if let Some(line) = counts.server_line() {
            writeln!(f, "  server: {line}")?;
        }
        if let Some(line) = counts.schedule_line() {
            writeln!(f, "  schedule: {line}")?;
        }
        if let Some(line) = counts.handshakes_line() {
            writeln!(f, "  TLS handshakes: {line}")?;
        }
        if let Some(line) = counts.errors_line() {
            writeln!(f, "  errors: {line}")?;
        }
        Ok(())
    }

    /// What makes the figures worth less.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.client_is_the_limit() {
            warnings.push("client is the limit: compare CPU per request".to_owned());
        }
        if self.has_latencies_beyond_bounds() {
            warnings.push(format!(
                "some latencies are beyond {} s: how long those were is not told apart any more",
                histogram::NS_MAX / 1_000_000_000
            ));
        }
        if self.is_behind_schedule() {
            warnings.push(
                "the generator fell behind its own schedule: the latencies are not the server's \
                 alone; use a lower rate or more CPUs"
                    .to_owned(),
            );
        }
        warnings
    }

    /// The window that stands for the run where one must: the median iteration, or the last.
    pub(super) fn main_window(&self) -> Option<&Window> {
        let median = Disclosure::of(self).and_then(|table| self.windows.get(table.median));
        median.or(self.windows.last())
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.workload, self.target)?;
        if self.targets > 1 {
            write!(f, " and {} more", self.targets - 1)?;
        }
        write!(f, ", {}", self.http)?;
        if let Some(tls) = &self.tls {
            let Tls { protocol, cipher, resumption_share, resumed_by, certificate_verified } = tls;
            write!(f, ", {protocol} {cipher}, {:.0} % resumed", resumption_share * 100.0)?;
            if *resumed_by == Some(ResumeBy::Id) {
                f.write_str(" by id")?;
            }
            if !certificate_verified {
                f.write_str(", certificate not verified")?;
            }
        }
        if self.pipeline > 1 {
            write!(f, ", {} requests in flight on each connection", self.pipeline)?;
        }
        match self.requests_per_connection {
            RequestsPerConnection::Unlimited => {}
            RequestsPerConnection::Fixed { count } => write!(f, ", closed after {count}")?,
            RequestsPerConnection::Drawn => f.write_str(", closed after a drawn number")?,
        }
        if let Pacing::Line { name, bits_per_s, .. } = &self.pacing {
            write!(f, ", line of {bits_per_s} bit/s ({name})")?;
        }
        for (name, value) in &self.parameters {
            write!(f, ", {name} {value}")?;
        }
        for field in &self.fields {
            write!(f, ", {field:?}")?;
        }
        if self.status != 200 {
            write!(f, ", status {}", self.status)?;
        }
        Ok(())
    }
}

impl Counts {
    /// The phases of a request that have something recorded, by name.
    pub(super) fn phases(&self) -> Vec<(&'static str, Latencies)> {
        let mut phases = vec![
            ("connect", self.connect.clone()),
            ("TLS handshake", self.tls.clone()),
            ("first byte", self.first_byte()),
            ("service time", self.service()),
        ];
        phases.extend(self.response().map(|response| ("response time", response)));
        phases.retain(|(_, latencies)| !latencies.is_empty());
        phases
    }

    /// Percentiles of each phase, µs.
    pub(super) fn latencies(&self) -> Table {
        let names = QUANTILES.iter().map(|(name, _)| *name);
        let head = ["latency, µs"].into_iter().chain(names).chain(["mean", "count"]);
        let mut table = Table::new(head);
        for (name, latencies) in self.phases() {
            let at = QUANTILES.iter().map(|(_, q)| microseconds(latencies.quantile_us(*q)));
            let rest = [microseconds(latencies.mean_us()), latencies.count().to_string()];
            table.row([name.to_owned()].into_iter().chain(at).chain(rest));
        }
        table
    }

    /// Share and latencies of each class; which latency is said in the head.
    pub(super) fn by_class(&self) -> Table {
        let clock = if self.response().is_some() { "response" } else { "service" };
        let mut table = Table::new(
            ["class", "requests", "share %", "MB/s"]
                .map(str::to_owned)
                .into_iter()
                .chain(["p50", "p99", "max"].map(|name| format!("{clock} {name} µs"))),
        );
        for class in &self.classes {
            let latencies = class.response.as_ref().unwrap_or(&class.service);
            let share = class.requests as f64 * 100.0 / self.requests as f64;
            let latency = |us: f64| {
                if latencies.is_empty() { Maybe(None, 0).to_string() } else { microseconds(us) }
            };
            table.row([
                class.name.clone(),
                class.requests.to_string(),
                Maybe((self.requests > 0).then_some(share), 2).to_string(),
                format!("{:.2}", self.per_s(class.received_bytes) / 1e6),
                latency(latencies.quantile_us(0.5)),
                latency(latencies.quantile_us(0.99)),
                latency(latencies.max_us()),
            ]);
        }
        table
    }

    fn switches(&self, usage: &Usage) -> String {
        format!(
            "context switches/request {} voluntary, {} involuntary",
            Maybe(self.per_request(usage.voluntary_switches), 4),
            Maybe(self.per_request(usage.involuntary_switches), 4)
        )
    }

    pub(super) fn client_line(&self) -> String {
        format!(
            "{} µs CPU/request, busiest thread {:.0} %, {} io_uring_enter(2)/request, {}",
            Maybe(self.per_request(self.client.usage.cpu_ns).map(|ns| ns / 1e3), 2),
            self.per_s(self.client.busiest_thread_ns) / 1e7,
            Maybe(self.per_request(self.client.enters), 3),
            self.switches(&self.client.usage)
        )
    }

    pub(super) fn server_line(&self) -> Option<String> {
        match &self.server {
            ServerCost::NotAsked => None,
            ServerCost::Unknown { reason } => Some(format!("consumption unknown: {reason}")),
            ServerCost::Known { cost } => {
                let mut line = format!(
                    "{} µs CPU/request, {:.2} CPUs busy, {}, {}",
                    Maybe(self.per_request(cost.usage.cpu_ns).map(|ns| ns / 1e3), 2),
                    self.per_s(cost.usage.cpu_ns) / 1e9,
                    processes(cost.processes),
                    self.switches(&cost.usage)
                );
                if let Some(memory) = cost.resident {
                    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
                    line += &format!(
                        ", memory {:.1} MiB at the beginning, {:.1} MiB at the end, peak {:.1} MiB",
                        mib(memory.begin_bytes),
                        mib(memory.end_bytes),
                        mib(memory.peak_bytes)
                    );
                }
                Some(line)
            }
        }
    }

    pub(super) fn schedule_line(&self) -> Option<String> {
        self.schedule.as_ref().map(|schedule| {
            format!(
                "{} planned, {} never sent, {} unanswered at the end; sent late by p50 {} µs, \
                 p99 {} µs, max {} µs",
                schedule.planned,
                schedule.never_sent,
                schedule.unanswered,
                microseconds(schedule.lag.quantile_us(0.5)),
                microseconds(schedule.lag.quantile_us(0.99)),
                microseconds(schedule.lag.max_us())
            )
        })
    }

    pub(super) fn handshakes_line(&self) -> Option<String> {
        let Handshakes { full, resumed, refused, without_session } = self.handshakes;
        let why = match (refused, without_session) {
            (0, 0) => String::new(),
            _ => format!(
                " ({refused} because the server refused a session, {without_session} because none \
                 was at hand)"
            ),
        };
        (full + resumed > 0).then(|| format!("{full} full{why}, {resumed} resumed"))
    }

    pub(super) fn errors_line(&self) -> Option<String> {
        let kinds: Vec<String> =
            self.errors.kinds().map(|(kind, count)| format!("{kind} {count}")).collect();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    }
}

/// So many processes.
fn processes(count: u64) -> String {
    format!("{count} {}", if count == 1 { "process" } else { "processes" })
}

impl Curve {
    /// A line for each load point; the result is marked.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(["", "requested/s", "achieved/s", "achieved %", "response ms"]);
        for point in &self.points {
            let mark = match self.best() {
                Some(best) if best == point => "=>",
                _ if !point.counts() => "short",
                _ => "",
            };
            table.row([
                mark.to_owned(),
                format!("{:.0}", point.requested_per_s),
                format!("{:.0}", point.achieved_per_s),
                format!("{:.2}", 100.0 * point.achieved_share()),
                format!("{:.2}", point.response_ms),
            ]);
        }
        table
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use crate::result::sample::{self, Shape};
    use crate::result::window::Window;
    use crate::result::{RunResult, latencies::Latencies};

    /// The result with its first window's counts changed.
    fn with(
        mut result: RunResult,
        change: impl FnOnce(&mut crate::result::window::Counts),
    ) -> RunResult {
        let mut counts = result.windows[0].counts().clone();
        change(&mut counts);
        result.windows[0] = Window::new(counts);
        result
    }

    #[test]
    fn a_closed_loop_prints_one_latency_and_says_why() {
        let text = sample::closed().to_string();
        assert!(text.contains("service time") && !text.contains("\n  response time"), "{text}");
        assert!(text.contains("a stall shows in the maximum"), "{text}");
        let text = sample::open().to_string();
        assert!(text.contains("\n  service time") && text.contains("\n  response time"), "{text}");
        assert!(text.contains("from the planned start") && !text.contains("closed loop"), "{text}");
    }

    #[test]
    fn errors_and_limits_are_printed_only_when_there_are_any() {
        let text = sample::closed().to_string();
        assert!(!text.contains("errors") && !text.contains("limit"), "{text}");
        let broken = with(sample::closed(), |counts| {
            counts.errors = [("reset", 3), ("status", 2), ("page", 0)].into_iter().collect();
            counts.client.busiest_thread_ns = counts.duration_ns / 100 * 98;
        });
        let text = broken.to_string();
        assert!(text.contains("  errors: reset 3, status 2\n"), "{text}");
        assert!(text.contains("client is the limit: compare CPU per request"), "{text}");
        let late = with(sample::open(), |counts| counts.schedule.as_mut().unwrap().behind = true);
        assert!(late.to_string().contains("fell behind its own schedule"));
    }

    #[test]
    fn a_run_without_an_answer_is_still_a_report() {
        let nothing = sample::of(Shape { requests_per_s: 0, ..Shape::get() });
        let text = nothing.to_string();
        assert!(text.contains("measured: nothing was answered"), "{text}");
        assert!(text.contains('–') && !text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn cost_per_request_is_the_first_column() {
        let text = sample::closed().to_string();
        let line = text.lines().find(|line| line.contains("requests/s")).unwrap();
        assert!(line.trim_start().starts_with("server µs/request  client µs/request"), "{text}");
        let line = text.lines().find(|line| line.trim_start().starts_with("measured ")).unwrap();
        let figures: Vec<_> = line.split_whitespace().collect();
        assert_eq!(figures[..5], ["measured", "7.82", "20.00", "200", "0.3"], "{text}");
    }

    #[test]
    fn the_freeze_shows_where_it_must() {
        let open = sample::open();
        let counts = open.windows[0].counts();
        assert!(counts.response().unwrap().quantile_us(0.99) > 1e6);
        assert!(counts.service().quantile_us(0.99) < 1e5 && counts.service().max_us() > 1e6);
    }

    #[test]
    fn an_unknown_cost_says_why() {
        let text = sample::of(Shape { server: 1, ..Shape::get() }).to_string();
        assert!(text.contains("server: consumption unknown: the process ended"), "{text}");
        let unasked = sample::of(Shape { server: 0, ..Shape::get() }).to_string();
        assert!(!unasked.contains("server:"), "{unasked}");
    }

    #[test]
    fn workloads_print_their_own_tables() {
        let text = sample::web99().to_string();
        assert!(text.contains("=>         1") && text.contains("339.9"), "{text}");
        assert!(text.contains("\n  class 3"), "{text}");
        let text = sample::web96().to_string();
        assert!(text.contains("\n  =>         2000        2000      100.00"), "{text}");
        let rare = with(sample::closed(), |counts| {
            counts.classes.push(sample::empty_class("rare", false))
        });
        let rare = rare.to_string();
        let line = rare.lines().find(|line| line.starts_with("  rare")).unwrap();
        assert_eq!(line.matches('–').count(), 3, "a class without requests has no latency: {line}");
        let tls = with(sample::closed(), |counts| {
            counts.handshakes.full = 1;
            counts.tls = Latencies::from(&{
                let mut one = crate::histogram::empty();
                one.saturating_record(1_000_000);
                one
            });
        });
        assert!(tls.to_string().contains("TLS handshakes: 1 full, 0 resumed"));
        let refused = with(tls, |counts| counts.handshakes.refused = 1);
        let line = "1 full (1 because the server refused a session, 0 because none was at hand), 0";
        assert!(refused.to_string().contains(line), "{refused}");
    }
}
