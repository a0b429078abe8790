//! Conditional requests: the order of RFC 9110 §13.2.2 for GET and HEAD.
//!
//! | field | looked at if | holds if | otherwise |
//! |---|---|---|---|
//! | `If-Match` | it is there | `*`, or a listed tag is the current one, by strong comparison | 412 |
//! | `If-Unmodified-Since` | there is no `If-Match` | the date is valid and not before the last modification; or it is invalid | 412 |
//! | `If-None-Match` | it is there | not `*`, and no listed tag is the current one, by weak comparison | 304 |
//! | `If-Modified-Since` | there is no `If-None-Match` | the date is before the last modification; or it is invalid | 304 |
//! | `If-Range` | `Range` is there ([`range_applies`]) | the tag or the date is exactly the current one, and strong | 200 with the whole |
//!
//! It is asked only where the answer without a condition would be 200 (§13.2.1). What is malformed
//! never matches: the answer is the safe one, which sends the whole or nothing.

use super::date;
use super::head::{Field, FieldLines};

/// What is known of the current representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The entity tag, quotes and weakness mark included.
    pub etag: Option<&'a [u8]>,
    /// When it was last modified.
    pub modified: Option<Modified>,
}

/// When a representation was last modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modified {
    /// In seconds since the Unix epoch.
    pub unix_s: u64,
    /// The date is a strong validator (RFC 9110 §8.8.2.2): nobody was told of it before its second
    /// was over, so it names one version.
    pub strong: bool,
}

/// What the preconditions say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Answer as if there were none.
    Perform,
    /// 304: the client has what it asks for.
    NotModified,
    /// 412: the client wants none other than what is no more.
    Failed,
}

/// Judges all preconditions but `If-Range`. `now_s` is the Unix time, for two-digit years.
pub fn evaluate(fields: &FieldLines<'_>, current: &Validators<'_>, now_s: u64) -> Verdict {
    let date = |field| fields.single(field).and_then(|value| date::parse(value, now_s));

    if fields.has(Field::IfMatch) {
        if !lists_tag(fields, Field::IfMatch, current.etag, strongly_equal) {
            return Verdict::Failed;
        }
    } else if let Some(date_s) = date(Field::IfUnmodifiedSince)
        && current.modified.is_some_and(|modified| modified.unix_s > date_s)
    {
        return Verdict::Failed;
    }

    if fields.has(Field::IfNoneMatch) {
        if lists_tag(fields, Field::IfNoneMatch, current.etag, weakly_equal) {
            return Verdict::NotModified;
        }
    } else if let Some(date_s) = date(Field::IfModifiedSince)
        && current.modified.is_some_and(|modified| modified.strong && modified.unix_s <= date_s)
    {
        return Verdict::NotModified;
    }
    Verdict::Perform
}

/// Whether a `Range` is to be honoured as far as `If-Range` is concerned (RFC 9110 §13.1.5).
pub fn range_applies(fields: &FieldLines<'_>, current: &Validators<'_>, now_s: u64) -> bool {
    if !fields.has(Field::IfRange) {
        return true;
    }
    match fields.single(Field::IfRange) {
        Some(tag) if tag.starts_with(b"\"") => {
            current.etag.is_some_and(|current| strongly_equal(tag, current))
        }
        Some(value) => date::parse(value, now_s).is_some_and(|date_s| {
            current.modified.is_some_and(|modified| modified.strong && modified.unix_s == date_s)
        }),
        None => false,
    }
}

/// Whether the lines of a field are `*`, or list a tag that is `equal` to the current one.
fn lists_tag(
    fields: &FieldLines<'_>,
    field: Field,
    current: Option<&[u8]>,
    equal: fn(&[u8], &[u8]) -> bool,
) -> bool {
    fields.values(field).any(|value| {
        value == b"*"
            || current.is_some_and(|current| EntityTags(value).any(|tag| equal(tag, current)))
    })
}

/// RFC 9110 §8.8.3.2: both are strong, and equal.
fn strongly_equal(tag: &[u8], other: &[u8]) -> bool {
    tag == other && tag.starts_with(b"\"")
}

/// RFC 9110 §8.8.3.2: equal, be they weak or not.
fn weakly_equal(tag: &[u8], other: &[u8]) -> bool {
    opaque(tag) == opaque(other)
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The entity tags of a list (RFC 9110 §8.8.3), up to the first thing that is none: where a quote is
/// missing, nobody knows which bytes are between quotes.
struct EntityTags<'a>(&'a [u8]);

impl<'a> Iterator for EntityTags<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let between = |byte: &u8| matches!(byte, b',' | b' ' | b'\t');
        let start = self.0.iter().position(|byte| !between(byte))?;
        let list = std::mem::take(&mut self.0);
        let list = &list[start..];
        let quoted = opaque(list).strip_prefix(b"\"")?;
        // A comma may be part of a tag; a space may not.
        let end = quoted.iter().position(|byte| !matches!(byte, 0x21 | 0x23..=0x7e | 0x80..))?;
        let (b'"', rest) = (quoted[end], &quoted[end + 1..]) else { return None };
        let tag = &list[..list.len() - rest.len()];
        if rest.trim_ascii_start().first().is_none_or(|&byte| byte == b',') {
            self.0 = rest;
        }
        Some(tag)
    }
}

#[cfg(test)]
mod tests;
