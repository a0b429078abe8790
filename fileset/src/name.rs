//! The files of the set: four classes of nine sizes in each directory, and their names.

use std::fmt;

use crate::plan::Directories;

/// Classes of files, by size: 0 the smallest.
pub const CLASSES: u8 = 4;
/// Files of each class in a directory.
pub const FILES_PER_CLASS: u8 = 9;
/// Files in a directory.
pub const FILES_PER_DIRECTORY: u32 = CLASSES as u32 * FILES_PER_CLASS as u32;
/// Bytes of the files of a directory.
pub const BYTES_PER_DIRECTORY: u64 = bytes_per_directory();
/// Bytes of the largest file.
pub const SIZE_MAX: u32 = size(CLASSES - 1, FILES_PER_CLASS - 1);
/// Directories have five digits.
pub const DIRECTORIES_MAX: u32 = 100_000;

/// The directory that holds all others, and that every path begins with.
pub const ROOT: &str = "file_set";

/// A file of the set: that directory, class and file exist, in a set that is large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    directory: u32,
    class: u8,
    file: u8,
}

impl Name {
    /// Bytes of [`short`](Self::short).
    pub const SHORT_BYTES: usize = "dir00000/class0_0".len();
    /// Bytes of [`path`](Self::path).
    pub const PATH_BYTES: usize = ROOT.len() + 1 + Self::SHORT_BYTES;

    /// The file `file` (0 to 8) of class `class` (0 to 3) in a directory (0 to 99 999).
    pub const fn new(directory: u32, class: u8, file: u8) -> Option<Self> {
        if directory < DIRECTORIES_MAX && class < CLASSES && file < FILES_PER_CLASS {
            Some(Self { directory, class, file })
        } else {
            None
        }
    }

    /// The file at the end of a path or URL: `…dir00012/class1_4`, whatever stands before it.
    pub fn at_end_of(path: &[u8]) -> Option<Self> {
        let start = path.len().checked_sub(Self::SHORT_BYTES)?;
        let short: &[u8; Self::SHORT_BYTES] = path[start..].try_into().ok()?;
        let digit = |at: usize| short[at].is_ascii_digit().then(|| short[at] - b'0');
        let mut directory = 0;
        for at in 3..8 {
            directory = directory * 10 + u32::from(digit(at)?);
        }
        let name = Self::new(directory, digit(14)?, digit(16)?)?;
        (name.short() == *short).then_some(name)
    }

    /// The files of a directory, by class and then by size.
    pub fn in_directory(directory: u32) -> impl Iterator<Item = Self> {
        (0..CLASSES).flat_map(move |class| {
            (0..FILES_PER_CLASS).filter_map(move |file| Self::new(directory, class, file))
        })
    }

    /// All files of a set, directory by directory.
    pub fn in_set(directories: Directories) -> impl Iterator<Item = Self> {
        (0..directories.count()).flat_map(Self::in_directory)
    }

    /// The number of the directory.
    pub const fn directory(self) -> u32 {
        self.directory
    }

    /// The class, 0 to 3.
    pub const fn class(self) -> u8 {
        self.class
    }

    /// The number of the file within its class, 0 to 8.
    pub const fn file(self) -> u8 {
        self.file
    }

    /// The position among the files of its directory, 0 to 35.
    pub const fn position(self) -> usize {
        self.class as usize * FILES_PER_CLASS as usize + self.file as usize
    }

    /// Bytes of the file.
    pub const fn size(self) -> u32 {
        size(self.class, self.file)
    }

    /// `dir00012/class1_4`: what an ad tag has to replace.
    pub const fn short(self) -> [u8; Self::SHORT_BYTES] {
        let mut short = *b"dir00000/class0_0";
        let mut rest = self.directory;
        let mut at = 8;
        while at > 3 {
            at -= 1;
            short[at] += (rest % 10) as u8;
            rest /= 10;
        }
        short[14] += self.class;
        short[16] += self.file;
        short
    }

