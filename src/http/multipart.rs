//! `multipart/byteranges`: the text around several parts of one representation (RFC 9110 §14.6).
//!
//! It is written before the first byte is sent, so that `Content-Length` is exact. What makes the
//! boundary up is the caller's: it must be one that nobody who wrote the file can have guessed.

use super::range::{ByteRange, ContentRange};

/// What stands between parts: 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary([u8; 32]);

impl Boundary {
    /// The boundary that spells these bits, which are to be random.
    pub fn from_random(bits: u128) -> Self {
        Self(std::array::from_fn(|at| b"0123456789abcdef"[(bits >> (4 * at)) as usize & 0xf]))
    }

    /// The value of `Content-Type` of the whole response.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.0.escape_ascii())
    }

    /// Appends what stands in front of a part: the end of the one before, if there is one, and the
    /// part's own fields.
    pub fn write_part(
        &self,
        first: bool,
        content_type: &str,
        content_range: ContentRange,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(if first { b"--" } else { b"\r\n--" });
        out.extend_from_slice(&self.0);
        out.extend_from_slice(b"\r\nContent-Type: ");
        out.extend_from_slice(content_type.as_bytes());
        out.extend_from_slice(b"\r\nContent-Range: ");
        content_range.write(out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends what stands behind the last part.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.0);
        out.extend_from_slice(b"--\r\n");
    }
}

/// Appends the text around `parts` to `text`, and the place in it where each part's bytes belong to
/// `places`. Returns the length of the whole body, or `None` if that would not be less than sending
/// the representation.
pub fn compose(
    boundary: &Boundary,
    parts: &[ByteRange],
    content_type: &str,
    complete_bytes: u64,
    text: &mut Vec<u8>,
    places: &mut Vec<usize>,
) -> Option<u64> {
    let before = text.len();
    for (at, &range) in parts.iter().enumerate() {
        let content_range = ContentRange { range: Some(range), complete_bytes };
        boundary.write_part(at == 0, content_type, content_range, text);
        places.push(text.len());
    }
    boundary.write_end(text);
    let text_bytes = (text.len() - before) as u64;
    parts
        .iter()
        .try_fold(text_bytes, |sum, range| sum.checked_add(range.bytes()))
        .filter(|&bytes| bytes < complete_bytes)
}
