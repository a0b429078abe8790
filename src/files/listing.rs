//! A listing of a directory: a page with a link to each name that may be reached.
//!
//! Directories come first, then everything else, each by the bytes of the names. A link is the name,
//! percent-encoded but for what RFC 3986 reserves for nothing, behind `./`: so that a colon in it makes
//! no scheme, and whatever bytes a name has, it is reached by clicking. What the policies of the site
//! refuse, and what is neither file nor directory, is left out.
//!
//! A page is made in one go and looks at each name once, so the names are bounded; a page that has not
//! all of them says so. Which ones it has is then for the file system to say: to find the first of all
//! would mean to read all.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::http::ImfDate;
use crate::sys::directory;
use crate::sys::file::{FileKind, FileStat, OpenError};

use super::tree::{Tree, Trouble};

/// Everything but the `unreserved` of RFC 3986 §2.3: no byte of it means anything in a URI or in HTML.
const NOT_OF_A_NAME: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Writes the page of a directory into `out`, in place of what was there. `path` is decoded, relative
/// to the root, and ends in a slash if it is not the root. True: it does not have all names.
pub(super) fn write(
    tree: &Tree,
    directory: OwnedFd,
    path: &[u8],
    names_max: usize,
    out: &mut Vec<u8>,
) -> Result<bool, Trouble> {
    let looked_at = directory.try_clone().map_err(|_| Trouble::NoDescriptors)?;
    // Hidden names count as well: looking at them takes as long.
    let (names, more) = directory::names(directory, names_max).map_err(|error| match error {
        OpenError::NoDescriptors => Trouble::NoDescriptors,
        _ => Trouble::Failed,
    })?;
    let mut rows: Vec<(OsString, FileStat)> = names
        .into_iter()
        .filter(|name| !tree.hides(name.as_bytes()))
        .filter_map(|name| {
            let at = Path::new(OsStr::from_bytes(path)).join(&name);
            let stat = tree.look_at(&looked_at, Path::new(&name), &at)?;
            (stat.kind != FileKind::Other).then_some((name, stat))
        })
        .collect();
    rows.sort_unstable_by(order);
    out.clear();
    page(path, &rows, more.then_some(names_max), out);
    Ok(more)
}

fn order(
    (name, stat): &(OsString, FileStat),
    (other, other_stat): &(OsString, FileStat),
) -> Ordering {
    let is_file = |stat: &FileStat| stat.kind == FileKind::File;
    (is_file(stat), name.as_bytes()).cmp(&(is_file(other_stat), other.as_bytes()))
}

fn page(path: &[u8], rows: &[(OsString, FileStat)], cut_at: Option<usize>, out: &mut Vec<u8>) {
    let title = shown(path);
    out.extend_from_slice(b"<!doctype html>\n<html>\n<meta charset=\"utf-8\">\n");
    out.extend_from_slice(b"<meta name=\"color-scheme\" content=\"light dark\">\n<title>/");
    out.extend_from_slice(title.as_bytes());
    out.extend_from_slice(
        b"</title>\n<style>body{font-family:system-ui,sans-serif;margin:2em}td{padding-right:2em}\
          td+td{white-space:nowrap}.n{text-align:right}</style>\n<h1>/",
    );
    out.extend_from_slice(title.as_bytes());
    out.extend_from_slice(b"</h1>\n");
    if let Some(count) = cut_at {
        let cut =
            format!("<p>There are more than the {count} names that are looked at here.</p>\n");
        out.extend_from_slice(cut.as_bytes());
    }
    out.extend_from_slice(b"<table>\n");
    if !path.is_empty() {
        out.extend_from_slice(b"<tr><td><a href=\"../\">../</a></td></tr>\n");
    }
    for (name, stat) in rows {
        row(name.as_bytes(), stat, out);
    }
    out.extend_from_slice(b"</table>\n</html>\n");
}

fn row(name: &[u8], stat: &FileStat, out: &mut Vec<u8>) {
    let (slash, size) = match stat.kind {
        FileKind::Directory => ("/", String::new()),
        FileKind::File | FileKind::Other => ("", stat.bytes.to_string()),
    };
    let seconds = stat.mtime_ns.div_euclid(1_000_000_000);
    let date = ImfDate::from_unix_s(i64::try_from(seconds).unwrap_or(0));
    let row = format!(
        "<tr><td><a href=\"./{}{slash}\">{}{slash}</a></td><td>{}</td><td class=\"n\">{size}</td></tr>\n",
        percent_encode(name, &NOT_OF_A_NAME),
        shown(name),
        String::from_utf8_lossy(date.as_bytes()),
    );
    out.extend_from_slice(row.as_bytes());
}

/// A name as HTML text. What is no UTF-8, and what is no character to be seen, is shown as U+FFFD.
fn shown(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for character in String::from_utf8_lossy(name).chars() {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            character if character.is_control() => text.push(char::REPLACEMENT_CHARACTER),
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: FileStat = FileStat {
        kind: FileKind::File,
        bytes: 12_345,
        mtime_ns: 784_111_777_999_999_999,
        ctime_ns: 0,
        inode: 1,
        device: 1,
        mode: 0o644,
        owner: 0,
    };

    fn row_of(name: &[u8], kind: FileKind) -> String {
        let mut out = Vec::new();
        row(name, &FileStat { kind, ..STAT }, &mut out);
        String::from_utf8(out).expect("HTML is text")
    }

    #[test]
    fn names_are_encoded_in_links_and_escaped_in_text() {
        for (name, link, text) in [
            (&b"plain-1.2_3~"[..], "plain-1.2_3~", "plain-1.2_3~"),
            (b"a?b", "a%3Fb", "a?b"),
            (b"a:b", "a%3Ab", "a:b"),
            (b"<b>", "%3Cb%3E", "&lt;b&gt;"),
            (b"\"'&#", "%22%27%26%23", "&quot;'&amp;#"),
            (b"50%", "50%25", "50%"),
            (b"new\nline", "new%0Aline", "new\u{fffd}line"),
            (b"\xff", "%FF", "\u{fffd}"),
            ("\u{e4}".as_bytes(), "%C3%A4", "\u{e4}"),
        ] {
            let anchor = format!("<a href=\"./{link}\">{text}</a>");
            assert!(row_of(name, FileKind::File).contains(&anchor), "{anchor}");
        }
    }

    #[test]
    fn a_row_says_what_it_leads_to() {
        assert_eq!(
            row_of(b"a", FileKind::File),
            "<tr><td><a href=\"./a\">a</a></td><td>Sun, 06 Nov 1994 08:49:37 GMT</td>\
             <td class=\"n\">12345</td></tr>\n"
        );
        assert!(row_of(b"a", FileKind::Directory).contains("<a href=\"./a/\">a/</a>"));
    }
}
