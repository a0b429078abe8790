//! A server that runs: started, seen to answer, stopped; all by its process id.

use super::Options;
use super::peer::{Assignment, Server};
use crate::interrupt::Interrupt;
use crate::once::{self, OnceError, Response};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onering::sys::affinity;
use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to begin, and to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long one answer may take when it is checked.
const ANSWER: Duration = Duration::from_secs(5);

/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);

/// Why a server is not measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    /// It could not be started.
    #[error("cannot be started: {0}")]
    Start(#[from] io::Error),
    /// The CPU could not be used.
    #[error(transparent)]
    Pin(#[from] affinity::PinError),
    /// It ended by itself.
    #[error("ended at once ({status}): {said}")]
    Ended {
        /// How.
        status: std::process::ExitStatus,
        /// The last of what it wrote.
        said: String,
    },
    /// It does not listen.
    #[error("does not answer after {} s", PATIENCE.as_secs())]
    Silent,
    /// It answers wrongly.
    #[error("answers GET {path} wrongly: {what}")]
    Wrong {
        /// What was asked for.
        path: String,
        /// How the answer differs.
        what: &'static str,
    },
}

/// The process, stopped on drop.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Starts a server on its CPU and checks its answer, byte for byte where it serves the file.
    /// The calling thread is on the client's CPU afterwards.
    pub(super) fn start(
        server: Server,
        program: &Path,
        assignment: &Assignment<'_>,
        interrupt: &Interrupt,
        options: &Options,
    ) -> Result<Self, ServerError> {
        let mut command = server.command(program, assignment)?;
        let said = assignment.scratch.join("output");
        let output = File::create(&said)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // A process is born on the CPUs of the thread that starts it.
        affinity::pin(assignment.cpu)?;
        let child = interrupt.spawn(&mut command);
        affinity::pin(options.client_cpu)?;
        let mut running = Self { child: child? };
        running.await_listening(assignment, &said)?;
        check_answer(server, assignment)?;
        Ok(running)
    }

    /// The process, of which others may descend.
    pub(super) fn pid(&self) -> Pid {
        // Process ids fit into the type that the kernel has for them.
        Pid::from_raw(self.child.id() as i32)
    }

    fn await_listening(
        &mut self,
        assignment: &Assignment<'_>,
        said: &Path,
    ) -> Result<(), ServerError> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Err(ServerError::Ended { status, said: last_lines(said) });
            }
            if TcpStream::connect(assignment.address).is_ok() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Err(ServerError::Silent)
    }

    fn signal(&self, signal: Signal) {
        match kill(self.pid(), signal) {
            // Not waited for yet, so the id is still its own.
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(errno) => eprintln!("onering-bench: cannot stop {}: {errno}", self.pid()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(LOOK),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

fn check_answer(server: Server, assignment: &Assignment<'_>) -> Result<(), ServerError> {
    let name = assignment.cell.file_name();
    let path = format!("/{name}");
    let mut stream = TcpStream::connect_timeout(&assignment.address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    let part = assignment.cell.part;
    let field = part.field().map_or(String::new(), |field| format!("{field}\r\n"));
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{field}\r\n", assignment.address);
    let wrong = |what| ServerError::Wrong { path: path.clone(), what };
    let Response { head, body, .. } =
        once::exchange(&mut stream, request.as_bytes(), assignment.cell.file_bytes as u64)
            .map_err(|error| match error {
                OnceError::Silent(error) => ServerError::Start(error),
                OnceError::Ended => wrong("it is cut off"),
                OnceError::Framing(_) => wrong("it cannot be framed"),
                OnceError::TooLong(_) => wrong("the length is another one"),
            })?;
    if head.status != part.status() {
        return Err(wrong("the status is another one"));
    }
    let body_bytes = part.body_bytes(assignment.cell.file_bytes);
    if head.body_bytes != body_bytes as u64 {
        return Err(wrong("the length is another one"));
    }
    if head.persistent == assignment.cell.close && !server.serves_files() {
        return Err(wrong("the connection is not kept or closed as told"));
    }
    if server.serves_files() && body != fs::read(assignment.root.join(name))?[..body_bytes] {
        return Err(wrong("the body is not that of the file"));
    }
    Ok(())
}

/// The end of a file of messages, on one line.
fn last_lines(file: &Path) -> String {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines: Vec<_> = text.lines().rev().take(3).collect();
    lines.reverse();
    lines.join("; ")
}
