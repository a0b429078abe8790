//! One request and its response, waited for: for what is asked before and after a run.

use crate::response::{FrameError, Framer, Head, HeadMemory, Piece};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// The connection broke.
    #[error("{0}")]
    Silent(io::Error),
    /// Nothing came within the connection's own timeout.
    #[error("nothing came in time")]
    Late,
    /// The connection was closed in the middle.
    #[error("the server closed the connection before the answer was complete")]
    Ended,
    /// Not a response that can be framed.
    #[error("the answer cannot be read: {0}")]
    Framing(#[from] FrameError),
    /// Something came again and again, but not all of it.
    #[error("the answer was not complete after {0:?}")]
    Endless(Duration),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// More than was to be expected.
    #[error("the answer has {0} bytes, which is more than it may have")]
    TooLong(u64),
}

impl From<io::Error> for OnceError {
    fn from(error: io::Error) -> Self {
        if is_silence(&error) { Self::Late } else { Self::Silent(error) }
    }
}

/// A whole response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// What the head says.
    pub head: Head,
    /// The head's bytes, with the empty line.
    pub head_bytes: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// How long a response is waited for. The connection's own timeout is how often it is asked.
pub struct Patience<'p> {
    /// Without a byte.
    pub still: Duration,
    /// Altogether.
    pub whole: Duration,
    /// Whether nobody wants it any more.
    pub stop: &'p mut dyn FnMut() -> bool,
}

/// Sends `request` on a connection that stands and reads the response, whose body may have
/// `body_bytes_max` bytes.
pub fn exchange(
    connection: &mut (impl Read + Write),
    request: &[u8],
    body_bytes_max: u64,
    patience: Patience<'_>,
) -> Result<Response, OnceError> {
    let begun = Instant::now();
    let mut came = begun;
    connection.write_all(request)?;
    connection.flush()?;
    let (mut framer, mut memory) = (Framer::default(), HeadMemory::default());
    let (mut head_bytes, mut body) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if (patience.stop)() {
            return Err(OnceError::Interrupted);
        }
        if begun.elapsed() >= patience.whole {
            return Err(OnceError::Endless(patience.whole));
        }
        let received = match connection.read(&mut buffer) {
            Ok(0) => return Err(OnceError::Ended),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if is_silence(&error) && came.elapsed() < patience.still => continue,
            Err(error) => return Err(error.into()),
        };
        came = Instant::now();
        let mut input = &buffer[..received];
        while let Some(piece) = framer.next(&mut input, &mut memory)? {
            match piece {
                Piece::Head(head, _) if head.body_bytes > body_bytes_max => {
                    return Err(OnceError::TooLong(head.body_bytes));
                }
                Piece::Head(_, bytes) => head_bytes.extend_from_slice(bytes),
                Piece::Body(bytes) => body.extend_from_slice(bytes),
                Piece::End(head) => return Ok(Response { head, head_bytes, body }),
            }
        }
    }
}

/// How a socket says that nothing came within its timeout: as "temporarily unavailable".
pub fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn ask(peer: &mut Peer, request: &[u8], body_bytes_max: u64) -> Result<Response, OnceError> {
        let patience = Patience { still: HOUR, whole: HOUR, stop: &mut || false };
        exchange(peer, request, body_bytes_max, patience)
    }

    /// A peer that says `says` whatever it is told, a byte at a time.
    struct Peer(&'static [u8]);

    impl Read for Peer {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    impl Write for Peer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_response_is_taken_whole() {
        let response = ask(
            &mut Peer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more"),
            b"GET / HTTP/1.1\r\n\r\n",
            2,
        )
        .unwrap();
        assert_eq!((response.head.status, &*response.body), (200, &b"ok"[..]));
        assert_eq!(response.head_bytes, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    }

    #[test]
    fn a_server_that_is_silent_is_not_said_to_be_unavailable() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let patience = Patience { still: Duration::ZERO, whole: HOUR, stop: &mut || false };
        let error = exchange(&mut stream, b"GET / HTTP/1.1\r\n\r\n", 1, patience).unwrap_err();
        assert_eq!(error.to_string(), "nothing came in time");
    }

    #[test]
    fn what_is_no_response_is_told_apart() {
        let error = |says| ask(&mut Peer(says), b"", 1).unwrap_err();
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert!(matches!(error(&head[..30]), OnceError::Ended));
        assert!(matches!(error(b"220 mail\r\n\r\n"), OnceError::Framing(_)));
        assert!(matches!(error(head), OnceError::TooLong(2)));
    }

    /// A peer that says that it goes on, over and over, or nothing at all.
    struct Endless(&'static [u8]);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.len() {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                length => {
                    buffer[..length].copy_from_slice(self.0);
                    Ok(length)
                }
            }
        }
    }

    impl Write for Endless {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_server_that_answers_without_end_or_not_at_all_is_given_up() {
        let wait = |says, still, whole, stops_after| {
            let mut looks = 0;
            let mut stop = || {
                looks += 1;
                looks > stops_after
            };
            let patience = Patience { still, whole, stop: &mut stop };
            exchange(&mut Endless(says), b"", 1, patience).unwrap_err()
        };
        let (brief, interim) = (Duration::from_millis(20), b"HTTP/1.1 100 Continue\r\n\r\n");
        let never = u64::MAX;
        assert!(matches!(wait(interim, HOUR, Duration::ZERO, never), OnceError::Endless(_)));
        assert!(matches!(wait(b"", brief, HOUR, never), OnceError::Late));
        assert!(matches!(wait(interim, HOUR, HOUR, 9), OnceError::Interrupted));
        assert!(matches!(wait(b"", HOUR, HOUR, 9), OnceError::Interrupted));
    }
}
