//! The bytes of a request: 90 to 220 of them, most of which are the path, Host and the cookie.

use super::parameters::Parameters;
use crate::request::{Persistence, Version};
use onering::ring::SendBuf;
use onering_fileset::dynamic::{Post, RequestCookie};
use onering_fileset::laws::RequestKind;
use onering_fileset::name::Name;

/// A request of `kind` for a file, by the user of that number.
pub(super) fn request(
    parameters: &Parameters,
    persistence: Persistence,
    kind: RequestKind,
    name: Name,
    number: u32,
    cookie: RequestCookie,
) -> SendBuf {
    let wanted = parameters.wanted();
    let (files, short) = (wanted.paths.files.as_bytes(), name.short());
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(if kind == RequestKind::Post { b"POST " } else { b"GET " });
    bytes.extend_from_slice(parameters.script(kind).as_bytes());
    match kind {
        RequestKind::Static => bytes.extend_from_slice(&short),
        RequestKind::CustomAd | RequestKind::Dynamic | RequestKind::Cgi => {
            for part in [b"?", files, &short] {
                bytes.extend_from_slice(part);
            }
        }
        RequestKind::Post => {}
    }
    let (version, connection): (&[u8], &[u8]) = match (wanted.version, persistence) {
        (Version::Http10, Persistence::Persist) => (b"1.0", b"Connection: keep-alive\r\n"),
        (Version::Http11, Persistence::Close) => (b"1.1", b"Connection: close\r\n"),
        (Version::Http10, Persistence::Close) => (b"1.0", b""),
        (Version::Http11, Persistence::Persist) => (b"1.1", b""),
    };
    for part in [b" HTTP/", version, b"\r\nHost: ", wanted.host.as_bytes(), b"\r\n", connection] {
        bytes.extend_from_slice(part);
    }
    if matches!(kind, RequestKind::CustomAd | RequestKind::Post) {
        bytes.extend_from_slice(format!("Cookie: {cookie}\r\n").as_bytes());
    }
    if kind == RequestKind::Post {
        let body = Post { urlroot: &wanted.paths.files, name, client: number }.to_body();
        let length = body.len();
        let fields = format!(
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n"
        );
        bytes.extend_from_slice(fields.as_bytes());
        bytes.extend_from_slice(body.as_bytes());
    } else {
        bytes.extend_from_slice(b"\r\n");
    }
    let end = bytes.len() as u32;
    SendBuf::Shared(bytes.into(), 0..end)
}
