//! The whole server: listeners, one thread for each shard, signals, the orderly end.
//!
//! [`run`] binds every listener before any shard exists and closes none before the last has
//! ended: closing one of a SO_REUSEPORT group would reset what the kernel has queued on it and
//! renumber the others.
//!
//! [`faults`] is the list of what has gone wrong in other servers, and of the tests against it.

pub mod faults;
mod listeners;
mod material;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::config::{Config, Ktls};
use crate::metrics::Metrics;
use crate::ring::{Ring, Setup, SetupError, Wait};
use crate::shard::{Assignment, Inbox, Inboxes, Letter, Shard, StartError, Worker};
use crate::sys::signal::{self, Request, Signals};
use crate::sys::{affinity, ktls};
use crate::tls::{Problems, Severity};

pub use listeners::{BindError, Registry, Steering};
pub use material::check;

use material::{Keeper, Outcome};

/// Why the server did not start, or ended otherwise than asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// io_uring cannot be had.
    #[error("{0}")]
    Ring(#[from] SetupError),
    /// A shard could not be made.
    #[error("{0}")]
    Shard(#[from] StartError),
    /// A shard has ended although nobody asked it to.
    #[error("shard {index} failed: {cause}")]
    ShardFailed {
        /// Which.
        index: usize,
        /// Its last words.
        cause: String,
    },
    /// Certificates, keys or secrets cannot be used.
    #[error("{0}")]
    Material(Problems),
    /// The kernel is to encrypt, and cannot.
    #[error("`tls.ktls` is \"on\", but the kernel does not encrypt: {0}")]
    Ktls(#[from] ktls::Unavailable),
    /// The counters could not be written.
    #[error(
        "cannot write the counters to {path}: {source}\n  fix: a directory that is there and that this \
         user may write to, for `--stats` or `stats`"
    )]
    Stats {
        /// Where to.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Something that a process usually has is missing: a thread, a pipe, a signal descriptor.
    #[error("cannot start: {what}: {source}")]
    Environment {
        /// What is missing.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

fn missing(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Environment { what, source }
}

/// Serves until SIGTERM or SIGINT, then drains, and says so. A second signal cuts off what is left:
/// that is still an end in good order. `ready` is called once every shard can take connections.
pub fn run(mut config: Config, ready: impl FnOnce(&Registry)) -> Result<(), Error> {
    signal::ignore_sigpipe().map_err(missing("SIGPIPE cannot be ignored"))?;
    // Before any thread is made, so that all of them have the signals blocked.
    let signals = signal::block_requests().map_err(missing("no signal descriptor"))?;
    // Ours, to wake the shards with; and the first to tell why there is no io_uring.
    let mut ring = Ring::new(&Setup { entries: 64, recv_buffers: 1, ..Setup::default() })?;
    let registry = Registry::bind(&config)?;
    registry.point_redirects(&mut config);
    let config = Arc::new(config);
    let stats = open_stats(&config)?;
    let metrics = Metrics::new(config.cpus.len());
    let (ended, ends) = nix::unistd::pipe().map_err(|errno| missing("no pipe")(errno.into()))?;

    let mut keeper = Keeper::start(&config)
        .map_err(|problems| Error::Material(problems.at_least(Severity::Fatal)))?;
    let kernel_may_seal = kernel_may_seal(&config)?;
    // A server without TLS has no thread for handshakes, and no ring for it.
    let (worker, jobs) = match speaks_tls(&config) {
        true => Some(Worker::new(config.tls.handshakes)).unzip(),
        false => (None, None),
    };
    let mut shards = Vec::new();
    for (index, &cpu) in config.cpus.iter().enumerate() {
        let assignment = Assignment {
            index,
            cpu,
            steered: registry.steered(),
            listeners: registry.lend(index),
            material: Arc::clone(keeper.running()),
            kernel_may_seal,
            worker: worker.clone(),
            counters: metrics.of_shard(index).expect("made for as many shards as there are CPUs"),
        };
        let end = ends.try_clone().map_err(missing("no descriptor for a shard"))?;
        shards.push(Thread::spawn(Arc::clone(&config), assignment, end)?);
    }
    drop(ends);
    drop(worker);
    let inboxes = introduce(&shards)?;
    let worker = jobs.map(|jobs| Worker::start(jobs, Arc::clone(&inboxes))).transpose()?;
    ready(&registry);

    let mut tell = |letter: &dyn Fn() -> Letter| {
        for inbox in inboxes.iter() {
            inbox.send(letter(), &mut ring);
        }
        ring.enter(Wait::No).map_err(missing("shards cannot be woken"))
    };
    let mut running = shards.len();
    loop {
        let outcome = match wait(&signals, &ended, keeper.look_every())? {
            Event::Asked => break,
            Event::Ended(count) => {
                running -= count;
                break;
            }
            Event::Hangup if !keeper.has_files() => {
                tracing::info!(
                    "SIGHUP: nothing is read again; a new configuration takes a restart"
                );
                continue;
            }
            Event::Hangup => keeper.reload(),
            Event::Idle => keeper.look(),
        };
        match outcome {
            Outcome::Same => {}
            Outcome::Changed => {
                metrics.server().certificates_loaded.add(1);
                tell(&|| Letter::Material(Arc::clone(keeper.running())))?;
            }
            Outcome::Refused => metrics.server().certificates_refused.add(1),
        }
    }
    let connections = counted(metrics.snapshot().total.connections, "connection");
    let grace = config.timeouts.grace;
    tracing::info!(
        "ending: {connections}, at most {grace:?}; SIGTERM or Ctrl-C again to end at once"
    );
    tell(&|| Letter::Drain)?;
    while running > 0 {
        match wait(&signals, &ended, None)? {
            Event::Asked => tell(&|| Letter::Cut)?,
            Event::Ended(count) => running -= count,
            Event::Hangup | Event::Idle => {}
        }
    }
    let results: Vec<_> = shards.into_iter().map(Thread::join).collect();
    // It has ended with the last shard. A panic of its own has told why.
    let _ = worker.map(JoinHandle::join);
    match metrics.snapshot().total.drain_cut_off {
        0 => tracing::info!("ended; no connection was cut off"),
        cut => tracing::info!("ended; {} cut off", counted(cut, "connection")),
    }
    write_stats(&config, stats, &metrics)?;
    results.into_iter().collect()
}

/// Whether any listener has TLS.
fn speaks_tls(config: &Config) -> bool {
    config.listeners.iter().any(|listener| listener.tls.is_some())
}

/// Whether the kernel is to encrypt where that is worth it.
fn kernel_may_seal(config: &Config) -> Result<bool, Error> {
    match config.tls.ktls {
        Ktls::Off => Ok(false),
        _ if !speaks_tls(config) => Ok(false),
        Ktls::Auto => Ok(ktls::available().is_ok()),
        Ktls::On => Ok(ktls::available().map(|_| true)?),
    }
}

/// A number of things, in words.
fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A shard's thread, as the server holds it.
struct Thread {
    index: usize,
    handle: JoinHandle<io::Result<()>>,
    /// Its inbox, or why it could not be made.
    made: mpsc::Receiver<Result<Arc<Inbox>, StartError>>,
    /// All shards' inboxes; it begins to serve when it has them.
    begin: mpsc::Sender<Inboxes>,
}

impl Thread {
    /// Starts a thread on its CPU and has it make its shard. It writes a byte to `end` when
    /// it ends.
    fn spawn(config: Arc<Config>, assignment: Assignment, end: OwnedFd) -> Result<Thread, Error> {
        let index = assignment.index;
        let (made_sender, made) = mpsc::channel();
        let (begin, begin_receiver) = mpsc::channel();
        let main = move || {
            let _notice = EndNotice(end);
            if let Err(error) = affinity::pin(assignment.cpu) {
                tracing::warn!(cpu = assignment.cpu, %error, "shard runs unpinned");
            }
            let shard = match Shard::new(config, assignment) {
                Ok(shard) => shard,
                Err(error) => {
                    let _ = made_sender.send(Err(error));
                    return Ok(());
                }
            };
            let _ = made_sender.send(Ok(shard.inbox()));
            match begin_receiver.recv() {
                Ok(inboxes) => shard.run(inboxes),
                // Another shard could not be made: the server does not start.
                Err(mpsc::RecvError) => Ok(()),
            }
        };
        let handle = thread::Builder::new()
            .name(format!("shard-{index}"))
            .spawn(main)
            .map_err(missing("no thread for a shard"))?;
        Ok(Thread { index, handle, made, begin })
    }

    fn join(self) -> Result<(), Error> {
        let failed = |cause: String| Error::ShardFailed { index: self.index, cause };
        match self.handle.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(format!("its ring failed: {error}"))),
            // The panic's message is on standard error already.
            Err(_) => Err(failed("it panicked".to_owned())),
        }
    }
}

/// Waits until every shard is made, and tells each of all others.
fn introduce(shards: &[Thread]) -> Result<Inboxes, Error> {
    let mut inboxes = Vec::new();
    for shard in shards {
        let gone = || Error::ShardFailed { index: shard.index, cause: "it panicked".to_owned() };
        inboxes.push(shard.made.recv().map_err(|_| gone())??);
    }
    let inboxes: Inboxes = inboxes.into();
    for shard in shards {
        // A shard that is gone by now shows in `wait`.
        let _ = shard.begin.send(Arc::clone(&inboxes));
    }
    Ok(inboxes)
}

/// What the server waits for.
enum Event {
    /// SIGTERM or SIGINT.
    Asked,
    /// So many shards have ended.
    Ended(usize),
    /// SIGHUP: what is in files is to be read again.
    Hangup,
    /// So much time has passed.
    Idle,
}

/// Waits for what comes first.
fn wait(signals: &Signals, ended: &OwnedFd, idle: Option<Duration>) -> Result<Event, Error> {
    let timeout = idle.and_then(|idle| PollTimeout::try_from(idle).ok());
    loop {
        let mut descriptors = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(ended.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut descriptors, timeout.unwrap_or(PollTimeout::NONE)) {
            Ok(0) => return Ok(Event::Idle),
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(missing("poll(2)")(errno.into())),
        }
        if descriptors[1].any() == Some(true) {
            let count = nix::unistd::read(ended, &mut [0; 64]);
            let count = count.map_err(|errno| missing("the shards' pipe")(errno.into()))?;
            return Ok(Event::Ended(count));
        }
        match signals.read().map_err(missing("the signal descriptor"))? {
            Some(Request::Terminate | Request::Interrupt) => return Ok(Event::Asked),
            Some(Request::Hangup) => return Ok(Event::Hangup),
            None => {}
        }
    }
}

/// Tells the server that a thread has ended, however it did.
struct EndNotice(OwnedFd);

impl Drop for EndNotice {
    fn drop(&mut self) {
        // A pipe takes many more bytes than there are threads.
        let _ = nix::unistd::write(&self.0, b".");
    }
}

/// Opens the file for the counters at the start: hours later would be late to learn that it cannot be
/// written.
fn open_stats(config: &Config) -> Result<Option<File>, Error> {
    let open = |path: &PathBuf| {
        File::create(path).map_err(|source| Error::Stats { path: path.clone(), source })
    };
    config.stats.as_ref().map(open).transpose()
}

fn write_stats(config: &Config, file: Option<File>, metrics: &Metrics) -> Result<(), Error> {
    let (Some(path), Some(mut file)) = (&config.stats, file) else { return Ok(()) };
    let failed = |source| Error::Stats { path: path.clone(), source };
    let mut text =
        serde_json::to_string_pretty(&metrics.snapshot()).map_err(|error| failed(error.into()))?;
    text.push('\n');
    file.write_all(text.as_bytes()).map_err(failed)
}
