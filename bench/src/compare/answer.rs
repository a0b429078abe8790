//! The right answer of a cell, and whether a server gives it: byte for byte, before a measurement
//! and now and then during it.

use super::certificate::{TlsStream, over};
use super::configuration::Assignment;
use super::peer::Server;
use crate::response::{Framer, Head, HeadMemory};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use rustls::ClientConfig;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How an answer is not as it must be.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// It does not come, or not over TLS as asked.
    #[error("does not answer GET {path}: {error}")]
    None {
        /// What was asked for.
        path: String,
        /// What happened instead.
        error: io::Error,
    },
    /// It differs.
    #[error("answers GET {path} wrongly: {what}")]
    Wrong {
        /// What was asked for.
        path: String,
        /// How it differs.
        what: &'static str,
    },
}

/// A request and what is right.
#[derive(Debug)]
pub(super) struct Expected {
    address: SocketAddr,
    path: String,
    request: String,
    status: u16,
    body_bytes: usize,
    /// One request per connection.
    close: bool,
    /// The body, where the server has it from the file.
    body: Option<Vec<u8>>,
    tls: Option<Arc<ClientConfig>>,
}

/// A connection on which an answer came.
pub(super) enum Connection {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

impl Connection {
    /// Whether the server has closed it.
    pub(super) fn is_closed(&self) -> bool {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref(),
        };
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        // Tickets of TLS may wait to be read: that is no end.
        !matches!(recv(socket.as_raw_fd(), &mut [0], flags), Ok(1..) | Err(Errno::EAGAIN))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes),
        }
    }
}

impl Expected {
    /// Of `server` in its cell; none where the load verifies everything by itself.
    pub(super) fn of(server: Server, assignment: &Assignment<'_>) -> io::Result<Option<Self>> {
        let Some(get) = assignment.cell.request() else { return Ok(None) };
        let address = assignment.address;
        let path = format!("/{}", get.file_name());
        let field = get.part.field().map_or(String::new(), |field| format!("{field}\r\n"));
        let body_bytes = get.part.body_bytes(get.file_bytes);
        let body = match server.serves_the_file() {
            true => Some(fs::read(assignment.file())?[..body_bytes].to_vec()),
            false => None,
        };
        Ok(Some(Self {
            request: format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{field}\r\n"),
            address,
            path,
            status: get.part.status(),
            body_bytes,
            close: get.close,
            body,
            tls: get.tls.then(|| assignment.certificate.client()).transpose()?,
        }))
    }

    /// Asks once, on a connection of its own, which is handed back as it is after the answer.
    pub(super) fn ask(&self) -> Result<Connection, AnswerError> {
        let mut stream = self.connect().map_err(|error| self.missing(error))?;
        stream.write_all(self.request.as_bytes()).map_err(|error| self.missing(error))?;
        let (head, answer) = self.receive(&mut stream)?;
        let right = |is: bool, what| match is {
            true => Ok(()),
            false => Err(AnswerError::Wrong { path: self.path.clone(), what }),
        };
        right(head.status == self.status, "the status is another one")?;
        right(head.body_bytes == self.body_bytes as u64, "the length is another one")?;
        match &self.body {
            Some(body) => right(answer.ends_with(body), "the body is not that of the file")?,
            // What answers without reading the request must have been told of its connections.
            None => right(head.persistent != self.close, "the connection is not kept as told")?,
        }
        Ok(stream)
    }

    fn connect(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(match &self.tls {
            Some(config) => Connection::Tls(Box::new(over(stream, Arc::clone(config))?)),
            None => Connection::Plain(stream),
        })
    }

    /// The whole answer, head included, and what its head says.
    fn receive(&self, stream: &mut Connection) -> Result<(Head, Vec<u8>), AnswerError> {
        let (mut framer, mut memory) = (Framer::default(), HeadMemory::default());
        let (mut answer, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        let wrong = |what| AnswerError::Wrong { path: self.path.clone(), what };
        loop {
            let received = stream.read(&mut buffer).map_err(|error| self.missing(error))?;
            if received == 0 {
                return Err(wrong("it is cut off"));
            }
            answer.extend_from_slice(&buffer[..received]);
            let mut input = &buffer[..received];
            match framer.next(&mut input, &mut memory) {
                Ok(Some(head)) => return Ok((head, answer)),
                Ok(None) => {}
                Err(_) => return Err(wrong("it cannot be framed")),
            }
        }
    }

    fn missing(&self, error: io::Error) -> AnswerError {
        AnswerError::None { path: self.path.clone(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::cell::Cell;
    use crate::compare::certificate::Certificate;
    use std::net::TcpListener;

    /// What is said of a server that gives `answer` to everything, in a cell of 1 KiB.
    fn said_of(answer: &str) -> Result<(), String> {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("1024.bin"), [b'a'; 1024]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let assignment = Assignment {
            address: listener.local_addr().unwrap(),
            root: directory.path(),
            scratch: directory.path(),
            cpus: &[0],
            cell: Cell::named("1k-64").unwrap(),
            certificate: &Certificate::kept_in(directory.path()),
        };
        let expected = Expected::of(Server::Nginx, &assignment).unwrap().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            });
            expected.ask().map(drop).map_err(|error| error.to_string())
        })
    }

    #[test]
    fn an_answer_is_right_to_the_last_byte_or_said_to_be_wrong() {
        let answer = |status: &str, body: &str| {
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        };
        let body = "a".repeat(1024);
        assert_eq!(said_of(&answer("200 OK", &body)), Ok(()));
        for (text, what) in [
            (answer("404 Not Found", &body), "status"),
            (answer("200 OK", &body[1..]), "length"),
            (answer("200 OK", &format!("{}b", &body[1..])), "not that of the file"),
            (answer("200 OK", &body)[..500].to_owned(), "cut off"),
            ("hello\r\n\r\n".to_owned(), "framed"),
        ] {
            let said = said_of(&text).unwrap_err();
            assert!(said.contains(what), "{what}: {said}");
        }
    }
}
