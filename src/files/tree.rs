//! A site's files, as far as strangers may reach them: opened by the kernel beneath the root
//! (openat2(2), RESOLVE_BENEATH), and judged by what was opened, not by a name.
//!
//! | policy | what it refuses | answer |
//! |---|---|---|
//! | beneath the root | whatever leads out of it, by whatever links and races | 404 |
//! | `symlinks` | links that are not to be followed | 404 |
//! | `dotfiles` | a segment that begins with a dot, `.well-known` excepted | 404 |
//! | `mode_allowed`, `mode_forbidden` | a file by its permission bits | 403 |
//! | none | what is neither file nor directory: it is not even opened | 404 |
//!
//! Permission bits are those of files: a directory, which strangers do not get, has others.

use std::os::fd::OwnedFd;
use std::path::Path;

use crate::config::{self, Dotfiles, Modes, Symlinks};
use crate::sys::directory::{self, Named};
use crate::sys::file::{self, FileKind, FileStat, Links, OpenError};

/// A root, and what may be reached beneath it.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
    links: Links,
    modes: Modes,
    dotfiles: Dotfiles,
}

/// What became of an attempt to open something.
#[derive(Debug)]
pub(super) enum Opening {
    /// A file or a directory.
    Open(OwnedFd, FileStat),
    /// A FIFO, a socket or a device.
    NoFile,
    NotFound,
    Forbidden,
}

/// Why nothing can be said of a path now. Not worth remembering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The process or the host is out of descriptors.
    NoDescriptors,
    /// The file system failed.
    Failed,
}

/// How often a look-up is repeated that races with renames (EAGAIN).
const LOOK_UPS_MAX: usize = 3;

impl Tree {
    /// The files of a site beneath `path`.
    pub(super) fn open_root(path: &Path, site: &config::Site) -> Result<Self, OpenError> {
        Ok(Self {
            root: file::open_directory(path)?,
            links: match site.symlinks {
                Symlinks::Beneath => Links::Beneath,
                Symlinks::Owner => Links::OfOwner,
                Symlinks::Off => Links::None,
            },
            modes: site.modes,
            dotfiles: site.dotfiles,
        })
    }

    /// Whether a decoded path is not for strangers because of a dot.
    pub(super) fn hides(&self, path: &[u8]) -> bool {
        self.dotfiles == Dotfiles::Refuse && is_dotted(path)
    }

    /// Opens a path, relative to the root.
    pub(super) fn open(&self, path: &Path) -> Result<Opening, Trouble> {
        for _ in 0..LOOK_UPS_MAX {
            return match self.open_file(path) {
                Ok(Some((_, stat))) if !self.allows(&stat) => Ok(Opening::Forbidden),
                Ok(Some((file, stat))) => Ok(Opening::Open(file, stat)),
                Ok(None) => Ok(Opening::NoFile),
                Err(OpenError::NotFound | OpenError::Outside) => Ok(Opening::NotFound),
                Err(OpenError::Forbidden) => Ok(Opening::Forbidden),
                Err(OpenError::NoDescriptors) => Err(Trouble::NoDescriptors),
                Err(OpenError::Changed) => continue,
                Err(OpenError::Other(_)) => Err(Trouble::Failed),
            };
        }
        Err(Trouble::Failed)
    }

    /// Opens a file or a directory. `None`: it is something else, which is looked at and not opened:
    /// whoever waits to write into a FIFO would go on and find nobody reading it, and a device may
    /// act on being opened.
    fn open_file(&self, path: &Path) -> Result<Option<(OwnedFd, FileStat)>, OpenError> {
        if file::stat_beneath(&self.root, path, self.links)?.kind == FileKind::Other {
            return Ok(None);
        }
        let file = file::open_beneath(&self.root, path, self.links)?;
        let stat = file::stat(&file)?;
        // Something else may have taken its name meanwhile.
        Ok((stat.kind != FileKind::Other).then_some((file, stat)))
    }

    /// What a path leads to now, to be compared with what was opened by it before, and not to be
    /// served: where all links are followed, the one call does not see whether it leads out of the
    /// root. What it then leads to is not what was opened beneath.
    pub(super) fn stat_to_compare(&self, path: &Path) -> Option<FileStat> {
        let stat = match self.links {
            Links::Beneath => file::stat_to_compare(&self.root, path),
            Links::OfOwner | Links::None => file::stat_beneath(&self.root, path, self.links),
        };
        stat.ok().filter(|stat| self.allows(stat))
    }

    /// Whether a path leads to a directory, be it one whose names may not be read.
    pub(super) fn is_directory(&self, path: &Path) -> bool {
        let stat = file::stat_beneath(&self.root, path, self.links);
        stat.is_ok_and(|stat| stat.kind == FileKind::Directory)
    }

    /// What a name of an open directory stands for, if it may be reached; `path` is the name's.
    pub(super) fn look_at(
        &self,
        directory: &OwnedFd,
        name: &Path,
        path: &Path,
    ) -> Option<FileStat> {
        let stat = match directory::look_at(directory, name).ok()? {
            Named::There(stat) => stat,
            Named::Link => file::stat_beneath(&self.root, path, self.links).ok()?,
        };
        self.allows(&stat).then_some(stat)
    }

    /// Whether a file may be served, as far as its permission bits say.
    fn allows(&self, stat: &FileStat) -> bool {
        let Modes { allowed, forbidden } = self.modes;
        stat.kind != FileKind::File
            || (stat.mode & forbidden == 0
                && allowed.is_none_or(|allowed| stat.mode & allowed != 0))
    }
}

/// Whether a segment begins with a dot. Such files are configuration and history (`.git`,
/// `.htpasswd`), never meant for strangers; `.well-known` (RFC 8615) is.
fn is_dotted(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/')
        .any(|segment| segment.starts_with(b".") && segment != b".well-known")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_begin_with_a_dot_are_told() {
        for (path, expected) in [
            (&b""[..], false),
            (b"a.b/c.", false),
            (b".well-known/acme-challenge/x", false),
            (b".git", true),
            (b"a/.git/config", true),
            (b".well-known/.git", true),
            (b".well-known.", true),
            (b"...", true),
        ] {
            assert_eq!(is_dotted(path), expected, "{}", path.escape_ascii());
        }
    }
}
