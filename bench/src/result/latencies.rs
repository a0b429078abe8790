//! Latencies: a histogram that is small in memory and exact to merge, and its form in a file.
//!
//! In memory it is the list of the buckets that hold something, since a result has one for each
//! second. In a file it is an HdrHistogram in its V2 compressed encoding
//! (HdrHistogram's `AbstractHistogram.encodeIntoCompressedByteBuffer`), base64, beside a readable
//! summary. The blob is the truth: the summary is reckoned anew when a file is read, and must agree.
//!
//! Every histogram has the same layout ([`NS_MAX`], [`DIGITS`]): adding two is adding counts, so that
//! merging loses nothing and does not depend on the order.

use crate::histogram::{self, DIGITS, NS_MAX};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// The widest range in which every ns has a bucket of its own, as a power of two: twice the
/// resolution that [`DIGITS`] asks for, 2 · 10³, rounded up.
const EXACT_BITS: u32 = 11;

/// Longest blob that is decoded, bytes: several times one that has something in every bucket.
const BLOB_MAX: usize = 1 << 18;

/// What a V2 encoding begins with: magic, length of the payload, offset, digits, lowest and highest
/// value, ratio.
const V2_HEAD: usize = 40;

/// Longest V2 payload: nine bytes for each of the layout's buckets.
const V2_PAYLOAD_MAX: usize = 9 * 28 * 1024;

/// Some latencies, to three significant digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Published", into = "Published")]
pub struct Latencies {
    /// Ordered by value, no count zero; the sum of the counts fits.
    buckets: Vec<Bucket>,
}

/// Latencies that are told apart no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The longest that belongs here, ns.
    pub ns: u64,
    /// How many were recorded; never 0 in [`Latencies`].
    pub count: u64,
}

impl Bucket {
    /// How many ns fall into it.
    fn width_ns(self) -> u64 {
        let bits = u64::BITS - self.ns.leading_zeros();
        1 << bits.saturating_sub(EXACT_BITS)
    }

    /// The middle of it, ns, rounded as HdrHistogram rounds it.
    fn middle_ns(self) -> u64 {
        self.ns + 1 - self.width_ns() + self.width_ns() / 2
    }
}

impl From<&Histogram<u64>> for Latencies {
    /// Takes in a histogram of ns of any layout; what is longer than [`NS_MAX`] counts as that.
    fn from(histogram: &Histogram<u64>) -> Self {
        let mut ours = histogram::empty();
        for step in histogram.iter_recorded() {
            ours.saturating_record_n(step.value_iterated_to(), step.count_at_value());
        }
        Self::of_layout(&ours)
    }
}

impl Latencies {
    fn of_layout(histogram: &Histogram<u64>) -> Self {
        let bucket = |step: hdrhistogram::iterators::IterationValue<u64>| Bucket {
            ns: step.value_iterated_to(),
            count: step.count_at_value(),
        };
        Self { buckets: histogram.iter_recorded().map(bucket).collect() }
    }

