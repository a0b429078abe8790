//! Layer 30: from a file to the bytes, warm and cold.

use std::fs::File;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::cold::{evict, site_on_disk};
use crate::support::{Client, Server, Site, pattern, repeats, wait_until};

const MIB: usize = 1 << 20;

/// Writes a file that no two MiB of are alike, and that is on the disk when this returns.
fn write_large(path: &Path, mib: usize) {
    let mut file = File::create(path).expect("the directory is ours");
    for index in 0..mib {
        file.write_all(&block(index)).expect("the disk has room");
    }
    file.sync_all().expect("the disk takes it");
}

/// The MiB at `index` of what [`write_large`] writes.
fn block(index: usize) -> Vec<u8> {
    let mut block = pattern(MIB);
    for (place, byte) in block[..4096].iter_mut().zip((index as u64).to_le_bytes().iter().cycle()) {
        *place ^= byte;
    }
    block
}

#[test]
fn a_peer_that_does_not_read_keeps_no_cold_file_from_others() {
    let Some(site) = site_on_disk() else { return };
    for name in ["stalled", "wanted"] {
        write_large(&site.path(name), 16);
        evict(&site.path(name));
    }
    // One buffer, which the socket of a peer that does not read cannot take.
    let settings = "[ring]\nfixed_buffers = 1\n[timeouts]\nwrite_stall = \"1h\"
        [transfer]\nquantum = \"16MiB\"\ncold_window = \"16MiB\"";
    let server = Server::start(site.serve_with(settings).cpus("0"));
    let mut stalled = Client::narrow(server.address(), 4096);
    stalled.send("GET /stalled HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(stalled.head().status, 200);
    let wanted = Client::connect(server.address()).get("/wanted");
    assert!(wanted.body == (0..16).flat_map(block).collect::<Vec<_>>(), "other bytes");
    drop(stalled);
    assert!(server.stop().total("cold_reads") >= 2);
}

#[test]
fn cold_files_take_turns_with_the_buffers_that_there_are() {
    const FILES: usize = 8;
    let Some(site) = site_on_disk() else { return };
    for number in 0..FILES {
        write_large(&site.path(&number.to_string()), 1);
        evict(&site.path(&number.to_string()));
    }
    let server = Server::start(site.serve_with("[ring]\nfixed_buffers = 1").cpus("0"));
    let mut clients: Vec<_> = (0..FILES).map(|_| Client::connect(server.address())).collect();
    // All of them come in one turn.
    server.pause();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
    server.resume();
    for client in &mut clients {
        assert!(client.response().body == block(0), "other bytes");
    }
    drop(clients);
    assert!(server.stop().total("cold_reads_waited") > 0);
}

/// The serving thread of a server with one shard.
struct ServingThread {
    /// Its directory in `/proc`.
    task: PathBuf,
}

impl ServingThread {
    fn of(server: &Server) -> ServingThread {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid()));
        let mut tasks = tasks.expect("the server is running").flatten().map(|task| task.path());
        let is_shard = |task: &PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "shard-0\n")
        };
        ServingThread { task: tasks.find(is_shard).expect("there is a shard") }
    }

    /// Whether it is inside of this system call, and does not run.
    fn is_in(&self, system_call: libc::c_long) -> bool {
        let shown = std::fs::read_to_string(self.task.join("syscall")).expect("the server runs");
        shown.starts_with(&format!("{system_call} "))
    }

    /// Whether it sleeps where no signal wakes it, as it does for the pages of a file. (One that was
    /// stopped, or that waits for a CPU, is inside of its last system call as well.)
    fn sleeps_for_a_disk(&self) -> bool {
        let stat = std::fs::read_to_string(self.task.join("stat")).expect("the server runs");
        stat.rsplit(") ").next().is_some_and(|state| state.starts_with('D'))
    }

    /// Stops the server where this thread waits for completions, with nothing begun.
    #[track_caller]
    fn pause_idle(&self, server: &Server) {
        wait_until("the serving thread has nothing to do", || {
            server.pause();
            let idle = self.is_in(libc::SYS_io_uring_enter);
            if !idle {
                server.resume();
            }
            idle
        });
    }

    /// Looks again and again, while `work` is done, at what the thread waits in; returns how often
    /// that came to be pages of a file, for a sendfile(2).
    fn sendfiles_that_waited(&self, work: impl FnOnce()) -> usize {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let (mut waits, mut is_waiting) = (0, false);
                while !done.load(Ordering::Relaxed) {
                    let waits_now = self.is_in(libc::SYS_sendfile) && self.sleeps_for_a_disk();
                    // One wait is seen by many looks, on a slow disk by very many.
                    let was_waiting = std::mem::replace(&mut is_waiting, waits_now);
                    waits += usize::from(is_waiting && !was_waiting);
                }
                waits
            });
            // The thread must see the end of work that fails, too.
            let result = panic::catch_unwind(AssertUnwindSafe(work));
            done.store(true, Ordering::Relaxed);
            result.unwrap_or_else(|failure| panic::resume_unwind(failure));
            looks.join().expect("looking does not fail")
        })
    }
}

