//! How many requests a connection carries: 70 % of the *requests* ride on connections that are kept,
//! each for 5 to 15 requests; the others have a connection of their own.

use std::ops::RangeInclusive;

use crate::random::Random;

/// Requests on a connection that is kept: every number has the same chance, 10 is the mean.
pub const KEPT_REQUESTS: RangeInclusive<u32> = 5..=15;

/// The share of the requests on connections that are kept.
pub const KEPT_REQUEST_SHARE: f64 = 0.70;

/// TCP connections for each request: 0.30, and 0.70 / 10.
pub const CONNECTIONS_PER_REQUEST: f64 = 0.37;

/// The share of the connections that are kept: 0.07 / (0.07 + 0.30).
pub const KEPT_CONNECTION_SHARE: f64 = 7.0 / 37.0;

/// How many requests the connection that is about to be opened is for.
#[inline]
pub fn requests_on_connection(random: &mut Random) -> u32 {
    if random.below(37) < 7 {
        let (least, most) = KEPT_REQUESTS.into_inner();
        least + random.below(most - least + 1)
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_follow_from_each_other() {
        let mean_kept = f64::from(KEPT_REQUESTS.sum::<u32>()) / 11.0;
        assert_eq!(mean_kept, 10.0);
        let kept = KEPT_REQUEST_SHARE / mean_kept;
        let single = 1.0 - KEPT_REQUEST_SHARE;
        assert!((kept + single - CONNECTIONS_PER_REQUEST).abs() < 1e-12);
        assert!((kept / (kept + single) - KEPT_CONNECTION_SHARE).abs() < 1e-12);
        assert_eq!(format!("{KEPT_CONNECTION_SHARE:.3}"), "0.189");
    }
}
