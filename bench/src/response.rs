//! Where responses end: a sans-IO framer for what a client receives.
//!
//! Bytes go in as they arrive, cut anywhere; the parts of responses come out where they lie, and
//! nothing of a body is kept.
//! Framing is by status line and Content-Length (RFC 9112 §6); a message without a length, or
//! with a transfer coding, is an error here, since the servers under test are asked for files.
//!
//! A server repeats itself: the head of a response mostly equals the one before it, byte for
//! byte, until the clock's second changes. [`HeadMemory`] keeps the last head for each target;
//! an equal head is recognised by one comparison and not parsed again. That is exact: a head ends
//! at its first empty line, the kept one has it just at its end, so input that begins with the
//! kept bytes has the same head.

use memchr::memmem;

/// Longest head accepted, bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Fields of a head that can be parsed; more are malformed.
const FIELDS_MAX: usize = 64;

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Why what was received is not the response asked for. The connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not a status line and fields, or lengths that contradict each other.
    #[error("malformed head")]
    Malformed,
    /// No end of the head within [`HEAD_BYTES_MAX`], interim responses before it included.
    #[error("head too long")]
    HeadTooLong,
    /// No Content-Length where one is needed.
    #[error("it has no Content-Length, which this client needs to see where a body ends")]
    NoLength,
    /// A Transfer-Encoding, which is not supported.
    #[error(
        "its body has a Transfer-Encoding, such as chunked; this client needs a Content-Length"
    )]
    TransferCoding,
}

/// What a head says, as far as framing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Whether the server keeps the connection open after the response.
    pub persistent: bool,
}

impl Head {
    /// Reads a complete head, its empty line included.
    fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            _ => return Err(FrameError::Malformed),
        }
        let (Some(status), Some(minor)) = (response.code, response.version) else {
            return Err(FrameError::Malformed);
        };
        let mut body_bytes = None;
        let (mut close, mut keep_alive) = (false, false);
        for field in &*response.headers {
            if field.name.eq_ignore_ascii_case("content-length") {
                let length = decimal(field.value).ok_or(FrameError::Malformed)?;
                if body_bytes.is_some_and(|before| before != length) {
                    return Err(FrameError::Malformed);
                }
                body_bytes = Some(length);
            } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(FrameError::TransferCoding);
            } else if field.name.eq_ignore_ascii_case("connection") {
                let mut options = field.value.split(|&b| b == b',').map(<[u8]>::trim_ascii);
                close |= options.clone().any(|o| o.eq_ignore_ascii_case(b"close"));
                keep_alive |= options.any(|o| o.eq_ignore_ascii_case(b"keep-alive"));
            }
        }
        let body_bytes = match status {
            100..200 | 204 | 304 => 0,
            _ => body_bytes.ok_or(FrameError::NoLength)?,
        };
        Ok(Self { status, body_bytes, persistent: !close && (minor == 1 || keep_alive) })
    }

    /// 1xx: another response to the same request follows (RFC 9110 §15.2).
    fn interim(self) -> bool {
        self.status < 200
    }
}

/// Content-Length is digits and nothing else (RFC 9110 §8.6).
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, &byte| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// The last head seen for one target, and what it says.
#[derive(Clone, Debug, Default)]
pub struct HeadMemory {
    bytes: Vec<u8>,
    head: Option<Head>,
}

impl HeadMemory {
    /// The kept head and its length, if `input` begins with its bytes.
    fn recall(&self, input: &[u8]) -> Option<(Head, usize)> {
        let head = self.head?;
        input.starts_with(&self.bytes).then_some((head, self.bytes.len()))
    }

    /// Parses a complete head and keeps it.
    fn learn(&mut self, bytes: &[u8]) -> Result<Head, FrameError> {
        let head = Head::parse(bytes)?;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.head = Some(head);
        Ok(head)
    }
}