#[test]
fn a_file_evicted_in_mid_download_is_read_by_the_ring() {
    let Some(site) = site_on_disk() else { return };
    let mib = repeats(256);
    write_large(&site.path("large"), mib);
    let server = Server::start(site.serve().cpus("0"));
    let mut client = Client::connect(server.address());
    let shard = ServingThread::of(&server);
    let waits = shard.sendfiles_that_waited(|| {
        client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.head().field("content-length"), Some(&*(mib * MIB).to_string()));
        for index in 0..mib {
            if index % 4 == 0 {
                // Nothing falls between the server's question and its sendfile.
                shard.pause_idle(&server);
                evict(&site.path("large"));
                server.resume();
            }
            assert!(client.take(MIB) == block(index), "other bytes in MiB {index}");
        }
    });
    assert!(waits < 5, "{waits} times a sendfile waited for pages");
    let stats = server.stop();
    assert!(stats.total("residency_cold") > 0);
    assert!(stats.total("cold_reads") > 0);
    let reads = stats.total("fixed_reads") + stats.total("unregistered_reads");
    assert_eq!(reads, stats.total("cold_reads"));
}

/// A large file with nothing in it, one peer that takes it slowly and one that takes it as fast as
/// it can: each has a quantum a turn, and others have their turns.
#[test]
fn large_downloads_give_way_to_small_answers() {
    const LARGE: u64 = 1 << 30;
    let site = Site::with("small", "small\n");
    File::create(site.path("large")).and_then(|file| file.set_len(LARGE)).expect("a sparse file");
    let server = Server::start(site.serve().cpus("0"));
    let begin = || {
        let mut client = Client::narrow(server.address(), 65_536);
        client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.head().status, 200);
        client
    };
    let mut slow = begin();
    let mut fast = begin();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut left = LARGE as usize;
            while left > 0 && !done.load(Ordering::Relaxed) {
                let bytes = left.min(65_536);
                assert!(fast.take(bytes).iter().all(|&byte| byte == 0));
                left -= bytes;
            }
        });
        let mut other = Client::connect(server.address());
        for _ in 0..repeats(1000) {
            assert_eq!(other.get("/small").body, b"small\n");
            assert!(slow.take(4096).iter().all(|&byte| byte == 0));
        }
        done.store(true, Ordering::Relaxed);
    });
    drop((slow, fast));
    let stats = server.stop();
    assert_eq!(stats.total("requests"), 2 + repeats(1000) as u64);
    let (turns, quanta) = (stats.total("turns"), stats.total("sendfile_calls"));
    assert!(quanta <= 2 * turns, "{quanta} quanta of two downloads in {turns} turns");
}
