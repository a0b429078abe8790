//! Whether what comes is a certain file of the set: its first line, every validation marker and every
//! ad tag, each looked at where it falls, however the file is cut into pieces. Filler is not compared.
//!
//! Needs no seed and no file: that a tag follows a marker can be seen by its first byte, which filler
//! never has, and how many there are depends on the class alone.

use super::Wrong;
use onering_fileset::content::tag::{self, TAG_BYTES};
use onering_fileset::content::{first_line, markers_from, tags_in_class};
use onering_fileset::name::Name;

/// A file that is being received, from its first byte on.
#[derive(Clone, Debug)]
pub(super) struct FileCheck {
    name: Name,
    /// What its tags must show.
    shown: Name,
    /// Tags that have begun.
    tags: usize,
    /// Where the tag begins of which not all has come.
    open: Option<usize>,
}

impl FileCheck {
    /// The file `name`, in which every ad tag shows `shown`: itself, if none was replaced.
    pub(super) fn new(name: Name, shown: Name) -> Self {
        Self { name, shown, tags: 0, open: None }
    }

    /// Its bytes from `offset` on, which follow those that came before.
    pub(super) fn piece(&mut self, offset: usize, piece: &[u8]) -> Result<(), Wrong> {
        if !agrees(0, &first_line(self.name), offset, piece) {
            return Err(Wrong::FirstLine);
        }
        if let Some(begin) = self.open {
            self.tag(begin, offset, piece)?;
        }
        let end = offset + piece.len();
        // A tag that begins with this piece follows the last byte of the piece before.
        for (place, marker) in markers_from(self.name, offset.saturating_sub(1)) {
            if place >= end {
                break;
            }
            if place >= offset && piece[place - offset] != marker {
                return Err(Wrong::Marker);
            }
            let behind = place + 1;
            if behind < end && piece[behind - offset] == b'<' {
                self.tags += 1;
                self.tag(behind, offset, piece)?;
            }
        }
        Ok(())
    }

    /// All of it has come.
    pub(super) fn end(&self) -> Result<(), Wrong> {
        let whole = self.tags == tags_in_class(self.name.class()) && self.open.is_none();
        if whole { Ok(()) } else { Err(Wrong::Page) }
    }

    /// Compares what the piece has of the tag that begins at `begin`.
    fn tag(&mut self, begin: usize, offset: usize, piece: &[u8]) -> Result<(), Wrong> {
        self.open = (offset + piece.len() < begin + TAG_BYTES).then_some(begin);
        let right = agrees(begin, &tag::text(self.shown), offset, piece);
        if right { Ok(()) } else { Err(Wrong::Page) }
    }
}

/// Whether `piece`, which begins at `offset`, has the bytes of `expected`, which begins at `begin`,
/// wherever the two overlap.
pub(super) fn agrees(begin: usize, expected: &[u8], offset: usize, piece: &[u8]) -> bool {
    let from = begin.max(offset);
    let to = (begin + expected.len()).min(offset + piece.len());
    from >= to || expected[from - begin..to - begin] == piece[from - offset..to - offset]
}

#[cfg(test)]
mod tests {
    use super::*;
    use onering_fileset::content::{Contents, markers};
    use proptest::prelude::*;

    fn name(class: u8, file: u8) -> Name {
        Name::new(12, class, file).unwrap()
    }

    /// Whether `content` is `name`, when it comes in pieces of that many bytes.
    fn verdict(name: Name, shown: Name, content: &[u8], piece_bytes: usize) -> Result<(), Wrong> {
        let mut check = FileCheck::new(name, shown);
        let mut offset = 0;
        for piece in content.chunks(piece_bytes) {
            check.piece(offset, piece)?;
            offset += piece.len();
        }
        check.end()
    }

    #[test]
    fn every_file_is_itself_however_it_is_cut() {
        for name in Name::in_directory(12) {
            let content = Contents::new(1).of(name);
            let cuts: &[usize] = if name.class() < 3 { &[1, 63, 64, 65, 1460] } else { &[1460] };
            for &bytes in cuts.iter().chain(&[content.len()]) {
                assert_eq!(verdict(name, name, &content, bytes), Ok(()), "{name} by {bytes}");
            }
        }
    }

    #[test]
    fn a_byte_that_is_another_is_found_in_first_line_markers_and_tags() {
        let name = name(2, 2);
        let content = Contents::new(1).of(name);
        let changed = |at: usize, piece_bytes| {
            let mut content = content.clone();
            content[at] ^= 1;
            verdict(name, name, &content, piece_bytes)
        };
        for piece_bytes in [1, 100, 1460, content.len()] {
            for at in 0..37 {
                assert_eq!(changed(at, piece_bytes), Err(Wrong::FirstLine), "{at}");
            }
            for (at, _) in markers(name) {
                assert_eq!(changed(at, piece_bytes), Err(Wrong::Marker), "{at}");
            }
            for middle in tag::middles(&content) {
                let begin = middle - tag::MIDDLE_OFFSET;
                for at in begin..begin + TAG_BYTES {
                    assert_eq!(changed(at, piece_bytes), Err(Wrong::Page), "{at}");
                }
            }
        }
    }

    #[test]
    fn tags_show_what_they_must() {
        let (name, ad, other) = (name(1, 4), Name::new(3, 1, 1), Name::new(3, 1, 2));
        let (ad, other) = (ad.unwrap(), other.unwrap());
        let mut content = Contents::new(1).of(name);
        assert_eq!(verdict(name, ad, &content, 1000), Err(Wrong::Page), "not replaced");
        tag::substitute(&mut content, ad);
        assert_eq!(verdict(name, ad, &content, 1000), Ok(()));
        assert_eq!(verdict(name, other, &content, 1000), Err(Wrong::Page), "another ad");
        assert_eq!(verdict(name, name, &content, 1000), Err(Wrong::Page), "replaced");
    }

    #[test]
    fn another_file_is_not_taken_for_it() {
        let content = Contents::new(1).of(name(1, 4));
        assert_eq!(verdict(name(1, 3), name(1, 3), &content, 1460), Err(Wrong::FirstLine));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn cuts_change_nothing(
            class in 0_u8..3,
            file in 0_u8..9,
            change in proptest::option::of(any::<prop::sample::Index>()),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let name = name(class, file);
            let mut content = Contents::new(1).of(name);
            if let Some(change) = change {
                let at = change.index(content.len());
                content[at] = b'<';
            }
            let whole = verdict(name, name, &content, content.len());
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(content.len())).collect();
            at.extend([0, content.len()]);
            at.sort_unstable();
            let mut check = FileCheck::new(name, name);
            let pieces = at.windows(2).try_for_each(|w| check.piece(w[0], &content[w[0]..w[1]]));
            // Of several faults, which is seen first depends on the cuts.
            prop_assert_eq!(pieces.and_then(|()| check.end()).is_ok(), whole.is_ok());
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..6000), cut in 1_usize..200) {
            let _ = verdict(name(1, 8), name(1, 8), &noise, cut);
        }
    }
}
