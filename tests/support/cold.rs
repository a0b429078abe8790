//! Files that are not in memory.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use onering::sys::file::{Residency, residency};

use super::{Site, skip};

/// Drops what the page cache holds of a file.
pub(crate) fn evict(path: &Path) {
    let file = File::open(path).expect("the file is there");
    posix_fadvise(file.as_fd(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("a file");
}

/// A site where files can be cold, unless there is none: not in memory, as a tmpfs is.
pub(crate) fn site_on_disk() -> Option<Site> {
    let site = Site::with("probe", [1; 4096]);
    let probe = File::open(site.path("probe")).expect("the file is there");
    probe.sync_all().expect("the disk takes it");
    evict(&site.path("probe"));
    if residency(&probe, 0) == Residency::Cold {
        return Some(site);
    }
    skip("temporary files are on no disk that tells what is in the page cache");
    None
}
