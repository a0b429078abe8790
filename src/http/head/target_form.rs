//! The four forms of a request target (RFC 9112 §3.2).

use super::{Method, Refusal, Scheme, authority};

/// A target, in parts.
pub(super) struct Target<'a> {
    /// What names the resource.
    pub(super) target: &'a [u8],
    /// The scheme, if it brings one.
    pub(super) scheme: Option<Scheme>,
    /// The authority, if it brings one.
    pub(super) authority: Option<&'a [u8]>,
}

/// Splits a target into its parts.
pub(super) fn split(method: Method, target: &[u8]) -> Result<Target<'_>, Refusal> {
    match (method, target) {
        (Method::Connect, _) => connect(target),
        (_, [b'/', ..]) | (Method::Options, b"*") => {
            Ok(Target { target, scheme: None, authority: None })
        }
        _ => absolute(method, target),
    }
}

/// `absolute-form`: what proxies get, and every server must accept.
fn absolute(method: Method, target: &[u8]) -> Result<Target<'_>, Refusal> {
    let separator = memchr::memmem::find(target, b"://").ok_or(Refusal::TargetForm)?;
    let (scheme, rest) = (&target[..separator], &target[separator + 3..]);
    let scheme = match scheme {
        _ if scheme.eq_ignore_ascii_case(b"http") => Scheme::Http,
        _ if scheme.eq_ignore_ascii_case(b"https") => Scheme::Https,
        _ => return Err(Refusal::TargetScheme),
    };
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() || !authority::is_valid(authority) {
        return Err(Refusal::TargetAuthority);
    }
    let target = match (method, path) {
        (Method::Options, []) => b"*",
        (_, []) => b"/",
        _ => path,
    };
    Ok(Target { target, scheme: Some(scheme), authority: Some(authority) })
}

/// `authority-form`: a host and a port, both needed.
fn connect(target: &[u8]) -> Result<Target<'_>, Refusal> {
    let host = authority::host_of(target);
    let has_port = target.len() > host.len() + 1;
    if has_port && authority::is_valid(target) {
        Ok(Target { target, scheme: None, authority: Some(target) })
    } else {
        Err(Refusal::TargetForm)
    }
}
