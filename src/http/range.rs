//! `Range: bytes=…` against a representation of a known length (RFC 9110 §14).
//!
//! | asked for | answer |
//! |---|---|
//! | another unit, or anything malformed | the whole, as if nothing had been asked (§14.2) |
//! | more than [`RANGES_MAX`] ranges | the whole: nobody needs that many (§17.15) |
//! | ranges of which none begins within the representation | 416 |
//! | one range, or several that are one when put together | 206 |
//! | several | 206, multipart, in the order asked for |
//!
//! Ranges that overlap or adjoin are put together, at the place of the first. So what is sent of a
//! representation is never more than the representation.

use super::response::push_decimal;

/// The most ranges of one request. Apache's default is 200; a reader of a document that is fetched
/// in parts asks for a dozen.
pub const RANGES_MAX: usize = 32;

/// Bytes of a representation, both ends included: `first <= last`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte, counted from 0.
    pub first: u64,
    /// The last byte.
    pub last: u64,
}

/// What a `Range` means for a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "it lives on the stack for as long as it is matched")]
pub enum Resolved {
    /// Nothing: the whole is sent.
    Whole,
    /// No byte of it is there: 416.
    Unsatisfiable,
    /// These parts are sent.
    Parts(Parts),
}

/// One part or more, none of which overlaps or adjoins another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    ranges: [ByteRange; RANGES_MAX],
    count: usize,
}

/// The value of `Content-Range` (RFC 9110 §14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// What is sent; `None` in a 416.
    pub range: Option<ByteRange>,
    /// Bytes of the whole.
    pub complete_bytes: u64,
}

impl ByteRange {
    /// How many bytes it spans; no more than `u64` holds, for no range reaches the last `u64`.
    pub const fn bytes(self) -> u64 {
        self.last - self.first + 1
    }

    /// The two share bytes, or nothing lies between them.
    const fn touches(self, other: Self) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }

    /// What spans both.
    fn with(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

impl Parts {
    const NONE: Self = Self { ranges: [ByteRange { first: 0, last: 0 }; RANGES_MAX], count: 0 };

    /// The parts, in the order in which they were first asked for.
    pub fn as_slice(&self) -> &[ByteRange] {
        &self.ranges[..self.count]
    }

    /// Adds a range, at the place of the first that it touches, or last. There is room.
    fn add(&mut self, mut range: ByteRange) {
        let mut place = self.count;
        let mut kept = 0;
        for at in 0..self.count {
            let other = self.ranges[at];
            if other.touches(range) {
                range = range.with(other);
                if place == self.count {
                    // Its place is kept; those after it move up to it.
                    place = kept;
                    kept += 1;
                }
            } else {
                self.ranges[kept] = other;
                kept += 1;
            }
        }
        if place == self.count {
            place = kept;
            kept += 1;
        }
        self.ranges[place] = range;
        self.count = kept;
    }
}

impl ContentRange {
    /// Appends the value.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes ");
        match self.range {
            Some(ByteRange { first, last }) => {
                push_decimal(out, first);
                out.push(b'-');
                push_decimal(out, last);
            }
            None => out.push(b'*'),
        }
        out.push(b'/');
        push_decimal(out, self.complete_bytes);
    }
}

/// What the value of a `Range` means for a representation of `complete_bytes`.
///
/// Of an empty one there is no part to be sent, and nothing to be refused either: it is sent whole.
pub fn resolve(value: &[u8], complete_bytes: u64) -> Resolved {
    let Some(list) = byte_ranges(value) else { return Resolved::Whole };
    if complete_bytes == 0 {
        return Resolved::Whole;
    }
    let mut parts = Parts::NONE;
    let mut asked = 0;
    for spec in list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        // A list may have empty members (RFC 9110 §5.6.1.2).
        if spec.is_empty() {
            continue;
        }
        asked += 1;
        match Spec::read(spec) {
            Some(spec) if asked <= RANGES_MAX => {
                spec.within(complete_bytes).into_iter().for_each(|range| parts.add(range));
            }
            _ => return Resolved::Whole,
        }
    }
    match (asked, parts.count) {
        (0, _) => Resolved::Whole,
        (_, 0) => Resolved::Unsatisfiable,
        _ => Resolved::Parts(parts),
    }
}

/// The list of ranges, if they are of bytes.
fn byte_ranges(value: &[u8]) -> Option<&[u8]> {
    let (unit, list) = value.split_at_checked(b"bytes=".len())?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(list)
}

/// One range as it is asked for (RFC 9110 §14.1.2). Numbers beyond 64 bits are the largest of those.
#[derive(Clone, Copy)]
enum Spec {
    /// `5-9`, or `5-` with the largest number as last.
    From(ByteRange),
    /// `-5`: that many bytes at the end.
    Suffix(u64),
}

impl Spec {
    fn read(spec: &[u8]) -> Option<Self> {
        let dash = memchr::memchr(b'-', spec)?;
        let (first, last) = (&spec[..dash], &spec[dash + 1..]);
        if first.is_empty() {
            return number(last).map(Self::Suffix);
        }
        let first = number(first)?;
        let last = if last.is_empty() { u64::MAX } else { number(last)? };
        (first <= last).then_some(Self::From(ByteRange { first, last }))
    }

    /// What there is of it. `complete_bytes` is not zero.
    fn within(self, complete_bytes: u64) -> Option<ByteRange> {
        let end = complete_bytes - 1;
        match self {
            Self::From(ByteRange { first, last }) => {
                (first <= end).then_some(ByteRange { first, last: last.min(end) })
            }
            Self::Suffix(0) => None,
            Self::Suffix(bytes) => {
                Some(ByteRange { first: complete_bytes.saturating_sub(bytes), last: end })
            }
        }
    }
}

/// `1*DIGIT`; what does not fit is the largest number that does.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        Some(value.saturating_mul(10).saturating_add(digit))
    })
}

#[cfg(test)]
mod tests;
