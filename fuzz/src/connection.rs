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
//! | `FD` | the server declines the body that is coming |
//!
//! It is run three times: in the pieces of the script, in one piece between other events, and byte by
//! byte. The same requests must be taken, with the same bodies, and the same must be said of the
//! connection. In each run:
//!
//! - a request is taken only while no response is under way, in order, and each byte once;
//! - a body is taken to its end, or refused, whether its request is answered already or not;
//! - no request follows a response that said that it is the last;
//! - once nothing more is taken, nothing ever is;
//! - after the peer's end it comes to the end, in as many steps as there are requests.

use onering::http::head::parse;
use onering::http::{
    Awaiting, BodyPiece, Connection, HeadLimits, Method, Persistence, Refusal, RequestBody,
    RequestHead, RequestLimits, Take,
};

/// Low enough to be reached.
const LIMITS: RequestLimits = RequestLimits {
    head: HeadLimits { request_line_bytes: 48, head_bytes: 256, fields: 6 },
    body_bytes: 64,
};

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
    body: RequestBody,
    /// What has come of that.
    data: Vec<u8>,
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
    /// A body is coming.
    is_in_body: bool,
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
            is_in_body: false,
            is_last_said: false,
            is_ended: false,
            is_draining: false,
        };
        let mut rest = script;
        while !rest.is_empty() && run.awaiting() != Awaiting::Close {
            match rest[0] {
                0xf8 => rest = &rest[1..],
                event @ 0xf9..=0xfd => {
                    run.event(event);
                    rest = &rest[1..];
                }
                _ => {
                    let is_end = |&byte: &u8| match pieces {
                        Pieces::Joined => matches!(byte, 0xf9..=0xfd),
                        _ => matches!(byte, 0xf8..=0xfd),
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
        self.take_all();
    }

    fn event(&mut self, event: u8) {
        let took_more = self.connection.takes_more();
        match event {
            0xf9 if self.is_answering => {
                self.connection.answered();
                self.is_answering = false;
                // What would still come is not waited for.
                self.is_in_body &= !self.is_last_said && !self.is_draining;
                self.take_all();
            }
            0xfa => {
                self.connection.peer_ended();
                self.is_ended = true;
                self.take_all();
            }
            0xfb => {
                self.connection.drain();
                self.is_draining = true;
                if self.is_answering {
                    assert_eq!(self.connection.persistence(), Persistence::Close);
                }
                self.is_in_body &= self.is_answering;
            }
            0xfc => {
                let is_over = self.awaiting() == Awaiting::Close || self.is_in_body;
                self.connection.refuse(&self.received[self.consumed..]);
                self.is_in_body = false;
                if !self.is_answering && !is_over {
                    assert_eq!(self.connection.persistence(), Persistence::Close);
                    self.gave_up = true;
                    self.is_answering = true;
                }
                self.is_last_said = true;
            }
            0xfd => {
                self.connection.decline_body();
                self.is_last_said |= self.is_in_body;
                self.is_in_body = false;
            }
            _ => {}
        }
        assert!(took_more || !self.connection.takes_more(), "nothing more was to be taken");
        self.inspect();
    }

    /// Takes all that there is.
    fn take_all(&mut self) {
        while self.take() {}
    }

    /// Takes a request, or a piece of a body, if there is one and it is its turn; says whether.
    fn take(&mut self) -> bool {
        let input = &self.received[self.consumed..];
        let took_more = self.connection.takes_more();
        let was_over = self.awaiting() == Awaiting::Close && (self.is_last_said || !self.is_ended);
        let taken = self.connection.take(input, &LIMITS);
        let goes_on = matches!(taken, Take::Request(_) | Take::Body(_));
        match taken {
            Take::Request(head) => {
                assert!(!self.is_answering && !self.is_last_said && !was_over && !self.is_in_body);
                assert_eq!(parse(input, &LIMITS.head), Ok(Some(head)));
                assert_eq!(self.connection.head_only(), head.method == Method::Head);
                let said = self.connection.persistence();
                let must_close = self.is_draining || head.persistence == Persistence::Close;
                let may_close = must_close || (self.is_ended && head.bytes == input.len());
                assert!(if said == Persistence::Close { may_close } else { !must_close });
                assert!(said == Persistence::Close || said == head.persistence);
                let RequestHead { body, bytes, .. } = head;
                let begin = self.consumed;
                self.consumed += bytes;
                let data = Vec::new();
                self.requests.push(Taken { begin, end: self.consumed, said, body, data });
                self.is_answering = true;
                self.is_in_body = body != RequestBody::None;
                self.is_last_said = said == Persistence::Close;
            }
            Take::Body(BodyPiece { bytes, data, is_last }) => {
                let data = data.to_vec();
                self.take_piece(bytes, &data, is_last);
            }
            Take::Refused(refusal) if self.is_in_body => {
                assert!(self.is_answering, "answered already");
                let is_cut = self.is_ended && input.is_empty();
                assert_eq!(refusal == Refusal::BodyCut, is_cut);
                assert_eq!(self.connection.persistence(), Persistence::Close);
                self.refusal = Some(refusal);
                self.is_in_body = false;
                self.is_last_said = true;
            }
            Take::Refused(refusal) => {
                assert!(!self.is_answering && !self.is_last_said && !was_over);
                match parse(input, &LIMITS.head) {
                    Ok(Some(RequestHead { body: RequestBody::Length(bytes), .. })) => {
                        assert!(bytes > LIMITS.body_bytes && refusal == Refusal::BodyTooLarge);
                    }
                    parsed => assert_eq!(parsed, Err(refusal)),
                }
                assert_eq!(self.connection.persistence(), Persistence::Close);
                self.refusal = Some(refusal);
                self.is_answering = true;
                self.is_last_said = true;
            }
            Take::Incomplete if self.is_in_body => assert!(input.is_empty() && !self.is_ended),
            Take::Incomplete => {
                assert!(!self.is_answering && !self.is_last_said);
                // Byte by byte this would be most of the work, and the same requests are taken.
                let is_whole = self.pieces != Pieces::Bytes
                    && matches!(parse(input, &LIMITS.head), Ok(Some(_)));
                assert!(!is_whole, "a whole head waits");
                // Of what has been seen nothing is seen anew.
                let again = self.connection.take(&self.received[self.consumed..], &LIMITS);
                let expected = if self.is_ended { Take::Busy } else { Take::Incomplete };
                let is_empty = self.consumed == self.received.len();
                assert!(again == expected || is_empty, "{again:?}");
            }
            Take::Busy => {
                assert!(self.is_answering || !self.connection.takes_more());
                // A fault, and the request is answered already.
                assert!(!self.is_in_body || !self.is_answering);
                self.is_in_body = false;
            }
        }
        assert!(took_more || !self.connection.takes_more(), "nothing more was to be taken");
        self.inspect();
        goes_on
    }

    fn take_piece(&mut self, bytes: usize, data: &[u8], is_last: bool) {
        assert!(self.is_in_body && bytes > 0);
        self.consumed += bytes;
        let request = self.requests.last_mut().expect("its head has come");
        request.data.extend_from_slice(data);
        let data_bytes = request.data.len() as u64;
        assert!(data_bytes <= LIMITS.body_bytes);
        if let RequestBody::Length(bytes) = request.body {
            assert_eq!(is_last, data_bytes == bytes);
        }
        self.is_in_body = !is_last;
    }

    fn inspect(&self) {
        assert_eq!(self.awaiting() == Awaiting::Body, self.is_in_body);
        if self.is_in_body {
            assert_eq!(self.connection.takes_more(), !self.is_ended);
            return;
        }
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
        assert!(!self.is_in_body, "no more of the body can come");
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
