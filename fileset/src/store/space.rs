//! Whether a disk has room, asked before anything is written to it.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::Error;

/// What a file system has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Free {
    bytes: u64,
    /// `None` where inodes are made as they are needed.
    inodes: Option<u64>,
    /// The unit in which files take room.
    block_bytes: u64,
}

/// What is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Need {
    bytes: u64,
    inodes: u64,
}

/// The disk is too small.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} has too little room: {needed_bytes} bytes and {needed_inodes} inodes are needed, {free_bytes} \
     bytes and {} inodes are free; nothing was written", path.display(),
    free_inodes.map_or("any number of".to_owned(), |inodes| inodes.to_string())
)]
pub struct Shortage {
    /// Where.
    pub path: PathBuf,
    /// With a margin for what the file system needs itself.
    pub needed_bytes: u64,
    /// For files and directories.
    pub needed_inodes: u64,
    /// For those without privileges.
    pub free_bytes: u64,
    /// `None` where they are made as they are needed.
    pub free_inodes: Option<u64>,
}

impl Free {
    /// What the file system at a path, or at the nearest directory above it, has.
    pub(super) fn at(path: &Path) -> Result<Self, Error> {
        let existing = path.ancestors().find(|path| path.exists());
        // A relative path ends in the empty one, which is the working directory.
        let existing = existing.filter(|path| !path.as_os_str().is_empty());
        let existing = existing.unwrap_or(Path::new("."));
        let facts = statvfs(existing)
            .map_err(|errno| Error::io("ask for the free space of", existing)(errno.into()))?;
        let unit = facts.fragment_size().max(1);
        Ok(Self {
            bytes: facts.blocks_available().saturating_mul(unit),
            inodes: (facts.files() > 0).then(|| facts.files_available()),
            block_bytes: unit,
        })
    }
}

impl Need {
    /// A file of so many bytes.
    pub(super) fn add_file(&mut self, bytes: u32, free: &Free) {
        self.bytes += u64::from(bytes).next_multiple_of(free.block_bytes);
        self.inodes += 1;
    }

    /// A directory, of one block.
    pub(super) fn add_directory(&mut self, free: &Free) {
        self.bytes += free.block_bytes;
        self.inodes += 1;
    }

    /// That the need can be met, with room to spare: a fiftieth and 16 MiB for extents, journal,
    /// manifest and files that are being replaced, and 16 inodes.
    pub(super) fn met_by(&self, free: &Free, path: &Path) -> Result<(), Shortage> {
        if self.inodes == 0 {
            return Ok(());
        }
        let needed_bytes = self.bytes + self.bytes / 50 + (16 << 20);
        let needed_inodes = self.inodes + 16;
        if needed_bytes <= free.bytes && free.inodes.is_none_or(|inodes| needed_inodes <= inodes) {
            return Ok(());
        }
        Err(Shortage {
            path: path.to_owned(),
            needed_bytes,
            needed_inodes,
            free_bytes: free.bytes,
            free_inodes: free.inodes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn need(files: u32, free: &Free) -> Need {
        let mut need = Need::default();
        (0..files).for_each(|_| need.add_file(102, free));
        need.add_directory(free);
        need
    }

    #[test]
    fn files_take_whole_blocks_and_a_margin() {
        let free = Free { bytes: 100 * 4096 + 16 * MIB, inodes: Some(1_000), block_bytes: 4096 };
        assert_eq!(need(97, &free).met_by(&free, Path::new("/d")), Ok(()));
        let shortage = need(98, &free).met_by(&free, Path::new("/d")).unwrap_err();
        assert_eq!(shortage.needed_bytes, 99 * 4096 + 99 * 4096 / 50 + 16 * MIB);
        assert_eq!(
            shortage.to_string(),
            "/d has too little room: 17190830 bytes and 115 inodes are needed, 17186816 bytes and \
             1000 inodes are free; nothing was written"
        );
    }

    #[test]
    fn inodes_count_where_they_are_counted() {
        let free = |inodes| Free { bytes: 1 << 40, inodes, block_bytes: 4096 };
        assert!(need(100, &free(Some(117))).met_by(&free(Some(117)), Path::new("/")).is_ok());
        assert!(need(100, &free(Some(116))).met_by(&free(Some(116)), Path::new("/")).is_err());
        assert!(need(100, &free(None)).met_by(&free(None), Path::new("/")).is_ok());
    }

    #[test]
    fn nothing_needs_no_margin() {
        let full = Free { bytes: 0, inodes: Some(0), block_bytes: 4096 };
        assert_eq!(Need::default().met_by(&full, Path::new("/")), Ok(()));
    }

    #[test]
    fn a_path_that_is_not_there_is_on_the_disk_above_it() {
        let directory = tempfile::tempdir().unwrap();
        let there = Free::at(directory.path()).unwrap();
        let free = Free::at(&directory.path().join("a/b/c")).unwrap();
        assert_eq!(there.block_bytes, free.block_bytes);
        assert!(Free::at(Path::new("nowhere-at-all")).is_ok());
    }
}
