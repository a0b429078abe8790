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
//! | bytes above 127 | themselves, for file names are bytes; what is not UTF-8 must be percent-encoded, or the head is refused |
//!
//! # Why `%2F` is no slash
//!
//! RFC 3986 §2.2 tells an encoded reserved character from a plain one. A server that takes `%2F` for a
//! slash disagrees with each proxy in front of it that does not about which directory is asked for,
//! and a rule of that proxy is got round. No file has a slash in its name, so the target means nothing
//! that could exist: 404, as any name that does not; and nothing is to be gained by asking for it in
//! another way. In a query it is a byte like any other.
//!
//! # Why dot segments are resolved here
//!
//! Browsers and proxies resolve `.` and `..` before they send a target, encoded ones too (WHATWG URL
//! §4.5), so what is left means the same as it does to them: `/a/../b` is `/b`, whether there is a
//! directory `a` or a link of that name that leads elsewhere. Segments are told apart before they are
//! decoded, and decoded once: nothing that becomes a dot or a slash later is looked at again. What
//! leads above the root is refused rather than cut off, since nobody asks for it by mistake.
//!
//! # Odd names
//!
//! Every file name has a spelling: its bytes, percent-encoded. `a?b` is `/a%3Fb`, `50%` is `/50%25`,
//! `#` is `/%23`; a name with a newline or without any encoding is `/new%0Aline`, `/%FF`. Plain
//! characters that no URI has, save `#`, `?` and `%`, are taken for themselves, since they can mean
//! nothing else. A name is decoded once, so `/%2525` is `%25` and never `%`. Two targets mean one file
//! only if they differ in percent-encoding, in dot segments or in doubled slashes; all of them are
//! answered as that one file, by whatever rules there are for its path.

use super::Status;

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

/// Splits a target at its first `?` into the path and the query, and leaves the mark out.
pub fn split_query(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    }
}

