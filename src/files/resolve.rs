//! The way of a miss: a decoded path to an open file, or to what is said instead.
//!
//! Nothing here waits for a FIFO's other end or for a disk's data; a look-up of a name that is not
//! cached may.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::http::Status;
use crate::sys::file::{self, FileKind, FileStat, ReadError};

use super::site::{Root, Site};
use super::tree::{Opening, Tree, Trouble};
use super::{variants, welcome};

/// What a path means.
#[derive(Debug)]
pub(super) enum Found {
    /// A regular file, open.
    File(Opened),
    /// A directory that was asked for without the slash at its end.
    Directory,
    /// A directory that is listed, open for reading its names.
    Listing(OwnedFd),
    /// The welcome site's page.
    Welcome,
    /// Nothing that is served.
    Nothing(Status),
}

/// A regular file, open for reading.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: OwnedFd,
    /// How it was found when it was opened.
    pub(super) stat: FileStat,
    /// Its path, relative to the root.
    pub(super) path: PathBuf,
    /// No other name would have been preferred, had it existed.
    pub(super) first_choice: bool,
}

/// How the reading of a file's whole body went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// All of it was in memory, and the file did not change meanwhile.
    Whole,
    /// Some of it is not in memory, or cannot be read.
    Cold,
    /// The file is no longer what it was when it was opened.
    Changed,
}

/// Finds out what `path` means, decoded and relative to the site's root.
pub(super) fn resolve(site: &Site, path: &[u8]) -> Result<Found, Trouble> {
    let tree = match &site.root {
        Root::Directory(tree) => tree,
        Root::Welcome if welcome::is_page(path) => return Ok(Found::Welcome),
        Root::Welcome => return Ok(Found::Nothing(Status::NOT_FOUND)),
    };
    if tree.hides(path) {
        return Ok(Found::Nothing(Status::NOT_FOUND));
    }
    let path = Path::new(OsStr::from_bytes(path));
    match path.as_os_str().as_bytes() {
        [] | [.., b'/'] => resolve_index(tree, path, site),
        _ => resolve_name(tree, path),
    }
}

fn resolve_name(tree: &Tree, path: &Path) -> Result<Found, Trouble> {
    Ok(match tree.open(path)? {
        Opening::Open(_, stat) if stat.kind == FileKind::Directory => Found::Directory,
        Opening::Open(file, stat) => {
            Found::File(Opened { file, stat, path: path.into(), first_choice: true })
        }
        // What is inside of a directory may be readable although its list of names is not.
        Opening::Forbidden if tree.is_directory(path) => Found::Directory,
        Opening::Forbidden => Found::Nothing(Status::FORBIDDEN),
        Opening::NoFile | Opening::NotFound => Found::Nothing(Status::NOT_FOUND),
    })
}

/// Opens a file that holds another one's bytes in a coding, if it may stand for `original` still.
pub(super) fn open_variant(
    tree: &Tree,
    path: PathBuf,
    original: &FileStat,
) -> Result<Option<Opened>, Trouble> {
    Ok(match tree.open(&path)? {
        Opening::Open(file, stat) if variants::is_usable(&stat, original) => {
            Some(Opened { file, stat, path, first_choice: true })
        }
        Opening::Open(..) | Opening::NoFile | Opening::NotFound | Opening::Forbidden => None,
    })
}

fn resolve_index(tree: &Tree, directory: &Path, site: &Site) -> Result<Found, Trouble> {
    for (preferred, name) in site.index.iter().enumerate() {
        let path = directory.join(name);
        match tree.open(&path)? {
            Opening::Open(file, stat) if stat.kind == FileKind::File => {
                return Ok(Found::File(Opened { file, stat, path, first_choice: preferred == 0 }));
            }
            Opening::Open(..) | Opening::NoFile | Opening::NotFound => {}
            Opening::Forbidden => return Ok(Found::Nothing(Status::FORBIDDEN)),
        }
    }
    // A directory that has no index may not be listed, if that is not said; any other name is not
    // found.
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    Ok(match tree.open(directory)? {
        Opening::Open(directory, _) if site.listing => Found::Listing(directory),
        Opening::Open(..) | Opening::Forbidden => Found::Nothing(Status::FORBIDDEN),
        Opening::NoFile | Opening::NotFound => Found::Nothing(Status::NOT_FOUND),
    })
}

/// Reads the whole of a file into `body`, if all of it is in memory.
pub(super) fn read_whole(file: &OwnedFd, stat: &FileStat, body: &mut Vec<u8>) -> Reading {
    let Ok(bytes) = usize::try_from(stat.bytes) else { return Reading::Cold };
    body.clear();
    body.resize(bytes, 0);
    let mut read = 0;
    while read < bytes {
        match file::read_nowait(file, &mut body[read..], read as u64) {
            Ok(0) => return Reading::Changed,
            Ok(more) => read += more,
            Err(ReadError::Cold | ReadError::Other(_)) => return Reading::Cold,
        }
    }
    match file::stat(file) {
        Ok(after) if after == *stat => Reading::Whole,
        _ => Reading::Changed,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn file() -> (File, OwnedFd, FileStat) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"body").expect("written");
        // Long ago, so that any change shows.
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1)).expect("a time");
        let fd = OwnedFd::from(file.try_clone().expect("a descriptor"));
        let stat = file::stat(&fd).expect("a stat");
        (file, fd, stat)
    }

    #[test]
    fn a_file_in_memory_is_read_whole() {
        let (_file, fd, stat) = file();
        let mut body = b"what was there".to_vec();
        assert_eq!(read_whole(&fd, &stat, &mut body), Reading::Whole);
        assert_eq!(body, b"body");
    }

    #[test]
    fn what_changed_since_it_was_opened_is_not_taken_for_whole() {
        let (mut shorter, fd, stat) = file();
        shorter.set_len(3).expect("cut");
        assert_eq!(read_whole(&fd, &stat, &mut Vec::new()), Reading::Changed);
        shorter.write_all(b"longer").expect("written");
        assert_eq!(read_whole(&fd, &stat, &mut Vec::new()), Reading::Changed);

        let (rewritten, fd, stat) = file();
        std::os::unix::fs::FileExt::write_all_at(&rewritten, b"BODY", 0).expect("written");
        assert_eq!(read_whole(&fd, &stat, &mut Vec::new()), Reading::Changed);
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_one_who_sends_it() {
        let directory = OwnedFd::from(File::open("/").expect("the root"));
        let stat = file::stat(&directory).expect("a stat");
        assert_eq!(read_whole(&directory, &stat, &mut Vec::new()), Reading::Cold);
    }
}
