//! Where a directory is sent that was asked for without the slash at its end, and where a site is sent
//! that wants TLS.
//!
//! The place of a directory is made of the decoded path, not of what the client wrote: one slash, then encoded
//! segments. So it can never be read as another host (`//host`, or `/\host` in browsers), and no byte
//! of it can end the header line. It names no scheme and no host, since a proxy in front of us may
//! have other ones (RFC 9110 §10.2.2 allows a relative reference).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::http::head::host_of;

use super::site::{Elsewhere, HTTPS};

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

/// The place of a request on a site that is reached with TLS: its URI, with the other scheme and port.
/// What the client has encoded stays as it is, and what cannot be in a URI is encoded. `None`: it names no
/// resource (`*`, an authority); `Some(None)`: neither it nor the site names a host.
///
/// 308 goes with it, not 301: a form stays a form, where browsers would make a GET of it (RFC 9110 §15.4.9).
pub(super) fn with_tls(
    authority: Option<&[u8]>,
    elsewhere: &Elsewhere,
    target: &[u8],
) -> Option<Option<String>> {
    let slash = match target {
        [b'/', ..] => "",
        [b'?', ..] => "/",
        _ => return None,
    };
    let host = authority.map(host_of).filter(|host| !host.is_empty());
    let host = host.or(elsewhere.name.as_deref().map(str::as_bytes));
    let port = match elsewhere.port {
        HTTPS => String::new(),
        port => format!(":{port}"),
    };
    let place = |host: &[u8]| {
        let (host, target) = (host.escape_ascii(), percent_encode(target, &NOT_OF_A_QUERY));
        format!("https://{host}{port}{slash}{target}")
    };
    Some(host.map(place))
}

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

    #[test]
    fn a_request_is_sent_to_the_same_place_with_tls() {
        let elsewhere = |name: Option<&str>, port| Elsewhere { name: name.map(Into::into), port };
        let sent = |authority: Option<&str>, port, target: &[u8]| {
            let authority = authority.map(str::as_bytes);
            with_tls(authority, &elsewhere(Some("site.example"), port), target)
        };
        for (authority, port, target, expected) in [
            (Some("a.example"), 443, &b"/"[..], "https://a.example/"),
            (Some("a.example:80"), 443, b"/x%20y?z=%26&%", "https://a.example/x%20y?z=%26&%"),
            (Some("a.example:8080"), 8443, b"/x", "https://a.example:8443/x"),
            (Some("[::1]:8080"), 8443, b"?q", "https://[::1]:8443/?q"),
            (
                Some("a.example"),
                443,
                b"//evil.example/\\#",
                "https://a.example//evil.example/%5C%23",
            ),
            (Some(""), 443, b"/", "https://site.example/"),
            (None, 443, b"/\xff\n", "https://site.example/%FF%0A"),
        ] {
            assert_eq!(sent(authority, port, target), Some(Some(expected.to_owned())));
        }
        assert_eq!(sent(Some("a"), 443, b"*"), None);
        assert_eq!(with_tls(None, &elsewhere(None, 443), b"/"), Some(None));
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
