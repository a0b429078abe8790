//! Layer 30: from a file to the bytes, warm and cold.

use std::fs::File;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use crate::support::{Client, Server, Site, pattern, skip};

/// Drops what the page cache holds of a file.
fn evict(path: &Path) {
    let file = File::open(path).expect("the file is there");
    file.sync_all().expect("the disk takes it");
    posix_fadvise(file.as_fd(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("a file");
}

/// Evicts files again and again while `work` is done.
fn evicting<T>(paths: &[&Path], work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                paths.iter().for_each(|path| evict(path));
            }
        });
        // The thread must see the end of a test that fails, too.
        let result = panic::catch_unwind(AssertUnwindSafe(work));
        done.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|failure| panic::resume_unwind(failure))
    })
}

/// A site on a disk, unless there is none.
fn site_on_disk() -> Option<Site> {
    let site = Site::new();
    let kind = statfs(&site.path("")).expect("the directory is there").filesystem_type();
    if kind == TMPFS_MAGIC {
        skip("temporary files are in memory, so that none is ever cold");
        return None;
    }
    Some(site)
}

/// More than the socket buffers of both sides hold together.
const LARGE: usize = 16 << 20;

#[test]
fn a_peer_that_does_not_read_keeps_no_cold_file_from_others() {
    let Some(site) = site_on_disk() else { return };
    let content = pattern(LARGE);
    for name in ["stalled", "wanted"] {
        site.write(name, &content);
        evict(&site.path(name));
    }
    // One buffer, which the socket of a peer that does not read cannot take.
    let settings = "[ring]\nfixed_buffers = 1\n[timeouts]\nwrite_stall = \"1h\"
        [limits]\nbytes_per_turn = \"16MiB\"
        [transfer]\nquantum = \"16MiB\"\ncold_window = \"16MiB\"";
    let server = Server::start(site.serve_with(settings).cpus("0"));
    let mut stalled = Client::narrow(server.address(), 4096);
    stalled.send("GET /stalled HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(stalled.head().status, 200);
    let wanted = Client::connect(server.address()).get("/wanted");
    assert!(wanted.body == content, "the bytes are not those of the file");
    drop(stalled);
    assert!(server.stop().total("cold_reads") >= 2);
}
