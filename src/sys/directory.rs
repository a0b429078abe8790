//! The names in a directory, and what they stand for.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use nix::dir::Dir;
use nix::fcntl::AtFlags;

use super::count_call;
use super::file::{FileStat, OpenError};

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A symbolic link.
    Link,
    /// A file, a directory or something else, in this state.
    There(FileStat),
}

/// Up to `max` names of a directory that is open for reading, in the order in which the file system
/// gives them, without `.` and `..`. True: there are more.
///
/// Counted as one call, although the kernel gives some hundred names at a time. Names that are not in
/// memory are waited for.
pub fn names(directory: OwnedFd, max: usize) -> Result<(Vec<OsString>, bool), OpenError> {
    count_call();
    let mut directory = Dir::from_fd(directory)?;
    let mut names = Vec::new();
    for entry in directory.iter() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() == max {
            return Ok((names, true));
        }
        names.push(OsString::from_vec(name.to_owned()));
    }
    Ok((names, false))
}

/// What a name of a directory stands for, links not followed.
pub fn look_at(directory: impl AsFd, name: &Path) -> Result<Named, OpenError> {
    count_call();
    let stat = nix::sys::stat::fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    Ok(match stat.st_mode & libc::S_IFMT {
        libc::S_IFLNK => Named::Link,
        _ => Named::There(stat.into()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::sys::file::FileKind;

    #[test]
    fn names_come_up_to_a_number() {
        let tree = tempfile::tempdir().expect("tempdir");
        for name in ["a", "b", ".c"] {
            fs::write(tree.path().join(name), "x").expect("write");
        }
        let list = |max| {
            let directory = File::open(tree.path()).expect("open").into();
            let (mut names, more) = names(directory, max).expect("names");
            names.sort();
            (names, more)
        };
        assert_eq!(list(3), (vec![".c".into(), "a".into(), "b".into()], false));
        let (two, more) = list(2);
        assert_eq!((two.len(), more), (2, true));
    }

    #[test]
    fn links_are_told_from_what_they_lead_to() {
        let tree = tempfile::tempdir().expect("tempdir");
        fs::write(tree.path().join("file"), "x").expect("write");
        std::os::unix::fs::symlink("file", tree.path().join("link")).expect("link");
        let root = File::open(tree.path()).expect("open");
        assert_eq!(look_at(&root, Path::new("link")), Ok(Named::Link));
        let Ok(Named::There(stat)) = look_at(&root, Path::new("file")) else { panic!("a file") };
        assert_eq!((stat.kind, stat.bytes), (FileKind::File, 1));
        assert_eq!(look_at(&root, Path::new("absent")), Err(OpenError::NotFound));
    }
}
