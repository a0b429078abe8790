//! The site that is served: few files, each of its own kind, whose times never change.

use std::fs::{self, File};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use onering::config;
use onering::files::Files;
use tempfile::TempDir;

pub(super) const SMALL: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
pub(super) const INDEX: &[u8] = b"<!doctype html><title>index</title>";
/// When no file of the site can have been touched a moment ago.
pub(super) const START_S: u64 = 1_800_000_000;
const MODIFIED_S: u64 = 1_700_000_000;
/// Larger is sent from the file.
const INLINE_BYTES: usize = 1000;

static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (0..15_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
});

static ROOT: LazyLock<TempDir> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("there is room for a few files");
    fs::create_dir(root.path().join("dir")).expect("it is new");
    write(root.path(), "small.txt", SMALL);
    write(root.path(), "index.html", INDEX);
    write(root.path(), "large.bin", &LARGE);
    root
});

/// Sent from a file, and no piece of it is like another.
pub(super) fn large() -> &'static [u8] {
    &LARGE
}

fn write(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::write(&path, bytes).expect("it is new");
    let file = File::options().write(true).open(path).expect("it is there");
    let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
    file.set_modified(modified).expect("it is ours");
}

/// A file cache of the site, with nothing in it.
pub(super) fn open() -> Files {
    let site = config::Site::of(config::Root::Directory(ROOT.path().into()));
    let cache = config::Cache {
        entries: 100,
        bytes: 1 << 16,
        descriptors: 10,
        valid: Duration::from_secs(1),
        inline_bytes: INLINE_BYTES,
        error_page_bytes: 1000,
        listing_entries: 100,
        etag: config::ETag::MtimeSize,
    };
    Files::open(&[site], &cache).expect("the root is there")
}
