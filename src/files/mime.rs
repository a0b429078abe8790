//! Media types by file name.

use std::borrow::Cow;

/// What is not known is not guessed (RFC 9110 §8.3: the recipient may then sniff, and `nosniff` is
/// its own decision).
const UNKNOWN: &str = "application/octet-stream";

/// The value of Content-Type for a file of this name or path, by its last extension.
///
/// Text, JavaScript and JSON are said to be UTF-8: without a charset browsers guess by locale, and
/// files that are not UTF-8 have become the exception. XML and what is built on it say so themselves.
pub(super) fn content_type(path: &[u8]) -> Cow<'static, str> {
    let Some(media_type) = extension(path).and_then(|ext| mime_guess::from_ext(ext).first_raw())
    else {
        return UNKNOWN.into();
    };
    match media_type {
        "text/html" => "text/html; charset=utf-8".into(),
        "text/css" => "text/css; charset=utf-8".into(),
        "text/plain" => "text/plain; charset=utf-8".into(),
        // RFC 9239 §6: `application/javascript` is its obsolete name.
        "text/javascript" | "application/javascript" => "text/javascript; charset=utf-8".into(),
        "application/json" => "application/json; charset=utf-8".into(),
        _ if media_type.starts_with("text/") => format!("{media_type}; charset=utf-8").into(),
        _ => media_type.into(),
    }
}

/// What follows the last dot of the last segment; a leading dot makes a hidden file, no extension.
fn extension(path: &[u8]) -> Option<&str> {
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    match memchr::memrchr(b'.', name)? {
        0 => None,
        dot => std::str::from_utf8(&name[dot + 1..]).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_types_and_their_charsets() {
        for (path, expected) in [
            (&b"index.html"[..], "text/html; charset=utf-8"),
            (b"a/b.c/INDEX.HTM", "text/html; charset=utf-8"),
            (b"style.css", "text/css; charset=utf-8"),
            (b"app.js", "text/javascript; charset=utf-8"),
            (b"app.mjs", "text/javascript; charset=utf-8"),
            (b"data.json", "application/json; charset=utf-8"),
            (b"notes.txt", "text/plain; charset=utf-8"),
            (b"README.md", "text/markdown; charset=utf-8"),
            (b"table.csv", "text/csv; charset=utf-8"),
            (b"logo.svg", "image/svg+xml"),
            (b"photo.jpeg", "image/jpeg"),
            (b"font.woff2", "font/woff2"),
            (b"app.wasm", "application/wasm"),
            (b"v1.tar.gz", "application/gzip"),
        ] {
            assert_eq!(content_type(path), expected, "{}", path.escape_ascii());
        }
    }

    #[test]
    fn unknown_types_are_bytes() {
        for path in [
            &b"LICENSE"[..],
            b"dir.html/file",
            b"a.no-such-type",
            b"trailing.",
            b".html",
            b"dir/.html",
            b"bad.\xff\xfe",
            b"",
        ] {
            assert_eq!(content_type(path), UNKNOWN, "{}", path.escape_ascii());
        }
    }
}
