//! What is in each file: a function of the seed and the file's name, and of nothing else, so that
//! files can be written in any order, by any number of threads, on any machine, and recomputed later.
//!
//! ```text
//!      1024 file_set/dir00012/class1_0      the first line: size in 9 columns, blank, path
//!  …filler…                                  printable, a newline as every 64th byte
//! i<!WEB99CAD>…<!/WEB99CAD>                  a line that begins with a marker, and an ad tag
//!  …filler…
//! ```
//!
//! - The file is a grid of lines of 64 bytes, the newline last; the file's end may cut the last one
//!   short.
//! - The first line, of 37 bytes, stands at the start of the grid's first line, and filler goes on
//!   behind it: also in the smallest file, of 102 bytes.
//! - A *validation marker* is one character of the path. Marker *k* stands at byte 4096·*k* and is
//!   character *k* of the path, counted around. At byte 0 the first line stands, so that marker 0 is
//!   at byte 64: every file has one. Where there is no byte 4096·*k*, there is no marker *k*.
//! - An *ad tag* follows a marker at once, and with it fills a line exactly. Class 1 has one and class
//!   2 two, at different markers, drawn from those with room for a tag before the file's end; the
//!   smallest of each class, 1024 and 10 240 bytes, have one and three of these. A tag names the file
//!   that it is in, until it is replaced.
//! - Filler is drawn from the 64 characters from `?` to `~`, so that neither a tag nor any other
//!   markup occurs by chance.

pub mod tag;

use crate::name::Name;
use crate::random::{Purpose, Random};

/// Bytes of a line of the grid, its newline included.
pub const LINE_BYTES: usize = 64;

/// Bytes of the first line, its newline included.
pub const FIRST_LINE_BYTES: usize = 9 + 1 + Name::PATH_BYTES + 1;

/// Bytes from marker to marker.
pub const MARKER_INTERVAL: usize = 4096;

/// The content of all files under a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    seed: u64,
}

impl Contents {
    /// Those under a seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Writes the content of a file, of which `out` has the size.
    pub fn fill(self, name: Name, out: &mut [u8]) {
        assert_eq!(out.len(), name.size() as usize, "the size of {name}");
        let mut random = Random::new(self.seed, Purpose::Content, index(name));
        fill_printable(&mut random, out);
        out.iter_mut().skip(LINE_BYTES - 1).step_by(LINE_BYTES).for_each(|byte| *byte = b'\n');
        out[..FIRST_LINE_BYTES].copy_from_slice(&first_line(name));
        for (offset, marker) in markers(name) {
            out[offset] = marker;
        }
        let tag = tag::text(name);
        for offset in self.tags(name) {
            out[offset..offset + tag.len()].copy_from_slice(&tag);
        }
    }

    /// The content of a file.
    pub fn of(self, name: Name) -> Vec<u8> {
        let mut content = vec![0; name.size() as usize];
        self.fill(name, &mut content);
        content
    }

    /// Where the ad tags of a file begin, in no order.
    fn tags(self, name: Name) -> impl Iterator<Item = usize> {
        let count = tags_in_class(name.class());
        let room = |offset: &usize| offset + 1 + tag::TAG_BYTES <= name.size() as usize;
        let mut places: Vec<usize> =
            markers(name).map(|(offset, _)| offset).take_while(room).collect();
        if count > 0 {
            Random::new(self.seed, Purpose::Tags, index(name)).shuffle(&mut places);
        }
        places.into_iter().take(count).map(|marker| marker + 1)
    }
}

/// The number of a file's sequences of random numbers.
fn index(name: Name) -> u64 {
    u64::from(name.directory()) << 8 | name.position() as u64
}

/// Ad tags in each file of a class.
pub const fn tags_in_class(class: u8) -> usize {
    match class {
        1 => 1,
        2 => 2,
        _ => 0,
    }
}

/// The first line of a file: its size, aligned right in nine columns, a blank and its path.
pub fn first_line(name: Name) -> [u8; FIRST_LINE_BYTES] {
    let mut line = [b' '; FIRST_LINE_BYTES];
    let mut rest = name.size();
    for column in line[..9].iter_mut().rev() {
        if rest == 0 {
            break;
        }
        *column = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    line[10..10 + Name::PATH_BYTES].copy_from_slice(&name.path());
    line[FIRST_LINE_BYTES - 1] = b'\n';
    line
}

/// Where the validation markers of a file are, in ascending order, and what they must be.
pub fn markers(name: Name) -> impl Iterator<Item = (usize, u8)> {
    markers_from(name, 0)
}

/// The validation markers of a file at an offset and behind it, found without those before it.
pub fn markers_from(name: Name, offset: usize) -> impl Iterator<Item = (usize, u8)> {
    let path = name.path();
    let size = name.size() as usize;
    let place = |k: usize| if k == 0 { LINE_BYTES } else { k * MARKER_INTERVAL };
    let first = if offset <= place(0) { 0 } else { offset.div_ceil(MARKER_INTERVAL) };
    let markers = (first..).map(move |k| (place(k), path[k % path.len()]));
    markers.take_while(move |&(place, _)| place < size)
}

/// Fills with characters from `?` (0x3f) to `~` (0x7e), eight at a time.
fn fill_printable(random: &mut Random, out: &mut [u8]) {
    let mut printable = || {
        let word = (random.word() & 0x3f3f_3f3f_3f3f_3f3f) + 0x3f3f_3f3f_3f3f_3f3f;
        word.to_le_bytes()
    };
    let mut words = out.chunks_exact_mut(8);
    for eight in &mut words {
        eight.copy_from_slice(&printable());
    }
    let rest = words.into_remainder();
    let last = printable();
    rest.copy_from_slice(&last[..rest.len()]);
}

#[cfg(test)]
mod tests;
