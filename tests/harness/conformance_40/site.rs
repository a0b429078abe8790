//! The site that every case is about: known bytes, of a known time.

use std::fs::File;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use super::Answer;
use crate::support::{Site, pattern};

pub(crate) const INDEX: &[u8] = b"<!doctype html><title>index</title>\n";
pub(crate) const ALPHA: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
pub(crate) const DIR: &[u8] = b"the index of a directory\n";
pub(crate) const TEST_INDEX: &[u8] = b"its name ends as that of an index does\n";
const SPACED: &[u8] = b"a name with a space\n";
pub(crate) const CSS: &[u8] = b"body { color: black; background: white; margin: 0; padding: 0 }\n";
/// Not what gzip would give: nobody looks.
pub(crate) const CSS_GZIP: &[u8] = b"the style sheet, made shorter\n";
const CSS_TYPE: &str = "text/css; charset=utf-8";
/// More than is answered from memory, and more than a socket takes at once.
const LARGE_BYTES: usize = 1_000_000;

static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| pattern(LARGE_BYTES));

const MODIFIED_S: u64 = 1_704_067_200;
/// When every file was last modified.
pub(crate) const MODIFIED: &str = "Mon, 01 Jan 2024 00:00:00 GMT";

/// A new copy of the site.
pub(super) fn site() -> Site {
    let site = Site::new();
    for (name, bytes) in [
        ("index.html", INDEX),
        ("alpha.txt", ALPHA),
        ("empty.txt", b""),
        ("large.bin", &LARGE),
        ("sp ace.txt", SPACED),
        ("pct%41.txt", b"a percent sign in its name\n"),
        ("\u{e9}.txt", b"a name beyond ASCII\n"),
        ("test-index.html", TEST_INDEX),
        ("dir/index.html", DIR),
        ("bare/alpha.txt", ALPHA),
        ("style.css", CSS),
        ("style.css.gz", CSS_GZIP),
    ] {
        site.write(name, bytes);
        let file = File::options().write(true).open(site.path(name)).expect("it was written");
        let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
        file.set_modified(modified).expect("the file is ours");
    }
    site
}

/// The entity tag of a file of this site.
pub(crate) fn tag(file: &[u8]) -> String {
    format!("\"{:x}-{:x}\"", u128::from(MODIFIED_S) * 1_000_000_000, file.len())
}

/// The large file.
pub(crate) fn large_file() -> &'static [u8] {
    &LARGE
}

/// The index of the site.
pub(crate) fn index() -> Answer {
    Answer::file(INDEX, "text/html; charset=utf-8")
}

pub(crate) fn alpha() -> Answer {
    Answer::file(ALPHA, "text/plain; charset=utf-8")
}

pub(crate) fn empty() -> Answer {
    Answer::file(b"", "text/plain; charset=utf-8")
}

pub(crate) fn spaced() -> Answer {
    Answer::file(SPACED, "text/plain; charset=utf-8")
}

/// The index of the directory.
pub(crate) fn dir() -> Answer {
    Answer::file(DIR, "text/html; charset=utf-8")
}

pub(crate) fn large() -> Answer {
    Answer::file(&LARGE, "application/octet-stream")
}

/// The style sheet, without its coding.
pub(crate) fn css() -> Answer {
    Answer::file(CSS, CSS_TYPE).with("Vary", "Accept-Encoding").lacking("Content-Encoding")
}

/// The style sheet in its coding.
pub(crate) fn css_gzip() -> Answer {
    Answer::file(CSS_GZIP, CSS_TYPE)
        .with("Vary", "Accept-Encoding")
        .with("Content-Encoding", "gzip")
        .with("ETag", css_gzip_tag())
}

/// The tag of the style sheet in its coding.
pub(crate) fn css_gzip_tag() -> String {
    let tag = tag(CSS_GZIP);
    format!("{}-gzip\"", tag.trim_end_matches('"'))
}
