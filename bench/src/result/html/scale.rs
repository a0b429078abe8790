//! Axes: where a value lies, which values are marked, and what the marks say.

/// Most marks on a linear axis.
const TICKS_MAX: f64 = 5.0;

/// From a value to a place, in SVG user units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    kind: Kind,
    /// The least and the greatest value.
    domain: (f64, f64),
    /// Where they lie.
    range: (f64, f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Linear {
        /// The distance of two marks.
        step: f64,
    },
    Log,
}

impl Scale {
    /// From 0 to a round value at or above `max`.
    pub(super) fn linear(max: f64, range: (f64, f64)) -> Self {
        let max = if max > 0.0 && max.is_finite() { max } else { 1.0 };
        let rough = max / TICKS_MAX;
        let decade = 10_f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|n| n * decade).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        Self { kind: Kind::Linear { step }, domain: (0.0, (max / step).ceil() * step), range }
    }

    /// From 0 to `max` itself.
    pub(super) fn linear_to(max: f64, range: (f64, f64)) -> Self {
        let round = Self::linear(max, range);
        let max = if max > 0.0 { max.min(round.domain.1) } else { round.domain.1 };
        Self { domain: (0.0, max), ..round }
    }

    /// From a value of 1, 2, 5 · 10ⁿ at or below `min` to one above `max`.
    pub(super) fn log((min, max): (f64, f64), range: (f64, f64)) -> Self {
        let min = if min > 0.0 && min.is_finite() { min } else { 1.0 };
        let max = max.max(min * 1.01);
        let low = series(min / 10.0, min).last().unwrap_or(min);
        let high = series(max, max * 10.0).next().unwrap_or(max);
        Self { kind: Kind::Log, domain: (low, high), range }
    }

    /// Exactly from `min` to `max`, logarithmic.
    pub(super) fn log_exact(domain: (f64, f64), range: (f64, f64)) -> Self {
        Self { kind: Kind::Log, domain, range }
    }

    /// Where `value` lies; values outside lie at the end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let value = value.clamp(low, high);
        let share = match self.kind {
            Kind::Linear { .. } => (value - low) / (high - low),
            Kind::Log => (value / low).ln() / (high / low).ln(),
        };
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// The values to be marked.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let (low, high) = self.domain;
        match self.kind {
            Kind::Linear { step } => {
                (0..=((high / step + 1e-9).floor() as u32)).map(|i| f64::from(i) * step).collect()
            }
            Kind::Log => {
                let decades = (high / low).log10();
                let marked = |value: &f64| decades < 2.5 || is_power_of_ten(*value);
                series(low, high * 1.000_001).filter(marked).collect()
            }
        }
    }
}

/// 1, 2, 5 · 10ⁿ from `low` on, both ends included.
fn series(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let first = low.log10().floor() as i32;
    let values = (first..first + 40).flat_map(|n| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(n)));
    let slack = 1.0 - 1e-9;
    values.skip_while(move |v| *v < low * slack).take_while(move |v| *v * slack <= high)
}

fn is_power_of_ten(value: f64) -> bool {
    let exponent = value.log10();
    (exponent - exponent.round()).abs() < 1e-6
}

/// A round number without superfluous decimals, its thousands set apart by thin spaces.
pub(super) fn number(value: f64) -> String {
    let decimals = if value == 0.0 || value >= 10.0 { 0 } else { 2 };
    let text = format!("{value:.decimals$}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = part.trim_end_matches('0');
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 && whole.len() > 4 {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    if !part.is_empty() {
        out.push('.');
        out.push_str(part);
    }
    out
}

/// A latency with the unit that suits it.
pub(super) fn latency(us: f64) -> String {
    let (value, unit) = match us {
        us if us >= 1e6 => (us / 1e6, "s"),
        us if us >= 1e3 => (us / 1e3, "ms"),
        us => (us, "µs"),
    };
    let decimals = if value >= 100.0 || value == 0.0 { 0 } else { usize::from(value < 10.0) + 1 };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}\u{202f}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        for (max, expected) in [
            (237_000.0, vec![0.0, 50e3, 100e3, 150e3, 200e3, 250e3]),
            (3.0, vec![0.0, 1.0, 2.0, 3.0]),
            (0.0, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (1e9, vec![0.0, 2e8, 4e8, 6e8, 8e8, 1e9]),
        ] {
            let ticks = Scale::linear(max, (0.0, 1.0)).ticks();
            let same = ticks.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= b * 1e-9);
            assert!(same && ticks.len() == expected.len(), "{max}: {ticks:?}");
        }
        assert_eq!(Scale::linear_to(6.02, (0.0, 1.0)).ticks(), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(Scale::linear_to(6.02, (0.0, 1.0)).at(6.02), 1.0);
        assert_eq!(Scale::log((61.0, 3e6), (0.0, 1.0)).ticks().len(), 5, "100 to 1e6");
        let few = Scale::log((130.0, 900.0), (0.0, 1.0)).ticks();
        assert_eq!(few.len(), 4, "100, 200, 500, 1000: {few:?}");
    }

    #[test]
    fn values_lie_between_the_ends() {
        let scale = Scale::log((100.0, 10_000.0), (0.0, 10.0));
        assert!((scale.at(1000.0) - 5.0).abs() < 1e-9, "{scale:?}");
        assert_eq!((scale.at(0.0), scale.at(1e12)), (0.0, 10.0));
        let scale = Scale::linear(100.0, (10.0, 0.0));
        assert_eq!((scale.at(0.0), scale.at(50.0), scale.at(100.0)), (10.0, 5.0, 0.0));
        for (min, max) in [(0.0, 0.0), (f64::NAN, 1.0), (5.0, 5.0), (1e-300, 1e300)] {
            assert!(Scale::log((min, max), (0.0, 1.0)).at(3.0).is_finite(), "{min} {max}");
        }
    }

    #[test]
    fn labels_have_units_and_no_idle_digits() {
        assert_eq!(latency(50.0), "50\u{202f}µs");
        assert_eq!(latency(2e6), "2\u{202f}s");
        assert_eq!(latency(1234.0), "1.23\u{202f}ms");
        assert_eq!(latency(351_000.0), "351\u{202f}ms");
        assert_eq!(latency(0.0), "0\u{202f}µs");
        assert_eq!(number(237_412.0), "237\u{2009}412");
        assert_eq!(number(2000.0), "2000");
        assert_eq!(number(0.2), "0.2");
        assert_eq!(number(0.0), "0");
    }
}