/// A part of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// What the head says, and its bytes with the empty line.
    Head(Head, &'a [u8]),
    /// Some of the body, in order.
    Body(&'a [u8]),
    /// The response is complete.
    End(Head),
}

/// Cuts the bytes of one connection into responses.
#[derive(Debug, Default)]
pub struct Framer {
    awaited: Awaited,
    /// The beginning of a head whose end has not been received; once it is complete, all of it until
    /// the next call. Never longer than [`HEAD_BYTES_MAX`].
    partial: Vec<u8>,
    /// Of the interim responses before the response that is awaited.
    interim_bytes: usize,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default)]
enum Awaited {
    #[default]
    Head,
    /// `left` bytes of the body of the response with this head; if none, its end is to be told.
    Body { head: Head, left: u64 },
}

/// Where a complete head lies.
enum Place<'i> {
    Input(&'i [u8]),
    Partial,
}

impl Framer {
    /// Takes one part of a response off the front of `input`; `None` when all of `input` was taken
    /// and the response is not complete, or none has begun.
    ///
    /// `memory` is that of the target which the response belongs to. After an error the
    /// connection is to be closed and the framer reset.
    pub fn next<'p, 'i: 'p>(
        &'p mut self,
        input: &mut &'i [u8],
        memory: &mut HeadMemory,
    ) -> Result<Option<Piece<'p>>, FrameError> {
        match self.awaited {
            Awaited::Head => loop {
                let Some((head, place)) = self.head(input, memory)? else { return Ok(None) };
                if head.interim() {
                    self.interim_bytes += match place {
                        Place::Input(bytes) => bytes.len(),
                        Place::Partial => self.partial.len(),
                    };
                    self.partial.clear();
                    if self.interim_bytes > HEAD_BYTES_MAX {
                        return Err(FrameError::HeadTooLong);
                    }
                    continue;
                }
                self.interim_bytes = 0;
                self.awaited = Awaited::Body { head, left: head.body_bytes };
                return Ok(Some(match place {
                    Place::Input(bytes) => Piece::Head(head, bytes),
                    Place::Partial => Piece::Head(head, &self.partial),
                }));
            },
            Awaited::Body { head, left: 0 } => {
                self.reset();
                Ok(Some(Piece::End(head)))
            }
            Awaited::Body { head, left } => {
                self.partial.clear();
                if input.is_empty() {
                    return Ok(None);
                }
                let here = left.min(input.len() as u64);
                let (piece, rest) = input.split_at(here as usize);
                *input = rest;
                self.awaited = Awaited::Body { head, left: left - here };
                Ok(Some(Piece::Body(piece)))
            }
        }
    }

    /// Forgets the connection; the next byte begins a response.
    pub fn reset(&mut self) {
        self.awaited = Awaited::Head;
        self.partial.clear();
        self.interim_bytes = 0;
    }

    fn head<'i>(
        &mut self,
        input: &mut &'i [u8],
        memory: &mut HeadMemory,
    ) -> Result<Option<(Head, Place<'i>)>, FrameError> {
        if !self.partial.is_empty() {
            let head = self.resume_head(input, memory)?;
            return Ok(head.map(|head| (head, Place::Partial)));
        }
        if input.is_empty() {
            return Ok(None);
        }
        if let Some((head, length)) = memory.recall(input) {
            let (bytes, rest) = input.split_at(length);
            *input = rest;
            return Ok(Some((head, Place::Input(bytes))));
        }
        match memmem::find(input, HEAD_END) {
            Some(at) if at + HEAD_END.len() <= HEAD_BYTES_MAX => {
                let (bytes, rest) = input.split_at(at + HEAD_END.len());
                *input = rest;
                Ok(Some((memory.learn(bytes)?, Place::Input(bytes))))
            }
            None if input.len() < HEAD_BYTES_MAX => {
                self.partial.extend_from_slice(input);
                *input = &[];
                Ok(None)
            }
            _ => Err(FrameError::HeadTooLong),
        }
    }

    /// As [`Framer::head`], where a beginning has been kept.
    fn resume_head(
        &mut self,
        input: &mut &[u8],
        memory: &mut HeadMemory,
    ) -> Result<Option<Head>, FrameError> {
        let before = self.partial.len();
        let taken = input.len().min(HEAD_BYTES_MAX - before);
        self.partial.extend_from_slice(&input[..taken]);
        // The end may have begun in the bytes kept earlier.
        let from = before.saturating_sub(HEAD_END.len() - 1);
        match memmem::find(&self.partial[from..], HEAD_END) {
            Some(at) => {
                let length = from + at + HEAD_END.len();
                *input = &input[length - before..];
                self.partial.truncate(length);
                memory.learn(&self.partial).map(Some)
            }
            None if self.partial.len() < HEAD_BYTES_MAX => {
                *input = &[];
                Ok(None)
            }
            None => Err(FrameError::HeadTooLong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

    /// Takes in `input`: the responses that are complete then.
    fn take(
        framer: &mut Framer,
        memory: &mut HeadMemory,
        body: &mut Vec<u8>,
        mut input: &[u8],
    ) -> Result<Vec<Head>, FrameError> {
        let mut heads = Vec::new();
        while let Some(piece) = framer.next(&mut input, memory)? {
            match piece {
                Piece::Head(head, bytes) => {
                    assert_eq!(Head::parse(bytes), Ok(head));
                    body.clear();
                }
                Piece::Body(piece) => body.extend(piece),
                Piece::End(head) => {
                    assert_eq!(body.len() as u64, head.body_bytes);
                    heads.push(head);
                }
            }
        }
        assert!(input.is_empty());
        Ok(heads)
    }

    /// Everything that comes out when `pieces` arrive one after the other.
    fn frame(pieces: &[&[u8]]) -> Result<Vec<Head>, FrameError> {
        let (mut framer, mut memory) = (Framer::default(), HeadMemory::default());
        let (mut heads, mut body) = (Vec::new(), Vec::new());
        for input in pieces {
            heads.extend(take(&mut framer, &mut memory, &mut body, input)?);
        }
        Ok(heads)
    }

    fn head(status: u16, body_bytes: u64, persistent: bool) -> Head {
        Head { status, body_bytes, persistent }
    }

    #[test]
    fn heads_mean_what_they_say() {
        let cases: &[(&str, Result<Head, FrameError>)] = &[
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", Ok(head(200, 3, true))),
            (
                "HTTP/1.1 200 OK\r\ncontent-length:3\r\nConnection: x, Close\r\n\r\n",
                Ok(head(200, 3, false)),
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", Ok(head(200, 3, false))),
            (
                "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 3\r\n\r\n",
                Ok(head(200, 3, true)),
            ),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", Ok(head(304, 0, true))),
            ("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", Ok(head(404, 0, true))),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
                Ok(head(200, 3, true)),
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
                Err(FrameError::Malformed),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n", Err(FrameError::Malformed)),
            ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", Err(FrameError::Malformed)),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
                Err(FrameError::Malformed),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", Err(FrameError::NoLength)),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                Err(FrameError::TransferCoding),
            ),
            ("nonsense\r\n\r\n", Err(FrameError::Malformed)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Head::parse(bytes.as_bytes()), *expected, "{bytes}");
        }
    }

    #[test]
    fn an_interim_response_is_stepped_over() {
        let bytes =
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        assert_eq!(frame(&[bytes]), Ok(vec![head(200, 1, true)]));
    }

    #[test]
    fn interim_responses_without_end_are_given_up() {
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n".as_slice();
        let few = [&interim.repeat(100), GOOD].concat();
        let many = interim.repeat(HEAD_BYTES_MAX / interim.len() + 1);
        assert_eq!(frame(&[&few, &few]), Ok(vec![head(204, 0, true); 2]));
        assert_eq!(frame(&[&many]), Err(FrameError::HeadTooLong));
        let (one, rest) = many.split_at(10);
        assert_eq!(frame(&[one, rest]), Err(FrameError::HeadTooLong));
    }

    #[test]
    fn a_head_that_never_ends_is_given_up() {
        let line = b"HTTP/1.1 200 OK\r\nX: y";
        let long = [line.as_slice(), &vec![b'z'; HEAD_BYTES_MAX]].concat();
        assert_eq!(frame(&[&long]), Err(FrameError::HeadTooLong));
        let halves = long.split_at(100);
        assert_eq!(frame(&[halves.0, halves.1]), Err(FrameError::HeadTooLong));
    }

    #[test]
    fn a_longest_head_is_accepted_whole_and_in_pieces() {
        let ends = "HTTP/1.1 204 No Content\r\nX: \r\n\r\n";
        let filling = "z".repeat(HEAD_BYTES_MAX - ends.len());
        let longest = ends.replace("X: ", &format!("X: {filling}"));
        assert_eq!(longest.len(), HEAD_BYTES_MAX);
        let bytes = longest.as_bytes();
        assert_eq!(frame(&[bytes]), Ok(vec![head(204, 0, true)]));
        assert_eq!(frame(&[&bytes[..9], &bytes[9..]]), Ok(vec![head(204, 0, true)]));
    }

    #[test]
    fn a_repeated_head_is_recalled_only_if_equal() {
        let (mut framer, mut memory) = (Framer::default(), HeadMemory::default());
        let first = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".as_slice();
        let other = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab".as_slice();
        for (bytes, length) in [(first, 1), (first, 1), (other, 2), (first, 1)] {
            let heads = take(&mut framer, &mut memory, &mut Vec::new(), bytes).unwrap();
            assert_eq!(heads[0].body_bytes, length);
        }
    }

    #[test]
    fn a_response_may_be_cut_anywhere() {
        let (mut framer, mut memory) = (Framer::default(), HeadMemory::default());
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        for cut in 1..whole.len() {
            let mut body = Vec::new();
            let (front, back) = whole.split_at(cut);
            assert_eq!(take(&mut framer, &mut memory, &mut body, front), Ok(vec![]));
            assert_eq!(take(&mut framer, &mut memory, &mut body, back).unwrap().len(), 1);
        }
    }

    /// A response as a server writes it, and the head that must come out.
    fn response() -> impl Strategy<Value = (Vec<u8>, Head)> {
        (prop::sample::select(vec![200_u16, 404, 500]), 0..40_usize, any::<bool>()).prop_map(
            |(status, body_bytes, persistent)| {
                let connection = if persistent { "" } else { "Connection: close\r\n" };
                let mut bytes = format!(
                    "HTTP/1.1 {status} X\r\n{connection}Content-Length: {body_bytes}\r\n\r\n"
                )
                .into_bytes();
                // A body made of line ends must not be taken for the end of a head.
                bytes.extend(b"\r\n\r\n".iter().cycle().take(body_bytes));
                (bytes, head(status, body_bytes as u64, persistent))
            },
        )
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            responses in prop::collection::vec(response(), 1..4),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let stream = responses.iter().flat_map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>();
            let expected = responses.iter().map(|(_, head)| *head).collect::<Vec<_>>();
            let mut at = cuts.iter().map(|cut| cut.index(stream.len())).collect::<Vec<_>>();
            at.extend([0, stream.len()]);
            at.sort_unstable();
            let pieces = at.windows(2).map(|w| &stream[w[0]..w[1]]).collect::<Vec<_>>();
            prop_assert_eq!(frame(&pieces), Ok(expected.clone()));
            for cut in 0..=stream.len() {
                prop_assert_eq!(frame(&[&stream[..cut], &stream[cut..]]), Ok(expected.clone()));
            }
            let bytewise = stream.chunks(1).collect::<Vec<_>>();
            prop_assert_eq!(frame(&bytewise), Ok(expected));
        }

        #[test]
        fn noise_never_panics(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8)) {
            let pieces = pieces.iter().map(Vec::as_slice).collect::<Vec<_>>();
            let _ = frame(&pieces);
        }
    }
}
