//! What is measured: the cells of the comparison.

use std::fmt;
use std::time::{Duration, SystemTime};

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Short name, as on the command line and in results.
    pub name: &'static str,
    /// Bytes of the file asked for.
    pub file_bytes: usize,
    /// Connections held open.
    pub connections: usize,
    /// One request per connection.
    pub close: bool,
    /// What of the file is asked for.
    pub part: Part,
}

/// What of a file is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it: 200.
    Whole,
    /// Its first KiB: 206.
    FirstKib,
    /// What has changed since it was written, which is nothing: 304.
    Changes,
}

impl Part {
    /// The field that asks for it.
    pub fn field(self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::FirstKib => Some("Range: bytes=0-1023".to_owned()),
            Self::Changes => {
                Some(format!("If-Modified-Since: {}", httpdate::fmt_http_date(written())))
            }
        }
    }

    /// The status of right answers.
    pub fn status(self) -> u16 {
        match self {
            Self::Whole => 200,
            Self::FirstKib => 206,
            Self::Changes => 304,
        }
    }

    /// Bytes of the body of right answers, about a file of `file_bytes`.
    pub fn body_bytes(self, file_bytes: usize) -> usize {
        match self {
            Self::Whole => file_bytes,
            Self::FirstKib => file_bytes.min(1 << 10),
            Self::Changes => 0,
        }
    }
}

/// When the files that are asked for say that they were written: long ago, so that every server
/// tells of it, in whole seconds, as a date of HTTP has them.
pub fn written() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200)
}

/// All cells.
pub const CELLS: [Cell; 8] = [
    Cell { name: "1k-64", file_bytes: 1 << 10, connections: 64, close: false, part: Part::Whole },
    Cell { name: "1k-512", file_bytes: 1 << 10, connections: 512, close: false, part: Part::Whole },
    Cell { name: "10k-64", file_bytes: 10 << 10, connections: 64, close: false, part: Part::Whole },
    Cell {
        name: "100k-64",
        file_bytes: 100 << 10,
        connections: 64,
        close: false,
        part: Part::Whole,
    },
    Cell { name: "1m-16", file_bytes: 1 << 20, connections: 16, close: false, part: Part::Whole },
    Cell {
        name: "1k-close-64",
        file_bytes: 1 << 10,
        connections: 64,
        close: true,
        part: Part::Whole,
    },
    Cell {
        name: "1k-304-64",
        file_bytes: 1 << 10,
        connections: 64,
        close: false,
        part: Part::Changes,
    },
    Cell {
        name: "10k-206-64",
        file_bytes: 10 << 10,
        connections: 64,
        close: false,
        part: Part::FirstKib,
    },
];

impl Cell {
    /// The cell of that name.
    pub fn named(name: &str) -> Option<Self> {
        CELLS.into_iter().find(|cell| cell.name == name)
    }

    /// Name of the file asked for, in the document root.
    pub fn file_name(&self) -> String {
        format!("{}.bin", self.file_bytes)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.file_bytes {
            bytes if bytes.is_multiple_of(1 << 20) => (bytes >> 20, "MiB"),
            bytes => (bytes >> 10, "KiB"),
        };
        let kept = if self.close { "one request per connection" } else { "keep-alive" };
        let part = match self.part {
            Part::Whole => "",
            Part::FirstKib => ", its first KiB (206)",
            Part::Changes => ", unchanged (304)",
        };
        write!(f, "{size} {unit}{part}, {kept}, {} connections", self.connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_text_says_what_the_cell_is() {
        for cell in CELLS {
            assert_eq!(Cell::named(cell.name), Some(cell));
        }
        assert_eq!(Cell::named("2k"), None);
        let text = |name| Cell::named(name).unwrap().to_string();
        assert_eq!(text("10k-64"), "10 KiB, keep-alive, 64 connections");
        assert_eq!(text("1m-16"), "1 MiB, keep-alive, 16 connections");
        assert_eq!(text("1k-close-64"), "1 KiB, one request per connection, 64 connections");
        assert_eq!(text("1k-304-64"), "1 KiB, unchanged (304), keep-alive, 64 connections");
        assert_eq!(text("10k-206-64"), "10 KiB, its first KiB (206), keep-alive, 64 connections");
    }

    #[test]
    fn unchanged_means_since_it_was_written() {
        let field = Part::Changes.field().unwrap();
        assert_eq!(field, "If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT");
    }
}
