//! Ratios with their intervals, as bars from 1: for comparisons.

use super::scale::Scale;
use super::svg::{Margins, Plot, figure, width as label_width};
use maud::{Markup, html};

/// Height of one bar with its name above it.
const ROW: f64 = 40.0;

/// One ratio of two servers.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioBar {
    /// What is compared, such as `onering to nginx, 1 KiB keep-alive`.
    pub name: String,
    /// The ratio, above 0.
    pub ratio: f64,
    /// The lower end of its interval, above 0.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// What follows, such as `less`, `no difference shown`, `lost`.
    pub verdict: String,
}

/// A bar for each ratio on one logarithmic axis, and the same figures as a table. `id` is unique in
/// the page; `what` says which figure the ratios are of, and which way is better. Ratios that are not
/// finite and above 0 are in the table only.
pub fn ratio_bars(id: &str, what: &str, ratios: &[RatioBar]) -> Markup {
    let drawn: Vec<&RatioBar> = ratios
        .iter()
        .filter(|r| [r.ratio, r.low, r.high].into_iter().all(|n| n.is_finite() && n > 0.0))
        .collect();
    let least = drawn.iter().map(|r| r.low.min(r.ratio)).fold(0.9, f64::min);
    let most = drawn.iter().map(|r| r.high.max(r.ratio)).fold(1.1, f64::max);
    html! {
        @if !drawn.is_empty() {
            (figure(id, |id, width| {
                let margins = Margins { left: 8.0, right: 24.0, top: 24.0, bottom: 44.0 };
                let height = margins.top + margins.bottom + ROW * drawn.len() as f64;
                let mut plot = Plot::new((width, height), margins);
                let x = Scale::log((least, most), plot.x_range());
                let (_, top) = plot.y_range();
                let marks: Vec<_> =
                    x.ticks().into_iter().map(|n| (x.at(n), format!("{n}×"))).collect();
                plot.x_axis(&marks, what);
                for (i, ratio) in drawn.iter().enumerate() {
                    let y = top + ROW * i as f64;
                    // Lines stop at the names, which can be read only where nothing crosses them.
                    for value in x.ticks() {
                        plot.line((x.at(value), y + 18.0), (x.at(value), y + ROW), "grid");
                    }
                    let short = format!("{}: {:.2}×", ratio.name, ratio.ratio);
                    let name = format!("{short}, {}", ratio.verdict);
                    let name = if label_width(&name) > width { short } else { name };
                    plot.text((8.0, y + 14.0), "start", "name", &name);
                    plot.bar((x.at(1.0), y + 20.0), (x.at(ratio.ratio), y + 32.0), "bar s0");
                    plot.line((x.at(ratio.low), y + 26.0), (x.at(ratio.high), y + 26.0), "interval");
                    plot.line((x.at(1.0), y + 18.0), (x.at(1.0), y + ROW), "axis");
                    for end in [ratio.low, ratio.high] {
                        plot.line((x.at(end), y + 22.0), (x.at(end), y + 30.0), "interval");
                    }
                }
                plot.finish(id, what, &format!("{} ratios with their intervals", drawn.len()))
            }))
        }
        div.scroll { table {
            caption { (what) }
            thead { tr { th { "" } th { "ratio" } th { "from" } th { "to" } th { "verdict" } } }
            tbody {
                @for ratio in ratios {
                    tr {
                        th scope="row" { (ratio.name) }
                        @for value in [ratio.ratio, ratio.low, ratio.high] {
                            td { @if value.is_finite() { (format!("{value:.3}")) } @else { "–" } }
                        }
                        td { (ratio.verdict) }
                    }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ratio_is_in_the_table_and_drawable_ones_are_drawn() {
        let ratio = |name: &str, ratio| RatioBar {
            name: name.into(),
            ratio,
            low: ratio * 0.9,
            high: ratio * 1.1,
            verdict: "less".into(),
        };
        let all = [ratio("a", 0.5), ratio("b<", 2.0), ratio("c", f64::NAN)];
        let page = ratio_bars("r", "CPU per request, less is better", &all).into_string();
        assert_eq!(page.matches("<th scope=\"row\">").count(), 3, "{page}");
        assert_eq!(page.matches("class=\"bar s0\"").count(), 4, "two widths: {page}");
        assert!(page.contains("b&lt;: 2.00×, less") && !page.contains("NaN"), "{page}");
        assert!(!ratio_bars("r", "", &[]).into_string().contains("<svg"));
    }
}
