//! Sites, open: roots, what is said about files, and why one cannot be served.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::{config, sys};

use super::headers::{Fields, HeaderRules};
use super::mime;
use super::tree::Tree;

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
    /// Header rules are too many or too long together.
    #[error("cannot serve {root}: {cause}; write fewer or shorter patterns in `site.headers`")]
    Patterns {
        /// The site's root.
        root: PathBuf,
        /// What cannot be compiled.
        cause: globset::Error,
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
    /// A directory without any of them is listed.
    pub(super) listing: bool,
    pub(super) sayings: Rc<Sayings>,
}

/// Where a site's paths begin.
#[derive(Clone, Debug)]
pub(super) enum Root {
    /// At a directory.
    Directory(Rc<Tree>),
    /// In the program itself.
    Welcome,
}

/// What a site says about its files.
#[derive(Debug)]
pub(super) struct Sayings {
    charset: Option<String>,
    headers: HeaderRules,
}

impl Site {
    /// Opens the root. One that is renamed later is still the one that is served.
    pub(super) fn open(site: &config::Site) -> Result<Self, OpenError> {
        let (root, name) = match &site.root {
            config::Root::Welcome => (Root::Welcome, PathBuf::new()),
            config::Root::Directory(path) => {
                let tree = Tree::open_root(path, site).map_err(|error| why(error, path.clone()))?;
                (Root::Directory(Rc::new(tree)), path.clone())
            }
        };
        let headers = HeaderRules::of(&site.headers)
            .map_err(|cause| OpenError::Patterns { root: name, cause })?;
        let sayings = Rc::new(Sayings { charset: site.charset.clone(), headers });
        Ok(Self { root, index: site.index.clone(), listing: site.listing, sayings })
    }
}

impl Sayings {
    /// What is said of the file at a path, relative to the root: its media type, and further fields.
    pub(super) fn of_file(&self, path: &Path) -> (String, Fields) {
        let mut fields = self.headers.fields(Some(path));
        let content_type = match fields.content_type.take() {
            Some(content_type) => content_type.into(),
            None => {
                mime::content_type(path.as_os_str().as_encoded_bytes(), self.charset.as_deref())
            }
        };
        (content_type, fields)
    }

    /// What is said in an answer without a file.
    pub(super) fn without_file(&self) -> Fields {
        self.headers.fields(None)
    }
}

fn why(error: sys::file::OpenError, root: PathBuf) -> OpenError {
    match error {
        sys::file::OpenError::Forbidden => OpenError::Forbidden { root },
        sys::file::OpenError::NoDescriptors => OpenError::NoDescriptors { root },
        sys::file::OpenError::NotFound
        | sys::file::OpenError::Outside
        | sys::file::OpenError::Changed => OpenError::NotFound { root },
        sys::file::OpenError::Other(errno) => {
            OpenError::Failed { root, cause: std::io::Error::from_raw_os_error(errno) }
        }
    }
}
