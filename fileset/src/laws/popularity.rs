//! Which file a request is for: class, directory and file are independent of each other.

use super::zipf::Zipf;
use crate::name::{CLASSES, FILES_PER_CLASS, Name, size};
use crate::plan::Directories;
use crate::random::Random;

/// Requests for each class among a thousand.
pub const CLASS_PER_DECK: [u16; CLASSES as usize] = [350, 500, 140, 10];

/// The files of a class from the most to the least popular.
pub const FILE_ORDER: [u8; FILES_PER_CLASS as usize] = [4, 3, 5, 2, 6, 1, 7, 8, 0];

/// The popularity of every file of a set of some size.
#[derive(Clone, Debug)]
pub struct Popularity {
    directories: Directories,
    by_directory: Zipf,
    by_file: Zipf,
}

impl Popularity {
    /// That of a set.
    pub fn new(directories: Directories) -> Self {
        Self {
            directories,
            by_directory: Zipf::new(directories.count()),
            by_file: Zipf::new(u32::from(FILES_PER_CLASS)),
        }
    }

    /// The set's size.
    pub fn directories(&self) -> Directories {
        self.directories
    }

    /// The share of a class in all requests.
    pub fn class_share(class: u8) -> f64 {
        f64::from(CLASS_PER_DECK[usize::from(class)]) / 1000.0
    }

    /// The share of a directory in all requests.
    pub fn directory_share(&self, directory: u32) -> f64 {
        self.by_directory.share(directory)
    }

    /// The share of a file in the requests for its class.
    pub fn file_share(&self, file: u8) -> f64 {
        let rank = FILE_ORDER.iter().position(|&ranked| ranked == file);
        rank.map_or(0.0, |rank| self.by_file.share(rank as u32))
    }

    /// The share of a file in all requests.
    pub fn share(&self, name: Name) -> f64 {
        Self::class_share(name.class())
            * self.directory_share(name.directory())
            * self.file_share(name.file())
    }

    /// A file of a class.
    #[inline]
    pub(super) fn draw(&self, class: u8, random: &mut Random) -> Name {
        let directory = self.by_directory.draw(random);
        let file = FILE_ORDER[self.by_file.draw(random) as usize];
        Name::new(directory, class, file).expect("a law over the names gives names")
    }

    /// Bytes of the most popular files that take these shares of all requests (in ascending order),
    /// each file rounded up to whole units of `granule` bytes: what a cache has to hold.
    ///
    /// Sorts all files of the set; of equally popular ones the larger comes first.
    pub fn working_set_bytes<const N: usize>(&self, shares: [f64; N], granule: u32) -> [u64; N] {
        let mut files: Vec<(f64, u32)> = Name::in_set(self.directories)
            .map(|name| (self.share(name), name.size().next_multiple_of(granule)))
            .collect();
        files.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let mut files = files.into_iter();
        let (mut requests, mut bytes) = (0.0, 0);
        shares.map(|share| {
            while requests < share {
                let Some((more, size)) = files.next() else { break };
                requests += more;
                bytes += u64::from(size);
            }
            bytes
        })
    }
}

