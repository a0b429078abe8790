//! What is measured: the cells of the comparison.

use std::fmt;

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
}

/// All cells.
pub const CELLS: [Cell; 6] = [
    Cell { name: "1k-64", file_bytes: 1 << 10, connections: 64, close: false },
    Cell { name: "1k-512", file_bytes: 1 << 10, connections: 512, close: false },
    Cell { name: "10k-64", file_bytes: 10 << 10, connections: 64, close: false },
    Cell { name: "100k-64", file_bytes: 100 << 10, connections: 64, close: false },
    Cell { name: "1m-16", file_bytes: 1 << 20, connections: 16, close: false },
    Cell { name: "1k-close-64", file_bytes: 1 << 10, connections: 64, close: true },
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
        write!(f, "{size} {unit}, {kept}, {} connections", self.connections)
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
    }
}
