//! Rings and registered buffers of servers that had ended were not given back, or by a kernel worker
//! long after: a server that was started again found no memory that it might lock.

use std::fs::File;

use nix::sys::signal::Signal;

use crate::support::cold::{evict, site_on_disk};
use crate::support::{Client, Server, pattern, repeats, skip};

/// KiB that a user may lock by default.
const LOCKED_KIB: u64 = 8192;

const FILE_BYTES: usize = 2 << 20;

#[test]
fn a_hundred_times() {
    if !nix::unistd::geteuid().is_root() {
        return skip("needs root, to become a user whose locked memory is limited");
    }
    let Some(site) = site_on_disk() else { return };
    site.write("cold", pattern(FILE_BYTES));
    let file = File::open(site.path("cold")).expect("it was written");
    file.sync_all().expect("the disk takes it");
    for round in 0..repeats(100) {
        let args = site.serve().cpus("0").unprivileged().ulimit("-l", LOCKED_KIB);
        let server = Server::start(args);
        evict(&site.path("cold"));
        // Read into registered buffers, which are locked.
        let response = Client::connect(server.address()).get("/cold");
        assert!(response.body == pattern(FILE_BYTES), "round {round}");
        if round % 2 == 0 {
            // Nothing is given back by the server itself.
            server.signal(Signal::SIGKILL);
            drop(server);
        } else {
            assert!(server.stop().total("fixed_reads") > 0, "round {round}");
        }
    }
}
