//! Media types by file name.

/// What is not known is not guessed (RFC 9110 §8.3: the recipient may then sniff, and `nosniff` is
/// its own decision).
const UNKNOWN: &str = "application/octet-stream";

/// The value of Content-Type for a file of this name or path, by its last extension.
///
/// | type | `charset` |
/// |---|---|
/// | `text/…` | said: without it browsers guess by locale |
/// | `text/javascript` | said (RFC 9239 §4.2); `application/javascript` is its obsolete name (§6) |
/// | `text/xml` | not said: it would win over what the file itself declares (RFC 7303 §3.2) |
/// | `application/json` | not said: it has no such parameter and is always UTF-8 (RFC 8259 §11) |
/// | any other | not said: bytes, or XML |
pub(super) fn content_type(path: &[u8], charset: Option<&str>) -> String {
    let media_type =
        extension(path).and_then(|extension| mime_guess::from_ext(extension).first_raw());
    let media_type = match media_type {
        Some("application/javascript") => "text/javascript",
        Some(media_type) => media_type,
        None => UNKNOWN,
    };
    match charset {
        Some(charset) if media_type.starts_with("text/") && media_type != "text/xml" => {
            format!("{media_type}; charset={charset}")
        }
        _ => media_type.to_owned(),
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
            (b"data.json", "application/json"),
            (b"feed.xml", "text/xml"),
            (b"notes.txt", "text/plain; charset=utf-8"),
            (b"README.md", "text/markdown; charset=utf-8"),
            (b"table.csv", "text/csv; charset=utf-8"),
            (b"logo.svg", "image/svg+xml"),
            (b"photo.jpeg", "image/jpeg"),
            (b"font.woff2", "font/woff2"),
            (b"app.wasm", "application/wasm"),
            (b"v1.tar.gz", "application/gzip"),
        ] {
            let with = content_type(path, Some("utf-8"));
            assert_eq!(with, expected, "{}", path.escape_ascii());
            let without = expected.trim_end_matches("; charset=utf-8");
            assert_eq!(content_type(path, None), without);
            assert_eq!(content_type(path, Some("x")), expected.replace("utf-8", "x"));
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
            assert_eq!(content_type(path, Some("utf-8")), UNKNOWN, "{}", path.escape_ascii());
        }
    }
}
