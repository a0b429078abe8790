//! A second codec, of the test's own: two exchanges on one connection, their bodies in turns.
//!
//! It shows that nothing between a request and its body's last byte needs the connection to itself:
//! a response is pulled by whoever frames it, in pieces of its choice.

use crate::files::{Channel, FileBody, Files, Now, Request};
use crate::http::{Body as _, FieldLines, Persistence, Pull};

use super::site::{self, SMALL, START_S, large, read_at};

/// A response that is being framed.
struct Stream {
    head: Vec<u8>,
    body: Option<FileBody>,
}

impl Stream {
    /// The next piece of at most `max_bytes`; `None`: that was all.
    fn next(&mut self, max_bytes: usize) -> Option<Vec<u8>> {
        if !self.head.is_empty() {
            return Some(self.head.drain(..self.head.len().min(max_bytes)).collect());
        }
        match self.body.as_mut()?.next(max_bytes) {
            Pull::Bytes(bytes) => Some(bytes.as_slice().to_vec()),
            Pull::File { file, offset, bytes } => {
                let mut piece = vec![0; bytes];
                read_at(&file, offset, &mut piece);
                Some(piece)
            }
            Pull::Wait => unreachable!("files are always ready"),
            Pull::End => None,
        }
    }
}

#[test]
fn two_exchanges_take_turns_on_one_connection() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let config = site::config(&mut random);
        let mut files = Files::open(&config.sites, &config.cache).expect("the root is there");
        let now = Now::new(START_S, 0);
        let targets = [&b"/large.bin"[..], b"/small.txt", b"/large.bin"];
        let mut streams: Vec<_> = targets
            .iter()
            .map(|target| {
                let request = Request {
                    target,
                    head_only: false,
                    persistence: Persistence::KeepAlive,
                    fields: FieldLines::NONE,
                };
                let site = files.site(None, Channel::Plain);
                let reply = files.reply(site, &request, &now);
                Stream { head: reply.head.as_slice().to_vec(), body: reply.body }
            })
            .collect();

        let mut received = vec![Vec::new(); streams.len()];
        let mut open: Vec<usize> = (0..streams.len()).collect();
        while !open.is_empty() {
            let at = random.usize(..open.len());
            let max_bytes = random.usize(1..2000);
            match streams[open[at]].next(max_bytes) {
                Some(piece) => {
                    assert!((1..=max_bytes).contains(&piece.len()), "seed {seed}");
                    received[open[at]].extend(piece);
                }
                None => drop(open.swap_remove(at)),
            }
        }
        for (answer, body) in received.iter().zip([large(), SMALL, large()]) {
            assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "seed {seed}");
            assert!(answer.ends_with(body), "seed {seed}");
        }
    }
}
