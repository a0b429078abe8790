//! A small writer of plots as inline SVG: a frame with two axes, and marks in it.
//!
//! Colours and strokes are the page's style sheet's business; a mark names its class. Coordinates
//! have one decimal: a tenth of a pixel is not seen, and pages stay small.

use super::scale::Scale;
use maud::{Markup, html};

/// How wide plots are drawn, in SVG user units that are shown as about one CSS pixel each: for wide
/// windows and for telephones. The style sheet shows one of the two.
pub(super) const WIDTHS: [(&str, f64); 2] = [("wide", 720.0), ("narrow", 340.0)];

/// Least distance of two labels' base lines.
const LINE: f64 = 15.0;

/// A plot being drawn.
pub(super) struct Plot {
    width: f64,
    height: f64,
    /// Left, right, top, bottom.
    inside: [f64; 4],
    marks: Vec<Markup>,
}

/// Free space around a plot's inside.
#[derive(Clone, Copy)]
pub(super) struct Margins {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// A place in a plot.
pub(super) type Point = (f64, f64);

impl Plot {
    pub(super) fn new((width, height): (f64, f64), margins: Margins) -> Self {
        let Margins { left, right, top, bottom } = margins;
        let inside = [left, width - right, top, height - bottom];
        Self { width, height, inside, marks: Vec::new() }
    }

    /// From left to right.
    pub(super) fn x_range(&self) -> (f64, f64) {
        (self.inside[0], self.inside[1])
    }

    /// From bottom to top.
    pub(super) fn y_range(&self) -> (f64, f64) {
        (self.inside[3], self.inside[2])
    }

    /// A faint line and a label at each mark of the vertical axis, and above them what it shows.
    pub(super) fn y_axis(&mut self, scale: &Scale, name: &str, label: impl Fn(f64) -> String) {
        let [left, right, top, _] = self.inside;
        for value in scale.ticks() {
            let y = scale.at(value);
            self.line((left, y), (right, y), "grid");
            self.text((left - 6.0, y + 4.0), "end", "label", &label(value));
        }
        self.text((0.0, top - 14.0), "start", "name", name);
    }

    /// A short line and a label at each mark of the horizontal axis, and below them what it shows.
    /// Labels that would touch the one before are left out.
    pub(super) fn x_axis(&mut self, marks: &[(f64, String)], name: &str) {
        let [left, right, _, bottom] = self.inside;
        self.line((left, bottom), (right, bottom), "axis");
        let mut taken = f64::NEG_INFINITY;
        for (x, label) in marks {
            self.line((*x, bottom), (*x, bottom + 4.0), "axis");
            let half = width(label) / 2.0;
            if x - half > taken + 6.0 {
                self.text((*x, bottom + 18.0), "middle", "label", label);
                taken = x + half;
            }
        }
        self.text((right, bottom + 35.0), "end", "name", name);
    }

    pub(super) fn line(&mut self, from: Point, to: Point, class: &str) {
        self.path(&[from, to], class);
    }

