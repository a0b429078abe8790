//! `onering-bench floor`.

use super::{CommandError, Cpus, Verdict, output};
use crate::floor::{Floor, FloorError};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use onering::config::units::parse_cpus;
use onering::sys::signal::block_termination;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// How often threads are looked after while no signal comes, ms.
const LOOK_MS: u16 = 500;

/// Answer every request with the same canned bytes: the floor that servers are held against.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onering-bench floor --listen 127.0.0.1:8000 --bytes 1024 --cpus 0
  onering-bench floor --listen 127.0.0.1:8000 --bytes 1024 --cpus 0 --close --defer-accept")]
pub(super) struct Arguments {
    /// Where to listen
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// Bytes of each body
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1 << 30))]
    bytes: u32,
    /// CPUs that answer, one thread each, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Cpus,
    /// Close each connection after one answer, which says so
    #[arg(long)]
    close: bool,
    /// Let the kernel hold each connection until its first byte comes (TCP_DEFER_ACCEPT, 1 s)
    #[arg(long)]
    defer_accept: bool,
}

impl Arguments {
    pub(super) fn execute(&self) -> Result<Verdict, CommandError> {
        let floor = Floor {
            body_bytes: self.bytes as usize,
            close: self.close,
            defer_accept: self.defer_accept,
        };
        // Before the threads start, so that they inherit what is blocked.
        let signals = block_termination().map_err(CommandError::Signals)?;
        let (address, listeners) = floor.listen(self.listen, self.cpus.len())?;
        let (ready, all_ready) = mpsc::channel();
        let mut threads = Vec::new();
        for (listener, &cpu) in listeners.into_iter().zip(&self.cpus) {
            let ready = ready.clone();
            let tell = move || {
                // Nobody listens any more if another thread has failed.
                let _ = ready.send(());
            };
            let answer = move || floor.answer(listener, Some(cpu), tell);
            let name = format!("floor-{cpu}");
            let thread = std::thread::Builder::new().name(name).spawn(answer);
            threads.push(thread.map_err(FloorError::Broken)?);
        }
        drop(ready);
        if all_ready.iter().count() == self.cpus.len() {
            output::print(&format_args!("answering at http://{address}/\n"))?;
        }
        while signals.read().map_err(CommandError::Signals)?.is_none() {
            look_after(&mut threads)?;
            let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::from(LOOK_MS))
                .map_err(|errno| CommandError::Signals(errno.into()))?;
        }
        Ok(Verdict::Clean)
    }
}

/// A thread that has ended has failed.
fn look_after(
    threads: &mut Vec<JoinHandle<Result<Infallible, FloorError>>>,
) -> Result<(), FloorError> {
    let Some(ended) = threads.iter().position(JoinHandle::is_finished) else { return Ok(()) };
    match threads.swap_remove(ended).join() {
        Ok(Err(error)) => Err(error),
        Ok(Ok(never)) => match never {},
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
