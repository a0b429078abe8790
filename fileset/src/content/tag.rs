//! Ad tags: found in a body and replaced in it, always by as many bytes.
//!
//! The server looks through the body for each request, as the workload's authors expect it to:
//! keeping the offsets would measure something else.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::name::Name;

const BEFORE: &[u8; MIDDLE_OFFSET] = b"<!WEB99CAD><IMG SRC=\"/file_set/";
const AFTER: &[u8; 14] = b"\"><!/WEB99CAD>";

/// Where in a tag the middle begins: `dir00012/class1_4`, the part that is replaced.
pub const MIDDLE_OFFSET: usize = 31;

/// Bytes of the middle.
pub const MIDDLE_BYTES: usize = Name::SHORT_BYTES;

/// Bytes of a tag.
pub const TAG_BYTES: usize = BEFORE.len() + MIDDLE_BYTES + AFTER.len();

/// The tag that shows a file.
pub fn text(shown: Name) -> [u8; TAG_BYTES] {
    let mut tag = [0; TAG_BYTES];
    tag[..MIDDLE_OFFSET].copy_from_slice(BEFORE);
    tag[MIDDLE_OFFSET..][..MIDDLE_BYTES].copy_from_slice(&shown.short());
    tag[MIDDLE_OFFSET + MIDDLE_BYTES..].copy_from_slice(AFTER);
    tag
}

/// Where the middles of all tags of a body begin, in ascending order. Between them, the body can be
/// sent as it lies in memory.
pub fn middles(body: &[u8]) -> impl Iterator<Item = usize> {
    static OPENING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(BEFORE));
    let closed = |middle: &usize| {
        body.get(middle + MIDDLE_BYTES..).is_some_and(|rest| rest.starts_with(AFTER))
    };
    OPENING.find_iter(body).map(|start| start + MIDDLE_OFFSET).filter(closed)
}

/// Makes every tag of a body show a file.
pub fn substitute(body: &mut [u8], shown: Name) {
    let places: Vec<usize> = middles(body).collect();
    for middle in places {
        body[middle..middle + MIDDLE_BYTES].copy_from_slice(&shown.short());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(directory: u32, class: u8, file: u8) -> Name {
        Name::new(directory, class, file).unwrap()
    }

    #[test]
    fn a_tag_has_62_bytes_of_which_17_from_31_on_are_replaced() {
        let tag = text(name(12, 1, 4));
        let expected = "<!WEB99CAD><IMG SRC=\"/file_set/dir00012/class1_4\"><!/WEB99CAD>";
        assert_eq!(String::from_utf8_lossy(&tag), expected);
        assert_eq!((TAG_BYTES, MIDDLE_OFFSET, MIDDLE_BYTES), (62, 31, 17));
        assert_eq!(middles(&tag).collect::<Vec<_>>(), [31]);
    }

    #[test]
    fn every_tag_is_replaced_and_nothing_else() {
        let old = String::from_utf8(text(name(1, 2, 3)).to_vec()).unwrap();
        let cut = &old[..61];
        let body = format!("{old}x{old}\n{cut}\n<!WEB99CAD>{old}{cut}");
        let mut replaced = body.clone().into_bytes();
        substitute(&mut replaced, name(9, 0, 8));
        let new = String::from_utf8(text(name(9, 0, 8)).to_vec()).unwrap();
        let expected = format!("{new}x{new}\n{cut}\n<!WEB99CAD>{new}{cut}");
        assert_eq!(String::from_utf8_lossy(&replaced), expected);
    }

    proptest! {
        #[test]
        fn the_length_never_changes(
            pieces in proptest::collection::vec(0_u8..4, 0..20),
            cut in 0_usize..200,
        ) {
            let tag = text(name(77, 2, 1));
            let piece = |kind: u8| match kind {
                0 => tag.to_vec(),
                1 => tag[..40].to_vec(),
                2 => tag[20..].to_vec(),
                _ => b"text".to_vec(),
            };
            let mut body: Vec<u8> = pieces.into_iter().flat_map(piece).collect();
            body.truncate(body.len().saturating_sub(cut));
            let before = body.clone();
            substitute(&mut body, name(5, 1, 1));
            prop_assert_eq!(body.len(), before.len());
            let changed: Vec<usize> = middles(&body).collect();
            substitute(&mut body, name(77, 2, 1));
            prop_assert_eq!(middles(&body).collect::<Vec<_>>(), changed);
            prop_assert_eq!(body, before);
        }
    }
}