    /// The buckets that hold something, shortest first.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.count).sum()
    }

    /// Adds what was recorded elsewhere, exactly; `None` if there would be more than can be counted.
    #[must_use]
    pub fn and(&self, other: &Self) -> Option<Self> {
        self.count().checked_add(other.count())?;
        let (mut left, mut right) = (self.buckets.as_slice(), other.buckets.as_slice());
        let mut buckets = Vec::with_capacity(left.len().max(right.len()));
        while let (&[a, ref after_a @ ..], &[b, ref after_b @ ..]) = (left, right) {
            let ns = a.ns.min(b.ns);
            let mut count = 0;
            if a.ns == ns {
                (count, left) = (count + a.count, after_a);
            }
            if b.ns == ns {
                (count, right) = (count + b.count, after_b);
            }
            buckets.push(Bucket { ns, count });
        }
        buckets.extend_from_slice(left);
        buckets.extend_from_slice(right);
        Some(Self { buckets })
    }

    /// The latency that a share `quantile` of all does not exceed, ns, as HdrHistogram defines it; 0
    /// if nothing was recorded.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let needed = (quantile.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reaches = |bucket: &&Bucket| {
            seen += bucket.count;
            seen >= needed
        };
        self.buckets.iter().find(reaches).or(self.buckets.last()).map_or(0, |bucket| bucket.ns)
    }

    /// [`Self::quantile_ns`] in µs.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        us(self.quantile_ns(quantile))
    }

    /// The longest, µs; 0 if nothing was recorded.
    pub fn max_us(&self) -> f64 {
        us(self.buckets.last().map_or(0, |bucket| bucket.ns))
    }

    /// The mean, µs; 0 if nothing was recorded.
    pub fn mean_us(&self) -> f64 {
        let sum: f64 = self.buckets.iter().map(|b| b.middle_ns() as f64 * b.count as f64).sum();
        if self.is_empty() { 0.0 } else { sum / self.count() as f64 / 1e3 }
    }

    /// The histogram as the crate has it.
    pub fn to_histogram(&self) -> Histogram<u64> {
        let mut histogram = histogram::empty();
        self.buckets.iter().for_each(|b| histogram.saturating_record_n(b.ns, b.count));
        histogram
    }

    /// What is written beside the blob.
    fn summary(&self) -> Summary {
        Summary {
            count: self.count(),
            mean_us: self.mean_us(),
            p50_us: self.quantile_us(0.5),
            p90_us: self.quantile_us(0.9),
            p99_us: self.quantile_us(0.99),
            p999_us: self.quantile_us(0.999),
            p9999_us: self.quantile_us(0.9999),
            max_us: self.max_us(),
        }
    }

    fn encode(&self) -> String {
        let mut blob = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.to_histogram(), &mut blob)
            .expect("a vector takes every byte, and a histogram of this layout can be encoded");
        STANDARD.encode(blob)
    }

    fn decode(text: &str) -> Result<Self, BlobError> {
        if text.len() > BLOB_MAX {
            return Err(BlobError::Long);
        }
        let blob = STANDARD.decode(text).map_err(|_| BlobError::Base64)?;
        // Magic and length; the crate would trust the lengths within, and reserve what they say.
        let deflated = blob.get(8..).ok_or(BlobError::Deflate)?;
        let mut plain = Vec::new();
        ZlibDecoder::new(deflated)
            .take((V2_HEAD + V2_PAYLOAD_MAX) as u64 + 1)
            .read_to_end(&mut plain)
            .map_err(|_| BlobError::Deflate)?;
        let head: &[u8; V2_HEAD] = plain.first_chunk().ok_or(BlobError::Deflate)?;
        if head[8..32] != layout() {
            return Err(BlobError::Layout);
        }
        let payload = &plain[V2_HEAD..];
        let said = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        // Nine times 0xff is a run of 2^63 empty buckets, which the crate cannot negate.
        let endless = payload.windows(9).any(|bytes| bytes == [0xff; 9]);
        if payload.len() > V2_PAYLOAD_MAX || said as usize != payload.len() || endless {
            return Err(BlobError::Payload);
        }
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut plain.as_slice())
            .map_err(|_| BlobError::Payload)?;
        let latencies = Self::of_layout(&histogram);
        let total = latencies.buckets.iter().try_fold(0_u64, |sum, b| sum.checked_add(b.count));
        total.map(|_| latencies).ok_or(BlobError::Payload)
    }
}

/// ns in µs.
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Bytes 8 to 32 of a V2 encoding of the one layout: no offset, digits, lowest, highest value.
fn layout() -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[4..8].copy_from_slice(&u32::from(DIGITS).to_be_bytes());
    bytes[8..16].copy_from_slice(&1_u64.to_be_bytes());
    bytes[16..24].copy_from_slice(&NS_MAX.to_be_bytes());
    bytes
}

