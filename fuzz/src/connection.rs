//! A whole connection: `http::Connection`, driven by bytes and events.
//!
//! The input is what the peer sends. Bytes that no text in UTF-8 has are events among it:
//!
//! | byte | event |
//! |---|---|
//! | `F8` | what was sent until now arrives apart from what follows |
//! | `F9` | the response under way is sent |
//! | `FA` | the peer ends its side |
//! | `FB` | the server drains |
//! | `FC` | the server refuses to wait any longer |
//!
//! It is run three times: in the pieces of the script, in one piece between other events, and byte by
//! byte. The same requests must be taken, and the same must be said of the connection. In each run:
//!
//! - a request is taken only while no response is under way, in order, and each byte once;
//! - no request follows a response that said that it is the last;
//! - once nothing more is taken, nothing ever is;
//! - after the peer's end it comes to the end, in as many steps as there are requests.

use onering::http::head::parse;
use onering::http::{Awaiting, Connection, HeadLimits, Persistence, Refusal, RequestBody, Take};

/// Low enough to be reached.
const LIMITS: HeadLimits = HeadLimits { request_line_bytes: 48, head_bytes: 256, fields: 6 };

/// No request is shorter: `A / HTTP/1.0`, and two line ends.
const REQUEST_BYTES_MIN: usize = 16;

