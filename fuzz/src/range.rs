//! Ranges: `http::range::resolve` against a set of bytes, and the multipart text around them.
//!
//! The input's first line is the length of a representation, the rest is the value of `Range`.

use onering::http::multipart::{Boundary, compose};
use onering::http::range::{RANGES_MAX, Resolved, resolve};

/// Representations up to this length are looked at byte by byte.
const SMALL_BYTES: u64 = 512;

/// Checks a length and a value.
pub fn check(input: &[u8]) {
    let (length, value) = super::first_line(input);
    let Some(complete_bytes) = str::from_utf8(length).ok().and_then(|text| text.parse().ok())
    else {
        return;
    };
    let said = resolve(value, complete_bytes);
    let asked = asked_for(value);
    let begins_within = |&(first, last): &(Option<u128>, Option<u128>)| match (first, last) {
        (Some(first), _) => first < u128::from(complete_bytes),
        (None, last) => last != Some(0),
    };
    match (&said, asked) {
        (Resolved::Whole, asked) => {
            assert!(asked.is_none() || complete_bytes == 0, "ignored: {asked:?}");
        }
        (Resolved::Unsatisfiable, Some(asked)) => {
            assert!(complete_bytes > 0 && !asked.iter().any(begins_within), "{asked:?}");
        }
        (Resolved::Parts(parts), Some(asked)) => {
            assert!(asked.iter().any(begins_within), "{asked:?}");
            are_apart_and_within(parts.as_slice(), complete_bytes);
            if complete_bytes <= SMALL_BYTES {
                are_what_was_asked_for(parts.as_slice(), &asked, complete_bytes);
            }
            are_composed(parts.as_slice(), complete_bytes);
        }
        (said, None) => panic!("no valid ranges, and {said:?}"),
    }
}

/// The ranges as they are written, first and last, of which one may be missing; `None` if they are
/// none, or too many.
fn asked_for(value: &[u8]) -> Option<Vec<(Option<u128>, Option<u128>)>> {
    let text = str::from_utf8(value).ok()?;
    let (unit, list) = text.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let is_space = |c: char| c.is_ascii_whitespace();
    let specs: Vec<_> =
        list.split(',').map(|spec| spec.trim_matches(is_space)).filter(|s| !s.is_empty()).collect();
    if specs.is_empty() || specs.len() > RANGES_MAX {
        return None;
    }
    specs
        .into_iter()
        .map(|spec| {
            let (first, last) = spec.split_once('-')?;
            let (first, last) = (number(first)?, number(last)?);
            match (first, last) {
                (None, None) => None,
                (Some(first), Some(last)) if first > last => None,
                both => Some(both),
            }
        })
        .collect()
}

/// The outer option: it is a number, or empty. What is too large for 64 bits is the largest of those.
fn number(digits: &str) -> Option<Option<u128>> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    Some(match (digits, significant) {
        ("", _) => None,
        (_, "") => Some(0),
        (_, digits) => {
            let largest = u128::from(u64::MAX);
            Some(digits.parse().map_or(largest, |number: u128| number.min(largest)))
        }
    })
}

fn are_apart_and_within(parts: &[onering::http::ByteRange], complete_bytes: u64) {
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|part| part.first);
    assert!(sorted.iter().all(|part| part.first <= part.last && part.last < complete_bytes));
    for pair in sorted.windows(2) {
        assert!(pair[0].last + 1 < pair[1].first, "they touch: {pair:?}");
    }
}

fn are_what_was_asked_for(
    parts: &[onering::http::ByteRange],
    asked: &[(Option<u128>, Option<u128>)],
    complete_bytes: u64,
) {
    let is_asked_for = |byte: u64, &(first, last): &(Option<u128>, Option<u128>)| {
        let (byte, complete_bytes) = (u128::from(byte), u128::from(complete_bytes));
        match (first, last) {
            (Some(first), last) => first <= byte && last.is_none_or(|last| byte <= last),
            (None, last) => byte + last.unwrap_or(0) >= complete_bytes,
        }
    };
    let part_of = |byte| parts.iter().position(|part| part.first <= byte && byte <= part.last);
    for byte in 0..complete_bytes {
        let is_wanted = asked.iter().any(|range| is_asked_for(byte, range));
        assert_eq!(part_of(byte).is_some(), is_wanted, "byte {byte} of {parts:?} for {asked:?}");
    }
    // The order is that in which a byte of each was first asked for.
    let mut order = Vec::new();
    for range in asked {
        let part = (0..complete_bytes).find(|&byte| is_asked_for(byte, range)).and_then(part_of);
        order.extend(part.filter(|part| !order.contains(part)));
    }
    assert!(order.iter().copied().eq(0..parts.len()), "{order:?}: {parts:?} for {asked:?}");
}

/// The text has a place for each part, and the length that was promised.
fn are_composed(parts: &[onering::http::ByteRange], complete_bytes: u64) {
    let boundary = Boundary::from_random(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    let (mut text, mut places) = (b"head".to_vec(), Vec::new());
    let promised = compose(&boundary, parts, "text/plain", complete_bytes, &mut text, &mut places);
    let sum = u128::from((text.len() - b"head".len()) as u64)
        + parts.iter().map(|part| u128::from(part.bytes())).sum::<u128>();
    let is_less = sum < u128::from(complete_bytes);
    assert_eq!(promised.map(u128::from), is_less.then_some(sum));
    assert_eq!(places.len(), parts.len());
    for (&place, part) in places.iter().zip(parts) {
        let fields = str::from_utf8(&text[..place]).expect("the text is ASCII");
        let range = format!("{}-{}/{complete_bytes}", part.first, part.last);
        assert!(fields.ends_with(&format!("\r\nContent-Range: bytes {range}\r\n\r\n")), "{fields}");
    }
}
