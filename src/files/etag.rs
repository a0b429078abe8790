//! Entity tags from what the file system says (RFC 9110 §8.8.3).

use crate::config::ETag;
use crate::http::Coding;
use crate::sys::file::FileStat;

/// The tag of a file in this state, quotes included. It is strong: no other bytes will ever have had
/// it, since the file's time has settled.
pub(super) fn entity_tag(
    made_of: ETag,
    stat: &FileStat,
    coding: Option<Coding>,
) -> Option<Box<[u8]>> {
    let state = state(made_of, stat, coding)?;
    Some(format!("\"{state}\"").into_bytes().into())
}

/// The tag of one reading of a file whose time has not [`settled`], weakness mark and quotes included.
///
/// The next change may leave the same state behind, so the tag has something that no other reading
/// has: not even by weak comparison does it ever match what has been written since.
pub(super) fn unsettled_tag(
    made_of: ETag,
    stat: &FileStat,
    coding: Option<Coding>,
    reading: u64,
) -> Option<Box<[u8]>> {
    let state = state(made_of, stat, coding)?;
    Some(format!("W/\"{state}-{reading:x}\"").into_bytes().into())
}

/// A coding is named, since compressors may keep the original's time, and sizes may be equal.
fn state(made_of: ETag, stat: &FileStat, coding: Option<Coding>) -> Option<String> {
    let FileStat { mtime_ns, bytes, inode, .. } = stat;
    let mut state = match made_of {
        ETag::MtimeSize => format!("{mtime_ns:x}-{bytes:x}"),
        ETag::Inode => format!("{inode:x}-{mtime_ns:x}-{bytes:x}"),
        ETag::Off => return None,
    };
    if let Some(coding) = coding {
        state.push('-');
        state.push_str(coding.name());
    }
    Some(state)
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
        mode: 0o644,
        owner: 0,
    };

    fn text(tag: Option<Box<[u8]>>) -> Option<String> {
        tag.map(|tag| String::from_utf8(tag.into()).unwrap())
    }

    #[test]
    fn tags_are_made_of_what_is_configured() {
        let tag = |made_of, coding| text(entity_tag(made_of, &STAT, coding));
        assert_eq!(tag(ETag::MtimeSize, None).unwrap(), "\"123456789abcdef0-2a\"");
        assert_eq!(
            tag(ETag::MtimeSize, Some(Coding::Gzip)).unwrap(),
            "\"123456789abcdef0-2a-gzip\""
        );
        assert_eq!(tag(ETag::Inode, None).unwrap(), "\"f00-123456789abcdef0-2a\"");
        assert_eq!(tag(ETag::Off, None), None);
        let unsettled = |made_of| text(unsettled_tag(made_of, &STAT, None, 7));
        assert_eq!(unsettled(ETag::MtimeSize).unwrap(), "W/\"123456789abcdef0-2a-7\"");
        assert_eq!(unsettled(ETag::Off), None);
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
