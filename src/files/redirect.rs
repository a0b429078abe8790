//! Where a directory is sent that was asked for without the slash at its end.
//!
//! The place is made of the decoded path, not of what the client wrote: one slash, then encoded
//! segments. So it can never be read as another host (`//host`, or `/\host` in browsers), and no byte
//! of it can end the header line. It names no scheme and no host, since a proxy in front of us may
//! have other ones (RFC 9110 §10.2.2 allows a relative reference).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Everything but the `pchar` of RFC 3986 §3.3 and the slash.
const NOT_OF_A_PATH: AsciiSet = NON_ALPHANUMERIC
    .remove(b'/')
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
    .remove(b'@');

/// A query also has the question mark (RFC 3986 §3.4), and what is encoded in it stays as it is.
const NOT_OF_A_QUERY: AsciiSet = NOT_OF_A_PATH.remove(b'?').remove(b'%');

/// The place of a directory: its path, decoded and relative to the root, without the slash.
pub(super) fn location(path: &[u8]) -> String {
    format!("/{}/", percent_encode(path, &NOT_OF_A_PATH))
}

/// The same, with the query of the request.
pub(super) fn with_query(location: &str, query: &[u8]) -> String {
    format!("{location}?{}", percent_encode(query, &NOT_OF_A_QUERY))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::target;

    #[test]
    fn segments_are_encoded_and_slashes_are_not() {
        for (path, expected) in [
            (&b"docs"[..], "/docs/"),
            (b"a/b c/d", "/a/b%20c/d/"),
            (b"50%/\xc3\xa4?#", "/50%25/%C3%A4%3F%23/"),
            (b"\\evil.example", "/%5Cevil.example/"),
            (b"a:b", "/a:b/"),
            (b"x\r\nSet-Cookie: y", "/x%0D%0ASet-Cookie:%20y/"),
        ] {
            assert_eq!(location(path), expected);
        }
    }

    #[test]
    fn the_query_is_kept() {
        assert_eq!(with_query("/docs/", b"a=%20b&c=d?"), "/docs/?a=%20b&c=d?");
        assert_eq!(with_query("/docs/", b"\xff\n"), "/docs/?%FF%0A");
        assert_eq!(with_query("/docs/", b""), "/docs/?");
    }

    proptest! {
        /// Whatever was asked for: the place is on this host, and means the same directory.
        #[test]
        fn places_stay_on_this_host(target in "(/|//|/\\\\)(/|\\\\|%5c|%0a|a|é|:|@|/\\.|%2e){0,20}a") {
            let mut path = Vec::new();
            // `..` may lead above the root.
            prop_assume!(target::decode(target.as_bytes(), &mut path).is_ok());
            let place = location(&path);
            prop_assert!(place.starts_with('/'));
            prop_assert!(!place[1..].starts_with(['/', '\\']), "{}", place);
            prop_assert!(place.bytes().all(|byte| byte.is_ascii_graphic()));
            let mut again = Vec::new();
            target::decode(place.as_bytes(), &mut again).expect("a valid target");
            path.push(b'/');
            prop_assert_eq!(again, path);
        }
    }
}
