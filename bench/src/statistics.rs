//! What differences between servers are worth: ratios of paired measurements with intervals.
//!
//! The samples are whole measurements, not requests: the requests of one measurement share their
//! minute, their process and their memory layout, so that a million of them say as much about the
//! next measurement as one. Two servers measured in one block are a pair, and what the machine did
//! to that block cancels in their ratio.
//!
//! - **Centre**: the geometric mean of the ratios, since it alone does not depend on which server is
//!   the divisor (Fleming and Wallace, "How not to lie with statistics", CACM 29(3), 1986).
//! - **Interval**: the percentile bootstrap of the mean of the logarithms (Efron and Tibshirani, "An
//!   Introduction to the Bootstrap", 1993, chapter 13) with [`RESAMPLES`] resamples from a seed,
//!   between *expanded* percentiles: the plain ones are too narrow for few samples, by the factor
//!   √((n−1)/n) and by normal in place of Student's quantiles, and are moved out by just that
//!   (Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69(4),
//!   2015, section 5.3).
//! - **Small samples**: no such interval leaves the range of its samples, and the range of n ratios
//!   holds their median with probability 1 − 2^(1−n) and no more (the sign test turned around). So
//!   five pairs give 93.75 % at best, and 95 % takes six: [`level_of`]. Fewer than [`PAIRS_MIN`]
//!   give no verdict.
//!
//! Intervals are for each figure by itself: of many true equalities one in twenty is shown as a
//! difference. Nothing here knows a server, a clock or a file.

use serde::{Deserialize, Serialize};

/// The probability that intervals are made for, where there are pairs enough.
pub const LEVEL: f64 = 0.95;

/// Resamples of the bootstrap.
pub const RESAMPLES: usize = 10_000;

/// With fewer pairs there is no verdict: four would be right in 87.5 % at best.
pub const PAIRS_MIN: usize = 5;

/// With fewer pairs than these an interval of [`LEVEL`] is not possible.
pub const PAIRS_FOR_LEVEL: usize = 6;

/// The standard normal quantile of (1 + [`LEVEL`]) / 2.
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;

/// The middle value, or the mean of the two middle ones; none of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some(f64::midpoint(sorted[low], sorted[high]))
}

/// How probable it is at best that an interval made from so many pairs holds the true ratio.
pub fn level_of(pairs: usize) -> f64 {
    let attainable = 1.0 - 2.0_f64.powi(1 - pairs.min(64) as i32);
    attainable.clamp(0.0, LEVEL)
}

/// One server's figure divided by another's, over the blocks in which both were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ratio {
    /// Geometric mean of the pairs' ratios.
    pub centre: f64,
    /// The least and the greatest of them.
    pub range: [f64; 2],
    /// Bootstrap interval of the centre; absent with fewer than [`PAIRS_MIN`] pairs.
    pub interval: Option<[f64; 2]>,
    /// How probable it is at best that the interval holds the true ratio; see the module.
    pub level: f64,
    /// How many pairs there are.
    pub pairs: usize,
}

impl Ratio {
    /// Of pairs of a figure and the divisor. Pairs with a figure that is not positive and finite
    /// have no ratio; none if none has.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>, seed: u64) -> Option<Self> {
        let sound = |value: f64| value.is_finite() && value > 0.0;
        let logarithms: Vec<f64> = pairs
            .into_iter()
            .filter(|&(figure, divisor)| sound(figure) && sound(divisor))
            .map(|(figure, divisor)| (figure / divisor).ln())
            .collect();
        if logarithms.is_empty() {
            return None;
        }
        let least = logarithms.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let interval = (logarithms.len() >= PAIRS_MIN).then(|| {
            let tail = expanded_tail(logarithms.len());
            bootstrap(&logarithms, tail, seed).map(f64::exp)
        });
        Some(Self {
            centre: mean(&logarithms).exp(),
            range: [least.exp(), greatest.exp()],
            interval,
            level: level_of(logarithms.len()),
            pairs: logarithms.len(),
        })
    }

    /// What the interval says of the dividend; nothing where there is none.
    pub fn verdict(&self, better: Better) -> Option<Verdict> {
        let (more, less) = match better {
            Better::More => (Verdict::Ahead, Verdict::Behind),
            Better::Less => (Verdict::Behind, Verdict::Ahead),
        };
        self.interval.map(|[low, high]| match () {
            () if low > 1.0 => more,
            () if high < 1.0 => less,
            () => Verdict::NoDifferenceShown,
        })
    }
}

