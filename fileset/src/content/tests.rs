//! What is in the files, held against the published form, byte by byte.

use proptest::prelude::*;

use super::*;
use crate::name::{CLASSES, FILES_PER_CLASS};

fn name(directory: u32, class: u8, file: u8) -> Name {
    Name::new(directory, class, file).unwrap()
}

/// Where tags begin, found by looking at every byte.
fn tags_found(content: &[u8]) -> Vec<usize> {
    let open = b"<!WEB99CAD>";
    let starts = content.windows(open.len()).enumerate();
    starts.filter(|(_, window)| window == open).map(|(at, _)| at).collect()
}

#[test]
fn the_first_line_says_size_and_path() {
    let lines = [
        (name(0, 0, 0), "      102 file_set/dir00000/class0_0\n"),
        (name(12, 1, 4), "     5120 file_set/dir00012/class1_4\n"),
        (name(99_999, 3, 8), "   921600 file_set/dir99999/class3_8\n"),
    ];
    for (name, line) in lines {
        assert_eq!(String::from_utf8_lossy(&first_line(name)), line);
        assert!(Contents::new(1).of(name).starts_with(line.as_bytes()));
    }
}

#[test]
fn every_file_of_a_directory_is_as_described() {
    for name in Name::in_directory(12) {
        let content = Contents::new(1).of(name);
        assert_eq!(content.len(), name.size() as usize);
        for (at, byte) in content.iter().enumerate().skip(FIRST_LINE_BYTES) {
            assert_eq!(at % 64 == 63, *byte == b'\n', "{name}: byte {at}");
            assert!(*byte == b'\n' || (0x20..0x7f).contains(byte), "{name}: byte {at}");
        }

        let path = name.to_string();
        let places: Vec<usize> =
            [64].into_iter().chain((4096..content.len()).step_by(4096)).collect();
        assert_eq!(markers(name).map(|(at, _)| at).collect::<Vec<_>>(), places);
        for (k, (at, marker)) in markers(name).enumerate() {
            assert_eq!(marker, path.as_bytes()[k % path.len()]);
            assert_eq!(content[at], marker, "{name}: marker {k}");
        }

        let tags = tags_found(&content);
        assert_eq!(tags.len(), [0, 1, 2, 0][usize::from(name.class())], "{name}");
        for tag in tags {
            assert!(places.contains(&(tag - 1)), "{name}: a tag at {tag}");
            assert_eq!(content[tag..tag + tag::TAG_BYTES], tag::text(name));
        }
    }
}

#[test]
fn markers_are_found_from_anywhere() {
    for name in [name(12, 0, 0), name(12, 1, 8), name(12, 2, 8)] {
        let all: Vec<_> = markers(name).collect();
        for offset in 0..name.size() as usize {
            let behind: Vec<_> = markers_from(name, offset).collect();
            let expected = all.iter().filter(|&&(place, _)| place >= offset);
            assert!(expected.eq(&behind), "{name}: from {offset}");
        }
    }
}

#[test]
fn tags_stand_at_every_marker_that_has_room() {
    let (file, size) = (8, 9216);
    let mut seen: Vec<usize> = (0..200)
        .flat_map(|directory| tags_found(&Contents::new(1).of(name(directory, 1, file))))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(name(0, 1, file).size(), size);
    assert_eq!(seen, [65, 4097, 8193]);
}

/// The content of every kind of file, for good: sets that were generated once must verify. The sums
/// are of FNV-1a, 64 bits.
#[test]
fn the_contents_never_change() {
    let sum = |content: &[u8]| {
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        content.iter().fold(0xcbf2_9ce4_8422_2325, step)
    };
    let sums = [(0, 0), (1, 0), (2, 4), (3, 8)]
        .map(|(class, file)| sum(&Contents::new(1).of(name(7, class, file))));
    assert_eq!(sums, PINNED);
}

const PINNED: [u64; 4] = [
    9_647_689_219_988_156_454,
    18_397_812_039_015_183_568,
    9_839_043_558_254_311_689,
    6_090_714_781_426_817_039,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_content_depends_on_seed_and_name_alone(
        seed in any::<u64>(),
        directory in 0_u32..100_000,
        class in 0..CLASSES - 1,
        file in 0..FILES_PER_CLASS,
    ) {
        let name = name(directory, class, file);
        let content = Contents::new(seed).of(name);
        let mut again = vec![0xff; content.len()];
        Contents::new(seed).fill(name, &mut again);
        prop_assert_eq!(&content, &again);
        prop_assert_ne!(&content, &Contents::new(seed.wrapping_add(1)).of(name));
        prop_assert_eq!(tag::middles(&content).count(), tags_in_class(class));
    }
}
