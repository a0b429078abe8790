//! Why a file set could not be written or verified, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use super::space::Shortage;
use super::state::{MANIFEST, UNFINISHED};
use crate::name::ROOT;

/// Why it did not come to an end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A manifest or journal that this version does not understand.
    #[error("{}: {why}; remove it together with {ROOT}, or name another directory", path.display())]
    Document {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The directory holds a set of another seed.
    #[error(
        "{} holds a set of seed {found}, not {asked}: two seeds do not mix; leave out --seed, or name \
         another directory", root.display()
    )]
    OtherSeed {
        /// The directory.
        root: PathBuf,
        /// The seed of what it holds.
        found: u64,
        /// The seed that was asked for.
        asked: u64,
    },
    /// The directory holds a larger set.
    #[error(
        "{} holds a set of {found} directories, more than {asked}: a set only grows; name another \
         directory, or remove this one", root.display()
    )]
    Smaller {
        /// The directory.
        root: PathBuf,
        /// How many directories it holds, or is to hold when its run is gone on with.
        found: u32,
        /// How many were asked for.
        asked: u32,
    },
    /// There are files, and nothing tells of them.
    #[error(
        "{} has a {ROOT}, but neither {MANIFEST} nor {UNFINISHED} tells what is in it; remove it, or \
         name another directory", root.display()
    )]
    Unknown {
        /// The directory.
        root: PathBuf,
    },
    /// Another run is at work.
    #[error("another run is at work in {}", root.display())]
    Busy {
        /// The directory.
        root: PathBuf,
    },
    /// The disk is too small. Nothing was written.
    #[error(transparent)]
    Shortage(#[from] Shortage),
    /// There is no set to verify.
    #[error(
        "{} has no {MANIFEST}: no set was generated in it; `onering fileset generate` makes one",
        root.display()
    )]
    NoManifest {
        /// The directory.
        root: PathBuf,
    },
    /// A run was interrupted, so the set is known not to be whole.
    #[error(
        "the set in {} is not finished; go on with: onering fileset generate {} --dirs {directories}",
        root.display(), root.display()
    )]
    Unfinished {
        /// The directory.
        root: PathBuf,
        /// How many directories it is to have.
        directories: u32,
    },
}

impl Error {
    /// For `map_err`: what could not be done with which file.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// Whether what was asked for is wrong, rather than the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Document { .. }
            | Self::OtherSeed { .. }
            | Self::Smaller { .. }
            | Self::Unknown { .. }
            | Self::NoManifest { .. }
            | Self::Unfinished { .. } => true,
            Self::Io { .. } | Self::Busy { .. } | Self::Shortage(_) => false,
        }
    }

    /// Whether a permission is missing.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}
