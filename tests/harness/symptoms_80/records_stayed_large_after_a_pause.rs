//! Records are small at first, so that a peer need not wait for a large one before it has the first byte.
//! After a pause they were as large as before it, although TCP begins anew then.

use std::thread;
use std::time::Duration;

use crate::support::pattern;
use crate::support::secure::{SecureServer, SecureSite, VERSIONS};
use crate::support::wire::{APPLICATION_DATA, Crafted, HANDSHAKE, Seen};

const LARGE_BYTES: usize = 1 << 18;

/// A record that fills a segment, and the largest that there is.
const SMALL: usize = 1369;
const LARGE: usize = 1 << 14;

/// Bytes in each record of an answer.
fn records(peer: &mut Crafted) -> Vec<usize> {
    peer.send(APPLICATION_DATA, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (mut records, mut answer) = (Vec::new(), Vec::new());
    loop {
        match peer.next() {
            Seen::Record(APPLICATION_DATA, data) => {
                records.push(data.len());
                answer.extend(data);
            }
            Seen::Record(HANDSHAKE, _) => {}
            other => panic!("{other:?} after {} bytes", answer.len()),
        }
        let end_of_head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if end_of_head.is_some_and(|at| answer.len() == at + 4 + LARGE_BYTES) {
            return records;
        }
    }
}

#[test]
fn they_are_small_again() {
    let site = SecureSite::with("large", pattern(LARGE_BYTES));
    let server = SecureServer::start(site.serve_with("ktls = \"off\""));
    for version in VERSIONS {
        let mut peer = Crafted::connect(server.address(), &site.authority, version);
        let first = records(&mut peer);
        assert!(first[0] == SMALL && first.contains(&LARGE), "{version:?}: {first:?}");
        thread::sleep(Duration::from_millis(1100));
        let second = records(&mut peer);
        assert!(second[0] == SMALL && second.contains(&LARGE), "{version:?}: {second:?}");
    }
    server.stop();
}
