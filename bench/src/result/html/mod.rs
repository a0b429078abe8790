//! Results as one self-contained page: charts as inline SVG, every figure of a chart also in a table.
//!
//! The page needs no script and no network, and its own policy forbids both. Light and dark follow
//! the reader's setting; each chart is there for wide windows and for telephones.

mod charts;
mod ratio;
mod scale;
mod svg;

pub use ratio::{RatioBar, ratio_bars};

use super::RunResult;
use super::curve::Curve;
use super::disclosure::{Disclosure, Row};
use super::load::Generator;
use super::text::{CLOSED_LOOP, Maybe, OPEN_LOOP, Table, microseconds};
use super::window::{Counts, Second, Window};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::time::{Duration, SystemTime};

const STYLE: &str = include_str!("style.css");

/// Nothing may be fetched, run, framed or sent; only the style sheet in the page counts.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A whole page with this title and contents.
pub fn page(title: &str, contents: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (contents) }
        }
    }
    .into_string()
}

/// The page of one result or of several, each with its name, such as its file's.
pub fn report(results: &[(String, RunResult)]) -> String {
    let title = match results {
        [(_, result)] => format!("{} {}", result.load.workload, result.load.target),
        _ => format!("{} results of onering-bench", results.len()),
    };
    page(
        &title,
        &html! {
            header {
                h1 { (title) }
                @if let [(_, result)] = results { p.soft { (result.headline()) } }
            }
            @if results.len() > 1 { (side_by_side(results)) }
            @for (i, (name, result)) in results.iter().enumerate() {
                @if results.len() > 1 {
                    h2 { (name) }
                    p.soft { (result.headline()) }
                }
                (section(&format!("r{i}"), result))
            }
        },
    )
}

/// All results in one chart and one table.
fn side_by_side(results: &[(String, RunResult)]) -> Markup {
    let main = |result: &RunResult| result.main_window().map(Window::counts).map(Counts::waiting);
    let lines: Vec<_> =
        results.iter().filter_map(|(name, result)| Some((name.clone(), main(result)?))).collect();
    let errors = results.iter().any(|(_, result)| result.errors() > 0);
    let mut rates = Table::rates(errors);
    for (name, result) in results {
        result.add_rates(&mut rates, name, errors);
    }
    html! {
        h3 { "Latency by percentile" }
        (charts::percentiles("all", &lines))
        (table(&rates, None))
    }
}

fn section(id: &str, result: &RunResult) -> Markup {
    html! {
        @for warning in result.warnings() { p.alarm { (warning) } }
        @if let Some(window) = result.main_window() { (key_figures(window)) }
        @if let Some(disclosure) = Disclosure::of(result) { (disclosure_table(&disclosure)) }
        @if let Some(curve) = Curve::of(result) {
            h3 { "Response time over throughput" }
            (charts::load_curve(&format!("{id}-curve"), &curve))
            (table(&curve.table(), None))
        }
        (table(&result.rates(), None))
        @if let Some(window) = result.main_window() {
            h3 {
                "Latency by percentile"
                @if result.windows.len() > 1 { ", " (window.counts().name) }
            }
            p.soft { (if result.is_open_loop() { OPEN_LOOP } else { CLOSED_LOOP }) "." }
            @let phases = window.counts().phases();
            @let lines: Vec<_> = phases.into_iter().map(|(name, l)| (name.to_owned(), l)).collect();
            @if !lines.is_empty() { (charts::percentiles(&format!("{id}-percentiles"), &lines)) }
            (window_tables(window.counts()))
        }
        @if result.windows.iter().any(|window| !window.counts().seconds.is_empty()) {
            h3 { "Over time" }
            (charts::throughput(&format!("{id}-throughput"), result))
            @if result.requests() > 0 { (charts::latency_over_time(&format!("{id}-time"), result)) }
            (seconds_table(result))
        }
        @if result.windows.len() > 1 {
            @for window in &result.windows {
                details {
                    summary { "Window " (window.counts().name) }
                    (window_tables(window.counts()))
                }
            }
        }
        (origin(result))
    }
}

/// What is looked for first; a server's cost per request says more than a rate.
fn key_figures(window: &Window) -> Markup {
    let (figures, counts) = (window.figures(), window.counts());
    let waiting = counts.waiting();
    let clock = if counts.schedule.is_some() { "response time" } else { "service time" };
    html! {
        dl.key {
            @if let Some(us) = figures.server_cpu_us_per_request {
                div { dt { "server CPU per request" } dd { (scale::latency(us)) } }
            }
            div { dt { "right responses per second" } dd { (scale::number(figures.requests_per_s)) } }
            @if !waiting.is_empty() {
                div { dt { (clock) ", p50" } dd { (scale::latency(waiting.quantile_us(0.5))) } }
                div { dt { (clock) ", p99" } dd { (scale::latency(waiting.quantile_us(0.99))) } }
            }
            @if counts.errors.total() > 0 {
                div { dt { "errors" } dd.alarm { (counts.errors.total()) } }
            }
        }
    }
}

/// A table of text: its first row is the head.
fn table(table: &Table, caption: Option<&str>) -> Markup {
    let (head, rows) = table.rows().split_first().map_or((&[][..], &[][..]), |(h, r)| (h, r));
    html! {
        div.scroll { table {
            @if let Some(caption) = caption { caption { (caption) } }
            thead { tr { @for cell in head { th scope="col" { (cell) } } } }
            tbody { @for row in rows { tr {
                @for (i, cell) in row.iter().enumerate() {
                    @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                }
            } } }
        } }
    }
}

