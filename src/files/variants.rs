//! Files that hold another one's bytes compressed: `app.css.br`, `.zst` and `.gz` beside `app.css`.
//!
//! One that is older than the original is not served: whoever changed the original forgot it. Times
//! are compared to the nanosecond; but compressors copy the original's time, and some only its whole
//! seconds, so a time of whole seconds is not older than another one within the same second.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::http::{Coding, Codings};
use crate::sys::file::{FileKind, FileStat};

use super::tree::Tree;

/// The compressed files beside one, as they were when they were looked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Variants(Box<[(Coding, FileStat)]>);

impl Variants {
    /// Looks for those of the file at `path`, relative to the root. What is found may only be compared:
    /// each is opened, beneath the root, when it is wanted.
    pub(super) fn find(tree: &Tree, path: &Path, original: &FileStat) -> Self {
        if is_coded(path) {
            return Self::default();
        }
        let found = Coding::ALL.into_iter().filter_map(|coding| {
            let stat = tree.stat_to_compare(&path_of(path, coding))?;
            is_usable(&stat, original).then_some((coding, stat))
        });
        Self(found.collect())
    }

    /// The codings there are.
    pub(super) fn codings(&self) -> Codings {
        self.0.iter().fold(Codings::NONE, |codings, (coding, _)| codings.with(*coding))
    }

    /// Bytes that this takes in memory.
    pub(super) fn held_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Where a file's bytes are in a coding.
pub(super) fn path_of(path: &Path, coding: Coding) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OsStr::from_bytes(extension(coding)));
    name.into()
}

/// The path without the extension of a coding.
pub(super) fn original_of(path: &Path, coding: Coding) -> &Path {
    let path = path.as_os_str().as_bytes();
    Path::new(OsStr::from_bytes(path.strip_suffix(extension(coding)).unwrap_or(path)))
}

/// Whether a file in this state may stand for the original.
pub(super) fn is_usable(variant: &FileStat, original: &FileStat) -> bool {
    const SECOND_NS: i128 = 1_000_000_000;
    let (time, original_time) = (variant.mtime_ns, original.mtime_ns);
    let whole_seconds = time.rem_euclid(SECOND_NS) == 0;
    variant.kind == FileKind::File
        && (time >= original_time
            || whole_seconds && time == original_time - original_time.rem_euclid(SECOND_NS))
}

/// Whether a file is compressed itself: nobody compresses it again.
fn is_coded(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    Coding::ALL.into_iter().any(|coding| path.ends_with(extension(coding)))
}

const fn extension(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
        Coding::Gzip => b".gz",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_there_and_back() {
        for (coding, name) in [
            (Coding::Brotli, "a/b.css.br"),
            (Coding::Zstd, "a/b.css.zst"),
            (Coding::Gzip, "a/b.css.gz"),
        ] {
            let path = path_of(Path::new("a/b.css"), coding);
            assert_eq!(path, Path::new(name));
            assert_eq!(original_of(&path, coding), Path::new("a/b.css"));
            assert!(is_coded(&path) && !is_coded(Path::new("a/b.css")));
        }
    }

    #[test]
    fn what_is_older_than_the_original_is_not_usable() {
        let file = |mtime_ns| FileStat {
            kind: FileKind::File,
            bytes: 1,
            mtime_ns,
            ctime_ns: mtime_ns,
            inode: 1,
            device: 1,
            mode: 0o644,
            owner: 0,
        };
        for (variant_ns, original_ns, expected) in [
            (5_000_000_000, 5_000_000_000, true),
            (5_000_000_001, 5_000_000_000, true),
            (9_000_000_000, 5_000_000_000, true),
            (5_000_000_000, 5_999_999_999, true),
            (-5_000_000_000, -4_000_000_001, true),
            (5_000_000_001, 5_000_000_002, false),
            (4_000_000_000, 5_000_000_000, false),
            (4_999_999_999, 5_000_000_000, false),
        ] {
            let usable = is_usable(&file(variant_ns), &file(original_ns));
            assert_eq!(usable, expected, "{variant_ns} {original_ns}");
        }
        let directory = FileStat { kind: FileKind::Directory, ..file(9) };
        assert!(!is_usable(&directory, &file(5)));
    }
}
