//! Files: opening beneath a directory, looking at them, asking whether their pages are in memory, and
//! sending them.
//!
//! Nothing here waits for a disk, save [`sendfile`] on pages that are not in memory, which is why
//! [`residency`] is asked first.
#![allow(unsafe_code, reason = "preadv2(2) is not wrapped by nix")]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag};

use super::count_call;
use super::socket::SendError;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A FIFO, a socket or a device: nothing that is served.
    Other,
}

/// What the file system says of a file. Equal values mean: the same file, unchanged as far as the file
/// system's clock can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// Its size.
    pub bytes: u64,
    /// When its contents last changed, in ns since the Unix epoch.
    pub mtime_ns: i128,
    /// When its inode last changed, in ns since the Unix epoch. Cannot be set back by its owner.
    pub ctime_ns: i128,
    /// Its inode, unique within the device.
    pub inode: u64,
    /// The device it is on.
    pub device: u64,
    /// Its permission bits, at most 0o7777.
    pub mode: u32,
    /// The user who owns it.
    pub owner: u32,
}

impl From<nix::sys::stat::FileStat> for FileStat {
    fn from(stat: nix::sys::stat::FileStat) -> Self {
        let ns = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
        Self {
            kind: match stat.st_mode & libc::S_IFMT {
                libc::S_IFREG => FileKind::File,
                libc::S_IFDIR => FileKind::Directory,
                _ => FileKind::Other,
            },
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            ctime_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
            inode: stat.st_ino,
            device: stat.st_dev,
            mode: stat.st_mode & 0o7777,
            owner: stat.st_uid,
        }
    }
}

/// Which symbolic links a look-up follows. None ever leads out of the directory that it is made beneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// All that stay inside.
    Beneath,
    /// Of these, the ones whose owner also owns what they lead to.
    OfOwner,
    /// None.
    None,
}

/// Why a file cannot be opened or looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Nothing has that name (ENOENT, ENOTDIR), or it cannot be a name (ENAMETOOLONG, a NUL byte).
    NotFound,
    /// Permission is missing (EACCES, EPERM).
    Forbidden,
    /// The name leads out of the directory (EXDEV), through a link that is not followed, or in
    /// circles (ELOOP).
    Outside,
    /// The process or the host is out of descriptors (EMFILE, ENFILE).
    NoDescriptors,
    /// The tree changed under the look-up (EAGAIN): worth another try.
    Changed,
    /// Another `errno`.
    Other(i32),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            // ENXIO is the answer of a socket, and of a device without a driver.
            Errno::ENOENT
            | Errno::ENOTDIR
            | Errno::ENAMETOOLONG
            | Errno::EINVAL
            | Errno::ENXIO
            | Errno::ENODEV => Self::NotFound,
            Errno::EACCES | Errno::EPERM => Self::Forbidden,
            Errno::EXDEV | Errno::ELOOP => Self::Outside,
            Errno::EMFILE | Errno::ENFILE => Self::NoDescriptors,
            Errno::EAGAIN => Self::Changed,
            errno => Self::Other(errno as i32),
        }
    }
}

/// Where a page of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// In the page cache.
    Warm,
    /// On the disk: a read would wait.
    Cold,
    /// The file system lives in memory (tmpfs) and does not answer the question: as good as warm. A
    /// property of the file system: it holds for the whole file, for good.
    Memory,
    /// The file system does not answer the question and is not in memory: overlayfs, so that every file
    /// of a container's image is among these, and network file systems. Holds for the whole file, for
    /// good.
    Unknown,
}

/// Why a read brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The bytes are not in memory.
    Cold,
    /// The read failed with this `errno`.
    Other(i32),
}

/// Opens a directory to open other things beneath. One that may not be searched is `Forbidden`: nothing
/// beneath it could be opened.
pub fn open_directory(path: &Path) -> Result<OwnedFd, OpenError> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    count_call();
    // The kernel searches the directory for its own `.`.
    Ok(nix::fcntl::open(&path.join("."), flags, nix::sys::stat::Mode::empty())?)
}

/// Opens a file for reading, beneath a directory: neither `..`, nor an absolute name, nor a symbolic
/// link, nor one of `/proc`'s links leads out of it (RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS). Symbolic
/// links that stay inside are followed as `links` says. The directory itself is `.`.
///
/// A FIFO or a device opens without waiting (O_NONBLOCK) and never becomes our terminal (O_NOCTTY);
/// the caller looks at [`FileStat::kind`] and serves neither.
pub fn open_beneath(directory: impl AsFd, path: &Path, links: Links) -> Result<OwnedFd, OpenError> {
    let reading = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    resolve_beneath(directory, path, links, reading)
}