/// Refuses a query that has a fragment behind it: a `#` is no byte of a query (RFC 3986 §3.4).
pub fn check_query(query: &[u8]) -> Result<(), TargetError> {
    match memchr::memchr(b'#', query) {
        Some(_) => Err(TargetError::Fragment),
        None => Ok(()),
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
    let (path, query) = split_query(target);
    check_query(query.unwrap_or_default())?;
    if memchr::memchr(b'#', path).is_some() {
        return Err(TargetError::Fragment);
    }
    let path = match path {
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

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};
    use proptest::prelude::*;

    use super::{TargetError, decode};
    use crate::http::Status;

    fn decoded(target: &[u8]) -> Result<Vec<u8>, TargetError> {
        let mut out = b"what was there".to_vec();
        decode(target, &mut out).map(|()| out)
    }

    #[test]
    fn targets_and_their_paths() {
        for (target, path) in [
            // The root, however it is written.
            ("/", ""),
            ("", ""),
            ("?x", ""),
            ("/?/../../etc/passwd", ""),
            ("//", ""),
            ("/.", ""),
            ("/dir/..", ""),
            // Files and directories.
            ("/index.html", "index.html"),
            ("/dir/", "dir/"),
            ("/dir/index.html", "dir/index.html"),
            ("/index.html/", "index.html/"),
            // RFC 3986 §2.1: percent-encoding, decoded once.
            ("/index%2Ehtml", "index.html"),
            ("/index%2ehtml", "index.html"),
            ("/sp%20ace.txt", "sp ace.txt"),
            ("/pct%2541.txt", "pct%41.txt"),
            ("/sp+ace.txt", "sp+ace.txt"),
            ("/index.html%20", "index.html "),
            ("/%C3%A9", "\u{e9}"),
            ("/\u{e9}", "\u{e9}"),
            ("/a%3Fb", "a?b"),
            ("/a%23b", "a#b"),
            ("/dir%0d%0aX:%201", "dir\r\nX: 1"),
            // RFC 3986 §3.4: the query.
            ("/index.html?", "index.html"),
            ("/index.html?!$&'()*+,;=:@/?%zz", "index.html"),
            // RFC 3986 §5.2.4: dot segments.
            ("/dir/../index.html", "index.html"),
            ("/dir/%2e%2E/index.html", "index.html"),
            ("/dir/.%2e/a", "a"),
            ("/index.html/../alpha.txt", "alpha.txt"),
            ("/a/b/../../c", "c"),
            ("/a/b/..", "a/"),
            ("/dir/.", "dir/"),
            ("/./dir/./a", "dir/a"),
            ("/...", "..."),
            ("/.../....//a", ".../..../a"),
            ("/dir/..;/a", "dir/..;/a"),
            ("/..\\..\\etc", "..\\..\\etc"),
            ("/.hidden", ".hidden"),
            // Empty segments are merged; they are no names that `..` could take away.
            ("//index.html", "index.html"),
            ("//etc/passwd", "etc/passwd"),
            ("/a//b///", "a/b/"),
            ("/a//../b", "b"),
        ] {
            assert_eq!(decoded(target.as_bytes()).as_deref(), Ok(path.as_bytes()), "{target}");
        }
        assert_eq!(decoded(b"/%c0%af%ff").as_deref(), Ok(&b"\xc0\xaf\xff"[..]));
    }

    #[test]
    fn targets_without_a_path() {
        use TargetError::{AboveRoot, EncodedSlash, Form, Fragment, Nul, Percent};
        for (target, error) in [
            ("*", Form),
            ("index.html", Form),
            ("../etc/passwd", Form),
            ("localhost:80", Form),
            ("/%", Percent),
            ("/%4", Percent),
            ("/%zz", Percent),
            ("/%4/1", Percent),
            ("/%4?1", Percent),
            ("/%+1", Percent),
            ("/%%41", Percent),
            ("/index.html%00.txt", Nul),
            ("/dir%00/", Nul),
            ("/a#b", Fragment),
            ("/a?b#c", Fragment),
            ("/..", AboveRoot),
            ("/../index.html", AboveRoot),
            ("/%2e%2e/index.html", AboveRoot),
            ("//../index.html", AboveRoot),
            ("/./../index.html", AboveRoot),
            ("/dir/../../index.html", AboveRoot),
            ("/../dir/index.html", AboveRoot),
            ("/dir%2Findex.html", EncodedSlash),
            ("/..%2f..%2fetc/passwd", EncodedSlash),
            ("/%2e%2e%2fetc/passwd", EncodedSlash),
        ] {
            assert_eq!(decoded(target.as_bytes()), Err(error), "{target}");
        }
    }

    /// The right spelling of a name, and what others are.
    #[test]
    fn odd_names_have_one_spelling() {
        for (name, right, others) in [
            (&b"50%"[..], "/50%25", &["/50%", "/50%2525"][..]),
            (b"%41", "/%2541", &["/%41", "/%252541"]),
            (b"a?b", "/a%3Fb", &["/a?b", "/a%253Fb"]),
            (b"a#b", "/a%23b", &["/a#b", "/a%2523b"]),
            (b"new\nline", "/new%0Aline", &["/new%5Cnline", "/new%250Aline", "/newline"]),
            (b"\xff", "/%FF", &["/%C3%BF", "/%25FF"]),
            (b"a b", "/a%20b", &["/a+b", "/a%2520b"]),
            (b"a+b", "/a+b", &["/a%20b", "/a%252Bb"]),
            (b"..;", "/..;", &["/..", "/..%3B/.."]),
        ] {
            assert_eq!(decoded(right.as_bytes()).as_deref(), Ok(name), "{right}");
            for other in others {
                assert_ne!(decoded(other.as_bytes()).as_deref(), Ok(name), "{other}");
            }
        }
    }

    #[test]
    fn errors_have_their_statuses() {
        assert_eq!(TargetError::Percent.status(), Status::BAD_REQUEST);
        assert_eq!(TargetError::AboveRoot.status(), Status::BAD_REQUEST);
        assert_eq!(TargetError::EncodedSlash.status(), Status::NOT_FOUND);
    }

    /// Targets that are dense in what the policy is about.
    fn targets() -> impl Strategy<Value = Vec<u8>> {
        let pieces = prop::sample::select(vec![
            "/", "/", "..", ".", "%2e", "%2E", "a", "b.c", "%41", "%2f", "%00", "%", "%4", "?",
            "#", "\\", "\u{e9}", "%ff", "%5C",
        ]);
        prop::collection::vec(pieces, 0..16)
            .prop_map(|pieces| format!("/{}", pieces.concat()).into_bytes())
    }

    proptest! {
        #[test]
        fn nothing_panics(target in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = decoded(&target);
        }

        #[test]
        fn no_path_leaves_the_root(target in targets()) {
            if let Ok(path) = decoded(&target) {
                prop_assert!(!path.contains(&b'\0'));
                let mut segments: Vec<_> = path.split(|&byte| byte == b'/').collect();
                // What follows a slash at the end, and the root itself.
                if segments.last().is_some_and(|last| last.is_empty()) {
                    segments.pop();
                }
                for segment in segments {
                    prop_assert!(!matches!(segment, b"" | b"." | b".."), "{:?}", path);
                }
            }
        }

        /// Every name has a spelling, and it is the name's alone.
        #[test]
        fn a_name_is_reached_by_its_encoding(
            name in prop::collection::vec(1_u8.., 1..20),
            other in prop::collection::vec(1_u8.., 1..20),
        ) {
            let may_be = |name: &[u8]| !name.contains(&b'/') && name != b"." && name != b"..";
            prop_assume!(may_be(&name) && may_be(&other));
            let spelling = |name: &[u8]| format!("/{}", percent_encode(name, NON_ALPHANUMERIC));
            prop_assert_eq!(decoded(spelling(&name).as_bytes()), Ok(name.clone()));
            prop_assert_eq!(spelling(&name) == spelling(&other), name == other);
        }

        /// Whatever spelling was used, the file's own one leads to the same path.
        #[test]
        fn the_encoding_of_a_path_leads_back_to_it(target in targets()) {
            if let Ok(path) = decoded(&target) {
                let segments = path.split(|&byte| byte == b'/');
                let encoded = segments.map(|name| percent_encode(name, NON_ALPHANUMERIC).to_string());
                let again = format!("/{}", encoded.collect::<Vec<_>>().join("/"));
                prop_assert_eq!(decoded(again.as_bytes()), Ok(path));
            }
        }

        /// Without dot segments, doubled slashes and what is refused, decoding is what the
        /// percent-encoding crate does.
        #[test]
        fn decoding_is_that_of_percent_encoding(segments in prop::collection::vec("([a-z.]|%[3-7][0-9a-fA-F]|%[89a-fA-F][0-9a-f]){1,8}x", 1..5)) {
            let target = format!("/{}", segments.join("/"));
            let expected: Vec<u8> = percent_decode(&target.as_bytes()[1..]).collect();
            prop_assert_eq!(decoded(target.as_bytes()), Ok(expected));
        }
    }
}
