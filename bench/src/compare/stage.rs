//! Where servers perform: the files, the certificate, the next free port, and one measurement from
//! a server's start to its end.
//!
//! Nothing of a measurement reaches the next one: each server has a port and a directory of its own,
//! so that neither connections that still wait in TIME-WAIT nor files of a predecessor are met, and
//! the next one starts when the last process of the one before has ended.

use super::CompareError;
use super::answer::{AnswerError, Expected};
use super::cell::{self, Load};
use super::certificate::Certificate;
use super::comparison::Measurement;
use super::configuration::Assignment;
use super::contender::Found;
use super::load::run::Run;
use super::load::{LoadError, Taken, idle, wrk};
use super::options::{Client, FILE_SET_LOAD, Options};
use super::order::Block;
use super::peer::{OPENSSL_SETTINGS, Server};
use super::running::{Running, ServerError};
use crate::interrupt::Interrupt;
use onering_fileset::plan::Directories;
use onering_fileset::store::{self, Control, Order};
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The first port used; each start takes the next.
const FIRST_PORT: u16 = 8000;

/// The last port used, below those that connections come from.
const LAST_PORT: u16 = 30_000;

/// Why one measurement has no figures.
#[derive(Debug, thiserror::Error)]
pub(super) enum MeasureError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{0}")]
    System(#[from] io::Error),
}

/// See the head of this file.
pub(super) struct Stage<'a> {
    options: &'a Options,
    interrupt: Interrupt,
    files: TempDir,
    root: PathBuf,
    /// The document root of [`Load::Web99`].
    file_set: PathBuf,
    certificate: Certificate,
    next_port: u16,
}

impl<'a> Stage<'a> {
    /// Writes the files that the cells ask for.
    pub(super) fn new(options: &'a Options) -> Result<Self, CompareError> {
        let interrupt = Interrupt::hold().map_err(CompareError::Signals)?;
        let files = tempfile::Builder::new()
            .prefix("onering-bench-")
            // Servers give up root and must still get in.
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .map_err(CompareError::Files)?;
        let root = files.path().join("root");
        fs::create_dir(&root).map_err(CompareError::Files)?;
        for get in options.cells.iter().filter_map(|cell| cell.request()) {
            let text = (0..get.file_bytes).map(|i| b'a' + (i % 26) as u8).collect::<Vec<_>>();
            let path = root.join(get.file_name());
            fs::write(&path, text)
                .and_then(|()| {
                    File::options().write(true).open(&path)?.set_modified(cell::written())
                })
                .map_err(CompareError::Files)?;
        }
        fs::write(files.path().join(OPENSSL), OPENSSL_SETTINGS).map_err(CompareError::Files)?;
        let certificate = Certificate::make(files.path()).map_err(CompareError::Files)?;
        let file_set = files.path().join("file-set");
        if options.cells.iter().any(|cell| cell.load == Load::Web99) {
            make_file_set(&file_set)?;
        }
        Ok(Self { options, interrupt, files, root, file_set, certificate, next_port: FIRST_PORT })
    }

    /// Whether this program has been told to end.
    pub(super) fn is_interrupted(&self) -> Result<bool, CompareError> {
        self.interrupt.has_come().map_err(CompareError::Signals)
    }

    /// About how long a block takes.
    pub(super) fn time_for(&self, block: &Block) -> Duration {
        let one = block.client.time_for(block.cell, self.options.duration);
        one * u32::try_from(block.servers.len()).unwrap_or(u32::MAX)
    }

    /// One server of a block: started, checked, measured, stopped.
    pub(super) fn measure(
        &mut self,
        block: &Block,
        client: &Found<Client>,
        server: &Found<Server>,
    ) -> Result<Measurement, MeasureError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.next_port));
        self.next_port = if self.next_port < LAST_PORT { self.next_port + 1 } else { FIRST_PORT };
        let scratch = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(self.files.path())?;
        let assignment = Assignment {
            address,
            root: if block.cell.load == Load::Web99 { &self.file_set } else { &self.root },
            scratch: scratch.path(),
            cpus: &self.options.server_cpus,
            cell: block.cell,
            certificate: &self.certificate,
        };
        server.who.prepare(&assignment)?;
        let command = server.who.command(&server.program, &assignment);
        let own_cpus = &self.options.client_cpus;
        let running = Running::start(command, &assignment, &self.interrupt, own_cpus)?;
        let expected = Expected::of(server.who, &assignment)?;
        if let Some(expected) = &expected {
            expected.ask()?;
            expected.resume()?;
        }
        let taken = self.load(block, client, &running, expected.as_ref(), &assignment)?;
        Ok(Measurement {
            place: block.place(server.who),
            figures: taken.figures,
            requests: taken.requests,
            errors: taken.errors,
            sampled: taken.sampled + u64::from(expected.is_some()),
            client_is_the_limit: taken.client_is_the_limit,
        })
    }

    fn load(
        &self,
        block: &Block,
        client: &Found<Client>,
        running: &Running,
        expected: Option<&Expected>,
        assignment: &Assignment<'_>,
    ) -> Result<Taken, LoadError> {
        let (cell, server, duration) = (block.cell, running.pid(), self.options.duration);
        let cpus = &self.options.client_cpus;
        match (client.who, cell.load, expected) {
            (_, Load::Idle { .. }, Some(expected)) => {
                idle::measure(expected, cell.connections, server, &self.interrupt)
            }
            (Client::Wrk, Load::Get(get), _) => {
                let scheme = if get.tls { "https" } else { "http" };
                let url = format!("{scheme}://{}/{}", assignment.address, get.file_name());
                let program = &client.program;
                let mut command = wrk::command(program, &url, cell, get, cpus.len(), duration);
                command.env("OPENSSL_CONF", self.files.path().join(OPENSSL));
                wrk::measure(command, server, expected, &self.interrupt)
            }
            _ => Run {
                certificate: &self.certificate.certificate(),
                program: &client.program,
                address: assignment.address,
                cell,
                cpus,
                duration,
                server,
                file_set: &self.file_set,
                scratch: assignment.scratch,
            }
            .measure(expected, &self.interrupt),
        }
    }
}

/// Writes the file set of [`Load::Web99`].
fn make_file_set(directory: &Path) -> Result<(), CompareError> {
    let order = Order {
        directories: Directories::for_load(FILE_SET_LOAD)?,
        seed: None,
        writers: NonZero::<usize>::MIN,
    };
    store::generate(directory, &order, &Control::default())?;
    Ok(())
}

/// Name of OpenSSL's settings for clients.
const OPENSSL: &str = "openssl.cnf";
