//! Writing a set, or what is missing of it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use nix::fcntl::{Flock, FlockArg};

use super::space::{Free, Need};
use super::state::{Journal, Manifest, State, has_files};
use super::{Control, Error, directory_path, file_name, verify};
use crate::content::Contents;
use crate::name::{Name, ROOT, SIZE_MAX};
use crate::plan::Directories;

/// Directories between two syncs of the file system, 82 MB: what has to be compared byte by byte after
/// the machine went down is no more than these and those that are being written. Few, so that the disk
/// is at work from early on: with 64, what the kernel does not write by itself waited for the end.
const DIRECTORIES_PER_SYNC: u32 = 16;

/// The seed of a set that is not asked to have another.
const SEED: u64 = 1;

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// How many directories the set is to have.
    pub directories: Directories,
    /// The seed of its contents; if not given, that of the set which is there, or 1.
    pub seed: Option<u64>,
    /// Threads that write.
    pub writers: NonZero<usize>,
}

/// What has been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The set's size.
    pub directories: Directories,
    /// The seed of its contents.
    pub seed: u64,
    /// Whether the set is whole; else it was stopped, and the same order goes on with it.
    pub whole: bool,
}

/// Writes a set into a directory, which is made if it is not there. See the module's page for what
/// is promised when it does not come to its end.
pub fn generate(root: &Path, order: &Order, control: &Control) -> Result<Generated, Error> {
    if !root.exists() {
        // Before the directory is made: a disk that is too small stays as it is.
        Survey::nothing_there(order.directories).check_space(root)?;
        fs::create_dir_all(root).map_err(Error::io("make", root))?;
    }
    let lock = lock(root)?;
    let state = State::read(root)?;
    let seed = settle(root, &state, order)?;
    let generated = |whole| Generated { directories: order.directories, seed, whole };

    let survey = match state.extent() {
        Some(_) => Survey::of(root, order.directories)?,
        None => Survey::nothing_there(order.directories),
    };
    survey.check_space(root)?;
    let trusted = state.durable();
    // Nothing is missing up to there, and all of it is on the disk.
    let durable = trusted.min(survey.whole_up_to());
    (0..durable).flat_map(Name::in_directory).for_each(|name| control.add_done(name));
    if state.journal.is_none() && durable == order.directories.count() {
        return Ok(generated(true));
    }

    Journal::new(order.directories, seed, durable).write(root)?;
    let set = root.join(ROOT);
    make_directory(&set)?;
    let run = Run {
        root,
        contents: Contents::new(seed),
        directories: order.directories,
        trusted,
        survey,
        next: AtomicU32::new(durable),
        failed: AtomicBool::new(false),
        control,
    };
    let durable = run.write_all(order.writers, seed, durable)?;
    let whole = durable == order.directories.count();
    if whole {
        Manifest::new(order.directories, seed).write(root)?;
        Journal::remove(root)?;
    }
    drop(lock);
    Ok(generated(whole))
}

/// Keeps other runs out of a directory for as long as the result lives.
fn lock(root: &Path) -> Result<Flock<File>, Error> {
    let directory = File::open(root).map_err(Error::io("open", root))?;
    Flock::lock(directory, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        nix::errno::Errno::EWOULDBLOCK => Error::Busy { root: root.to_owned() },
        errno => Error::io("lock", root)(errno.into()),
    })
}

/// The seed under which the order can be carried out in a directory that is in that state.
fn settle(root: &Path, state: &State, order: &Order) -> Result<u64, Error> {
    let root = || root.to_owned();
    let Some((found, directories)) = state.extent() else {
        if has_files(&root()) {
            return Err(Error::Unknown { root: root() });
        }
        return Ok(order.seed.unwrap_or(SEED));
    };
    let asked = order.seed.unwrap_or(found);
    if asked != found {
        return Err(Error::OtherSeed { root: root(), found, asked });
    }
    let asked = order.directories.count();
    if asked < directories {
        return Err(Error::Smaller { root: root(), found: directories, asked });
    }
    Ok(found)
}

/// Makes a directory, if it is not there.
fn make_directory(path: &Path) -> Result<(), Error> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("make", path)(error))
        }
        _ => Ok(()),
    }
}

/// Which files are there with their length, a bit for each of a directory's 36.
struct Survey(Vec<u64>);

impl Survey {
    fn nothing_there(directories: Directories) -> Self {
        Self(vec![0; directories.count() as usize])
    }