fn disclosure_table(disclosure: &Disclosure) -> Markup {
    let cells = |row: &Row| {
        [
            row.conforming.to_string(),
            format!("{:.1} %", row.percent_conform),
            format!("{:.1}", row.ops_per_s),
            format!("{:.1}", row.response_ms),
            format!("{:.2}", row.ops_per_s_per_connection),
            format!("{:.1}", row.kbit_per_s),
            format!("{:.3}", row.opened_per_op),
        ]
    };
    let head = [
        "iteration",
        "conforming connections",
        "conform",
        "ops/s",
        "response ms",
        "ops/s/loadgen",
        "kbit/s",
        "TCP connections/op",
    ];
    html! {
        h3 { "Conforming connections: " (disclosure.conforming()) }
        div.scroll { table {
            caption { "SPECweb99-style, not comparable with published SPECweb99 results; the median is marked" }
            thead { tr { @for name in head { th scope="col" { (name) } } } }
            tbody { @for (i, row) in disclosure.rows.iter().enumerate() {
                tr.median[i == disclosure.median] {
                    th scope="row" {
                        (row.iteration)
                        @if i == disclosure.median { " ◂ median" }
                    }
                    @for cell in cells(row) { td { (cell) } }
                }
            } }
        } }
    }
}

/// Latencies, classes and costs of one window.
fn window_tables(counts: &Counts) -> Markup {
    html! {
        @if counts.requests > 0 { (table(&counts.latencies(), None)) }
        @if counts.classes.len() > 1 { (table(&counts.by_class(), Some("by class"))) }
        p.soft {
            "Client: " (counts.client_line()) "."
            @if let Some(line) = counts.server_line() { br; "Server: " (line) "." }
            @if let Some(line) = counts.schedule_line() { br; "Schedule: " (line) "." }
            @if let Some(line) = counts.handshakes_line() { br; "TLS handshakes: " (line) "." }
        }
        @if let Some(line) = counts.errors_line() { p.alarm { "Errors: " (line) } }
    }
}

/// The figures of the charts over time.
fn seconds_table(result: &RunResult) -> Markup {
    let mut rows = Table::new([
        "from s",
        "to s",
        "requests",
        "bytes received",
        "errors",
        "p50 µs",
        "p99 µs",
        "max µs",
    ]);
    for slice in charts::slices(result).iter().flatten() {
        let figure = |figure: fn(&Second) -> u64| slice.second.map_or(0, figure).to_string();
        let latencies =
            slice.second.map(|s| &s.latencies).filter(|latencies| !latencies.is_empty());
        let at = |quantile| {
            let us = latencies.map(|latencies| microseconds(latencies.quantile_us(quantile)));
            us.unwrap_or_else(|| Maybe(None, 0).to_string())
        };
        rows.row([
            format!("{:.2}", slice.begin_s),
            format!("{:.2}", slice.end_s),
            figure(|second| second.requests),
            figure(|second| second.received_bytes),
            figure(|second| second.errors),
            at(0.5),
            at(0.99),
            at(1.0),
        ]);
    }
    html! {
        details { summary { "Each second in figures" } (table(&rows, None)) }
    }
}

/// Where a result comes from, to repeat it.
fn origin(result: &RunResult) -> Markup {
    let started = |generator: &Generator| {
        SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_secs(generator.started_unix_ns / 1_000_000_000))
            .map_or_else(String::new, httpdate::fmt_http_date)
    };
    html! {
        footer {
            @for generator in &result.generators {
                p {
                    (generator.tool) " " (generator.version) ", " (started(generator)) ", CPUs "
                    (generator.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
                    @if let Some(seed) = generator.seed { ", seed " (seed) }
                }
                pre { (generator.command_line.join(" ")) }
                @if let Some(fingerprint) = &generator.fingerprint {
                    details { summary { "The machine" } pre { (fingerprint) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::sample::{self, Shape};

    fn page_of(result: RunResult) -> String {
        report(&[("a.json".to_owned(), result)])
    }

    #[test]
    fn every_kind_of_result_has_a_page_that_refers_to_nothing() {
        let nothing = sample::of(Shape { requests_per_s: 0, ..Shape::get() });
        let instant = sample::of(Shape { window_s: 1, ..Shape::get() });
        let still = sample::of(Shape { windows: 0, ..Shape::get() });
        for result in [
            sample::closed(),
            sample::open(),
            sample::web99(),
            sample::web96(),
            nothing,
            instant,
            still,
        ] {
            let page = page_of(result);
            for word in ["NaN", "inf ", "<script", "src=", "url(", "@import", "<link", "<img"] {
                assert!(!page.contains(word), "{word}");
            }
            let hrefs = page.matches("http://").count();
            assert_eq!(
                hrefs,
                page.matches("http://127.0.0.1:8080/&lt;&quot;&amp;").count(),
                "escaped"
            );
            assert!(page.contains("default-src 'none'") && page.contains("</html>"));
        }
    }

    #[test]
    fn every_image_has_a_name_of_its_own() {
        let page = report(&[("a".into(), sample::open()), ("b".into(), sample::web96())]);
        let images = page.matches("<svg ").count();
        assert!(images >= 12, "{images}");
        assert_eq!(page.matches("role=\"img\"").count(), images);
        let mut ids: Vec<&str> = page
            .split("<title id=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert_eq!(ids.len(), images);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), images, "each id once");
    }

    #[test]
    fn the_figures_of_the_charts_are_in_tables_too() {
        let result = sample::open();
        let counts = result.windows[0].counts();
        let page = page_of(result.clone());
        for (_, latencies) in counts.phases() {
            for quantile in [0.5, 0.99, 1.0] {
                let cell = format!("<td>{}</td>", microseconds(latencies.quantile_us(quantile)));
                assert!(page.contains(&cell), "{cell}");
            }
        }
        for second in &counts.seconds {
            assert!(page.contains(&format!("<td>{}</td>", second.received_bytes)));
        }
    }
}
