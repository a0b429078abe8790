//! The requests of one connection and the responses to them; knows no socket.
//!
//! | what happens | requests may be sent | responses are awaited |
//! |---|---|---|
//! | [`Exchanges::begin`] | as many as the connection may carry | none |
//! | [`Exchanges::next_batch`] | what is left, one batch at a time | one more each |
//! | a response that announces the close | none | none: what was in flight is lost, as announced |
//! | the last response | none | none |

use crate::request::{Persistence, Script};
use crate::response::{FrameError, Framer, Head, HeadMemory};
use crate::tally::Tally;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The requests of a thread, prepared both ways.
pub(super) struct Scripts {
    pub(super) persist: Script,
    pub(super) close: Script,
}

/// What is known of a target from its responses.
#[derive(Clone, Debug)]
pub(super) struct TargetMemory {
    /// The status of right responses.
    status: u16,
    head: HeadMemory,
    /// Body length of the first right response; all others must have it.
    body_bytes: Option<u64>,
}

impl TargetMemory {
    /// Nothing but which status is right.
    pub(super) fn new(status: u16) -> Self {
        Self { status, head: HeadMemory::default(), body_bytes: None }
    }
}

/// What is to be sent next: a range of the script for `persistence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) persistence: Persistence,
    pub(super) range: Range<usize>,
}

/// What the connection carried that is not a response asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A response that cannot be framed.
    Frame(FrameError),
    /// Bytes while no response was awaited.
    Unasked,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    target: usize,
    queued: Instant,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Exchanges {
    framer: Framer,
    /// In the order sent; at most `pipeline`.
    in_flight: VecDeque<InFlight>,
    pipeline: usize,
    /// Requests that the connection may still be asked to carry.
    left: u64,
    /// A batch is on its way to the kernel: no other may be started.
    sending: bool,
}

impl Exchanges {
    pub(super) fn new(pipeline: usize) -> Self {
        Self {
            framer: Framer::default(),
            in_flight: VecDeque::with_capacity(pipeline),
            pipeline,
            left: 0,
            sending: false,
        }
    }

    /// A new connection, for so many requests (at least one).
    pub(super) fn begin(&mut self, requests: u64) {
        self.framer.reset();
        self.in_flight.clear();
        self.left = requests;
        self.sending = false;
    }

    /// Whether [`Exchanges::next_batch`] has one.
    pub(super) fn may_send(&self) -> bool {
        !self.sending && self.left > 0 && self.in_flight.len() < self.pipeline
    }

    /// The next requests to send, the first of them for target `cursor`, which moves on.
    pub(super) fn next_batch(
        &mut self,
        scripts: &Scripts,
        cursor: &mut usize,
        now: Instant,
    ) -> Option<Batch> {
        if !self.may_send() {
            return None;
        }
        let room = self.pipeline - self.in_flight.len();
        let (persistence, script, count) = match self.left {
            1 => (Persistence::Close, &scripts.close, 1),
            left => {
                let before_last = usize::try_from(left - 1).unwrap_or(usize::MAX);
                (Persistence::Persist, &scripts.persist, room.min(before_last))
            }
        };
        let first = *cursor;
        for i in 0..count {
            let target = script.after(first, i);
            self.in_flight.push_back(InFlight { target, queued: now });
        }
        *cursor = script.after(first, count);
        self.left -= count as u64;
        self.sending = true;
        Some(Batch { persistence, range: script.batch(first, count) })
    }

    /// The batch is with the kernel.
    pub(super) fn sent(&mut self) {
        self.sending = false;
    }

    /// Takes in what was received at `now` and counts the responses in it.
    pub(super) fn receive(
        &mut self,
        mut input: &[u8],
        now: Instant,
        targets: &mut [TargetMemory],
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        while !input.is_empty() {
            let Some(&InFlight { target, queued }) = self.in_flight.front() else {
                return Err(Fault::Unasked);
            };
            let memory = &mut targets[target];
            let Some(head) =
                self.framer.next(&mut input, &mut memory.head).map_err(Fault::Frame)?
            else {
                return Ok(());
            };
            self.in_flight.pop_front();
            judge(head, memory, now - queued, tally);
            if !head.persistent {
                self.in_flight.clear();
                self.left = 0;
            }
        }
        Ok(())
    }

    /// No request is left and no response awaited: only the close can follow.
    pub(super) fn finished(&self) -> bool {
        self.left == 0 && self.in_flight.is_empty()
    }

    /// Whether a response is awaited, or has come in part.
    pub(super) fn awaiting(&self) -> bool {
        !self.in_flight.is_empty()
    }
}