/// The readable figures beside a blob, µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Summary {
    /// How many were recorded.
    count: u64,
    /// The mean, from the middle of each bucket.
    mean_us: f64,
    /// The median.
    p50_us: f64,
    /// Nine in ten are not longer.
    p90_us: f64,
    /// 99 in a hundred are not longer.
    p99_us: f64,
    /// 999 in a thousand are not longer.
    p999_us: f64,
    /// 9 999 in ten thousand are not longer.
    p9999_us: f64,
    /// The longest.
    max_us: f64,
}

impl Summary {
    /// Equal but for how the decimals of a file are rounded.
    fn agrees_with(&self, other: &Self) -> bool {
        let figures =
            |s: &Self| [s.mean_us, s.p50_us, s.p90_us, s.p99_us, s.p999_us, s.p9999_us, s.max_us];
        let same = |(a, b): (f64, f64)| (a - b).abs() <= b.abs() * 1e-9;
        self.count == other.count && figures(self).into_iter().zip(figures(other)).all(same)
    }
}

/// Latencies as a file has them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Latencies")]
struct Published {
    /// What the blob says, for readers without HdrHistogram; checked against it when read.
    summary: Summary,
    /// The unit of the blob's values.
    unit: Unit,
    /// HdrHistogram, V2 compressed (deflate), base64: lowest 1, highest 60 000 000 000, three digits.
    hdr: String,
}

/// The unit of recorded values.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanosecond,
}

impl From<Latencies> for Published {
    fn from(latencies: Latencies) -> Self {
        Self { summary: latencies.summary(), unit: Unit::Nanosecond, hdr: latencies.encode() }
    }
}

impl TryFrom<Published> for Latencies {
    type Error = BlobError;

    fn try_from(published: Published) -> Result<Self, BlobError> {
        let latencies = Self::decode(&published.hdr)?;
        if !published.summary.agrees_with(&latencies.summary()) {
            return Err(BlobError::Summary);
        }
        Ok(latencies)
    }
}