/// Which way a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The more, the better: a rate.
    More,
    /// The less, the better: a time, memory.
    Less,
}

/// What an interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All of it is on the good side of 1.
    Ahead,
    /// All of it is on the bad side of 1.
    Behind,
    /// It holds 1. That is no proof of equality.
    NoDifferenceShown,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The means of resamples, cut off by `tail` at both ends.
fn bootstrap(samples: &[f64], tail: f64, seed: u64) -> [f64; 2] {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resample = || {
        let drawn = (0..samples.len()).map(|_| samples[random.usize(..samples.len())]);
        drawn.sum::<f64>() / samples.len() as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    means.sort_by(f64::total_cmp);
    let cut = (tail * RESAMPLES as f64) as usize;
    [means[cut], means[RESAMPLES - 1 - cut]]
}

/// The share of the bootstrap distribution that lies beyond each end of the interval:
/// Φ(−√(n/(n−1)) · t), t being Student's quantile for n − 1 degrees of freedom.
fn expanded_tail(samples: usize) -> f64 {
    let n = samples as f64;
    normal_tail((n / (n - 1.0)).sqrt() * student_quantile(n - 1.0))
}

/// Student's quantile of (1 + [`LEVEL`]) / 2 by the expansion in powers of one over the degrees of
/// freedom (Abramowitz and Stegun, 26.7.5); within 0.2 % from 4 degrees on.
fn student_quantile(freedom: f64) -> f64 {
    let z = NORMAL_QUANTILE;
    let [z3, z5, z7, z9] = [3, 5, 7, 9].map(|power| z.powi(power));
    let terms = [
        (z3 + z) / 4.0,
        (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0,
        (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0,
        (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * z) / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + z
}

/// The probability that a standard normal variable exceeds `z` ≥ 0 (Abramowitz and Stegun, 26.2.17;
/// off by 7.5e-8 at most).
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let coefficients =
        [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let polynomial = coefficients.iter().fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    polynomial * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// The trend of values in the order in which they were measured, as a share of their median from
/// the first to the last: Theil and Sen's slope, if it is more than [`DRIFT_MIN`] and Mann and
/// Kendall's exact test finds it at the level of 5 %, which takes five values.
pub fn drift(values: &[f64]) -> Option<f64> {
    let pairs = || (0..values.len()).flat_map(move |j| (0..j).map(move |i| (i, j)));
    let sign = |(i, j): (usize, usize)| values[j].total_cmp(&values[i]) as i64;
    let score = pairs().map(sign).sum::<i64>().unsigned_abs() as usize;
    let slopes: Vec<f64> = pairs().map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
    let change = median(&slopes)? * (values.len() - 1) as f64 / median(values)?;
    (trend_probability(values.len(), score) <= 0.05 && change.abs() >= DRIFT_MIN).then_some(change)
}

/// Trends smaller than this share are not worth a warning.
pub const DRIFT_MIN: f64 = 0.05;

/// How probable it is that a random order of `n` values has a Kendall score of at least `score` in
/// either direction.
fn trend_probability(n: usize, score: usize) -> f64 {
    // orders[k]: the share of the orders of the first values that have k inversions.
    let mut orders = vec![1.0];
    for values in 2..=n {
        let mut next = vec![0.0; orders.len() + values - 1];
        for (inversions, share) in orders.iter().enumerate() {
            for more in 0..values {
                next[inversions + more] += share / values as f64;
            }
        }
        orders = next;
    }
    let most = orders.len() - 1;
    let extreme = |inversions: &usize| most.abs_diff(2 * inversions) >= score;
    (0..=most).filter(extreme).map(|inversions| orders[inversions]).sum()
}

/// The medians of two groups that the values fall into: the widest gap has at least two values on
/// each side, is three times as wide as either group, and a twentieth of the median.
pub fn two_groups(values: &[f64]) -> Option<[f64; 2]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gap = |&cut: &usize| sorted[cut] - sorted[cut - 1];
    let cut = (1..sorted.len()).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let groups = sorted.split_at(cut);
    let width = |group: &[f64]| group[group.len() - 1] - group[0];
    let widest = width(groups.0).max(width(groups.1));
    let apart = groups.0.len().min(groups.1.len()) >= 2
        && gap(&cut) > 3.0 * widest
        && gap(&cut) > 0.05 * median(&sorted)?;
    apart.then_some([median(groups.0)?, median(groups.1)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Draws from distributions whose mean is 0.
    struct Draw(fastrand::Rng);

    impl Draw {
        fn normal(&mut self) -> f64 {
            let (radius, angle) = (1.0 - self.0.f64(), self.0.f64());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }

        /// Symmetric with heavy tails: the difference of two exponential variables.
        fn laplace(&mut self) -> f64 {
            self.skewed() - self.skewed()
        }

        fn skewed(&mut self) -> f64 {
            -(1.0 - self.0.f64()).ln() - 1.0
        }
    }

    /// How often intervals for ratios of `n` pairs with noise of 3 % hold the true ratio.
    fn coverage(n: usize, noise: fn(&mut Draw) -> f64) -> f64 {
        const RUNS: u64 = 600;
        const TRUE: f64 = 1.1;
        let mut draw = Draw(fastrand::Rng::with_seed(n as u64));
        let holds = (0..RUNS).filter(|&seed| {
            let pairs: Vec<_> =
                (0..n).map(|_| (TRUE * (0.03 * noise(&mut draw)).exp(), 1.0)).collect();
            let [low, high] = Ratio::of(pairs, seed).unwrap().interval.unwrap();
            low <= TRUE && TRUE <= high
        });
        holds.count() as f64 / RUNS as f64
    }

    #[test]
    fn intervals_hold_the_true_ratio_about_as_often_as_they_say() {
        // Three sigma of 600 runs are 2.7 %.
        for n in [5, 6, 10, 20] {
            let (least, most) = (level_of(n) - 0.035, level_of(n) + 0.027);
            let normal = coverage(n, Draw::normal);
            assert!((least..most).contains(&normal), "normal, {n} pairs: {normal}");
            let laplace = coverage(n, Draw::laplace);
            assert!((least..most).contains(&laplace), "Laplace, {n} pairs: {laplace}");
            // Known to be harder: skewed samples cover less, the fewer the less.
            let skewed = coverage(n, Draw::skewed);
            assert!((least - 0.07..most).contains(&skewed), "skewed, {n} pairs: {skewed}");
        }
    }

    #[test]
    fn equal_servers_are_rarely_told_apart_and_different_ones_mostly() {
        const RUNS: u64 = 400;
        let mut draw = Draw(fastrand::Rng::with_seed(3));
        let mut shown = |truth: f64| {
            let verdicts = (0..RUNS).map(|seed| {
                let pairs: Vec<_> =
                    (0..5).map(|_| (truth * (0.02 * draw.normal()).exp(), 1.0)).collect();
                Ratio::of(pairs, seed).unwrap().verdict(Better::More)
            });
            verdicts.filter(|&verdict| verdict == Some(Verdict::Ahead)).count() as f64 / RUNS as f64
        };
        // One in forty is expected on this side, and with five pairs one in thirty-two.
        let (equal, better) = (shown(1.0), shown(1.1));
        assert!(equal < 0.07 && better > 0.95, "{equal} {better}");
    }

    #[test]
    fn few_pairs_say_what_is_possible() {
        assert_eq!(level_of(0), 0.0);
        assert_eq!(level_of(1), 0.0);
        assert_eq!(level_of(4), 0.875);
        assert_eq!(level_of(PAIRS_MIN), 0.9375);
        assert_eq!(level_of(PAIRS_FOR_LEVEL), LEVEL);
        assert!(level_of(PAIRS_FOR_LEVEL - 1) < LEVEL);
        assert_eq!(level_of(usize::MAX), LEVEL);
        let four = Ratio::of([(2.0, 1.0); 4], 0).unwrap();
        assert_eq!((four.interval, four.pairs), (None, 4));
        assert_eq!(four.verdict(Better::More), None);
        let five = Ratio::of([(2.0, 1.0); 5], 0).unwrap();
        assert_eq!(five.verdict(Better::More), Some(Verdict::Ahead));
        assert_eq!(five.verdict(Better::Less), Some(Verdict::Behind));
    }

    #[test]
    fn pairs_without_a_ratio_are_left_out() {
        assert_eq!(Ratio::of([], 0), None);
        assert_eq!(Ratio::of([(1.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0)], 0), None);
        assert_eq!(Ratio::of([(1.0, 0.0), (3.0, 2.0)], 0).unwrap().pairs, 1);
    }

    #[test]
    fn quantiles_agree_with_the_tables() {
        for (freedom, quantile) in [(4.0, 2.776), (5.0, 2.571), (9.0, 2.262), (30.0, 2.042)] {
            assert!((student_quantile(freedom) / quantile - 1.0).abs() < 0.002, "{freedom}");
        }
        for (z, tail) in [(0.0, 0.5), (1.0, 0.158_655), (1.96, 0.024_998), (3.0, 0.001_350)] {
            assert!((normal_tail(z) - tail).abs() < 1e-6, "{z}");
        }
        assert!(expanded_tail(5) < expanded_tail(6) && expanded_tail(1000) < 0.025);
    }

    #[test]
    fn a_trend_is_told_from_a_jumble() {
        assert_eq!(trend_probability(5, 10), 2.0 / 120.0);
        assert!((trend_probability(5, 0) - 1.0).abs() < 1e-12);
        let falling = drift(&[100.0, 97.0, 95.0, 92.0, 90.0]).unwrap();
        assert!((falling + 10.0 / 95.0).abs() < 0.01, "{falling}");
        assert_eq!(drift(&[100.0, 99.9, 99.8, 99.7, 99.6]), None, "too small to matter");
        assert_eq!(drift(&[100.0, 90.0, 97.0, 92.0, 95.0]), None);
        assert_eq!(drift(&[4.0, 3.0, 2.0, 1.0]), None, "four in order are no proof");
        assert_eq!((drift(&[]), drift(&[1.0])), (None, None));
    }

    #[test]
    fn two_groups_are_seen_and_noise_is_not() {
        assert_eq!(two_groups(&[10.0, 20.1, 10.1, 20.0, 10.2]), Some([10.1, 20.05]));
        assert_eq!(two_groups(&[10.0, 10.1, 10.2, 20.0]), None, "one apart is an outlier");
        assert_eq!(two_groups(&[100.0, 100.1, 101.0, 101.1]), None, "too close to matter");
        assert_eq!((two_groups(&[]), two_groups(&[1.0])), (None, None));
        let mut draw = Draw(fastrand::Rng::with_seed(9));
        let noise =
            (0..1000).filter(|_| two_groups(&[(); 6].map(|()| 9.0 + draw.normal())).is_some());
        assert!(noise.count() < 100);
    }

    proptest! {
        #[test]
        fn an_interval_lies_within_the_range_and_holds_the_centre(
            ratios in prop::collection::vec(0.01_f64..100.0, PAIRS_MIN..30), seed: u64,
        ) {
            let ratio = Ratio::of(ratios.iter().map(|&ratio| (ratio, 1.0)), seed).unwrap();
            let [low, high] = ratio.interval.unwrap();
            let [least, greatest] = ratio.range;
            prop_assert!(least <= low * 1.000_001 && high <= greatest * 1.000_001);
            prop_assert!(low <= ratio.centre && ratio.centre <= high, "{ratio:?}");
        }

        #[test]
        fn the_divisor_does_not_decide(
            pairs in prop::collection::vec((1.0_f64..100.0, 1.0_f64..100.0), PAIRS_MIN..12),
        ) {
            let ratio = Ratio::of(pairs.iter().copied(), 1).unwrap();
            let inverse = Ratio::of(pairs.iter().map(|&(a, b)| (b, a)), 1).unwrap();
            prop_assert!((ratio.centre * inverse.centre - 1.0).abs() < 1e-9);
            let [low, high] = ratio.interval.unwrap();
            let [inverse_low, inverse_high] = inverse.interval.unwrap();
            prop_assert!((low * inverse_high - 1.0).abs() < 1e-9);
            prop_assert!((high * inverse_low - 1.0).abs() < 1e-9);
        }

        #[test]
        fn any_values_are_looked_at_without_a_panic(values in prop::collection::vec(any::<f64>(), 0..12)) {
            let _ = (drift(&values), two_groups(&values), median(&values));
            let _ = Ratio::of(values.iter().map(|&value| (value, 1.0)), 0);
        }
    }
}
