//! `uri-host [ ":" port ]` (RFC 9110 §4.2 and §7.2, RFC 3986 §3.2).

use std::net::Ipv6Addr;

use super::bytes::REG_NAME;

/// Whether `authority` is `uri-host [ ":" port ]`, without userinfo. All of it may be empty, but not a
/// host that has a port: `http` has no such URI (RFC 9110 §4.2.1).
#[inline]
pub(super) fn is_valid(authority: &[u8]) -> bool {
    let after_host = match authority {
        [b'[', after @ ..] => after_ip_literal(after),
        [b':', ..] => None,
        _ => Some(after_reg_name(authority)),
    };
    match after_host {
        Some([]) => true,
        Some([b':', port @ ..]) => port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// The host of a valid authority, without its port; an IPv6 address keeps its brackets.
pub fn host_of(authority: &[u8]) -> &[u8] {
    let end = match authority {
        [b'[', ..] => memchr::memchr(b']', authority).map(|bracket| bracket + 1),
        _ => memchr::memchr(b':', authority),
    };
    &authority[..end.unwrap_or(authority.len())]
}

/// What follows the longest registered name at the start of `authority`.
#[inline]
fn after_reg_name(authority: &[u8]) -> &[u8] {
    let mut rest = authority;
    loop {
        let end = rest.iter().position(|&byte| !REG_NAME.has(byte)).unwrap_or(rest.len());
        rest = match &rest[end..] {
            [b'%', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                after
            }
            after => return after,
        };
    }
}

/// What follows an IP literal of which `[` has been taken; `None` if it is none.
fn after_ip_literal(rest: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b']', rest)?;
    is_ip_literal(&rest[..end]).then(|| &rest[end + 1..])
}

/// An IPv6 address, or what a later version of IP may bring (`IPvFuture`). No zone: RFC 6874 is
/// for the machine that has the zone.
fn is_ip_literal(literal: &[u8]) -> bool {
    match literal {
        [b'v' | b'V', future @ ..] => memchr::memchr(b'.', future).is_some_and(|dot| {
            let (version, address) = (&future[..dot], &future[dot + 1..]);
            !version.is_empty()
                && version.iter().all(u8::is_ascii_hexdigit)
                && !address.is_empty()
                && address.iter().all(|&byte| byte == b':' || REG_NAME.has(byte))
        }),
        _ => str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::{host_of, is_valid};

    #[test]
    fn valid_authorities_and_their_hosts() {
        for (authority, host) in [
            ("", ""),
            ("localhost", "localhost"),
            ("LOCALHOST:80", "LOCALHOST"),
            ("localhost:", "localhost"),
            ("localhost:99999", "localhost"),
            ("localhost.", "localhost."),
            ("a_b", "a_b"),
            ("a%2Db", "a%2Db"),
            ("127.0.0.1:81", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[::1]:8080", "[::1]"),
            ("[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]"),
            ("[v1.a:b]:1", "[v1.a:b]"),
        ] {
            assert!(is_valid(authority.as_bytes()), "{authority}");
            assert_eq!(host_of(authority.as_bytes()), host.as_bytes());
        }
    }

    #[test]
    fn invalid_authorities() {
        for authority in [
            "a b",
            "user@localhost",
            "http://localhost",
            "a\u{1}b",
            "höst",
            "\"localhost\"",
            "localhost, other",
            "a%zz",
            "a%4",
            "a%",
            "::1",
            "localhost:80:80",
            "localhost:8x",
            "localhost:-1",
            ":80",
            ":",
            "../../etc",
            "a\\b",
            "a/b",
            "a?b",
            "a#b",
            "[::1",
            "[::1]x",
            "[::1%25eth0]",
            "[]",
            "[localhost]",
            "[v.a]",
            "[v1.]",
            "]",
        ] {
            assert!(!is_valid(authority.as_bytes()), "{authority}");
        }
    }
}
