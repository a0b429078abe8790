//! The peer: a list of requests whose answers it knows, and a way to behave.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::bodies;
use super::secure::Secure;
use super::site::{INDEX, SMALL, large, other};
use super::wire::Link;

/// What is asked, and what is to come back.
#[derive(Clone)]
pub(super) struct Exchange {
    pub(super) request: Cow<'static, str>,
    pub(super) status: u16,
    pub(super) body: Body,
    /// Nothing after it is answered.
    pub(super) is_last: bool,
    /// The peer says itself that it is the last, and sends no body.
    pub(super) parts: bool,
    /// It may be answered when its head has come, and nothing after it is answered then.
    pub(super) may_be_declined: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// None, whatever the length that the head gives.
    None,
    Small,
    Index,
    Large,
    Other,
    /// Of the large file, both ends included.
    Part(usize, usize),
    /// Of the large file, in a multipart.
    Parts(&'static [(usize, usize)]),
    /// Whatever the server has to say.
    Any,
}

impl Exchange {
    /// Bytes of the request that come after its head.
    fn body_bytes(&self) -> usize {
        self.request.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len())
    }
}

const fn exchange(request: &'static str, status: u16, body: Body) -> Exchange {
    let request = Cow::Borrowed(request);
    Exchange { request, status, body, is_last: false, parts: false, may_be_declined: false }
}

const fn last(request: &'static str, status: u16, body: Body) -> Exchange {
    let request = Cow::Borrowed(request);
    Exchange { request, status, body, is_last: true, parts: false, may_be_declined: false }
}

const fn parting(request: &'static str, status: u16, body: Body) -> Exchange {
    let request = Cow::Borrowed(request);
    Exchange { request, status, body, is_last: true, parts: true, may_be_declined: false }
}

