//! The site that is served: few files, each of its own kind, whose times never change.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;

use crate::config::{self, Config, Facts, Overrides};

pub(super) const SMALL: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
pub(super) const INDEX: &[u8] = b"<!doctype html><title>index</title>";
/// When no file of the site can have been touched a moment ago.
pub(super) const START_S: u64 = 1_800_000_000;
const MODIFIED_S: u64 = 1_700_000_000;
/// The largest request body.
pub(super) const BODY_BYTES: usize = 2000;
/// Larger is sent from the file.
const INLINE_BYTES: usize = 1000;

static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| unlike(6_000, 2_654_435_761));
static OTHER: LazyLock<Vec<u8>> = LazyLock::new(|| unlike(3_000, 2_246_822_519));

static ROOT: LazyLock<TempDir> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("there is room for a few files");
    fs::create_dir(root.path().join("dir")).expect("it is new");
    write(root.path(), "small.txt", SMALL);
    write(root.path(), "index.html", INDEX);
    write(root.path(), "large.bin", &LARGE);
    write(root.path(), "other.bin", &OTHER);
    root
});

fn unlike(bytes: u32, factor: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(factor) >> 24) as u8).collect()
}

/// Sent from a file, and no piece of it is like another.
pub(super) fn large() -> &'static [u8] {
    &LARGE
}

/// The same, and unlike that.
pub(super) fn other() -> &'static [u8] {
    &OTHER
}

fn write(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::write(&path, bytes).expect("it is new");
    let file = File::options().write(true).open(path).expect("it is there");
    let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
    file.set_modified(modified).expect("it is ours");
}

/// The defaults, with this site and few buffers of few bytes, so that all of them run out.
pub(super) fn config(random: &mut fastrand::Rng) -> Config {
    let facts = Facts { allowed_cpus: vec![0], nofile: 4096 };
    let mut config = config::resolve(None, &Overrides::default(), &facts).expect("defaults hold");
    config.sites = vec![config::Site::of(config::Root::Directory(ROOT.path().into()))];
    config.cache.inline_bytes = INLINE_BYTES;
    config.cache.descriptors = 10;
    config.limits.request_line_bytes = 200;
    config.limits.head_bytes = 1000;
    config.limits.fields = 10;
    config.limits.body_bytes = BODY_BYTES as u64;
    config.limits.pipeline_bytes = [60, 300][random.usize(..2)];
    config.limits.requests_per_turn = random.usize(1..5);
    config.limits.connections_per_shard = [1, 2, 5, 100][random.usize(..4)];
    config.limits.backlog = [0, 1, 3, 4096][random.usize(..4)];
    // Longer than all pauses of a peer.
    config.timeouts.linger = Duration::from_secs(8);
    config.transfer.quantum_bytes = [700, 5000, 1 << 20][random.usize(..3)];
    config.tls.handshakes = [1, 3, 1024][random.usize(..3)];
    config.tls.handshakes_per_turn = random.usize(1..5);
    config.transfer.sealed_quantum_bytes = [900, 7000][random.usize(..2)];
    config.transfer.cold_window_bytes = [500, 4096, 1 << 16][random.usize(..3)];
    config.ring.recv_buffers = [1, 2, 16][random.usize(..3)];
    config.ring.recv_buffer_bytes = [16, 100, 4096][random.usize(..3)];
    config.ring.fixed_buffers = random.u16(1..4);
    config
}

/// A piece of a file that does not change.
pub(super) fn read_at(file: &OwnedFd, offset: u64, piece: &mut [u8]) {
    let file = File::from(file.try_clone().expect("a descriptor is free"));
    file.read_exact_at(piece, offset).expect("the file has what it was said to have");
}