/// Why a histogram of a file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum BlobError {
    #[error("a histogram is longer than {BLOB_MAX} bytes")]
    Long,
    #[error("a histogram is not base64")]
    Base64,
    #[error("a histogram cannot be inflated")]
    Deflate,
    #[error(
        "a histogram has another layout than lowest 1, highest {NS_MAX}, {DIGITS} digits, and could \
         not be merged exactly"
    )]
    Layout,
    #[error("a histogram's counts cannot be decoded")]
    Payload,
    #[error("a histogram does not agree with the summary beside it")]
    Summary,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = histogram::empty();
        values.iter().for_each(|&ns| histogram.saturating_record(ns));
        histogram
    }

    fn any_latencies() -> impl Strategy<Value = Vec<u64>> {
        let ns = prop_oneof![0_u64..5000, 0..NS_MAX, Just(NS_MAX), Just(u64::MAX)];
        prop::collection::vec(ns, 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn figures_are_those_of_hdrhistogram(values in any_latencies(), quantile in 0.0001..1.0_f64) {
            let theirs = histogram(&values);
            let ours = Latencies::from(&theirs);
            prop_assert_eq!(ours.count(), theirs.len());
            for q in [quantile, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0] {
                prop_assert_eq!(ours.quantile_ns(q), theirs.value_at_quantile(q));
            }
            prop_assert_eq!(ours.max_us(), theirs.max() as f64 / 1e3);
            let mean = theirs.mean() / 1e3;
            prop_assert!((ours.mean_us() - mean).abs() <= mean * 1e-9, "{} {mean}", ours.mean_us());
        }

        #[test]
        fn json_reads_back_as_it_was(values in any_latencies()) {
            let ours = Latencies::from(&histogram(&values));
            let json = serde_json::to_string(&ours).unwrap();
            prop_assert_eq!(serde_json::from_str::<Latencies>(&json).unwrap(), ours);
        }

        #[test]
        fn adding_is_recording_all_together(a in any_latencies(), b in any_latencies()) {
            let (left, right) = (Latencies::from(&histogram(&a)), Latencies::from(&histogram(&b)));
            let all = Latencies::from(&histogram(&[a, b].concat()));
            prop_assert_eq!(left.and(&right).unwrap(), all.clone());
            prop_assert_eq!(right.and(&left).unwrap(), all);
        }

        #[test]
        fn a_damaged_blob_is_refused_or_still_a_histogram(
            values in any_latencies(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let text = Latencies::from(&histogram(&values)).encode();
            let mut blob = STANDARD.decode(text).unwrap();
            let at = at.index(blob.len());
            blob[at] = byte;
            let _ = Latencies::decode(&STANDARD.encode(&blob));
            blob.truncate(at);
            prop_assert!(Latencies::decode(&STANDARD.encode(&blob)).is_err());
        }
    }

    /// A V2 compressed encoding of `head` and `payload`, with the length that the head says.
    fn blob(digits: u32, payload: &[u8], said: u32) -> String {
        use std::io::Write;
        let mut plain = 0x1c84_9313_u32.to_be_bytes().to_vec();
        plain.extend(said.to_be_bytes());
        plain.extend([0; 4]);
        plain.extend(digits.to_be_bytes());
        plain.extend(1_u64.to_be_bytes());
        plain.extend(NS_MAX.to_be_bytes());
        plain.extend(1.0_f64.to_be_bytes());
        plain.extend(payload);
        let mut deflater = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        deflater.write_all(&plain).unwrap();
        let deflated = deflater.finish().unwrap();
        let mut blob = 0x1c84_9314_u32.to_be_bytes().to_vec();
        blob.extend((deflated.len() as u32).to_be_bytes());
        blob.extend(deflated);
        STANDARD.encode(blob)
    }

    #[test]
    fn a_hostile_blob_costs_nothing() {
        assert_eq!(Latencies::decode(&blob(3, &[2], 1)).unwrap().count(), 1);
        assert_eq!(Latencies::decode(&blob(5, &[2], 1)), Err(BlobError::Layout));
        assert_eq!(Latencies::decode(&blob(3, &[2], u32::MAX)), Err(BlobError::Payload));
        assert_eq!(Latencies::decode(&blob(3, &[0xff; 9], 9)), Err(BlobError::Payload));
        let bomb = vec![0; 8 << 20];
        assert_eq!(Latencies::decode(&blob(3, &bomb, 8 << 20)), Err(BlobError::Payload));
        // Counts of 2^62 in five buckets: more than can be counted.
        let huge: Vec<u8> = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80].repeat(5);
        assert_eq!(Latencies::decode(&blob(3, &huge, 45)), Err(BlobError::Payload));
        assert_eq!(Latencies::decode(&"A".repeat(BLOB_MAX + 4)), Err(BlobError::Long));
        assert_eq!(Latencies::decode("%"), Err(BlobError::Base64));
    }

    #[test]
    fn a_summary_that_says_something_else_is_refused() {
        let json = serde_json::to_string(&Latencies::from(&histogram(&[1000, 2000]))).unwrap();
        let other = json.replace("\"count\":2", "\"count\":3");
        let error = serde_json::from_str::<Latencies>(&other).unwrap_err();
        assert!(error.to_string().contains("does not agree with the summary"), "{error}");
    }

    #[test]
    fn every_bucket_at_once_fits_a_blob() {
        let mut histogram = histogram::empty();
        let mut ns = 1;
        while ns < NS_MAX {
            histogram.saturating_record_n(ns, ns);
            ns = histogram.next_non_equivalent(ns);
        }
        let all = Latencies::from(&histogram);
        assert_eq!(Latencies::decode(&all.encode()), Ok(all));
    }
}
