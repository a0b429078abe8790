//! What a directory says of the set in it: the manifest of a whole one, the journal of an unfinished
//! one. Both are JSON, versioned, and replaced as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::name::{CLASSES, FILES_PER_CLASS, ROOT, size};
use crate::plan::Directories;

/// The manifest's name in the directory of the set.
pub const MANIFEST: &str = "onering-fileset.json";

/// The journal's name in the directory of the set.
pub const UNFINISHED: &str = "onering-fileset.unfinished.json";

/// The version of the manifest, and of the contents that it stands for.
const MANIFEST_FORMAT: &str = "onering-fileset/1";
const JOURNAL_FORMAT: &str = "onering-fileset-unfinished/1";

/// Says that a set is whole, and everything that is needed to recompute it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: String,
    seed: u64,
    directories: u32,
    files: u64,
    bytes: u64,
    sizes: [[u32; FILES_PER_CLASS as usize]; CLASSES as usize],
}

/// Says that a set is being written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    format: String,
    seed: u64,
    directories: u32,
    /// The first so many directories are on the disk.
    durable: u32,
}

/// What a directory says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) manifest: Option<Manifest>,
    pub(super) journal: Option<Journal>,
}

impl Manifest {
    pub(super) fn new(directories: Directories, seed: u64) -> Self {
        let mut sizes = [[0; FILES_PER_CLASS as usize]; CLASSES as usize];
        for (class, sizes) in (0..).zip(&mut sizes) {
            for (file, bytes) in (0..).zip(sizes) {
                *bytes = size(class, file);
            }
        }
        Self {
            format: MANIFEST_FORMAT.to_owned(),
            seed,
            directories: directories.count(),
            files: directories.files(),
            bytes: directories.bytes(),
            sizes,
        }
    }

    /// Reads the manifest of the set in a directory: there is one only when the set is whole.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let State { manifest, journal } = State::read(root)?;
        if let Some(journal) = journal {
            return Err(Error::Unfinished {
                root: root.to_owned(),
                directories: journal.directories,
            });
        }
        manifest.ok_or_else(|| Error::NoManifest { root: root.to_owned() })
    }

    /// The seed of the contents.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many directories there are.
    pub fn directories(&self) -> Directories {
        Directories::new(self.directories.into()).expect("checked when it was read")
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), Error> {
        write(root, MANIFEST, self)
    }
}

impl Journal {
    pub(super) fn new(directories: Directories, seed: u64, durable: u32) -> Self {
        let format = JOURNAL_FORMAT.to_owned();
        Self { format, seed, directories: directories.count(), durable }
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), Error> {
        write(root, UNFINISHED, self)
    }

    pub(super) fn remove(root: &Path) -> Result<(), Error> {
        let path = root.join(UNFINISHED);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(error))
            }
            _ => sync(root),
        }
    }
}

impl State {
    /// Reads what is there, and checks it.
    pub(super) fn read(root: &Path) -> Result<Self, Error> {
        let manifest: Option<Manifest> = read(root, MANIFEST, MANIFEST_FORMAT)?;
        if let Some(manifest) = &manifest {
            let consistent = Directories::new(manifest.directories.into())
                .is_ok_and(|directories| Manifest::new(directories, manifest.seed) == *manifest);
            check(root, MANIFEST, consistent)?;
        }
        let journal: Option<Journal> = read(root, UNFINISHED, JOURNAL_FORMAT)?;
        if let Some(journal) = &journal {
            let grown = manifest.as_ref().is_none_or(|manifest| {
                manifest.seed == journal.seed && manifest.directories <= journal.directories
            });
            let consistent = grown
                && Directories::new(journal.directories.into()).is_ok()
                && journal.durable <= journal.directories;
            check(root, UNFINISHED, consistent)?;
        }
        Ok(Self { manifest, journal })
    }

    /// The seed and the directories that are there, or are to be when a run is gone on with.
    pub(super) fn extent(&self) -> Option<(u64, u32)> {
        let journal = self.journal.as_ref().map(|journal| (journal.seed, journal.directories));
        let manifest =
            || self.manifest.as_ref().map(|manifest| (manifest.seed, manifest.directories));
        journal.or_else(manifest)
    }

    /// How many directories, from the first on, were once whole and on the disk.
    pub(super) fn durable(&self) -> u32 {
        match (&self.journal, &self.manifest) {
            (Some(journal), _) => journal.durable,
            (None, Some(manifest)) => manifest.directories,
            (None, None) => 0,
        }
    }
}

/// The document of that name, if there is one and it is of this version.
fn read<T: DeserializeOwned>(root: &Path, name: &str, format: &str) -> Result<Option<T>, Error> {
    /// What every version has.
    #[derive(Deserialize)]
    struct Head {
        format: String,
    }

    let path = root.join(name);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", &path)(error)),
    };
    let wrong = |why: String| Error::Document { path: path.clone(), why };
    let head: Head = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    if head.format != format {
        let why =
            format!("it is of the format `{}`, and this program knows `{format}`", head.format);
        return Err(wrong(why));
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| wrong(error.to_string()))
}

fn check(root: &Path, name: &str, consistent: bool) -> Result<(), Error> {
    if consistent {
        return Ok(());
    }
    let why = "its numbers do not go together".to_owned();
    Err(Error::Document { path: root.join(name), why })
}

/// Replaces a document: on the disk is the old one or the new one, and the new one on return.
fn write(root: &Path, name: &str, document: &impl Serialize) -> Result<(), Error> {
    let path = root.join(name);
    let partial: PathBuf = root.join(format!("{name}.partial"));
    let mut text = serde_json::to_vec_pretty(document).expect("numbers and strings are JSON");
    text.push(b'\n');
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&partial, &path)
    });
    written.map_err(Error::io("write", &path))?;
    sync(root)
}

/// Makes the names in a directory last.
fn sync(directory: &Path) -> Result<(), Error> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(Error::io("sync", directory))
}

/// Whether there are files of a set, whatever tells of them.
pub(super) fn has_files(root: &Path) -> bool {
    root.join(ROOT).symlink_metadata().is_ok()
}
