//! The four forms of a request target (RFC 9112 §3.2).

use super::{Method, Refusal, authority};

/// Splits a target into what names the resource, and the authority if it brings one.
pub(super) fn split(method: Method, target: &[u8]) -> Result<(&[u8], Option<&[u8]>), Refusal> {
    match (method, target) {
        (Method::Connect, _) => connect(target),
        (_, [b'/', ..]) | (Method::Options, b"*") => Ok((target, None)),
        _ => absolute(method, target),
    }
}

/// `absolute-form`: what proxies get, and every server must accept.
fn absolute(method: Method, target: &[u8]) -> Result<(&[u8], Option<&[u8]>), Refusal> {
    let separator = memchr::memmem::find(target, b"://").ok_or(Refusal::TargetForm)?;
    let (scheme, rest) = (&target[..separator], &target[separator + 3..]);
    if !scheme.eq_ignore_ascii_case(b"http") {
        let is_https = scheme.eq_ignore_ascii_case(b"https");
        return Err(if is_https { Refusal::TargetUnsecured } else { Refusal::TargetScheme });
    }
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() || !authority::is_valid(authority) {
        return Err(Refusal::TargetAuthority);
    }
    let path = match (method, path) {
        (Method::Options, []) => b"*",
        (_, []) => b"/",
        _ => path,
    };
    Ok((path, Some(authority)))
}

/// `authority-form`: a host and a port, both needed.
fn connect(target: &[u8]) -> Result<(&[u8], Option<&[u8]>), Refusal> {
    let host = authority::host_of(target);
    let has_port = target.len() > host.len() + 1;
    if has_port && authority::is_valid(target) {
        Ok((target, Some(target)))
    } else {
        Err(Refusal::TargetForm)
    }
}
