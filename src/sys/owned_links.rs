//! Symbolic links that are followed only where their owner also owns what they lead to.
//!
//! The kernel has no such look-up, so the path is walked a name at a time. Each step is made from a
//! descriptor of the step before (openat2(2), RESOLVE_NO_SYMLINKS); a link is held by a descriptor
//! while its owner and its text are read; the owner that is compared is that of the very descriptor
//! which is gone on with or handed out. So nothing that is renamed, replaced or turned elsewhere
//! meanwhile makes a link be followed that was not judged: whoever interferes makes the look-up fail.
//!
//! What is not looked at: who may write into a directory on the way, and hard links, which
//! `fs.protected_hardlinks` is for.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::count_call;
use super::file::{FileKind, OpenError, openat2, stat};

/// As many as the kernel follows in one look-up (MAXSYMLINKS).
const LINKS_MAX: usize = 40;

/// What is still to be done, in the order in which it comes.
enum Step {
    /// Go on to this name, or up for `..`.
    Name(OsString),
    /// What was come to is what a link of this owner leads to.
    Judge { owner: u32 },
}

/// Opens what `path` leads to beneath `root`.
pub(super) fn open(root: BorrowedFd<'_>, path: &Path, flags: OFlag) -> Result<OwnedFd, OpenError> {
    // The directories from the root to where the walk is, the last of them being where it goes on.
    let mut way: Vec<OwnedFd> = Vec::new();
    // The last step first.
    let mut steps = names(path.as_os_str())?;
    let mut owners = Vec::new();
    let mut links = 0;
    while let Some(step) = steps.pop() {
        let here = way.last().map_or(root, |directory| directory.as_fd());
        let name = match step {
            Step::Name(name) if name == ".." => {
                way.pop().ok_or(OpenError::Outside)?;
                continue;
            }
            Step::Name(name) if name == "." => continue,
            Step::Name(name) => name,
            Step::Judge { owner } => {
                judge(&[owner], stat(here)?.owner)?;
                continue;
            }
        };
        let name = Path::new(&name);
        let found = openat2(here, name, OFlag::O_PATH | OFlag::O_NOFOLLOW, false)?;
        if let Some(text) = link_text(&found)? {
            links += 1;
            if links > LINKS_MAX {
                return Err(OpenError::Outside);
            }
            steps.push(Step::Judge { owner: stat(&found)?.owner });
            steps.extend(names(&text)?);
            continue;
        }
        let seen = stat(&found)?;
        if seen.kind == FileKind::Directory {
            way.push(found);
            continue;
        }
        // Nothing is beneath a file: all that may be left to do is to judge links that lead to it.
        for step in steps {
            match step {
                Step::Judge { owner } => owners.push(owner),
                Step::Name(_) => return Err(OpenError::NotFound),
            }
        }
        let file = openat2(here, name, flags, false)?;
        let opened = stat(&file)?;
        if (opened.inode, opened.device) != (seen.inode, seen.device) {
            return Err(OpenError::Changed);
        }
        judge(&owners, opened.owner)?;
        return Ok(file);
    }
    let here = way.last().map_or(root, |directory| directory.as_fd());
    Ok(openat2(here, Path::new("."), flags, false)?)
}

/// The names of a path, the last one first.
fn names(path: &OsStr) -> Result<Vec<Step>, OpenError> {
    match path.as_bytes() {
        // An absolute link leads out of any directory but the root of the file system.
        [b'/', ..] => Err(OpenError::Outside),
        [] => Err(OpenError::NotFound),
        path => Ok(path
            .rsplit(|&byte| byte == b'/')
            // A slash at the end asks for a directory, as a dot behind it does.
            .map(|name| if name.is_empty() { b"." } else { name })
            .map(|name| Step::Name(OsStr::from_bytes(name).to_owned()))
            .collect()),
    }
}