fn judge(head: Head, right: &mut TargetMemory, latency: Duration, tally: &mut Tally) {
    if head.status != right.status {
        tally.errors.status += 1;
    } else if head.body_bytes != *right.body_bytes.get_or_insert(head.body_bytes) {
        tally.errors.length += 1;
    } else {
        tally.answered(latency);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Version, Wording};
    use crate::target::Target;

    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    const LONGER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy";
    const MISSING: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

    struct Fixture {
        scripts: Scripts,
        targets: Vec<TargetMemory>,
        cursor: usize,
        tally: Tally,
        exchanges: Exchanges,
    }

    impl Fixture {
        fn new(targets: usize, pipeline: usize, requests: u64) -> Self {
            let list: Vec<Target> =
                (0..targets).map(|i| format!("http://h/{i}").parse().unwrap()).collect();
            let plain = Wording::plain(Version::Http11);
            let script = |persistence| Script::new(&list, &plain, persistence, pipeline);
            let mut exchanges = Exchanges::new(pipeline);
            exchanges.begin(requests);
            Self {
                scripts: Scripts {
                    persist: script(Persistence::Persist),
                    close: script(Persistence::Close),
                },
                targets: vec![TargetMemory::new(200); targets],
                cursor: 0,
                tally: Tally::new(),
                exchanges,
            }
        }

        /// Paths of the next batch, and whether it says that it is the last.
        fn batch(&mut self) -> Option<(String, bool)> {
            let batch =
                self.exchanges.next_batch(&self.scripts, &mut self.cursor, Instant::now())?;
            let close = batch.persistence == Persistence::Close;
            let script = if close { &self.scripts.close } else { &self.scripts.persist };
            let text = String::from_utf8(script.bytes()[batch.range].to_vec()).unwrap();
            assert_eq!(text.contains("Connection: close"), close);
            let paths = text.lines().filter_map(|line| line.strip_prefix("GET /"));
            Some((paths.map(|path| &path[..1]).collect(), close))
        }

        fn receive(&mut self, bytes: &[u8]) -> Result<(), Fault> {
            self.exchanges.receive(bytes, Instant::now(), &mut self.targets, &mut self.tally)
        }
    }

    fn paths(paths: &str) -> Option<(String, bool)> {
        Some((paths.to_owned(), false))
    }

    #[test]
    fn one_at_a_time_round_robin() {
        let mut f = Fixture::new(2, 1, u64::MAX);
        for path in ["0", "1", "0"] {
            assert_eq!(f.batch(), paths(path));
            assert_eq!(f.batch(), None, "sending");
            f.exchanges.sent();
            assert_eq!(f.batch(), None, "awaiting");
            f.receive(OK).unwrap();
            assert!(!f.exchanges.finished());
        }
        assert_eq!(f.tally.requests, 3);
    }

    #[test]
    fn the_pipeline_is_refilled_and_the_last_request_says_close() {
        let mut f = Fixture::new(3, 4, 7);
        assert_eq!(f.batch(), paths("0120"));
        f.exchanges.sent();
        f.receive(&OK.repeat(2)).unwrap();
        assert_eq!(f.batch(), paths("12"));
        f.exchanges.sent();
        f.receive(&OK.repeat(3)).unwrap();
        assert_eq!(f.batch(), Some(("0".to_owned(), true)));
        f.exchanges.sent();
        assert_eq!(f.batch(), None);
        f.receive(OK).unwrap();
        assert!(!f.exchanges.finished());
        f.receive(LAST).unwrap();
        assert!(f.exchanges.finished());
        assert_eq!(f.tally.requests, 7);
    }

    #[test]
    fn an_announced_close_ends_it_and_what_was_in_flight_is_no_error() {
        let mut f = Fixture::new(1, 4, u64::MAX);
        f.batch().unwrap();
        f.exchanges.sent();
        f.receive(LAST).unwrap();
        assert!(f.exchanges.finished() && !f.exchanges.awaiting());
        assert_eq!(f.batch(), None);
        assert_eq!((f.tally.requests, f.tally.errors.total()), (1, 0));
    }

    #[test]
    fn wrong_answers_are_counted_by_kind() {
        let mut f = Fixture::new(1, 4, u64::MAX);
        f.batch().unwrap();
        f.receive(&[OK, MISSING, LONGER, OK].concat()).unwrap();
        assert_eq!(f.tally.requests, 2);
        assert_eq!((f.tally.errors.status, f.tally.errors.length), (1, 1));
    }

    #[test]
    fn what_was_not_asked_for_is_a_fault() {
        let mut f = Fixture::new(1, 1, u64::MAX);
        assert_eq!(f.receive(OK), Err(Fault::Unasked));
        f.batch().unwrap();
        assert_eq!(f.receive(&OK.repeat(2)), Err(Fault::Unasked));
        f.exchanges.begin(1);
        f.batch().unwrap();
        assert_eq!(f.receive(b"?\r\n\r\n"), Err(Fault::Frame(FrameError::Malformed)));
    }
}