    /// A line through all points.
    pub(super) fn path(&mut self, points: &[Point], class: &str) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            d.push_str(&format!("{command}{x:.1} {y:.1}"));
        }
        self.marks.push(html! { path class=(class) d=(d) {} });
    }

    /// A filled box between two corners.
    pub(super) fn bar(&mut self, (x0, y0): Point, (x1, y1): Point, class: &str) {
        let (x, y) = (x0.min(x1), y0.min(y1));
        let (width, height) = ((x1 - x0).abs().max(1.0), (y1 - y0).abs());
        let [x, y, width, height] = [x, y, width, height].map(|n| format!("{n:.1}"));
        self.marks.push(html! { rect class=(class) x=(x) y=(y) width=(width) height=(height) {} });
    }

    pub(super) fn dot(&mut self, (x, y): Point, class: &str) {
        let [x, y] = [x, y].map(|n| format!("{n:.1}"));
        self.marks.push(html! { circle class=(class) cx=(x) cy=(y) r="3.5" {} });
    }

    /// `anchor` is SVG's text-anchor.
    pub(super) fn text(&mut self, (x, y): Point, anchor: &str, class: &str, text: &str) {
        let [x, y] = [x, y].map(|n| format!("{n:.1}"));
        self.marks.push(html! { text class=(class) x=(x) y=(y) text-anchor=(anchor) { (text) } });
    }

    /// The name of each line, right of its end and moved apart where they would touch.
    pub(super) fn names(&mut self, mut ends: Vec<(f64, String, String)>) {
        let [_, right, top, bottom] = self.inside;
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut least = top;
        for (y, ..) in &mut ends {
            *y = y.max(least);
            least = *y + LINE;
        }
        let mut most = bottom;
        for (y, ..) in ends.iter_mut().rev() {
            *y = y.min(most);
            most = *y - LINE;
        }
        for (y, name, class) in ends {
            self.text((right + 6.0, y + 4.0), "start", &class, &name);
        }
    }

    /// The whole, as an image with a name and a description for those who do not see it.
    pub(super) fn finish(self, id: &str, title: &str, description: &str) -> Markup {
        let view = format!("0 0 {} {}", self.width, self.height);
        let (title_id, description_id) = (format!("{id}-title"), format!("{id}-desc"));
        html! {
            svg role="img" viewBox=(view) width=(self.width) height=(self.height)
                aria-labelledby={ (title_id) " " (description_id) } {
                title id=(title_id) { (title) }
                desc id=(description_id) { (description) }
                @for mark in &self.marks { (mark) }
            }
        }
    }
}

/// About how wide a label is drawn.
pub(super) fn width(label: &str) -> f64 {
    6.6 * label.chars().count() as f64
}

/// The same chart in each of [`WIDTHS`].
pub(super) fn figure(id: &str, draw: impl Fn(&str, f64) -> Markup) -> Markup {
    html! {
        @for (class, width) in WIDTHS {
            div class={ "plot " (class) } { (draw(&format!("{id}-{class}"), width)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGINS: Margins = Margins { left: 50.0, right: 80.0, top: 30.0, bottom: 40.0 };

    #[test]
    fn text_is_escaped_and_described() {
        let mut plot = Plot::new((720.0, 300.0), MARGINS);
        plot.text((1.0, 2.0), "start", "label", "<script>&\"");
        let svg = plot.finish("a", "A <title>", "what it shows").into_string();
        assert!(svg.contains("&lt;script&gt;&amp;") && svg.contains("A &lt;title&gt;"), "{svg}");
        assert!(svg.contains(r#"aria-labelledby="a-title a-desc""#), "{svg}");
        assert!(svg.contains(r#"<desc id="a-desc">what it shows</desc>"#), "{svg}");
    }

    #[test]
    fn names_of_lines_do_not_touch_and_stay_inside() {
        let mut plot = Plot::new((720.0, 300.0), MARGINS);
        let ends = [100.0, 101.0, 99.0, 259.0, 258.0];
        plot.names(ends.into_iter().map(|y| (y, "name".into(), "series".into())).collect());
        let svg = plot.finish("a", "", "").into_string();
        let mut ys: Vec<f64> = svg
            .split(" y=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect();
        ys.sort_by(f64::total_cmp);
        assert_eq!(ys.len(), 5);
        assert!(ys.windows(2).all(|pair| pair[1] - pair[0] >= LINE - 0.1), "{ys:?}");
        assert!(ys.iter().all(|y| (30.0..=264.1).contains(y)), "{ys:?}");
    }

    #[test]
    fn labels_of_the_horizontal_axis_do_not_touch() {
        let mut plot = Plot::new((340.0, 300.0), MARGINS);
        let marks: Vec<_> = (0..40).map(|i| (f64::from(i) * 5.0, "10 000".to_owned())).collect();
        plot.x_axis(&marks, "seconds");
        let svg = plot.finish("a", "", "").into_string();
        let shown = svg.matches("10 000").count();
        assert!((3..8).contains(&shown), "{shown}");
    }
}