/// What a link says, read from the link that is held; `None`: it is no link.
fn link_text(held: &OwnedFd) -> Result<Option<OsString>, OpenError> {
    count_call();
    match nix::fcntl::readlinkat(held, "") {
        Ok(text) => Ok(Some(text)),
        // The kernel's answers for what is no link.
        Err(Errno::ENOENT | Errno::EINVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn judge(links: &[u32], target: u32) -> Result<(), OpenError> {
    match links.iter().all(|&owner| owner == target) {
        true => Ok(()),
        false => Err(OpenError::Outside),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, lchown, symlink};

    use super::super::file::{Links, open_beneath, open_directory, stat_beneath};
    use super::*;

    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let tree = tempfile::tempdir().expect("tempdir");
        fs::create_dir_all(tree.path().join("a/b")).expect("mkdir");
        fs::write(tree.path().join("a/b/page"), "page").expect("write");
        fs::write(tree.path().join("other"), "other").expect("write");
        for (text, link) in [
            ("a/b/page", "file"),
            ("file", "chain"),
            ("a/b", "directory"),
            ("../../other", "a/b/up"),
            ("./a//b/../b/page", "odd"),
            ("a/b/..", "dots"),
            ("../outside", "outside"),
            ("/etc/passwd", "absolute"),
            ("circle", "circle"),
            ("absent", "dangling"),
            ("other/below", "below"),
            ("other/", "slash"),
            ("a/b/", "directory_slash"),
        ] {
            symlink(text, tree.path().join(link)).expect("link");
        }
        let root = open_directory(tree.path()).expect("open");
        (tree, root)
    }

    fn opened(root: &OwnedFd, path: &str) -> Result<u64, OpenError> {
        open_beneath(root, Path::new(path), Links::OfOwner).and_then(|file| Ok(stat(file)?.inode))
    }

    /// What the kernel finds where it follows every link.
    fn followed(root: &OwnedFd, path: &str) -> Result<u64, OpenError> {
        open_beneath(root, Path::new(path), Links::Beneath).and_then(|file| Ok(stat(file)?.inode))
    }

    #[test]
    fn of_one_owner_all_links_are_followed_as_the_kernel_does() {
        let (_tree, root) = tree();
        for path in [
            "a/b/page",
            "file",
            "chain",
            "directory",
            "directory/",
            "directory/page",
            "a/b/up",
            "directory/up",
            "odd",
            "dots",
            "dots/b/page",
            "outside",
            "absolute",
            "circle",
            "dangling",
            "below",
            "slash",
            "directory_slash/page",
            "file/below",
            "file/",
            "absent/page",
            ".",
            "a/..",
            "..",
            "a/../..",
        ] {
            assert_eq!(opened(&root, path), followed(&root, path), "{path}");
        }
    }

    #[test]
    fn a_link_of_another_owner_is_not_followed() {
        let (tree, root) = tree();
        if lchown(tree.path().join("file"), Some(1234), None).is_err() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        assert_eq!(opened(&root, "file"), Err(OpenError::Outside));
        assert_eq!(opened(&root, "chain"), Err(OpenError::Outside), "on the way to another");
        // The file is given to the owner of the one link, who is not that of the other.
        chown(tree.path().join("a/b/page"), Some(1234), None).expect("we are root");
        assert_eq!(opened(&root, "file"), followed(&root, "file"));
        assert_eq!(opened(&root, "chain"), Err(OpenError::Outside));
        // Of a directory it is the directory's owner that counts, whoever owns what is in it.
        assert_eq!(opened(&root, "directory/page"), followed(&root, "directory/page"));
        chown(tree.path().join("a/b"), Some(1234), None).expect("we are root");
        assert_eq!(opened(&root, "directory/page"), Err(OpenError::Outside));
        assert_eq!(opened(&root, "directory"), Err(OpenError::Outside));
        let path = Path::new("directory");
        assert_eq!(stat_beneath(&root, path, Links::OfOwner), Err(OpenError::Outside));
    }

    #[test]
    fn without_links_none_is_followed() {
        let (_tree, root) = tree();
        for path in ["file", "directory/page", "absolute", "dangling"] {
            let opened = open_beneath(&root, Path::new(path), Links::None);
            assert_eq!(opened.err(), Some(OpenError::Outside), "{path}");
        }
        assert!(open_beneath(&root, Path::new("a/b/page"), Links::None).is_ok());
    }

    /// Somebody exchanges a link of his own, which leads to his file, for one that leads to another's:
    /// at no moment is the other's file opened.
    #[test]
    fn what_is_exchanged_meanwhile_is_not_followed() {
        let (tree, root) = tree();
        let path = |name: &str| tree.path().join(name);
        fs::write(path("his"), "his").expect("write");
        fs::write(path("secret"), "secret").expect("write");
        if chown(path("his"), Some(1234), None).is_err() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let secret = stat(open_beneath(&root, Path::new("secret"), Links::None).expect("open"));
        let secret = secret.expect("stat").inode;
        let exchange = |text: &str| {
            symlink(text, path("new")).expect("link");
            lchown(path("new"), Some(1234), None).expect("we are root");
            fs::rename(path("new"), path("link")).expect("rename");
        };
        exchange("his");
        let over = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(order) {
                    exchange("secret");
                    exchange("his");
                }
            });
            // Where the other thread has to wait for a CPU, many looks see one and the same link.
            let guard = std::time::Instant::now() + std::time::Duration::from_secs(30);
            let (mut looks, mut found) = (0, Vec::new());
            let both = |found: &[Result<u64, OpenError>]| {
                found.iter().any(Result::is_ok) && found.iter().any(Result::is_err)
            };
            while looks < 3000 || !both(&found) && std::time::Instant::now() < guard {
                let look = opened(&root, "link");
                if !found.contains(&look) {
                    found.push(look);
                }
                looks += 1;
            }
            over.store(true, order);
            assert!(found.iter().any(Result::is_ok), "his own is his to show");
            assert!(!found.contains(&Ok(secret)));
        });
    }
}