/// Looks at what a name stands for beneath a directory, as [`open_beneath`] would find it, without
/// opening it: neither permission to read nor a device's willingness is needed.
pub fn stat_beneath(
    directory: impl AsFd,
    path: &Path,
    links: Links,
) -> Result<FileStat, OpenError> {
    stat(resolve_beneath(directory, path, links, OFlag::O_PATH)?)
}

fn resolve_beneath(
    directory: impl AsFd,
    path: &Path,
    links: Links,
    flags: OFlag,
) -> Result<OwnedFd, OpenError> {
    let opened = openat2(&directory, path, flags, links == Links::Beneath);
    match opened {
        // There is a link on the way: only then it costs more than one call.
        Err(Errno::ELOOP) if links == Links::OfOwner => {
            super::owned_links::open(directory.as_fd(), path, flags)
        }
        opened => Ok(opened?),
    }
}

/// openat2(2) beneath a directory, through symbolic links or through none.
pub(super) fn openat2(
    directory: impl AsFd,
    path: &Path,
    flags: OFlag,
    follow: bool,
) -> Result<OwnedFd, Errno> {
    let beneath = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let resolve = if follow { beneath } else { beneath | ResolveFlag::RESOLVE_NO_SYMLINKS };
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve);
    loop {
        count_call();
        match nix::fcntl::openat2(&directory, path, how) {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

/// Looks at an open file.
pub fn stat(file: impl AsFd) -> Result<FileStat, OpenError> {
    count_call();
    Ok(nix::sys::stat::fstat(file)?.into())
}

/// Looks at what a name stands for now, without opening it: one call, to compare with what was opened
/// before.
///
/// Unlike [`open_beneath`] this follows whatever the name leads to, out of the directory too. So the
/// answer may only be compared: when it equals the [`FileStat`] of a file that was opened beneath, the
/// name still means that file; otherwise open it again. It must not be served from.
pub fn stat_to_compare(directory: impl AsFd, path: &Path) -> Result<FileStat, OpenError> {
    count_call();
    Ok(nix::sys::stat::fstatat(directory, path, AtFlags::empty())?.into())
}

/// Sends up to `bytes` of a file from `offset`, which advances by what was sent. `Ok(0)` means that the
/// file ends there: it has become shorter.
///
/// The socket must be non-blocking; then this waits for no peer, but it does wait for the disk when
/// pages are missing.
pub fn sendfile(
    socket: impl AsFd,
    file: impl AsFd,
    offset: &mut u64,
    bytes: usize,
) -> Result<usize, SendError> {
    let mut position = libc::off_t::try_from(*offset).map_err(|_| SendError::Unsupported)?;
    let sent = loop {
        count_call();
        match nix::sys::sendfile::sendfile(&socket, &file, Some(&mut position), bytes) {
            Err(Errno::EINTR) => {}
            result => break result?,
        }
    };
    *offset += sent as u64;
    Ok(sent)
}

/// Whether the byte at `offset` can be read without waiting: one call, 0.3 µs; a second one where the
/// file system does not answer.
///
/// A byte beyond the end is `Warm`, since nothing waits for it. A file that cannot be read is `Cold`:
/// the read that follows on that path meets the error and reports it.
pub fn residency(file: impl AsFd, offset: u64) -> Residency {
    let mut byte = [0];
    match preadv2_nowait(&file, &mut byte, offset) {
        Ok(_) => Residency::Warm,
        Err(Errno::EOPNOTSUPP) if lives_in_memory(&file) => Residency::Memory,
        Err(Errno::EOPNOTSUPP) => Residency::Unknown,
        Err(_) => Residency::Cold,
    }
}

/// Reads what is in memory from `offset` on; never waits for a disk. May read less than `buffer` holds,
/// and zero bytes at the end of the file. What is [`Residency::Unknown`] is `Cold` here.
pub fn read_nowait(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize, ReadError> {
    match preadv2_nowait(&file, buffer, offset) {
        Ok(bytes) => Ok(bytes),
        Err(Errno::EAGAIN) => Err(ReadError::Cold),
        Err(Errno::EOPNOTSUPP) if lives_in_memory(&file) => read_at(&file, buffer, offset),
        Err(Errno::EOPNOTSUPP) => Err(ReadError::Cold),
        Err(errno) => Err(ReadError::Other(errno as i32)),
    }
}

/// Reads from `offset` on and waits for the disk where it must. May read less than `buffer` holds, and
/// zero bytes at the end of the file.
pub fn read_at(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize, ReadError> {
    let offset = libc::off_t::try_from(offset).map_err(|_| ReadError::Other(libc::EINVAL))?;
    loop {
        count_call();
        match nix::sys::uio::pread(&file, buffer, offset) {
            Err(Errno::EINTR) => {}
            result => return result.map_err(|errno| ReadError::Other(errno as i32)),
        }
    }
}

fn lives_in_memory(file: &impl AsFd) -> bool {
    use nix::sys::statfs::{FsType, TMPFS_MAGIC, fstatfs};
    /// linux/magic.h; the root of an initramfs.
    const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);
    count_call();
    fstatfs(file.as_fd())
        .is_ok_and(|system| [TMPFS_MAGIC, RAMFS_MAGIC].contains(&system.filesystem_type()))
}

fn preadv2_nowait(file: &impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let offset = libc::off_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
    let vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    loop {
        count_call();
        // SAFETY: one vector is passed and it describes `buffer`, which is borrowed mutably for the
        // whole call; the descriptor is open because `file` is borrowed.
        let read = unsafe {
            libc::preadv2(file.as_fd().as_raw_fd(), &raw const vector, 1, offset, libc::RWF_NOWAIT)
        };
        match Errno::result(read) {
            Err(Errno::EINTR) => {}
            result => return result.map(|bytes| usize::try_from(bytes).unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn tree() -> (TempDir, OwnedFd) {
        let tree = tempfile::tempdir().expect("tempdir");
        fs::create_dir(tree.path().join("inside")).expect("mkdir");
        fs::write(tree.path().join("inside/page"), "0123456789").expect("write");
        let root = open_directory(tree.path()).expect("open");
        (tree, root)
    }

    fn open(root: &OwnedFd, path: &str) -> Result<OwnedFd, OpenError> {
        open_beneath(root, Path::new(path), Links::Beneath)
    }

    #[test]
    fn nothing_leads_out_of_the_directory() {
        let (tree, root) = tree();
        symlink("/etc/passwd", tree.path().join("absolute")).expect("link");
        symlink("../../etc", tree.path().join("relative")).expect("link");
        symlink("loop", tree.path().join("loop")).expect("link");
        for path in
            ["..", "../", "inside/../..", "/etc/passwd", "absolute", "relative/passwd", "loop"]
        {
            assert_eq!(open(&root, path).err(), Some(OpenError::Outside), "{path}");
        }
    }

    #[test]
    fn links_that_stay_inside_are_followed() {
        let (tree, root) = tree();
        symlink("inside/page", tree.path().join("link")).expect("link");
        let linked = stat(open(&root, "link").expect("open")).expect("stat");
        assert_eq!(
            linked,
            stat(open(&root, "inside/../inside/page").expect("open")).expect("stat")
        );
    }

    #[test]
    fn magic_links_are_not_followed() {
        let proc = open_directory(Path::new("/proc/self")).expect("open");
        assert_eq!(open(&proc, "exe").err(), Some(OpenError::Outside));
    }

    #[test]
    fn names_that_mean_nothing_are_not_found() {
        let (_tree, root) = tree();
        let long = "x".repeat(5000);
        for path in ["absent", "inside/page/below", "", "nul\0byte", &long] {
            assert_eq!(open(&root, path).err(), Some(OpenError::NotFound), "{path:.20}");
        }
    }

    #[test]
    fn a_fifo_opens_without_waiting_and_is_not_a_file() {
        let (tree, root) = tree();
        let mode = nix::sys::stat::Mode::S_IRUSR;
        nix::unistd::mkfifo(&tree.path().join("fifo"), mode).expect("mkfifo");
        assert_eq!(stat(open(&root, "fifo").expect("open")).expect("stat").kind, FileKind::Other);
        let _socket = std::os::unix::net::UnixListener::bind(tree.path().join("socket"));
        assert_eq!(open(&root, "socket").err(), Some(OpenError::NotFound));
    }

    #[test]
    fn stat_tells_kinds_sizes_and_changes() {
        let (tree, root) = tree();
        let page = Path::new("inside/page");
        let before = stat(open_beneath(&root, page, Links::Beneath).expect("open")).expect("stat");
        assert_eq!((before.kind, before.bytes), (FileKind::File, 10));
        assert_eq!(stat_to_compare(&root, page), Ok(before));
        assert_eq!(stat(open(&root, ".").expect("open")).expect("stat").kind, FileKind::Directory);

        File::options()
            .write(true)
            .open(tree.path().join(page))
            .and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
            .expect("set the modification time");
        let after = stat_to_compare(&root, page).expect("stat");
        assert_eq!(after.mtime_ns, 0);
        assert_eq!((after.inode, after.device), (before.inode, before.device));
        assert_eq!(stat_to_compare(&root, Path::new("absent")), Err(OpenError::NotFound));
    }

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("bind");
        let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        let (server, _) = listener.accept().expect("accept");
        server.set_nonblocking(true).expect("non-blocking");
        (client, server)
    }

    #[test]
    fn sendfile_advances_and_says_where_the_file_ends() {
        let (_tree, root) = tree();
        let (mut client, server) = sockets();
        let file = open(&root, "inside/page").expect("open");
        let mut offset = 3;
        assert_eq!(sendfile(&server, &file, &mut offset, 4), Ok(4));
        assert_eq!(offset, 7);
        assert_eq!(sendfile(&server, &file, &mut offset, 100), Ok(3));
        assert_eq!(sendfile(&server, &file, &mut offset, 100), Ok(0));
        drop(server);
        let mut received = String::new();
        client.read_to_string(&mut received).expect("read");
        assert_eq!(received, "3456789");
    }

    #[test]
    fn sendfile_never_waits_for_the_peer() {
        let mut file = tempfile::tempfile().expect("tempfile");
        file.write_all(&[0; 1 << 20]).expect("write");
        let (client, server) = sockets();
        let error = loop {
            if let Err(error) = sendfile(&server, &file, &mut 0, 1 << 20) {
                break error;
            }
        };
        assert_eq!(error, SendError::WouldBlock);
        drop((client, server));
    }

    #[test]
    fn sendfile_names_what_cannot_be_sent() {
        let (_client, server) = sockets();
        let directory = File::open("/").expect("open");
        assert_eq!(sendfile(&server, &directory, &mut 0, 1), Err(SendError::Unsupported));
    }

    #[test]
    fn a_file_just_written_is_in_memory() {
        let mut file = tempfile::tempfile().expect("tempfile");
        file.write_all(b"warm").expect("write");
        for offset in [0, 3, 4, 1 << 40] {
            assert_ne!(residency(&file, offset), Residency::Cold);
        }
        let mut buffer = [0; 8];
        assert_eq!(read_nowait(&file, &mut buffer, 1), Ok(3));
        assert_eq!(&buffer[..3], b"arm");
        assert_eq!(read_nowait(&file, &mut buffer, 4), Ok(0));
    }

    #[test]
    fn a_file_dropped_from_memory_is_cold() {
        let mut file = tempfile::tempfile_in(".").expect("tempfile");
        file.write_all(&[7; 1 << 20]).expect("write");
        file.sync_all().expect("sync");
        let drop_pages = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
        nix::fcntl::posix_fadvise(&file, 0, 0, drop_pages).expect("fadvise");
        if residency(&file, 0) == Residency::Memory {
            eprintln!("skipped: the working directory is on a file system in memory");
            return;
        }
        // Each look at a cold page may start a read of it, so that each needs a page of its own.
        assert_eq!(residency(&file, 0), Residency::Cold);
        assert_eq!(read_nowait(&file, &mut [0; 16], 512 << 10), Err(ReadError::Cold));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_cold_and_says_why() {
        let file = File::options().write(true).open("/dev/null").expect("open");
        assert_eq!(residency(&file, 0), Residency::Cold);
        let error = Err(ReadError::Other(libc::EBADF));
        assert_eq!(read_nowait(&file, &mut [0; 4], 0), error);
        assert_eq!(read_at(&file, &mut [0; 4], 0), error);
    }

    #[test]
    fn a_file_system_in_memory_reads_without_waiting() {
        let name = c"onering-test";
        let fd = nix::sys::memfd::memfd_create(name, nix::sys::memfd::MFdFlags::MFD_CLOEXEC);
        let mut file = File::from(fd.expect("memfd"));
        file.write_all(b"tmpfs").expect("write");
        assert_eq!(residency(&file, 0), Residency::Memory);
        let mut buffer = [0; 8];
        assert_eq!(read_nowait(&file, &mut buffer, 2), Ok(3));
        assert_eq!(&buffer[..3], b"pfs");
    }

    #[test]
    fn a_file_system_that_does_not_answer_is_unknown() {
        // /proc answers as overlayfs does.
        let file = File::open("/proc/self/stat").expect("open");
        assert_eq!(residency(&file, 0), Residency::Unknown);
        assert_eq!(read_nowait(&file, &mut [0; 4], 0), Err(ReadError::Cold));
        assert_eq!(read_at(&file, &mut [0; 4], 0), Ok(4));
    }
}