    /// `file_set/dir00012/class1_4`: the path from the directory that the set lies in.
    pub fn path(self) -> [u8; Self::PATH_BYTES] {
        let mut path = *b"file_set/dir00000/class0_0";
        path[ROOT.len() + 1..].copy_from_slice(&self.short());
        path
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { directory, class, file } = self;
        write!(f, "{ROOT}/dir{directory:05}/class{class}_{file}")
    }
}

/// Bytes of a file: the tenths, rounded down, of 1 KiB, and of ten times that for each class above.
pub const fn size(class: u8, file: u8) -> u32 {
    1024 * 10_u32.pow(class as u32) * (file as u32 + 1) / 10
}

const fn bytes_per_directory() -> u64 {
    let mut bytes = 0;
    let mut position = 0;
    while position < FILES_PER_DIRECTORY {
        let file = (position % FILES_PER_CLASS as u32) as u8;
        bytes += size((position / FILES_PER_CLASS as u32) as u8, file) as u64;
        position += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any file of the largest set.
    fn names() -> impl Strategy<Value = Name> {
        (0..DIRECTORIES_MAX, 0..CLASSES, 0..FILES_PER_CLASS)
            .prop_map(|(directory, class, file)| Name::new(directory, class, file).unwrap())
    }

    #[test]
    fn the_nine_sizes_of_each_class() {
        let sizes = |class| (0..FILES_PER_CLASS).map(|f| size(class, f)).collect::<Vec<_>>();
        assert_eq!(sizes(0), [102, 204, 307, 409, 512, 614, 716, 819, 921]);
        for class in 1..CLASSES {
            let step = 1024 * 10_u32.pow(u32::from(class) - 1);
            assert_eq!(sizes(class), (1..=9).map(|n| n * step).collect::<Vec<_>>());
        }
        assert_eq!(SIZE_MAX, 921_600);
    }

    #[test]
    fn a_directory_has_36_files_of_5_119_484_bytes() {
        assert_eq!(FILES_PER_DIRECTORY, 36);
        assert_eq!(BYTES_PER_DIRECTORY, 4_604 + 46_080 + 460_800 + 4_608_000);
        assert_eq!(BYTES_PER_DIRECTORY, 5_119_484);
        let positions: Vec<_> = Name::in_directory(7).map(Name::position).collect();
        assert_eq!(positions, (0..36).collect::<Vec<_>>());
    }

    #[test]
    fn names_are_as_published() {
        let name = Name::new(12, 1, 4).unwrap();
        assert_eq!(name.to_string(), "file_set/dir00012/class1_4");
        assert_eq!(Name::new(0, 0, 0).unwrap().to_string(), "file_set/dir00000/class0_0");
        assert_eq!(Name::new(99_999, 3, 8).unwrap().to_string(), "file_set/dir99999/class3_8");
        assert_eq!(Name::new(100_000, 0, 0), None);
        assert_eq!(Name::new(0, 4, 0), None);
        assert_eq!(Name::new(0, 0, 9), None);
    }

    #[test]
    fn what_is_no_name_is_not_taken_for_one() {
        for path in [
            "",
            "class1_4",
            "dir0012/class1_4",
            "dir00012/class4_4",
            "dir00012/class1_9",
            "dir00012/class1_4/",
            "dir00012/clas51_4",
            "dir+0012/class1_4",
            "é00012/class1_4",
            "dir00012/class1_é",
        ] {
            assert_eq!(Name::at_end_of(path.as_bytes()), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_found_at_the_end_of_any_path(name in names(), before in ".{0,20}") {
            prop_assert_eq!(name.path().to_vec(), name.to_string().into_bytes());
            prop_assert_eq!(Name::at_end_of(format!("{before}{name}").as_bytes()), Some(name));
        }

        #[test]
        fn no_bytes_make_it_panic(path in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Name::at_end_of(&path);
        }
    }
}
