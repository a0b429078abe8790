//! The curve of a SPECweb96-style run: response time over throughput at ten load points, and the
//! highest throughput that counts. Pure arithmetic.

use super::RunResult;
use super::window::Counts;

/// A load point counts if the server has done this share of what was asked of it: of the published
/// results, the last points reach 95.25 % (WORKLOAD.md §4).
pub const ACHIEVED_SHARE_MIN: f64 = 0.95;

/// One load point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Operations per second asked for.
    pub requested_per_s: f64,
    /// Operations per second done.
    pub achieved_per_s: f64,
    /// Mean time of an operation, ms.
    pub response_ms: f64,
}

impl Point {
    /// What was done of what was asked for.
    pub fn achieved_share(&self) -> f64 {
        if self.requested_per_s > 0.0 { self.achieved_per_s / self.requested_per_s } else { 0.0 }
    }

    /// Whether the point counts.
    pub fn counts(&self) -> bool {
        self.achieved_share() >= ACHIEVED_SHARE_MIN
    }
}

/// The curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The load points in the order in which they were measured; at least one.
    pub points: Vec<Point>,
}

impl Curve {
    /// Of a result; `None` if its workload is not measured so.
    pub fn of(result: &RunResult) -> Option<Self> {
        let counts = result.windows.iter().map(|window| window.counts());
        let points: Vec<Point> =
            counts.filter_map(point).filter(|_| result.load.workload == "web96").collect();
        (!points.is_empty()).then_some(Self { points })
    }

    /// The result: the point with the highest throughput of those that count.
    pub fn best(&self) -> Option<&Point> {
        let counting = self.points.iter().filter(|point| point.counts());
        counting.max_by(|a, b| a.achieved_per_s.total_cmp(&b.achieved_per_s))
    }
}

/// The load point of a window; `None` if nothing was planned for it.
fn point(counts: &Counts) -> Option<Point> {
    let schedule = counts.schedule.as_ref()?;
    Some(Point {
        requested_per_s: counts.per_s(schedule.planned),
        achieved_per_s: counts.per_s(counts.completed()),
        response_ms: counts.waiting().mean_us() / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::sample;

    /// A published SPECweb96 result: ops/s and response ms of its ten points.
    const PUBLISHED: [(f64, f64); 10] = [
        (2310.0, 4.8),
        (4620.0, 5.2),
        (6931.0, 5.8),
        (9241.0, 6.4),
        (11551.0, 7.1),
        (13861.0, 8.1),
        (16173.0, 9.3),
        (18483.0, 11.5),
        (20683.0, 13.1),
        (22007.0, 15.0),
    ];

    /// What it asked for: ten equal steps (WORKLOAD.md §4).
    const STEP_PER_S: f64 = 2310.4;

    fn published() -> Curve {
        let point = |(i, &(achieved_per_s, response_ms)): (usize, &(f64, f64))| Point {
            requested_per_s: STEP_PER_S * (i + 1) as f64,
            achieved_per_s,
            response_ms,
        };
        Curve { points: PUBLISHED.iter().enumerate().map(point).collect() }
    }

    #[test]
    fn the_published_result_is_the_last_point_that_counts() {
        let curve = published();
        assert!(curve.points[..8].iter().all(|point| (point.achieved_share() - 1.0).abs() < 4e-4));
        assert_eq!(format!("{:.1}", 100.0 * curve.points[8].achieved_share()), "99.5");
        assert_eq!(format!("{:.2}", 100.0 * curve.points[9].achieved_share()), "95.25");
        assert_eq!(
            curve.best().map(|point| (point.achieved_per_s, point.response_ms)),
            Some((22007.0, 15.0))
        );
        let mut short = published();
        short.points[9].achieved_per_s = 21_948.0;
        assert_eq!(short.best().map(|point| point.achieved_per_s), Some(20683.0));
    }

    /// Little's law: as many operations were under way as rate and time say, 11 to 330.
    #[test]
    fn the_published_points_keep_littles_law() {
        let law = |point: &Point| (point.achieved_per_s * point.response_ms / 1e3).round() as u64;
        let under_way: Vec<u64> = published().points.iter().map(law).collect();
        assert_eq!((under_way[0], under_way[9]), (11, 330));
        assert!(under_way.is_sorted());
    }

    #[test]
    fn a_result_gives_a_point_for_each_window() {
        let curve = Curve::of(&sample::web96()).unwrap();
        assert_eq!(curve.points.len(), 10);
        assert!(curve.points.iter().all(Point::counts));
        assert_eq!(curve.best().map(|point| point.requested_per_s), Some(2000.0));
        assert_eq!(Curve::of(&sample::open()), None);
    }
}
