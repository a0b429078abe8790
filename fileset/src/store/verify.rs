//! Verifying a set: every file is computed again and compared byte by byte.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use nix::fcntl::OFlag;
use serde::Serialize;

use super::state::Manifest;
use super::{Control, Error, directory_path, file_name};
use crate::content::Contents;
use crate::name::{Name, ROOT, SIZE_MAX};

/// What was found.
#[derive(Clone, Debug)]
pub struct Verified {
    /// What the set says of itself.
    pub manifest: Manifest,
    /// Every file that is not as it should be, by name.
    pub findings: Vec<Finding>,
    /// What is in the directories of the set and does not belong to it, by path from DIR.
    pub extra: Vec<PathBuf>,
}

/// A file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub name: Name,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// It is not there.
    #[error("missing")]
    Missing,
    /// There is something else of that name.
    #[error("not a regular file")]
    NotAFile,
    /// It ends too early.
    #[error("short: {length} bytes")]
    Short {
        /// Its length in bytes.
        length: u64,
    },
    /// It ends too late.
    #[error("long: {length} bytes")]
    Long {
        /// Its length in bytes.
        length: u64,
    },
    /// It has another content.
    #[error("altered: the first other byte is at {offset}")]
    Altered {
        /// Where the first byte is that differs.
        offset: usize,
    },
    /// The disk does not give it back.
    #[error("unreadable: {why}")]
    Unreadable {
        /// What the system said.
        why: String,
    },
}

/// Verifies the set in a directory, with so many threads. A control that is told to stop has no say
/// here: what was not looked at is not whole.
pub fn verify(root: &Path, readers: NonZero<usize>, control: &Control) -> Result<Verified, Error> {
    let manifest = Manifest::read(root)?;
    let next = AtomicU32::new(0);
    let parts = thread::scope(|scope| {
        let read = || read_directories(root, &manifest, &next, control);
        let readers: Vec<_> = (0..readers.get()).map(|_| scope.spawn(read)).collect();
        let join = |reader: thread::ScopedJoinHandle<'_, _>| {
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        readers.into_iter().map(join).collect::<Result<Vec<Part>, Error>>()
    })?;
    let (mut findings, mut extra) = (Vec::new(), foreign_directories(root, &manifest)?);
    for part in parts {
        findings.extend(part.findings);
        extra.extend(part.extra);
    }
    findings.sort_by_key(|finding| finding.name);
    extra.sort();
    Ok(Verified { manifest, findings, extra })
}

/// What one reader has found.
#[derive(Default)]
struct Part {
    findings: Vec<Finding>,
    extra: Vec<PathBuf>,
}

/// A reader: takes the next directory until there is none.
fn read_directories(
    root: &Path,
    manifest: &Manifest,
    next: &AtomicU32,
    control: &Control,
) -> Result<Part, Error> {
    let contents = Contents::new(manifest.seed());
    let buffer = || vec![0; SIZE_MAX as usize].into_boxed_slice();
    let (mut content, mut found) = (buffer(), buffer());
    let mut part = Part::default();
    loop {
        let directory = next.fetch_add(1, Ordering::Relaxed);
        if directory >= manifest.directories().count() {
            return Ok(part);
        }
        let path = directory_path(root, directory);
        for name in Name::in_directory(directory) {
            let size = name.size() as usize;
            contents.fill(name, &mut content[..size]);
            let file = path.join(file_name(name));
            match compare(&file, &content[..size], &mut found[..size]) {
                Ok(None) => (),
                Ok(Some(fault)) => part.findings.push(Finding { name, fault }),
                Err(error) => return Err(Error::io("read", &file)(error)),
            }
            control.add_done(name);
        }
        let own: Vec<String> = Name::in_directory(directory).map(file_name).collect();
        part.extra.extend(others_in(root, &path, |entry| own.iter().any(|name| name == entry))?);
    }
}

/// Whether a file has exactly that content. `found` has its size.
pub(super) fn has_content(path: &Path, content: &[u8], found: &mut [u8]) -> bool {
    matches!(compare(path, content, found), Ok(None))
}

/// What is wrong with the file at `path`, which is to hold `content`; `found` has the size of that.
/// An error where a permission is missing: that says nothing about the file.
fn compare(path: &Path, content: &[u8], found: &mut [u8]) -> io::Result<Option<Fault>> {
    use io::ErrorKind;
    let length_right = content.len() as u64;
    let mut read = || -> io::Result<Option<Fault>> {
        // Neither a link nor a pipe that nobody writes to is waited for.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let mut file: File = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Ok(Some(Fault::NotAFile));
        }
        let length = facts.len();
        match length.cmp(&length_right) {
            std::cmp::Ordering::Less => return Ok(Some(Fault::Short { length })),
            std::cmp::Ordering::Greater => return Ok(Some(Fault::Long { length })),
            std::cmp::Ordering::Equal => (),
        }
        file.read_exact(found)?;
        if found == content {
            return Ok(None);
        }
        let offset = found.iter().zip(content).take_while(|(found, right)| found == right).count();
        Ok(Some(Fault::Altered { offset }))
    };
    read().or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied => Err(error),
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(Some(Fault::Missing)),
        _ if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
            Ok(Some(Fault::NotAFile))
        }
        _ => Ok(Some(Fault::Unreadable { why: error.to_string() })),
    })
}

/// What is beside the directories of the set.
fn foreign_directories(root: &Path, manifest: &Manifest) -> Result<Vec<PathBuf>, Error> {
    others_in(root, &root.join(ROOT), |entry| {
        let digits = entry.strip_prefix("dir").filter(|digits| digits.len() == 5);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok());
        number.is_some_and(|number: u32| number < manifest.directories().count())
    })
}

/// The entries of a directory that do not belong in it, by path from `root`. None, if it is not
/// there: then its files are missing.
fn others_in(
    root: &Path,
    directory: &Path,
    belongs: impl Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, Error> {
    let fail = |error: io::Error| Error::io("list", directory)(error);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(fail(error)),
        Err(_) => return Ok(Vec::new()),
    };
    let mut others = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        if !entry.file_name().to_str().is_some_and(&belongs) {
            let path = entry.path();
            others.push(path.strip_prefix(root).map(Path::to_owned).unwrap_or(path));
        }
    }
    Ok(others)
}
