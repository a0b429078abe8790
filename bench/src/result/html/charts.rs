//! The charts of one result: latency by percentile, what happened over time, the load curve.

use super::scale::{Scale, latency, number};
use super::svg::{Margins, Plot, Point, figure, width as label_width};
use crate::result::RunResult;
use crate::result::curve::Curve;
use crate::result::latencies::Latencies;
use crate::result::window::{Counts, Second, Window};
use maud::Markup;

/// Lines in one chart that can be told apart: classes `s0` and so on of the style sheet.
const SERIES_MAX: usize = 6;

/// A second of which less than this share lies in its window has no rate worth drawing.
const PART_MIN: f64 = 0.05;

const SECOND_NS: u64 = 1_000_000_000;

/// The deepest percentile drawn: 99.9999 %.
const TAIL_MAX: f64 = 1e6;

fn margins(width: f64, right: f64) -> Margins {
    Margins { left: if width < 500.0 { 58.0 } else { 66.0 }, right, top: 34.0, bottom: 44.0 }
}

/// The class of the line `i`.
fn series(kind: &str, i: usize) -> String {
    format!("{kind} s{}", i % SERIES_MAX)
}

/// Latency over percentile, both logarithmic: the horizontal axis is 1 ÷ (1 − q), as in
/// HdrHistogram's plots, so that each further nine takes the same room.
pub(super) fn percentiles(id: &str, lines: &[(String, Latencies)]) -> Markup {
    let lines: Vec<_> = lines.iter().filter(|(_, latencies)| !latencies.is_empty()).collect();
    let most = lines.iter().map(|(_, latencies)| latencies.count()).max().unwrap_or(1);
    let tail = (most as f64).clamp(10.0, TAIL_MAX);
    let shortest = lines.iter().filter_map(|(_, l)| l.buckets().first()).map(|b| b.ns).min();
    let longest = lines.iter().map(|(_, l)| l.max_us()).fold(1.0, f64::max);
    let domain = (shortest.unwrap_or(1000) as f64 / 1e3, longest);
    figure(id, |id, width| {
        let names = lines.iter().map(|(name, _)| label_width(name)).fold(0.0, f64::max);
        let mut plot = Plot::new((width, 320.0), margins(width, names + 12.0));
        let x = Scale::log_exact((1.0, tail), plot.x_range());
        let y = Scale::log(domain, plot.y_range());
        plot.y_axis(&y, "latency", latency);
        let marks = [
            (0.0, "0%"),
            (0.5, "50%"),
            (0.9, "90%"),
            (0.99, "99%"),
            (0.999, "99.9%"),
            (0.9999, "99.99%"),
            (0.99999, "99.999%"),
            (0.999_999, "99.9999%"),
        ];
        let marks = marks.map(|(q, label)| (1.0 / (1.0 - q), label));
        let marks = marks.into_iter().filter(|(value, _)| *value <= tail * 1.001);
        let marks: Vec<_> = marks.map(|(value, label)| (x.at(value), label.to_owned())).collect();
        plot.x_axis(&marks, "percentile");
        let mut ends = Vec::new();
        for (i, (name, latencies)) in lines.iter().enumerate() {
            let points = percentile_points(latencies, &x, &y);
            ends.extend(points.last().map(|(_, y)| (*y, name.clone(), series("name", i))));
            plot.path(&points, &series("line", i));
        }
        plot.names(ends);
        let of: Vec<String> = lines
            .iter()
            .map(|(name, latencies)| {
                format!(
                    "{name}: p50 {}, p99 {}, max {}",
                    latency(latencies.quantile_us(0.5)),
                    latency(latencies.quantile_us(0.99)),
                    latency(latencies.max_us())
                )
            })
            .collect();
        plot.finish(id, "Latency by percentile", &of.join("; "))
    })
}

