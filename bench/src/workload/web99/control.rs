//! The commands of a run: the server is reset before it, and its POST log fetched after it. Blocking
//! HTTP/1.0 over whatever connects, with a timeout: two requests of which nothing is measured.

use super::parameters::Parameters;
use crate::response::HEAD_BYTES_MAX;
use onering_fileset::dynamic::Page;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The longest answer: a log of 3.8 million records.
const ANSWER_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The longest time that an answer may take, however steadily it comes.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(300);

/// Fields of an answer.
const FIELDS_MAX: usize = 64;

/// How long the server may take over a command, and then over each piece of its answer.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection of its own for each command.
pub trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// What connects to the server.
pub type Connect<'c> = dyn FnMut() -> io::Result<Box<dyn Stream + 'c>> + 'c;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The server could not be reached, or did not answer in time.
    #[error("the server's answer to {command} did not come: {error}")]
    Exchange {
        /// The command.
        command: &'static str,
        /// Why.
        error: io::Error,
    },
    /// What came is no answer.
    #[error("the server's answer to {command} is no HTTP response with a length")]
    Malformed {
        /// The command.
        command: &'static str,
    },
    /// Another status than 200.
    #[error(
        "the server answers {command} with status {status}: is the workload's dynamic side \
         mounted at that path? (--mix static does without)"
    )]
    Status {
        /// The command.
        command: &'static str,
        /// As it came.
        status: u16,
    },
    /// There is no page around the log.
    #[error("the server's answer to Fetch is not a page with the POST log in it")]
    NoPage,
}

/// Connects plainly.
pub fn plain(address: SocketAddr) -> Box<Connect<'static>> {
    Box::new(move || {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Box::new(stream))
    })
}

/// Makes the server's users and ads anew, and empties its log.
pub fn reset(parameters: &Parameters, connect: &mut Connect<'_>) -> Result<(), ControlError> {
    answer(parameters, "Reset", &parameters.reset().to_query(), connect).map(drop)
}

/// The server's POST log, header included.
pub fn fetch(parameters: &Parameters, connect: &mut Connect<'_>) -> Result<Vec<u8>, ControlError> {
    let page = answer(parameters, "Fetch", "command/Fetch", connect)?;
    Page::content(&page).map(<[u8]>::to_vec).ok_or(ControlError::NoPage)
}

/// The body of the answer to a command.
fn answer(
    parameters: &Parameters,
    command: &'static str,
    query: &str,
    connect: &mut Connect<'_>,
) -> Result<Vec<u8>, ControlError> {
    let failed = |error| ControlError::Exchange { command, error };
    let wanted = parameters.wanted();
    let (path, host) = (&wanted.paths.dynamic, &wanted.host);
    let mut stream = connect().map_err(failed)?;
    let request = format!("GET {path}?{query} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;

    let until = Instant::now() + ANSWER_TIME_MAX;
    let mut bytes = Vec::new();
    let Head { status, head_bytes, body_bytes } = loop {
        if let Some(head) = Head::parse(&bytes).map_err(|()| ControlError::Malformed { command })? {
            break head;
        }
        if more(&mut stream, &mut bytes, until).map_err(failed)? == 0
            || bytes.len() > HEAD_BYTES_MAX
        {
            return Err(ControlError::Malformed { command });
        }
    };
    if status != 200 {
        return Err(ControlError::Status { command, status });
    }
    if body_bytes > ANSWER_BYTES_MAX {
        return Err(ControlError::Malformed { command });
    }
    let mut body = bytes.split_off(head_bytes);
    while (body.len() as u64) < body_bytes {
        if more(&mut stream, &mut body, until).map_err(failed)? == 0 {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    body.truncate(body_bytes as usize);
    Ok(body)
}

/// Appends what comes next: how much.
fn more(stream: &mut impl Read, bytes: &mut Vec<u8>, until: Instant) -> io::Result<usize> {
    if Instant::now() > until {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut piece = [0; 16 * 1024];
    let length = loop {
        match stream.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    bytes.extend_from_slice(&piece[..length]);
    Ok(length)
}

struct Head {
    status: u16,
    head_bytes: usize,
    body_bytes: u64,
}

impl Head {
    /// The head at the beginning of an answer; `None` if not all of it has come.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, ()> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        let httparse::Status::Complete(head_bytes) = response.parse(bytes).map_err(drop)? else {
            return Ok(None);
        };
        let status = response.code.ok_or(())?;
        let length =
            response.headers.iter().find(|f| f.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|field| std::str::from_utf8(field.value).ok());
        // Whoever refuses a command need not say how long the refusal is.
        let body_bytes = match length.and_then(|length| length.trim().parse().ok()) {
            None if status == 200 => return Err(()),
            length => length.unwrap_or(0),
        };
        Ok(Some(Self { status, head_bytes, body_bytes }))
    }
}
