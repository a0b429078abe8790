//! How large a set a load needs. Exact: no floating point decides on a directory.

use std::fmt;

use crate::name::{BYTES_PER_DIRECTORY, DIRECTORIES_MAX, FILES_PER_DIRECTORY};

/// The number of directories of a set: at least one, and no more than five digits can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Directories(u32);

/// Why there is no such set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A set has at least one directory.
    #[error("a file set has at least one directory")]
    NoDirectory,
    /// A load is at least one connection.
    #[error("a load is at least one connection")]
    NoLoad,
    /// Names have five digits for the directory.
    #[error(
        "that needs {directories} directories, and the names have room for {DIRECTORIES_MAX} \
         (a load of {})",
        Directories::LOAD_MAX
    )]
    TooMany {
        /// How many it would be.
        directories: u64,
    },
}

impl Directories {
    /// The largest load, in simultaneous connections, that a set can be made for.
    pub const LOAD_MAX: u64 = ((DIRECTORIES_MAX as u64 - 25 + 1) * 61 - 1) / 40;

    /// A set of that many directories.
    pub fn new(count: u64) -> Result<Self, PlanError> {
        match u32::try_from(count) {
            Ok(0) => Err(PlanError::NoDirectory),
            Ok(directories @ 1..=DIRECTORIES_MAX) => Ok(Self(directories)),
            _ => Err(PlanError::TooMany { directories: count }),
        }
    }

    /// The set for a load of so many simultaneous connections.
    ///
    /// 25 directories and one for each five planned operations a second, of which a connection of
    /// 400 000 bit/s makes 400 000 / 122 000: `floor(25 + 400000/122000 * load / 5)`, in lowest
    /// terms `25 + floor(40 * load / 61)`.
    pub fn for_load(connections: u64) -> Result<Self, PlanError> {
        if connections == 0 {
            return Err(PlanError::NoLoad);
        }
        Self::new(25 + (u128::from(connections) * 40 / 61) as u64)
    }

    /// How many.
    pub const fn count(self) -> u32 {
        self.0
    }

    /// Files in all directories.
    pub const fn files(self) -> u64 {
        self.0 as u64 * FILES_PER_DIRECTORY as u64
    }

    /// Bytes in all files.
    pub const fn bytes(self) -> u64 {
        self.0 as u64 * BYTES_PER_DIRECTORY
    }

    /// The "Fileset Size (MB)" of a result's disclosure: 4.88 for each directory, which is its size
    /// in MiB, cut off. Two decimals say it exactly.
    pub fn disclosed_mb(self) -> f64 {
        f64::from(self.0 * 488) / 100.0
    }
}

impl fmt::Display for Directories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Requested connections and file set size as three published results disclose them, and the
    /// directories and files that follow.
    const DISCLOSED: [(u64, &str, u32, u64); 3] = [
        (2540, "8247.20", 1690, 60_840),
        (4250, "13717.68", 2811, 101_196),
        (5700, "18358.56", 3762, 135_432),
    ];

    #[test]
    fn the_disclosed_sizes_follow_from_the_disclosed_loads() {
        for (load, size, directories, files) in DISCLOSED {
            let set = Directories::for_load(load).unwrap();
            assert_eq!(set.count(), directories);
            assert_eq!(set.files(), files);
            assert_eq!(format!("{:.2}", set.disclosed_mb()), size);
        }
    }

    #[test]
    fn what_load_needs_which_set() {
        for (load, directories, gib) in [
            (100, 90, 0.43),
            (1_000, 680, 3.24),
            (2_540, 1_690, 8.06),
            (4_250, 2_811, 13.40),
            (5_700, 3_762, 17.94),
            (10_000, 6_582, 31.4),
            (20_000, 13_139, 62.6),
            (100_000, 65_598, 312.8),
        ] {
            let set = Directories::for_load(load).unwrap();
            assert_eq!(set.count(), directories);
            let exact = set.bytes() as f64 / f64::from(1 << 30);
            assert!((exact - gib).abs() < 0.05, "{load}: {exact}");
        }
    }

    #[test]
    fn the_bounds_are_those_of_the_names() {
        assert_eq!(Directories::new(0), Err(PlanError::NoDirectory));
        assert_eq!(Directories::for_load(0), Err(PlanError::NoLoad));
        assert_eq!(Directories::for_load(1).unwrap().count(), 25);
        assert_eq!(Directories::for_load(Directories::LOAD_MAX).unwrap().count(), DIRECTORIES_MAX);
        let error = Directories::for_load(Directories::LOAD_MAX + 1).unwrap_err();
        assert_eq!(error, PlanError::TooMany { directories: 100_001 });
        let words =
            "that needs 100001 directories, and the names have room for 100000 (a load of 152463)";
        assert_eq!(error.to_string(), words);
        assert!(Directories::for_load(u64::MAX).is_err());
    }

    proptest! {
        #[test]
        fn the_formula_in_its_published_form(load in 1..=Directories::LOAD_MAX) {
            let published = (25.0 + (400_000.0 / 122_000.0) * load as f64 / 5.0).floor();
            // Where the exact value is whole, floating point may fall short of it by a hair.
            prop_assume!(load % 61 != 0);
            prop_assert_eq!(f64::from(Directories::for_load(load).unwrap().count()), published);
        }
    }
}