/// The steps of one line; steps too small to be seen are left out.
fn percentile_points(latencies: &Latencies, x: &Scale, y: &Scale) -> Vec<Point> {
    let count = latencies.count();
    let mut points: Vec<Point> = Vec::new();
    let mut seen = 0;
    for bucket in latencies.buckets() {
        let height = y.at(bucket.ns as f64 / 1e3);
        // The bucket reaches from the share before it to the share with it.
        let before = x.at(count as f64 / (count - seen) as f64);
        seen += bucket.count;
        let left = (count - seen).max(1);
        let after = x.at(count as f64 / left as f64);
        let far =
            points.last().is_none_or(|(px, py)| after - px > 0.7 || (height - py).abs() > 0.7);
        if far || seen == count {
            points.extend([(before, height), (after, height)]);
        }
    }
    points
}

/// A second of the wall clock as far as it lies in a window; times since the beginning of the first
/// window, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) begin_s: f64,
    pub(super) end_s: f64,
    /// What happened in it; absent if nothing did.
    pub(super) second: Option<&'a Second>,
}

impl Slice<'_> {
    /// Right responses per second.
    fn rate(&self) -> f64 {
        self.second.map_or(0.0, |second| second.requests as f64 / (self.end_s - self.begin_s))
    }

    fn errors(&self) -> u64 {
        self.second.map_or(0, |second| second.errors)
    }

    fn is_answered(&self) -> bool {
        self.second.is_some_and(|second| second.requests > 0)
    }
}

/// Every second of each window, those in which nothing happened included.
pub(super) fn slices(result: &RunResult) -> Vec<Vec<Slice<'_>>> {
    let origin_ns = result.windows.first().map_or(0, |window| window.counts().begin_unix_ns);
    let counts = result.windows.iter().map(Window::counts);
    counts.map(|counts| slices_of(counts, origin_ns)).collect()
}

fn slices_of(counts: &Counts, origin_ns: u64) -> Vec<Slice<'_>> {
    let (Some(first), Some(last)) = (counts.seconds.first(), counts.seconds.last()) else {
        return Vec::new();
    };
    let since_origin_s = |ns: u64| ns.saturating_sub(origin_ns) as f64 / 1e9;
    let of = |unix_s: u64| {
        let found = counts.seconds.binary_search_by_key(&unix_s, |second| second.unix_s);
        let (begin_ns, end_ns) = (unix_s * SECOND_NS, (unix_s + 1) * SECOND_NS);
        Slice {
            begin_s: since_origin_s(begin_ns.max(counts.begin_unix_ns)),
            end_s: since_origin_s(end_ns.min(counts.end_unix_ns())),
            second: found.ok().map(|i| &counts.seconds[i]),
        }
    };
    // Answers that were awaited when the window was over have no place in it.
    let from = first.unix_s.max(counts.begin_unix_ns / SECOND_NS);
    let to = last.unix_s.min(counts.end_unix_ns() / SECOND_NS);
    let slices = (from..=to).map(of);
    slices.filter(|slice| slice.end_s - slice.begin_s >= PART_MIN).collect()
}

