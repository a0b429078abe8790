//! The welcome site: what is served when nothing was named. It is part of the program, so it has no
//! descriptor and no times, and it is never validated.

/// The one page. It asks for nothing else: style and icon are inside.
pub(super) const PAGE: &[u8] = include_bytes!("welcome/index.html");

/// Its media type.
pub(super) const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// Whether a decoded path, relative to the site's root, means the page.
pub(super) fn is_page(path: &[u8]) -> bool {
    matches!(path, b"" | b"index.html")
}

/// Its entity tag: strong, and the same wherever the same program runs.
pub(super) fn etag() -> String {
    format!("\"{:x}-{:x}\"", fnv1a(PAGE), PAGE.len())
}

/// The 64-bit FNV-1a hash: to tell one edition of the page from the next, nobody being interested in
/// making two look alike.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_agrees_with_its_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_page_is_small_and_asks_for_nothing_else() {
        let page = std::str::from_utf8(PAGE).unwrap();
        assert!(page.starts_with("<!doctype html>") && page.len() < 8192, "{}", page.len());
        // An address of another host, a script or a file would make a second request.
        for reference in ["src=", "@import", "url(", "<script", "href=\"http", "href=\"/"] {
            assert!(!page.contains(reference), "{reference}");
        }
    }
}