/// Checks a script.
pub fn check(script: &[u8]) {
    let script = &script[..script.len().min(4096)];
    let as_written = Run::of(script, Pieces::AsWritten);
    for pieces in [Pieces::Joined, Pieces::Bytes] {
        let other = Run::of(script, pieces);
        assert_eq!(as_written.requests, other.requests, "{pieces:?}");
        // Who is refused for being slow may otherwise be refused for what is sent.
        if !as_written.gave_up && !other.gave_up {
            assert_eq!(as_written.refusal, other.refusal, "{pieces:?}");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pieces {
    AsWritten,
    Joined,
    Bytes,
}

/// A request that was taken.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    /// Where it begins and ends in what was received.
    begin: usize,
    end: usize,
    /// What its response says.
    said: Persistence,
}

struct Run {
    connection: Connection,
    pieces: Pieces,
    /// All that was received, and how much of it has been consumed.
    received: Vec<u8>,
    consumed: usize,
    requests: Vec<Taken>,
    refusal: Option<Refusal>,
    /// The server refused to wait, and no other answer was under way.
    gave_up: bool,
    is_answering: bool,
    is_last_said: bool,
    is_ended: bool,
    is_draining: bool,
}

impl Run {
    fn of(script: &[u8], pieces: Pieces) -> Self {
        let mut run = Self {
            connection: Connection::new(),
            pieces,
            received: Vec::new(),
            consumed: 0,
            requests: Vec::new(),
            refusal: None,
            gave_up: false,
            is_answering: false,
            is_last_said: false,
            is_ended: false,
            is_draining: false,
        };
        let mut rest = script;
        while !rest.is_empty() && run.awaiting() != Awaiting::Close {
            match rest[0] {
                0xf8 => rest = &rest[1..],
                event @ 0xf9..=0xfc => {
                    run.event(event);
                    rest = &rest[1..];
                }
                _ => {
                    let is_end = |&byte: &u8| match pieces {
                        Pieces::Joined => matches!(byte, 0xf9..=0xfc),
                        _ => matches!(byte, 0xf8..=0xfc),
                    };
                    let bytes = match pieces {
                        Pieces::Bytes => 1,
                        _ => rest.iter().position(is_end).unwrap_or(rest.len()),
                    };
                    let (piece, after) = rest.split_at(bytes);
                    run.receive(piece);
                    rest = after;
                }
            }
        }
        run.finish();
        run
    }

    fn awaiting(&self) -> Awaiting {
        self.connection.awaiting(self.consumed < self.received.len())
    }

    fn receive(&mut self, piece: &[u8]) {
        if self.is_ended || !self.connection.takes_more() {
            return;
        }
        self.received.extend(piece.iter().filter(|&&byte| byte != 0xf8));
        self.take();
    }

    fn event(&mut self, event: u8) {
        let took_more = self.connection.takes_more();
        match event {
            0xf9 if self.is_answering => {
                self.connection.answered();
                self.is_answering = false;
                self.take();
            }
            0xfa => {
                self.connection.peer_ended();
                self.is_ended = true;
                self.take();
            }
            0xfb => {
                self.connection.drain();
                self.is_draining = true;
                if self.is_answering {
                    assert_eq!(self.connection.persistence(), Persistence::Close);
                }
            }
            0xfc => {
                let is_over = self.awaiting() == Awaiting::Close;
                self.connection.refuse();
                if !self.is_answering && !is_over {
                    assert_eq!(self.connection.persistence(), Persistence::Close);
                    self.gave_up = true;
                    self.is_answering = true;
                }
                self.is_last_said = true;
            }
            _ => {}
        }
        assert!(took_more || !self.connection.takes_more(), "nothing more was to be taken");
        self.inspect();
    }

    /// Takes a request, if there is one and it is its turn.
    fn take(&mut self) {
        let input = &self.received[self.consumed..];
        let took_more = self.connection.takes_more();
        let was_over = self.awaiting() == Awaiting::Close && (self.is_last_said || !self.is_ended);
        let taken = self.connection.take(input, &LIMITS);
        match taken {
            Take::Request(head) => {
                assert!(!self.is_answering && !self.is_last_said && !was_over);
                assert_eq!(parse(input, &LIMITS), Ok(Some(head)));
                let said = self.connection.persistence();
                let must_close = self.is_draining
                    || head.persistence == Persistence::Close
                    || head.body == RequestBody::Present;
                let may_close = must_close || (self.is_ended && head.bytes == input.len());
                assert!(if said == Persistence::Close { may_close } else { !must_close });
                assert!(said == Persistence::Close || said == head.persistence);
                let begin = self.consumed;
                self.consumed += head.bytes;
                self.requests.push(Taken { begin, end: self.consumed, said });
                self.is_answering = true;
                self.is_last_said = said == Persistence::Close;
            }
            Take::Refused(refusal) => {
                assert!(!self.is_answering && !self.is_last_said && !was_over);
                assert_eq!(parse(input, &LIMITS), Err(refusal));
                assert_eq!(self.connection.persistence(), Persistence::Close);
                self.refusal = Some(refusal);
                self.is_answering = true;
                self.is_last_said = true;
            }
            Take::Incomplete => {
                assert!(!self.is_answering && !self.is_last_said);
                // Byte by byte this would be most of the work, and the same requests are taken.
                let is_whole =
                    self.pieces != Pieces::Bytes && matches!(parse(input, &LIMITS), Ok(Some(_)));
                assert!(!is_whole, "a whole head waits");
                // Of what has been seen nothing is seen anew.
                let again = self.connection.take(&self.received[self.consumed..], &LIMITS);
                let expected = if self.is_ended { Take::Busy } else { Take::Incomplete };
                let is_empty = self.consumed == self.received.len();
                assert!(again == expected || is_empty, "{again:?}");
            }
            Take::Busy => assert!(self.is_answering || !self.connection.takes_more()),
        }
        assert!(took_more || !self.connection.takes_more(), "nothing more was to be taken");
        self.inspect();
    }

    fn inspect(&self) {
        assert_eq!(self.awaiting() == Awaiting::Answer, self.is_answering);
        if self.is_last_said {
            assert!(!self.connection.takes_more());
            assert_eq!(self.connection.persistence(), Persistence::Close);
        }
        if self.is_ended {
            assert!(!self.connection.takes_more());
        }
    }

    /// The peer ends, and all that it has asked for is answered.
    fn finish(&mut self) {
        if !self.is_ended {
            self.event(0xfa);
        }
        let steps = self.received.len() / REQUEST_BYTES_MIN + 2;
        for _ in 0..steps {
            if self.is_answering {
                self.event(0xf9);
            }
        }
        assert!(!self.is_answering, "answers without end");
        assert_eq!(self.awaiting(), Awaiting::Close);
    }
}
