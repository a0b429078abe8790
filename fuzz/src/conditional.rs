//! Conditional requests: `http::conditional` against the steps of RFC 9110 §13.2.2.
//!
//! The input's first line says what there is: the seconds of the last modification or `-`, `strong`
//! or `weak`, and an entity tag or `-`, with one space between. The rest is field lines, each ending
//! in LF.

use onering::http::conditional::{Modified, Validators, Verdict, evaluate, range_applies};
use onering::http::date;

/// 2026-11-30
const NOW_S: u64 = 1_796_000_000;

/// Checks validators and field lines.
pub fn check(input: &[u8]) {
    let (line, lines) = super::first_line(input);
    let Some(current) = validators(line) else { return };
    super::with_head(lines, |head| {
        let asked = Asked { lines };
        assert_eq!(evaluate(&head.fields, &current, NOW_S), asked.verdict(&current));
        assert_eq!(range_applies(&head.fields, &current, NOW_S), asked.range_applies(&current));
    });
}

fn validators(line: &[u8]) -> Option<Validators<'_>> {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let (seconds, strength, tag) = (words.next()?, words.next()?, words.next()?);
    let modified = match seconds {
        b"-" => None,
        _ => Some(Modified {
            unix_s: str::from_utf8(seconds).ok()?.parse().ok()?,
            strong: strength == b"strong",
        }),
    };
    let etag = match tag {
        b"-" => None,
        // One that a server would make.
        _ => Some(tag).filter(|tag| tags(tag).0.len() == 1 && tags(tag).0[0] == *tag).map(Some)?,
    };
    Some(Validators { etag, modified })
}

struct Asked<'a> {
    lines: &'a [u8],
}

impl Asked<'_> {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        super::values_of(self.lines, name)
    }

    fn date(&self, name: &str) -> Option<u64> {
        match self.values(name)[..] {
            [value] => date::parse(value, NOW_S),
            _ => None,
        }
    }

    fn verdict(&self, current: &Validators<'_>) -> Verdict {
        // Steps 1 and 2
        let if_match = self.values("if-match");
        let unmodified_since = self.date("if-unmodified-since");
        let is_as_wanted = if if_match.is_empty() {
            match (unmodified_since, current.modified) {
                (Some(date_s), Some(modified)) => modified.unix_s <= date_s,
                _ => true,
            }
        } else {
            lists(&if_match, current.etag, |tag, other| tag == other && !tag.starts_with(b"W/"))
        };
        if !is_as_wanted {
            return Verdict::Failed;
        }
        // Steps 3 and 4
        let if_none_match = self.values("if-none-match");
        let is_known = if if_none_match.is_empty() {
            match (self.date("if-modified-since"), current.modified) {
                (Some(date_s), Some(modified)) => modified.strong && modified.unix_s <= date_s,
                _ => false,
            }
        } else {
            let without_mark = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
            lists(&if_none_match, current.etag, |tag, other| {
                without_mark(tag) == without_mark(other)
            })
        };
        if is_known { Verdict::NotModified } else { Verdict::Perform }
    }

    /// Step 5
    fn range_applies(&self, current: &Validators<'_>) -> bool {
        let value = match self.values("if-range")[..] {
            [] => return true,
            [value] => value,
            _ => return false,
        };
        if value.starts_with(b"\"") {
            return current.etag == Some(value);
        }
        match (date::parse(value, NOW_S), current.modified) {
            (Some(date_s), Some(Modified { unix_s, strong: true })) => date_s == unix_s,
            _ => false,
        }
    }
}

fn lists(values: &[&[u8]], current: Option<&[u8]>, equal: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    let has = |value: &&[u8], current: &[u8]| tags(value).0.iter().any(|tag| equal(tag, current));
    values.contains(&&b"*"[..])
        || current.is_some_and(|current| values.iter().any(|value| has(value, current)))
}

/// The entity tags that a list begins with, and what follows them.
fn tags(list: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut tags = Vec::new();
    let mut rest = list;
    loop {
        while let [b',' | b' ' | b'\t', after @ ..] = rest {
            rest = after;
        }
        let opening = if rest.starts_with(b"W/\"") { 2 } else { 0 };
        if rest.get(opening) != Some(&b'"') {
            return (tags, rest);
        }
        let inside = &rest[opening + 1..];
        let Some(bytes) = inside.iter().position(|&byte| byte == b'"') else {
            return (tags, rest);
        };
        let is_etagc = |&byte: &u8| byte > b' ' && byte != 0x7f;
        if !inside[..bytes].iter().all(is_etagc) {
            return (tags, rest);
        }
        let (tag, after) = rest.split_at(opening + 1 + bytes + 1);
        tags.push(tag);
        rest = after;
        if !matches!(super::trim(rest), [] | [b',', ..]) {
            return (tags, rest);
        }
    }
}
