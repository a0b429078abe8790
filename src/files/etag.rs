//! Entity tags from what the file system says (RFC 9110 §8.8.3).

use crate::config::ETag;
use crate::sys::file::FileStat;

/// The tag of a file in this state, quotes and weakness mark included.
pub(super) fn entity_tag(made_of: ETag, stat: &FileStat, settled: bool) -> Option<Box<[u8]>> {
    let FileStat { mtime_ns, bytes, inode, .. } = stat;
    let weak = if settled { "" } else { "W/" };
    let tag = match made_of {
        ETag::MtimeSize => format!("{weak}\"{mtime_ns:x}-{bytes:x}\""),
        ETag::Inode => format!("{weak}\"{inode:x}-{mtime_ns:x}-{bytes:x}\""),
        ETag::Off => return None,
    };
    Some(tag.into_bytes().into())
}

/// Whether a change that comes after this one, stamped `time_ns`, is sure to have another stamp.
///
/// File systems stamp changes with a clock that moves every few milliseconds at best (once a jiffy
/// before Linux 6.13) and every second at worst: two changes within one such step look alike, so a
/// tag made between them must not claim byte equality. `now_s` may lag by up to a second. A time in
/// the future was set by hand; a change would set it back, and that shows.
pub(super) fn settled(time_ns: i128, now_s: u64) -> bool {
    time_ns.div_euclid(1_000_000_000).abs_diff(i128::from(now_s)) > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::file::FileKind;

    const STAT: FileStat = FileStat {
        kind: FileKind::File,
        bytes: 0x2a,
        mtime_ns: 0x1234_5678_9abc_def0,
        ctime_ns: 7,
        inode: 0xf00,
        device: 3,
    };

    fn tag(made_of: ETag, settled: bool) -> Option<String> {
        let tag = entity_tag(made_of, &STAT, settled)?;
        Some(String::from_utf8(tag.into()).unwrap())
    }

    #[test]
    fn tags_are_made_of_what_is_configured() {
        assert_eq!(tag(ETag::MtimeSize, true).unwrap(), "\"123456789abcdef0-2a\"");
        assert_eq!(tag(ETag::MtimeSize, false).unwrap(), "W/\"123456789abcdef0-2a\"");
        assert_eq!(tag(ETag::Inode, true).unwrap(), "\"f00-123456789abcdef0-2a\"");
        assert_eq!(tag(ETag::Off, true), None);
    }

    #[test]
    fn a_time_settles_when_a_second_has_passed() {
        for (time_ms, expected) in [
            (98_999, true),
            (99_000, false),
            (100_500, false),
            (101_999, false),
            (102_000, true),
            (-5_000, true),
        ] {
            assert_eq!(settled(time_ms * 1_000_000, 100), expected, "{time_ms}");
        }
    }
}