    fn of(root: &Path, directories: Directories) -> Result<Self, Error> {
        let look = |directory| {
            let path = directory_path(root, directory);
            if !path.exists() {
                return Ok(0);
            }
            Name::in_directory(directory).try_fold(0, |there, name| {
                let path = path.join(file_name(name));
                let right = match path.symlink_metadata() {
                    Ok(facts) => facts.is_file() && facts.len() == u64::from(name.size()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                    Err(error) => return Err(Error::io("look at", &path)(error)),
                };
                Ok(there | u64::from(right) << name.position())
            })
        };
        (0..directories.count()).map(look).collect::<Result<_, _>>().map(Self)
    }

    fn is_there(&self, name: Name) -> bool {
        self.0[name.directory() as usize] >> name.position() & 1 == 1
    }

    /// The first directory in which something is missing.
    fn whole_up_to(&self) -> u32 {
        let whole = (1 << crate::name::FILES_PER_DIRECTORY) - 1;
        self.0.iter().take_while(|&&there| there == whole).count() as u32
    }

    fn check_space(&self, root: &Path) -> Result<(), Error> {
        let free = Free::at(root)?;
        let mut need = Need::default();
        for (directory, &there) in (0..).zip(&self.0) {
            if there == 0 {
                need.add_directory(&free);
            }
            let missing = Name::in_directory(directory).filter(|&name| !self.is_there(name));
            missing.for_each(|name| need.add_file(name.size(), &free));
        }
        Ok(need.met_by(&free, root)?)
    }
}

/// What the writers share.
struct Run<'r> {
    root: &'r Path,
    contents: Contents,
    directories: Directories,
    /// Below this directory, a file with the right length has the right bytes.
    trusted: u32,
    survey: Survey,
    /// The directory that is written next.
    next: AtomicU32,
    /// Whether a writer has failed, so that the others need not go on.
    failed: AtomicBool,
    control: &'r Control,
}

impl Run<'_> {
    /// Writes what is missing; returns how many directories from the first on are on the disk: all,
    /// unless it was stopped.
    fn write_all(&self, writers: NonZero<usize>, seed: u64, durable: u32) -> Result<u32, Error> {
        thread::scope(|scope| {
            let (finished, directories) = mpsc::channel();
            for _ in 0..writers.get() {
                let finished = finished.clone();
                scope.spawn(move || self.write_directories(&finished));
            }
            drop(finished);
            let durable = self.keep_journal(&directories, seed, durable);
            // What keeps the journal fails when the disk does: no use in writing on.
            self.failed.fetch_or(durable.is_err(), Ordering::Relaxed);
            durable
        })
    }

    /// Syncs and notes what the writers have finished, until the last has ended.
    fn keep_journal(
        &self,
        finished: &Receiver<Result<u32, Error>>,
        seed: u64,
        mut durable: u32,
    ) -> Result<u32, Error> {
        let set = self.root.join(ROOT);
        let disk = File::open(&set).map_err(Error::io("open", &set))?;
        let note = |whole: u32| {
            nix::unistd::syncfs(&disk).map_err(|errno| Error::io("sync", &set)(errno.into()))?;
            Journal::new(self.directories, seed, whole).write(self.root)
        };
        let mut whole_up_to = durable;
        let mut whole_above = BTreeSet::new();
        for directory in finished {
            whole_above.insert(directory?);
            while whole_above.remove(&whole_up_to) {
                whole_up_to += 1;
            }
            if whole_up_to >= durable + DIRECTORIES_PER_SYNC {
                note(whole_up_to)?;
                durable = whole_up_to;
            }
        }
        note(whole_up_to)?;
        Ok(whole_up_to)
    }

    /// A writer: takes the next directory until there is none.
    fn write_directories(&self, finished: &Sender<Result<u32, Error>>) {
        let mut buffers = Buffers::default();
        while !self.failed.load(Ordering::Relaxed) {
            let directory = self.next.fetch_add(1, Ordering::Relaxed);
            if directory >= self.directories.count() {
                return;
            }
            let outcome = match self.write_directory(directory, &mut buffers) {
                Ok(true) => Ok(directory),
                Ok(false) => return,
                Err(error) => {
                    self.failed.store(true, Ordering::Relaxed);
                    Err(error)
                }
            };
            // Nobody listens only when keeping the journal has failed, which ends the run.
            if finished.send(outcome).is_err() {
                return;
            }
        }
    }

    /// Writes what is missing in a directory; `false` when it was stopped before its end.
    fn write_directory(&self, directory: u32, buffers: &mut Buffers) -> Result<bool, Error> {
        let path = directory_path(self.root, directory);
        make_directory(&path)?;
        for name in Name::in_directory(directory) {
            if self.control.is_stopped() {
                return Ok(false);
            }
            let there = self.survey.is_there(name);
            if !(there && directory < self.trusted) {
                let size = name.size() as usize;
                let (content, found) = (&mut buffers.content[..size], &mut buffers.found[..size]);
                self.contents.fill(name, content);
                if !(there && verify::has_content(&path.join(file_name(name)), content, found)) {
                    write_file(&path, name, content)?;
                    self.control.add_written(name);
                }
            }
            self.control.add_done(name);
        }
        Ok(true)
    }
}

/// What a writer works in.
struct Buffers {
    content: Box<[u8]>,
    /// What was read of a file that is there.
    found: Box<[u8]>,
}

impl Default for Buffers {
    fn default() -> Self {
        let buffer = || vec![0; SIZE_MAX as usize].into_boxed_slice();
        Self { content: buffer(), found: buffer() }
    }
}

/// Writes a file beside its place, then moves it there.
fn write_file(directory: &Path, name: Name, content: &[u8]) -> Result<(), Error> {
    let name = file_name(name);
    let partial = directory.join(format!(".{name}.partial"));
    let written = File::create(&partial)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&partial, directory.join(&name)));
    written.map_err(|error| {
        // It takes room that may be what is missing. The next run would replace it anyway.
        let _ = fs::remove_file(&partial);
        Error::io("write", &directory.join(&name))(error)
    })
}
