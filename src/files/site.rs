//! The roots of sites, and why one cannot be served.

use std::path::PathBuf;

use crate::{config, sys};

use super::resolve::Root;

/// Why the files of a site cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A root is not there, or is no directory.
    #[error("cannot serve {root}: no such directory; create it, or name another one")]
    NotFound {
        /// The site's root.
        root: PathBuf,
    },
    /// A root may not be entered.
    #[error(
        "cannot serve {root}: permission denied; it and every directory above it need to be \
         searchable (chmod +x) by the user that runs onering"
    )]
    Forbidden {
        /// The site's root.
        root: PathBuf,
    },
    /// No descriptor is left.
    #[error(
        "cannot serve {root}: out of file descriptors; raise `ulimit -n` (LimitNOFILE= of systemd)"
    )]
    NoDescriptors {
        /// The site's root.
        root: PathBuf,
    },
    /// The file system fails.
    #[error("cannot serve {root}: {cause}; see the kernel's log (dmesg)")]
    Failed {
        /// The site's root.
        root: PathBuf,
        /// What the kernel said.
        cause: std::io::Error,
    },
    /// There are more sites than can be told apart.
    #[error("{0} sites are too many: one process serves 65536 at most; divide them")]
    TooManySites(usize),
}

/// A site, open.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) root: Root,
    /// Names that stand for a directory, the preferred one first.
    pub(super) index: Vec<String>,
}

impl Site {
    /// Opens the root. One that is renamed later is still the one that is served.
    pub(super) fn open(site: &config::Site) -> Result<Self, OpenError> {
        let root = match &site.root {
            config::Root::Welcome => Root::Welcome,
            config::Root::Directory(path) => {
                let root = path.clone();
                Root::Directory(sys::file::open_directory(path).map_err(|error| match error {
                    sys::file::OpenError::Forbidden => OpenError::Forbidden { root },
                    sys::file::OpenError::NoDescriptors => OpenError::NoDescriptors { root },
                    sys::file::OpenError::NotFound
                    | sys::file::OpenError::Outside
                    | sys::file::OpenError::Changed => OpenError::NotFound { root },
                    sys::file::OpenError::Other(errno) => {
                        OpenError::Failed { root, cause: std::io::Error::from_raw_os_error(errno) }
                    }
                })?)
            }
        };
        Ok(Self { root, index: site.index.clone() })
    }
}