const EXCHANGES: &[Exchange] = &[
    exchange("GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n", 200, Body::Small),
    exchange("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n", 200, Body::Large),
    exchange("GET /other.bin HTTP/1.1\r\nHost: a\r\n\r\n", 200, Body::Other),
    exchange("GET http://a/?x HTTP/1.1\r\nHost: b\r\n\r\n", 200, Body::Index),
    exchange("\r\nGET /dir/../small.txt HTTP/1.1\r\nHost: a\r\n\r\n", 200, Body::Small),
    exchange("GET /small.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, Body::Small),
    exchange("HEAD /large.bin HTTP/1.1\r\nHost: a\r\n\r\n", 200, Body::None),
    exchange(
        "GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=100-4999\r\n\r\n",
        206,
        Body::Part(100, 4999),
    ),
    exchange(
        "GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=5000-5999,0-9,2000-2000\r\n\r\n",
        206,
        Body::Parts(&[(5000, 5999), (0, 9), (2000, 2000)]),
    ),
    exchange("GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=99999-\r\n\r\n", 416, Body::Any),
    exchange("GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n", 304, Body::None),
    exchange("GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\n\r\n", 412, Body::Any),
    exchange("GET /dir?x HTTP/1.1\r\nHost: a\r\n\r\n", 301, Body::Any),
    exchange("GET /none HTTP/1.1\r\nHost: a\r\n\r\n", 404, Body::Any),
    exchange("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, Body::Any),
    exchange("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 204, Body::None),
    exchange("DELETE /small.txt HTTP/1.1\r\nHost: a\r\n\r\n", 405, Body::Any),
    exchange("FROB / HTTP/1.1\r\nHost: a\r\n\r\n", 501, Body::Any),
    parting("GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, Body::Large),
    parting("GET /other.bin HTTP/1.0\r\n\r\n", 200, Body::Other),
    parting("GET /small.txt HTTP/1.0\r\n\r\n", 200, Body::Small),
    last("GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417, Body::Any),
    last("GET / HTTP/1.1\r\nX: \u{1}\r\n\r\n", 400, Body::Any),
    last("GET / HTTP/1.1\n\n", 400, Body::Any),
    last("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, Body::Any),
];

/// How often a peer pauses, for a second at most: not long enough for any deadline.
const PAUSES_MAX: u8 = 4;

/// How the peer behaves, besides what it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Ends its side once all is sent.
    EndsEarly,
    /// Ends its side once all is answered.
    EndsLate,
    /// Waits for the server's end.
    Stays,
    /// Sends no more after so many bytes, and waits.
    Stops(usize),
    /// Sends no more after so many bytes, and ends its side.
    Cuts(usize),
    /// Reads no more after so many bytes.
    Chokes(usize),
    /// Breaks the connection after so many bytes that were read.
    Resets(usize),
}

pub(super) struct Client {
    asked: VecDeque<(usize, Exchange)>,
    manner: Manner,
    /// Its TLS, if it speaks that.
    secure: Option<Secure>,
    output: Vec<u8>,
    sent: usize,
    has_ended: bool,
    input: Vec<u8>,
    read: usize,
    answered: usize,
    is_last_said: bool,
    /// It asks for more after having said that it would not: then a reset is its own fault.
    is_rude: bool,
    /// It asks when all that it has asked before is answered.
    is_patient: bool,
    is_connected: bool,
    /// The server was drained: it may end at any request's end.
    is_drained: bool,
    /// Answers that must come although it was.
    due: usize,
    pub(super) paused_until_ms: u64,
    pauses: u8,
}

impl Client {
    pub(super) fn new(secure: Option<Secure>, random: &mut fastrand::Rng) -> Self {
        let mut output = Vec::new();
        let mut asked = VecDeque::new();
        let mut parts = false;
        let mut is_rude = false;
        for _ in 0..random.usize(0..8) {
            if parts && random.u8(..4) > 0 {
                break;
            }
            is_rude |= parts;
            let mut exchange = match random.u8(..3) {
                0 => bodies::exchange(random),
                _ => EXCHANGES[random.usize(..EXCHANGES.len())].clone(),
            };
            if secure.is_some() {
                exchange.request = exchange.request.replace("http://", "https://").into();
            }
            parts |= exchange.parts;
            output.extend_from_slice(exchange.request.as_bytes());
            asked.push_back((output.len(), exchange));
        }
        let some = random.usize(..=output.len());
        let manner = match random.u8(..10) {
            0..3 => Manner::EndsEarly,
            3 | 4 => Manner::EndsLate,
            5 => Manner::Stays,
            6 => Manner::Stops(some),
            7 => Manner::Cuts(some),
            8 => Manner::Chokes(random.usize(..10_000)),
            _ => Manner::Resets(random.usize(..10_000)),
        };
        Self {
            asked,
            manner,
            secure,
            output,
            sent: 0,
            has_ended: false,
            input: Vec::new(),
            read: 0,
            answered: 0,
            is_last_said: false,
            is_rude,
            is_patient: random.u8(..3) == 0,
            is_connected: false,
            is_drained: false,
            due: 0,
            paused_until_ms: [0, random.u64(..2000)][random.usize(..2)],
            pauses: 0,
        }
    }

    /// What is sent at all.
    fn sends(&self) -> usize {
        match self.manner {
            Manner::Stops(bytes) | Manner::Cuts(bytes) => bytes,
            _ => self.output.len(),
        }
    }

    /// What may be sent by now.
    fn sends_now(&self) -> usize {
        match self.asked.front() {
            Some((end, _)) if self.is_patient => self.sends().min(*end),
            _ => self.sends(),
        }
    }

    /// The server is told to end. If it has answered all so far, a request that it has by now is still
    /// answered.
    pub(super) fn drain(&mut self, wire: &Link) {
        self.is_drained = true;
        let is_there = |(end, _): &(usize, Exchange)| match &self.secure {
            None => *end as u64 <= wire.to_server.acked,
            Some(secure) => secure.has_arrived(*end, &wire.to_server),
        };
        let has_all = wire.to_client.written == self.read as u64 && self.input.is_empty();
        if self.is_connected
            && has_all
            && !self.is_last_said
            && self.asked.front().is_some_and(is_there)
        {
            self.due = self.answered + 1;
        }
    }

    /// Whether it is to connect now, which it does once.
    pub(super) fn connects(&mut self, now_ms: u64) -> bool {
        now_ms >= self.paused_until_ms && !std::mem::replace(&mut self.is_connected, true)
    }

    /// Whether it has had nothing to do with the server yet.
    pub(super) fn is_to_come(&self) -> bool {
        !self.is_connected
    }

    /// Whether it sends no more at some point, be it in the midst of a record.
    fn is_silent(&self) -> bool {
        self.secure.as_ref().is_some_and(Secure::is_silent)
    }

    /// Whether it reads no more at some point.
    pub(super) fn chokes(&self) -> bool {
        matches!(self.manner, Manner::Chokes(_))
    }

    /// One step; says whether anything has moved.
    pub(super) fn step(
        &mut self,
        wire: &mut Link,
        now_ms: u64,
        random: &mut fastrand::Rng,
    ) -> bool {
        if !self.is_connected || wire.is_broken() || now_ms < self.paused_until_ms {
            return false;
        }
        // Slow, but never as slow as any deadline.
        if self.pauses < PAUSES_MAX && random.u8(..64) == 0 {
            self.pauses += 1;
            self.paused_until_ms = now_ms + random.u64(1..1200);
            return false;
        }
        if let Manner::Resets(bytes) = self.manner
            && self.read >= bytes
        {
            wire.reset_by_client();
            return true;
        }
        let mut has_moved = false;
        if !self.has_ended {
            let rest = self.sent..self.sends_now().max(self.sent);
            let plain = &self.output[rest];
            let (taken, moved) = match &mut self.secure {
                None => {
                    let taken = wire.to_server.write(plain, random);
                    (taken, taken > 0)
                }
                Some(secure) => secure.write(plain, &mut wire.to_server, random),
            };
            self.sent += taken;
            has_moved |= moved;
            let ends = self.sent == self.sends() && self.is_to_end(wire);
            let is_over = wire.to_client.is_over();
            if ends && self.secure.as_mut().is_none_or(|secure| secure.end(is_over, random)) {
                wire.to_server.end();
                self.has_ended = true;
                has_moved = true;
            }
        }
        let is_choked = matches!(self.manner, Manner::Chokes(bytes) if self.read >= bytes);
        if !is_choked {
            let taken = match &mut self.secure {
                None => wire.to_client.read(&mut self.input, random),
                Some(secure) => secure.read(&mut self.input, &mut wire.to_client, random),
            };
            self.read += taken;
            has_moved |= taken > 0;
            while self.read_answer() {}
        }
        has_moved
    }

    fn is_to_end(&self, wire: &Link) -> bool {
        let is_answered = self.asked.is_empty() || self.is_last_said || wire.to_client.is_over();
        match self.manner {
            Manner::EndsEarly | Manner::Cuts(_) => true,
            Manner::EndsLate | Manner::Resets(_) => is_answered,
            Manner::Stays | Manner::Stops(_) => wire.to_client.is_over(),
            Manner::Chokes(_) => false,
        }
    }

    /// Reads an answer off what has come, if it is whole, and holds it against what was asked.
    fn read_answer(&mut self) -> bool {
        let mut places = [httparse::EMPTY_HEADER; 20];
        let mut head = httparse::Response::new(&mut places);
        let Ok(httparse::Status::Complete(head_bytes)) = head.parse(&self.input) else {
            return false;
        };
        let field = |name: &str| {
            let field = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
            Some(str::from_utf8(field.value).expect("it is text").to_owned())
        };
        let status = head.code.expect("it is complete");
        assert!(!self.is_last_said, "an answer after the last: {status}");
        let closes = field("connection").as_deref() == Some("close");

        let is_refused_early = matches!(status, 400 | 408 | 413 | 505) && closes;
        let (body, is_last) = match self.asked.front() {
            Some((end, exchange)) if self.sent >= *end => {
                assert_eq!(status, exchange.status, "for {:?}", exchange.request);
                (exchange.body, exchange.is_last)
            }
            // It has begun, and cannot become a good one or does not come.
            Some((end, exchange)) if is_refused_early => {
                let is_told = match status {
                    // Its end may be under way for longer than a head or a body may take.
                    408 => match self.manner {
                        _ if self.is_silent() => true,
                        Manner::Stops(_) => true,
                        Manner::Cuts(_) => true,
                        _ => false,
                    },
                    400 => matches!(self.manner, Manner::Cuts(_)) && self.is_within_body(),
                    _ => false,
                };
                assert!(status == exchange.status || is_told, "{status}");
                let begun = &exchange.request[..self.sent - (end - exchange.request.len())];
                let body = if begun.starts_with("HEAD ") { Body::None } else { Body::Any };
                (body, true)
            }
            Some((end, exchange)) if exchange.may_be_declined => {
                assert!(self.sent + exchange.body_bytes() >= *end, "{status} within a head");
                assert_eq!(status, exchange.status, "for {:?}", exchange.request);
                (exchange.body, true)
            }
            front => panic!(
                "{status}, and was not asked: {:?}",
                front.map(|(end, exchange)| (self.sent, end, &exchange.request))
            ),
        };
        let length = field("content-length").map(|text| text.parse().expect("it is a number"));
        let body_bytes = if body == Body::None { 0 } else { length.expect("its length is said") };
        let Some(bytes) = self.input.get(head_bytes..head_bytes + body_bytes) else { return false };
        match body {
            Body::None => {
                if status == 200 {
                    assert_eq!(length, Some(large().len()), "the answer to HEAD");
                }
            }
            Body::Any => {}
            Body::Small => assert_eq!(bytes, SMALL),
            Body::Index => assert_eq!(bytes, INDEX),
            Body::Large => assert!(bytes == large(), "another body"),
            Body::Other => assert!(bytes == other(), "another body"),
            Body::Part(first, last) => assert!(bytes == &large()[first..=last], "another part"),
            Body::Parts(parts) => {
                let content_type = field("content-type").expect("it says what it is");
                let (_, boundary) = content_type.split_once("boundary=").expect("it has parts");
                is_multipart(bytes, boundary, parts);
            }
        }
        if is_last {
            assert!(closes, "{status} does not say that it is the last");
        }
        self.is_last_said = closes;
        self.answered += 1;
        self.asked.pop_front();
        self.input.drain(..head_bytes + body_bytes);
        true
    }

    /// Once the server is done: was everything answered that had to be?
    /// `were_evicted`: handshakes have made room for others, perhaps this one's.
    pub(super) fn judge(&self, wire: &Link, were_evicted: bool) {
        if were_evicted && self.secure.is_some() && self.answered == 0 {
            return;
        }
        if wire.is_damaged || self.is_rude || self.chokes() || self.is_silent() {
            return;
        }
        if matches!(self.manner, Manner::Resets(_)) && wire.is_broken() {
            return;
        }
        assert!(
            self.answered >= self.due,
            "what was asked before the end was told was not answered"
        );
        if wire.is_broken() {
            // While it drains, a request may cross the end of a connection that was idle.
            let crosses = self.is_drained && wire.lost_bytes == 0 && self.input.is_empty();
            assert!(crosses, "the server has broken it: {wire:?}");
            return;
        }
        let ends_well = self.secure.as_ref().is_none_or(Secure::ends_well);
        assert!(ends_well, "the end might as well be anybody's: {self:?} {wire:?}");
        assert!(self.input.is_empty(), "part of an answer: {}", self.input.escape_ascii());
        let is_unanswered = |(end, _): &(usize, Exchange)| *end <= self.sent;
        let may_be_left = self.is_last_said || self.is_drained;
        assert!(may_be_left || !self.asked.front().is_some_and(is_unanswered), "no answer");
        if let Manner::Stops(bytes) = self.manner
            && !may_be_left
        {
            let begun = self.output[..bytes].len() > self.asked_bytes();
            assert!(!begun, "the rest of a head was not waited for, or without a word");
        }
        let is_cut = matches!(self.manner, Manner::Cuts(_)) && self.is_within_body();
        assert!(may_be_left || !is_cut, "a body was cut off, and the peer was not told");
    }

    /// Whether what was sent ends in a body, or after the head that announces one.
    fn is_within_body(&self) -> bool {
        self.asked
            .front()
            .is_some_and(|(end, exchange)| (end - exchange.body_bytes()..*end).contains(&self.sent))
    }

    /// Bytes of all that was answered.
    fn asked_bytes(&self) -> usize {
        self.asked.front().map_or(self.output.len(), |(end, next)| end - next.request.len())
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { manner, sent, read, answered, .. } = self;
        write!(f, "{manner:?}: {sent} bytes sent of {}, ", self.output.len())?;
        write!(f, "{read} read, {answered} answers, {} to come", self.asked.len())
    }
}

fn is_multipart(mut body: &[u8], boundary: &str, parts: &[(usize, usize)]) {
    for (at, &(first, last)) in parts.iter().enumerate() {
        let delimiter = format!("{}--{boundary}\r\n", if at == 0 { "" } else { "\r\n" });
        body = body.strip_prefix(delimiter.as_bytes()).expect("a part begins");
        let fields = body.windows(4).position(|end| end == b"\r\n\r\n").expect("it has fields");
        let range = format!("Content-Range: bytes {first}-{last}/{}", large().len());
        let text = str::from_utf8(&body[..fields]).expect("they are text");
        assert!(text.lines().any(|line| line == range), "{text}");
        let (part, rest) = body[fields + 4..].split_at(last + 1 - first);
        assert!(part == &large()[first..=last], "another part");
        body = rest;
    }
    assert_eq!(body, format!("\r\n--{boundary}--\r\n").as_bytes());
}
