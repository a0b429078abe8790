//! Request targets: `http::target` against percent-encoding and a stack of segments.
//!
//! The input is a target.

use onering::http::TargetError;
use onering::http::target::{decode, split_query};
use percent_encoding::percent_decode;

/// Checks a target.
pub fn check(target: &[u8]) {
    let (path, query) = split_query(target);
    let mut rejoined = path.to_vec();
    if let Some(query) = query {
        rejoined.push(b'?');
        rejoined.extend_from_slice(query);
    }
    assert_eq!(rejoined, target);
    assert!(!path.contains(&b'?'));

    // What was in the buffer before does not matter.
    let mut decoded = b"left over/".to_vec();
    let said = decode(target, &mut decoded);
    assert_eq!(said.map(|()| decoded.clone()), expected(target, path));
    if said.is_ok() {
        is_harmless(&decoded);
    }
}

/// The same by other means.
fn expected(target: &[u8], path: &[u8]) -> Result<Vec<u8>, TargetError> {
    if target.contains(&b'#') {
        return Err(TargetError::Fragment);
    }
    if !path.is_empty() && path[0] != b'/' {
        return Err(TargetError::Form);
    }
    let mut stack: Vec<Vec<u8>> = Vec::new();
    let mut is_directory = true;
    for segment in path.split(|&byte| byte == b'/') {
        let name = name_of(segment)?;
        is_directory = matches!(&name[..], b"" | b"." | b"..");
        match &name[..] {
            b"" | b"." => {}
            b".." => drop(stack.pop().ok_or(TargetError::AboveRoot)?),
            _ => stack.push(name),
        }
    }
    let mut decoded = stack.join(&b'/');
    if is_directory && !decoded.is_empty() {
        decoded.push(b'/');
    }
    Ok(decoded)
}

/// The bytes that a segment stands for. Faults are named in the order in which they come.
fn name_of(segment: &[u8]) -> Result<Vec<u8>, TargetError> {
    for (at, _) in segment.iter().enumerate().filter(|&(_, &byte)| byte == b'%') {
        match segment.get(at + 1..at + 3) {
            Some(b"00") => return Err(TargetError::Nul),
            Some(b"2f" | b"2F") => return Err(TargetError::EncodedSlash),
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => {}
            _ => return Err(TargetError::Percent),
        }
    }
    Ok(percent_decode(segment).collect())
}

/// Nothing in it leads anywhere but downwards.
fn is_harmless(path: &[u8]) {
    assert!(!path.starts_with(b"/"));
    let below = path.strip_suffix(b"/").unwrap_or(path);
    if !below.is_empty() {
        for segment in below.split(|&byte| byte == b'/') {
            assert!(!matches!(segment, b"" | b"." | b".."), "{}", path.escape_ascii());
        }
    }
}