/// The horizontal axis of time, in seconds since the first window began.
fn time_axis(windows: &[Vec<Slice<'_>>], plot: &mut Plot) -> Scale {
    let end_s = windows.iter().flatten().map(|slice| slice.end_s).fold(0.0, f64::max);
    let x = Scale::linear_to(end_s, plot.x_range());
    let marks: Vec<_> = x.ticks().into_iter().map(|s| (x.at(s), number(s))).collect();
    plot.x_axis(&marks, "seconds");
    x
}

/// Right responses per second, and below them what went wrong.
pub(super) fn throughput(id: &str, result: &RunResult) -> Markup {
    let windows = slices(result);
    let all = || windows.iter().flatten();
    let most = all().map(Slice::rate).fold(0.0, f64::max);
    let worst = all().map(Slice::errors).max().unwrap_or(0);
    let errors = result.errors();
    figure(id, |id, width| {
        let mut plot = Plot::new((width, 250.0), margins(width, 16.0));
        let y = Scale::linear(most, plot.y_range());
        let name = if width < 500.0 { "responses/s" } else { "right responses per second" };
        plot.y_axis(&y, name, number);
        let x = time_axis(&windows, &mut plot);
        let floor = y.at(0.0);
        for window in &windows {
            let mut points = Vec::new();
            for slice in window {
                let (left, right) = (x.at(slice.begin_s), x.at(slice.end_s));
                points.extend([(left, y.at(slice.rate())), (right, y.at(slice.rate()))]);
                if slice.errors() > 0 {
                    let share = slice.errors() as f64 / worst as f64;
                    plot.bar((left, floor), (right, floor - 6.0 - 34.0 * share), "errors");
                }
            }
            plot.path(&points, "line s0");
        }
        if worst > 0 {
            let text = format!("errors, at most {} in a second", number(worst as f64));
            let (_, right) = plot.x_range();
            plot.text((right, 20.0), "end", "name errors-name", &text);
        }
        let description = format!("at most {} per second; {errors} errors", number(most));
        plot.finish(id, "Right responses over time", &description)
    })
}

/// Median, p99 and maximum of each second.
pub(super) fn latency_over_time(id: &str, result: &RunResult) -> Markup {
    let quantiles = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];
    let windows = slices(result);
    let busy = || windows.iter().flatten().filter_map(|s| s.second).filter(|s| s.requests > 0);
    let least = busy().map(|s| s.latencies.quantile_us(0.5)).fold(f64::INFINITY, f64::min);
    let most = busy().map(|s| s.latencies.max_us()).fold(1.0, f64::max);
    figure(id, |id, width| {
        let mut plot = Plot::new((width, 250.0), margins(width, 40.0));
        let y = Scale::log((least, most), plot.y_range());
        plot.y_axis(&y, "latency within each second", latency);
        let x = time_axis(&windows, &mut plot);
        let mut ends = Vec::new();
        for (i, (name, quantile)) in quantiles.into_iter().enumerate() {
            let point = |slice: &Slice<'_>| -> Option<Point> {
                let latencies = &slice.second.filter(|second| second.requests > 0)?.latencies;
                let middle_s = (slice.begin_s + slice.end_s) / 2.0;
                Some((x.at(middle_s), y.at(latencies.quantile_us(quantile))))
            };
            let mut end = None;
            // A line breaks where nothing was answered: there is no latency to join.
            let alike = |a: &Slice<'_>, b: &Slice<'_>| a.is_answered() == b.is_answered();
            for run in windows.iter().flat_map(|window| window.chunk_by(alike)) {
                let points: Vec<Point> = run.iter().filter_map(point).collect();
                match points[..] {
                    [] => {}
                    [point] => plot.dot(point, &series("dot", i)),
                    _ => plot.path(&points, &series("line", i)),
                }
                end = points.last().map(|point| point.1).or(end);
            }
            ends.extend(end.map(|y| (y, name.to_owned(), series("name", i))));
        }
        plot.names(ends);
        let description = format!("medians from {}; the longest {}", latency(least), latency(most));
        plot.finish(id, "Latency over time", &description)
    })
}

/// Response time over throughput; points that do not count are hollow.
pub(super) fn load_curve(id: &str, curve: &Curve) -> Markup {
    let points = &curve.points;
    let most = |figure: fn(&crate::result::curve::Point) -> f64| {
        points.iter().map(figure).fold(0.0, f64::max)
    };
    figure(id, |id, width| {
        let mut plot = Plot::new((width, 300.0), margins(width, 24.0));
        let x = Scale::linear(most(|point| point.achieved_per_s), plot.x_range());
        let y = Scale::linear(most(|point| point.response_ms), plot.y_range());
        plot.y_axis(&y, "mean response time, ms", number);
        let marks: Vec<_> = x.ticks().into_iter().map(|n| (x.at(n), number(n))).collect();
        plot.x_axis(&marks, "operations per second");
        let at = |point: &crate::result::curve::Point| {
            (x.at(point.achieved_per_s), y.at(point.response_ms))
        };
        plot.path(&points.iter().map(at).collect::<Vec<_>>(), "line s0");
        for point in points {
            plot.dot(at(point), if point.counts() { "dot s0" } else { "dot hollow s0" });
        }
        let description = curve.best().map_or_else(
            || "no load point counts".to_owned(),
            |best| {
                format!(
                    "at best {} operations per second at {:.1} ms",
                    number(best.achieved_per_s),
                    best.response_ms
                )
            },
        );
        plot.finish(id, "Response time over throughput", &description)
    })
}