/// Mean bytes of a body: for one class, or of all requests for `None`. The number of directories has
/// no part in it.
pub fn mean_body_bytes(class: Option<u8>) -> f64 {
    let by_file = Zipf::new(u32::from(FILES_PER_CLASS));
    let mean = |class: u8| -> f64 {
        let ranked = (0..).zip(FILE_ORDER);
        ranked.map(|(rank, file)| by_file.share(rank) * f64::from(size(class, file))).sum()
    };
    match class {
        Some(class) => mean(class),
        None => (0..CLASSES).map(|class| Popularity::class_share(class) * mean(class)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1024.0 * 1024.0;

    fn popularity(directories: u64) -> Popularity {
        Popularity::new(Directories::new(directories).unwrap())
    }

    #[test]
    fn the_shares_of_the_nine_files() {
        let popularity = popularity(25);
        let percents: Vec<String> =
            (0..9).map(|file| format!("{:.2}", popularity.file_share(file) * 100.0)).collect();
        let expected = ["3.93", "5.89", "8.84", "17.67", "35.35", "11.78", "7.07", "5.05", "4.42"];
        assert_eq!(percents, expected);
        assert_eq!(popularity.file_share(9), 0.0);
    }

    #[test]
    fn all_shares_add_up_to_one() {
        let popularity = popularity(680);
        let sum: f64 =
            (0..680).flat_map(Name::in_directory).map(|name| popularity.share(name)).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn the_mean_body_has_14_727_bytes() {
        assert_eq!(mean_body_bytes(None).round(), 14_727.0);
        let classes = [501.4, 5_017.7, 50_177.0, 501_773.0];
        for (class, expected) in (0..).zip(classes) {
            let mean = mean_body_bytes(Some(class));
            assert!((mean / expected - 1.0).abs() < 1e-4, "{class}: {mean}");
        }
    }

    #[test]
    fn the_shares_of_the_bytes() {
        let percents = [0, 1, 2, 3].map(|class| {
            let bytes = Popularity::class_share(class) * mean_body_bytes(Some(class));
            format!("{:.1}", 100.0 * bytes / mean_body_bytes(None))
        });
        assert_eq!(percents, ["1.2", "17.0", "47.7", "34.1"]);
    }

    /// MiB for 50, 90, 95 and 99 % of the requests in sets of 1024 and 3072 MB: as the model gives
    /// them, and as Ruan and Pai (USENIX 2006) measured them, who count whole pages.
    #[test]
    fn the_working_sets_of_the_literature() {
        let shares = [0.5, 0.9, 0.95, 0.99];
        for (directories, exact, measured) in [
            (210, [1.8, 34.8, 60.1, 130.6], [2.1, 39.5, 64.6, 138.3]),
            (629, [3.5, 92.5, 166.5, 364.4], [4.4, 101.8, 181.2, 385.7]),
        ] {
            let popularity = popularity(directories);
            let bytes = popularity.working_set_bytes(shares, 1);
            let pages = popularity.working_set_bytes(shares, 4096);
            for at in 0..4 {
                let mib = bytes[at] as f64 / MIB;
                // Which of equally popular files comes first is anybody's choice.
                assert!((mib - exact[at]).abs() < 0.2, "{directories}: {mib} is not {}", exact[at]);
                let mib = pages[at] as f64 / MIB;
                // Within 4 %, and within the rounding of their first column.
                let tolerance = 0.045 * measured[at] + 0.05;
                assert!((mib - measured[at]).abs() < tolerance, "{directories}: {mib}");
            }
        }
    }

    #[test]
    fn the_working_set_of_each_load() {
        for (load, expected) in [
            (100, [15.0, 59.0, 223.0]),
            (1_000, [99.0, 393.0, 1_417.0]),
            (2_540, [220.0, 926.0, 3_276.0]),
            (4_250, [341.0, 1_499.0, 5_245.0]),
            (5_700, [439.0, 1_979.0, 6_872.0]),
            (10_000, [715.0, 3_375.0, 11_544.0]),
        ] {
            let popularity = Popularity::new(Directories::for_load(load).unwrap());
            let mib = popularity.working_set_bytes([0.9, 0.99, 0.999], 1).map(|b| b as f64 / MIB);
            for (mib, expected) in mib.into_iter().zip(expected) {
                assert!((mib - expected).abs() < 1.0, "{load}: {mib} is not {expected}");
            }
        }
    }

    #[test]
    fn a_cache_of_7000_mb_held_99_90_per_cent_of_load_5700() {
        let popularity = Popularity::new(Directories::for_load(5_700).unwrap());
        let [bytes] = popularity.working_set_bytes([0.9990], 1);
        assert!(bytes as f64 <= 7_000.0 * MIB);
    }
}
