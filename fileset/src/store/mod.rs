//! The file set on a disk: written, gone on with, and verified.
//!
//! ```text
//! DIR/onering-fileset.json              the manifest: the set is whole; written last
//! DIR/onering-fileset.unfinished.json   the journal: a run has begun and not ended
//! DIR/file_set/dir00000/class0_0        the files
//! DIR/file_set/dir00000/.class0_0.partial   one that is being written
//! ```
//!
//! # Why an interrupted file is never taken for a whole one
//!
//! *The process ends at any point*: a file is written under its `.partial` name and renamed when its
//! last byte is in the kernel, so that under its own name it is whole. What is left as `.partial` is
//! written anew by the next run.
//!
//! *The machine ends at any point*: then a rename may be on the disk and the file's bytes not. After
//! every 16 directories (82 MB) the file system is synced, and *then* the journal notes, in a file
//! that is itself synced and renamed, how many directories from the first one on are on the disk. The
//! next run takes a file below that mark by its length, and compares every byte of one above it. The
//! manifest is written after a last sync, and the journal removed after it.
//!
//! So it costs a few syncs, not one for each file: on a disk that takes milliseconds to sync, that
//! would be the whole time.
//!
//! # What goes together
//!
//! A set grows: a run for more directories under the same seed adds those that are missing. Another
//! seed or fewer directories are refused, and so are files that neither manifest nor journal tells
//! of. A run holds a lock on DIR, so that two at once cannot get in each other's way. Files that were
//! lost since are written anew, if their length tells; [`verify`] finds every other change.

mod error;
mod generate;
mod space;
mod state;
mod verify;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use error::Error;
pub use generate::{Generated, Order, generate};
pub use space::Shortage;
pub use state::{MANIFEST, Manifest, UNFINISHED};
pub use verify::{Fault, Finding, Verified, verify};

use crate::name::{Name, ROOT};

/// What a caller and a run tell each other while it goes on.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    done_bytes: AtomicU64,
    written_bytes: AtomicU64,
}

impl Control {
    /// Asks the run to end after the files that are being written.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Bytes of the set that are dealt with: written, verified, or found to be there.
    pub fn done_bytes(&self) -> u64 {
        self.done_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that this run has written.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn add_done(&self, name: Name) {
        self.done_bytes.fetch_add(u64::from(name.size()), Ordering::Relaxed);
    }

    fn add_written(&self, name: Name) {
        self.written_bytes.fetch_add(u64::from(name.size()), Ordering::Relaxed);
    }
}

/// Where a directory of the set is.
fn directory_path(root: &Path, directory: u32) -> PathBuf {
    root.join(ROOT).join(format!("dir{directory:05}"))
}

/// The name of a file within its directory.
fn file_name(name: Name) -> String {
    format!("class{}_{}", name.class(), name.file())
}
