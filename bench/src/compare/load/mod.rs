//! A load on a running server: the client's command, watched while it runs.

pub(super) mod idle;
pub(super) mod run;
pub(super) mod wrk;

use super::answer::{AnswerError, Expected};
use super::figure::Figures;
use crate::interrupt::Interrupt;
use crate::process::ProcessError;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Why a load gave no figures.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Wrk(#[from] wrk::WrkError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("the client failed: {0}")]
    Client(String),
    #[error("it closed {closed} of {connections} connections instead of keeping them")]
    NotKept {
        /// How many are closed.
        closed: usize,
        /// Of how many.
        connections: usize,
    },
    #[error(
        "{full} handshakes were full and {resumed} were resumed, which is not what was asked for"
    )]
    Handshakes {
        /// So many were full.
        full: u64,
        /// So many were not.
        resumed: u64,
    },
    #[error("{0}")]
    System(#[from] io::Error),
}

/// What a load found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Taken {
    pub(super) figures: Figures,
    pub(super) requests: u64,
    pub(super) errors: BTreeMap<String, u64>,
    /// Answers that were compared byte for byte.
    pub(super) sampled: u64,
    pub(super) client_is_the_limit: bool,
}

/// How often an answer is looked at while a client runs. Seldom enough to cost nothing.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// How often is looked whether a client has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A client's command that ran to its end, and the answers that were looked at meanwhile.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) output: Output,
    pub(super) sampled: u64,
}

/// Runs a client, whose output fits into a pipe, and compares an answer now and then. A wrong one
/// spoils the measurement; so does an interruption.
pub(super) fn watch(
    command: &mut Command,
    expected: Option<&Expected>,
    interrupt: &Interrupt,
) -> Result<Watched, LoadError> {
    let mut child = interrupt.spawn(command)?;
    let mut looked = Instant::now();
    let mut sampled = 0;
    let spoilt = loop {
        match child.try_wait() {
            Ok(Some(_)) => break None,
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => break Some(error.into()),
        }
        match interrupt.has_come() {
            Ok(false) => {}
            Ok(true) => break Some(io::Error::from(io::ErrorKind::Interrupted).into()),
            Err(error) => break Some(error.into()),
        }
        if let Some(expected) = expected.filter(|_| looked.elapsed() >= SAMPLE_EVERY) {
            match expected.ask() {
                Ok(_) => sampled += 1,
                Err(error) => break Some(error.into()),
            }
            looked = Instant::now();
        }
    };
    if let Some(error) = spoilt {
        // Not waited for yet, so the id is still the client's.
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        child.wait()?;
        return Err(error);
    }
    Ok(Watched { output: child.wait_with_output()?, sampled })
}

/// The first line of what a client said, which is what went wrong; the rest may be on how to use it.
fn first_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).trim().lines().next().unwrap_or_default().to_owned()
}
