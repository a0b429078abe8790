//! A client that sends exactly the bytes it is given, and reads whole responses.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::PATIENCE;

/// One connection, over TCP or whatever else carries bytes. Every read and write gives up after
/// [`PATIENCE`].
pub(crate) struct Client<S = TcpStream> {
    stream: S,
    /// What was received and not yet taken.
    received: Vec<u8>,
}

/// A response: status, fields in their order, body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The value of the field `name`, in any case of letters. Panics where it is there twice.
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let value = values.next()?;
        assert!(values.next().is_none(), "{name} is there twice");
        Some(std::str::from_utf8(&value.1).expect("our fields are ASCII"))
    }
}

impl From<TcpStream> for Client {
    fn from(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit on a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a limit on a socket");
        stream.set_nodelay(true).expect("an option of a socket");
        Client::over(stream)
    }
}

impl Client {
    #[track_caller]
    pub(crate) fn connect(address: SocketAddr) -> Client {
        TcpStream::connect_timeout(&address, PATIENCE).expect("the server listens").into()
    }

    /// Ends our side of the connection; the server's stays open.
    pub(crate) fn end_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection is open");
    }

    /// Whether something has come that was not taken yet.
    pub(crate) fn has_something(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a flag of a socket");
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).expect("a flag of a socket");
        !self.received.is_empty() || peeked.is_ok_and(|bytes| bytes > 0)
    }
}

impl<S: Read + Write> Client<S> {
    /// Over what gives up by itself.
    pub(crate) fn over(stream: S) -> Client<S> {
        Client { stream, received: Vec::new() }
    }

    /// What carries the bytes, for what this client has no method for.
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// Nothing but the stream: what was received and not taken is gone.
    pub(crate) fn into_stream(self) -> S {
        self.stream
    }

    /// The same, to read from or to write to.
    pub(crate) fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the server reads");
    }

    /// Sends `GET path` and reads the response.
    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.get_with(path, "")
    }

    /// Sends `GET path` with these field lines, each with its CRLF, and reads the response, which must
    /// be one that has a length.
    #[track_caller]
    pub(crate) fn get_with(&mut self, path: &str, fields: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        self.response()
    }

    /// Sends `GET path` with these field lines and reads a response that has no body.
    #[track_caller]
    pub(crate) fn head_with(&mut self, path: &str, fields: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        self.head()
    }

    /// Reads the next response, whose body is as long as Content-Length says.
    #[track_caller]
    pub(crate) fn response(&mut self) -> Response {
        let mut response = self.head();
        let length = response.field("content-length").expect("a Content-Length");
        response.body = self.take(length.parse().expect("a number"));
        response
    }

    /// Reads the next response to a HEAD, or one with a status that has no body.
    #[track_caller]
    pub(crate) fn head(&mut self) -> Response {
        let end = loop {
            if let Some(end) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            let received = self.receive();
            let so_far = String::from_utf8_lossy(&self.received);
            assert!(received > 0, "the connection ended in a head: {so_far:?}");
        };
        let head = self.take(end);
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Response::new(&mut fields);
        parsed.parse(&head).expect("the head of a response");
        Response {
            status: parsed.code.expect("a status"),
            reason: parsed.reason.expect("a reason").to_owned(),
            fields: parsed
                .headers
                .iter()
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect(),
            body: Vec::new(),
        }
    }

    /// Takes exactly `length` bytes.
    #[track_caller]
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        while self.received.len() < length {
            let received = self.receive();
            assert!(received > 0, "ended after {} of {length} bytes", self.received.len());
        }
        let rest = self.received.split_off(length);
        std::mem::replace(&mut self.received, rest)
    }

    /// Takes exactly `length` bytes and looks at none of them.
    #[track_caller]
    pub(crate) fn discard(&mut self, length: u64) {
        let received = std::mem::take(&mut self.received);
        let known = length.min(received.len() as u64);
        self.received.extend_from_slice(&received[known as usize..]);
        let mut left = length - known;
        let mut chunk = vec![0; 1 << 20];
        while left > 0 {
            let most = left.min(chunk.len() as u64) as usize;
            let received = self.stream.read(&mut chunk[..most]).expect("the server sends");
            assert!(received > 0, "ended {left} bytes before {length}");
            left -= received as u64;
        }
    }

    /// Everything until the server ends its side in good order.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.receive() > 0 {}
        std::mem::take(&mut self.received)
    }

    /// Whether the server has ended the connection with a reset, rather than in good order, once
    /// everything before is read.
    pub(crate) fn ends_by_reset(&mut self) -> bool {
        let mut chunk = [0; 65536];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(_) => (),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return true,
                Err(error) => panic!("the connection did not end: {error}"),
            }
        }
    }

    /// Everything until the connection ends, in good order or by a reset.
    pub(crate) fn until_the_end(&mut self) -> Vec<u8> {
        let mut chunk = [0; 65536];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(received) => self.received.extend_from_slice(&chunk[..received]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("the connection did not end: {error}"),
            }
        }
        std::mem::take(&mut self.received)
    }

    /// Receives more; 0 at the end of the connection.
    #[track_caller]
    fn receive(&mut self) -> usize {
        let mut chunk = [0; 65536];
        let received = match self.stream.read(&mut chunk) {
            Ok(received) => received,
            Err(error) => panic!("after {} bytes not taken: {error}", self.received.len()),
        };
        self.received.extend_from_slice(&chunk[..received]);
        received
    }
}
