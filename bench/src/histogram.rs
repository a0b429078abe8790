//! The one layout of histograms of latencies: what is counted on a thread, and what a result keeps,
//! add up exactly only because both have it. It knows nothing of what is recorded.

use hdrhistogram::Histogram;

/// Longest latency told apart from longer ones: 60 s, in ns.
pub const NS_MAX: u64 = 60_000_000_000;

/// Significant decimal digits kept of each latency.
pub const DIGITS: u8 = 3;

/// An empty histogram of ns, of the layout that all have.
pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, NS_MAX, DIGITS)
        .expect("the bounds are constants which the histogram accepts")
}
