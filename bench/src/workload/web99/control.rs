//! The commands of a run: the server is reset before it, and its POST log fetched after it. HTTP/1.0
//! on a connection that stands: two requests of which nothing is measured.

use super::parameters::Parameters;
use crate::once::{self, OnceError, Patience};
use onering_fileset::dynamic::Page;
use std::io::{Read, Write};
use std::time::Duration;

/// The longest answer: a log of 3.8 million records.
const ANSWER_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// How long the server may take to connect, and for each piece of an answer.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// How long an answer may take altogether.
const WHOLE_ANSWER_MAX: Duration = Duration::from_secs(600);

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is no answer.
    #[error("the server did not answer the command {command}: {error}")]
    Exchange {
        /// The command.
        command: &'static str,
        /// Why.
        error: OnceError,
    },
    /// Another status than 200.
    #[error(
        "the server answered the command {command} with status {status}: is the workload's dynamic \
         side at {path}?\n  fix: --dynamic-path PATH, or --mix static for a server without it"
    )]
    Status {
        /// The command.
        command: &'static str,
        /// As it came.
        status: u16,
        /// Where it was sent.
        path: String,
    },
    /// There is no page around the log.
    #[error("the server's answer to the command Fetch is not a page with the POST log in it")]
    NoPage,
}

/// Makes the server's users and ads anew, and empties its log.
pub fn reset(
    parameters: &Parameters,
    connection: &mut (impl Read + Write),
) -> Result<(), ControlError> {
    let query = parameters.reset().to_query();
    // No signal is held back yet: it ends the process.
    answer(parameters, "Reset", &query, connection, &mut || false).map(drop)
}

/// The server's POST log, header included, unless `stop` says that nobody wants it any more; that is
/// asked as often as the connection's timeout has passed.
pub fn fetch(
    parameters: &Parameters,
    connection: &mut (impl Read + Write),
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<u8>, ControlError> {
    let page = answer(parameters, "Fetch", "command/Fetch", connection, stop)?;
    Page::content(&page).map(<[u8]>::to_vec).ok_or(ControlError::NoPage)
}

/// The body of the answer to a command.
fn answer(
    parameters: &Parameters,
    command: &'static str,
    query: &str,
    connection: &mut (impl Read + Write),
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<u8>, ControlError> {
    let wanted = parameters.wanted();
    let (path, host) = (&wanted.paths.dynamic, &wanted.host);
    let request = format!("GET {path}?{query} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    let patience = Patience { still: TIMEOUT, whole: WHOLE_ANSWER_MAX, stop };
    let response = once::exchange(connection, request.as_bytes(), ANSWER_BYTES_MAX, patience)
        .map_err(|error| ControlError::Exchange { command, error })?;
    match response.head.status {
        200 => Ok(response.body),
        status => Err(ControlError::Status { command, status, path: path.clone() }),
    }
}
