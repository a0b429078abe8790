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
    use percent_encoding::percent_decode;
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

    /// What may come of a target: whole requests are more than what a directory can be named.
    fn targets() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"/"[..],
            b"//",
            b"\\",
            b"%5c",
            b"%0a",
            b"%0d%0a",
            b"%09",
            b"a",
            b":",
            b"@",
            b"%2e",
            b"..",
            b".",
            b"%2f",
            b"%3f",
            b"%23",
            b"%25",
            b"\xc3\xa9",
            b"\xff",
            b"evil.example",
            b" ",
            b"\t",
        ]);
        prop::collection::vec(piece, 0..20)
            .prop_map(|pieces| [&b"/"[..], &pieces.concat()].concat())
    }

    proptest! {
        /// Whatever was asked for: the place is on this host, means the same directory, and has the
        /// same query.
        #[test]
        fn places_stay_on_this_host(
            target in targets(),
            query in prop::option::of(prop::collection::vec(any::<u8>(), 0..20)),
        ) {
            let mut path = Vec::new();
            // `..` may lead above the root; the root itself, and what ends in a slash, is not sent
            // elsewhere.
            prop_assume!(target::decode(&target, &mut path).is_ok());
            prop_assume!(!path.is_empty() && !path.ends_with(b"/"));
            let location = location(&path);
            let place = match &query {
                Some(query) => with_query(&location, query),
                None => location,
            };
            prop_assert!(place.starts_with('/'));
            prop_assert!(!place[1..].starts_with(['/', '\\']), "{}", place);
            prop_assert!(place.bytes().all(|byte| byte.is_ascii_graphic()));
            let (again, kept) = target::split_query(place.as_bytes());
            let mut directory = Vec::new();
            target::decode(again, &mut directory).expect("a valid target");
            path.push(b'/');
            prop_assert_eq!(directory, path);
            prop_assert_eq!(kept.is_some(), query.is_some());
            // What was encoded stays as it is; what could not be sent as it is was encoded.
            let decoded = |query: &[u8]| percent_decode(query).collect::<Vec<_>>();
            prop_assert_eq!(kept.map(decoded), query.as_deref().map(decoded));
        }
    }
}
