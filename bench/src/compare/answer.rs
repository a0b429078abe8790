//! The right answer of a cell, and whether a server gives it: byte for byte, before a measurement
//! and now and then during it.

use super::configuration::Assignment;
use super::peer::Server;
use crate::dial::{Connection, DialError};
use crate::once::{self, OnceError, Patience, Response};
use crate::tls::{TlsOptionsError, TlsSettings};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How an answer is not as it must be.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// What is right is not known.
    #[error("cannot read the file that is asked for: {0}")]
    File(io::Error),
    /// TLS cannot be spoken.
    #[error(transparent)]
    Tls(#[from] TlsOptionsError),
    /// There is no connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// It does not come, or is no response.
    #[error("GET {path}: {error}")]
    Exchange {
        /// What was asked for.
        path: String,
        /// What happened instead.
        error: OnceError,
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
    /// Whether sessions are to be resumed.
    resumed: bool,
    tls: Option<TlsSettings>,
}

/// How often a session is resumed in a row before it is believed: more often than a server has threads
/// or processes, each of which might know its own sessions alone.
const RESUMED: usize = 8;

impl Expected {
    /// Of `server` in its cell; none where the load verifies everything by itself.
    pub(super) fn of(
        server: Server,
        assignment: &Assignment<'_>,
    ) -> Result<Option<Self>, AnswerError> {
        let Some(get) = assignment.cell.request() else { return Ok(None) };
        let (address, cell) = (assignment.address, assignment.cell);
        let path = format!("/{}", get.file_name());
        let field = get.part.field().map_or(String::new(), |field| format!("{field}\r\n"));
        let body_bytes = get.part.body_bytes(get.file_bytes);
        let file = || fs::read(assignment.file()).map_err(AnswerError::File);
        let body = server.serves_the_file().then(file).transpose()?;
        Ok(Some(Self {
            request: format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{field}\r\n"),
            address,
            path,
            status: get.part.status(),
            body_bytes,
            close: get.close,
            body: body.map(|mut body| {
                body.truncate(body_bytes);
                body
            }),
            resumed: cell.resumed_by().is_some(),
            tls: get.tls.then(|| assignment.certificate.tls(cell)).transpose()?,
        }))
    }

    /// Asks once, on a connection of its own, which is handed back as it is after the answer.
    pub(super) fn ask(&self) -> Result<Connection, AnswerError> {
        let mut connection = Connection::dial(self.address, self.tls.as_ref(), PATIENCE)?;
        self.ask_on(&mut connection)?;
        Ok(connection)
    }

    /// Asks as often as it takes to believe that the server resumes sessions, where it is to.
    pub(super) fn resume(&self) -> Result<(), AnswerError> {
        let Some(settings) = self.tls.as_ref().filter(|_| self.resumed) else { return Ok(()) };
        let dialer = settings.remembering();
        for again in 0..=RESUMED {
            let mut connection = Connection::dial_with(&dialer, self.address, PATIENCE)?;
            self.ask_on(&mut connection)?;
            if again > 0 && !connection.is_resumed() {
                return Err(self.wrong("the session is not resumed"));
            }
        }
        Ok(())
    }

    fn wrong(&self, what: &'static str) -> AnswerError {
        AnswerError::Wrong { path: self.path.clone(), what }
    }

    fn ask_on(&self, connection: &mut Connection) -> Result<(), AnswerError> {
        let right = |is: bool, what| if is { Ok(()) } else { Err(self.wrong(what)) };
        let most = self.body_bytes as u64;
        let patience = Patience { still: PATIENCE, whole: PATIENCE, stop: &mut || false };
        let Response { head, body, .. } =
            once::exchange(connection, self.request.as_bytes(), most, patience).map_err(
                |error| match error {
                    OnceError::TooLong(_) => self.wrong("the length is another one"),
                    error => AnswerError::Exchange { path: self.path.clone(), error },
                },
            )?;
        right(head.status == self.status, "the status is another one")?;
        right(body.len() == self.body_bytes, "the length is another one")?;
        match &self.body {
            Some(expected) => right(body == *expected, "the body is not that of the file")?,
            // What answers without reading the request must have been told of its connections.
            None => right(head.persistent != self.close, "the connection is not kept as told")?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::cell::Cell;
    use crate::compare::certificate::Certificate;
    use std::io::{Read, Write};
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
            (answer("200 OK", &body)[..500].to_owned(), "before the answer was complete"),
            ("hello\r\n\r\n".to_owned(), "cannot be read"),
        ] {
            let said = said_of(&text).unwrap_err();
            assert!(said.contains(what), "{what}: {said}");
        }
    }
}
