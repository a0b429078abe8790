//! A request target becomes a path beneath the document root, once (RFC 3986 §2.1, §5.2.4, §6.2.2).
//!
//! The policy:
//!
//! | in the target | becomes |
//! |---|---|
//! | `?` and what follows | cut off: the query does not select a file |
//! | `%41` | its byte, decoded once: `%2541` is the name `%41` |
//! | `%` without two hex digits | 400 |
//! | `%00` | 400: no file name has it, and C code behind us would end there |
//! | `%2F` | 404: a byte of a name that no file can have, never a separator |
//! | `.` and `..`, encoded or not | resolved on the text, before any file system is asked |
//! | `..` above the root | 400 |
//! | `//` | `/`: empty segments are merged, as nginx does by default |
//! | `\` | a byte like any other |
//! | `#` | 400: a fragment is never sent (RFC 9110 §7.1) |
//! | bytes above 127, in whatever encoding | themselves: file names are bytes |

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode};

use super::Status;

/// What a path must not carry as itself in a URI: all but `pchar` and `/` (RFC 3986 §3.3).
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'/');

/// What a query that is encoded already must still not carry (RFC 3986 §3.4).
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// Why a target names no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetError {
    /// It does not begin with `/`.
    Form,
    /// A `%` without two hexadecimal digits.
    Percent,
    /// An encoded NUL.
    Nul,
    /// A `#`.
    Fragment,
    /// `..` leads above the root.
    AboveRoot,
    /// An encoded `/`.
    EncodedSlash,
}

impl TargetError {
    /// What the peer is told.
    pub const fn status(self) -> Status {
        match self {
            Self::Form | Self::Percent | Self::Nul | Self::Fragment | Self::AboveRoot => {
                Status::BAD_REQUEST
            }
            Self::EncodedSlash => Status::NOT_FOUND,
        }
    }

    /// The name under which it is counted and logged.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Percent => "percent",
            Self::Nul => "nul",
            Self::Fragment => "fragment",
            Self::AboveRoot => "above_root",
            Self::EncodedSlash => "encoded_slash",
        }
    }
}

/// Splits a target into its path and its query, `?` with neither.
pub fn split_query(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    }
}

/// Writes the path that `target` names, relative to the document root, into `out`, in place of
/// what was there.
///
/// It has no slash at its start, none doubled, and no segment `.` or `..`. A slash at its end asks
/// for a directory; so does the empty path, which is the root itself. After an error `out` holds
/// nothing of use.
pub fn decode(target: &[u8], out: &mut Vec<u8>) -> Result<(), TargetError> {
    out.clear();
    if memchr::memchr(b'#', target).is_some() {
        return Err(TargetError::Fragment);
    }
    let path = match split_query(target).0 {
        [b'/', path @ ..] => path,
        // An absolute URI without a path means the root (RFC 9110 §4.2.3).
        path @ [] => path,
        _ => return Err(TargetError::Form),
    };
    // `out` is a run of whole segments here, each with its slash.
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let start = out.len();
        decode_segment(segment, out)?;
        match out[start..] {
            [] | [b'.'] => out.truncate(start),
            [b'.', b'.'] => out.truncate(parent(&out[..start])?),
            _ if segments.peek().is_some() => out.push(b'/'),
            _ => {}
        }
    }
    Ok(())
}

/// Appends the `Location` of the directory at `path`, which is as [`decode`] gives it, without its
/// slash; `query` is as it was received.
///
/// It is a reference with an absolute path: the client keeps the scheme and the authority that it
/// used, which we may not know behind a proxy. It never begins with `//` or `/\\`, which would
/// lead to another host.
pub fn write_directory_location(path: &[u8], query: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(b'/');
    percent_encode(path, PATH).for_each(|piece| out.extend_from_slice(piece.as_bytes()));
    out.push(b'/');
    if let Some(query) = query {
        out.push(b'?');
        percent_encode(query, QUERY).for_each(|piece| out.extend_from_slice(piece.as_bytes()));
    }
}

/// Length of `path`, which ends in a slash or is the root, without its last segment.
fn parent(path: &[u8]) -> Result<usize, TargetError> {
    let [above @ .., _slash] = path else { return Err(TargetError::AboveRoot) };
    Ok(memchr::memrchr(b'/', above).map_or(0, |slash| slash + 1))
}

fn decode_segment(segment: &[u8], out: &mut Vec<u8>) -> Result<(), TargetError> {
    let mut rest = segment;
    while let Some(percent) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..percent]);
        let &[high, low, ref after @ ..] = &rest[percent + 1..] else {
            return Err(TargetError::Percent);
        };
        let (Some(high), Some(low)) = (hex(high), hex(low)) else {
            return Err(TargetError::Percent);
        };
        match high << 4 | low {
            b'\0' => return Err(TargetError::Nul),
            b'/' => return Err(TargetError::EncodedSlash),
            byte => out.push(byte),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}
