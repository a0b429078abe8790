//! What is measured: the cells of the comparison.

use crate::tls::{ResumeBy, TlsVersion};
use std::fmt;
use std::time::{Duration, SystemTime};

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Short name, as on the command line and in results.
    pub name: &'static str,
    /// Connections held open.
    pub connections: usize,
    /// What is done on them.
    pub load: Load,
}

/// What is done on the connections of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// One file is asked for over and over, as fast as it comes.
    Get(Get),
    /// The same at a share of the rate at which it comes: how long do answers take when the server
    /// is busy but not swamped?
    Tails(Get),
    /// TLS handshakes, one request on each connection.
    Handshakes(Handshakes),
    /// The static part of the SPECweb99-style mix, over a file set.
    Web99,
    /// Nothing, after one request on each: what does a connection cost that only waits?
    Idle {
        /// Whether the connections are TLS.
        tls: bool,
    },
}

/// What handshakes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshakes {
    /// Nothing: a key exchange and a certificate.
    Full,
    /// A ticket of TLS 1.3, each of which is used once: the server must give new ones.
    Ticket,
    /// A ticket of TLS 1.2.
    Tls12Ticket,
    /// The id of an earlier session of TLS 1.2, which the server must find.
    Tls12Id,
}

/// Requests for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get {
    /// Bytes of the file.
    pub file_bytes: usize,
    /// What of the file is asked for.
    pub part: Part,
    /// One request per connection.
    pub close: bool,
    /// Requests in flight on each connection.
    pub pipeline: usize,
    /// Over TLS.
    pub tls: bool,
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

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Whole files of that size, keep-alive.
const fn get(file_bytes: usize) -> Get {
    Get { file_bytes, part: Part::Whole, close: false, pipeline: 1, tls: false }
}

const fn cell(name: &'static str, connections: usize, get: Get) -> Cell {
    Cell { name, connections, load: Load::Get(get) }
}

const fn handshakes(name: &'static str, handshakes: Handshakes) -> Cell {
    Cell { name, connections: 64, load: Load::Handshakes(handshakes) }
}

/// All cells.
pub const CELLS: [Cell; 25] = [
    cell("102b-64", 64, get(102)),
    cell("1k-64", 64, get(KIB)),
    cell("1k-512", 512, get(KIB)),
    cell("10k-64", 64, get(10 * KIB)),
    cell("100k-64", 64, get(100 * KIB)),
    cell("1m-16", 16, get(MIB)),
    cell("102b-close-64", 64, Get { close: true, ..get(102) }),
    cell("1k-close-64", 64, Get { close: true, ..get(KIB) }),
    cell("10k-close-64", 64, Get { close: true, ..get(10 * KIB) }),
    cell("100k-close-64", 64, Get { close: true, ..get(100 * KIB) }),
    cell("1m-close-16", 16, Get { close: true, ..get(MIB) }),
    cell("1k-pipe16-64", 64, Get { pipeline: 16, ..get(KIB) }),
    cell("1k-304-64", 64, Get { part: Part::Changes, ..get(KIB) }),
    cell("10k-206-64", 64, Get { part: Part::FirstKib, ..get(10 * KIB) }),
    cell("tls-1k-64", 64, Get { tls: true, ..get(KIB) }),
    cell("tls-100k-64", 64, Get { tls: true, ..get(100 * KIB) }),
    cell("tls-1m-16", 16, Get { tls: true, ..get(MIB) }),
    handshakes("tls-full-64", Handshakes::Full),
    handshakes("tls-ticket-64", Handshakes::Ticket),
    handshakes("tls12-ticket-64", Handshakes::Tls12Ticket),
    handshakes("tls12-id-64", Handshakes::Tls12Id),
    Cell { name: "web99-64", connections: 64, load: Load::Web99 },
    Cell { name: "tails-1k-64", connections: 64, load: Load::Tails(get(KIB)) },
    Cell { name: "idle-4000", connections: 4000, load: Load::Idle { tls: false } },
    Cell { name: "tls-idle-1000", connections: 1000, load: Load::Idle { tls: true } },
];

/// The file asked for where its size is not the question.
const SMALL: Get = get(KIB);

impl Cell {
    /// The cell of that name.
    pub fn named(name: &str) -> Option<Self> {
        CELLS.into_iter().find(|cell| cell.name == name)
    }

    /// Whether connections are TLS.
    pub fn tls(&self) -> bool {
        match self.load {
            Load::Get(get) | Load::Tails(get) => get.tls,
            Load::Handshakes(_) => true,
            Load::Web99 => false,
            Load::Idle { tls } => tls,
        }
    }

    /// By what sessions are resumed, if they are.
    pub fn resumed_by(&self) -> Option<ResumeBy> {
        match self.load {
            Load::Handshakes(Handshakes::Ticket | Handshakes::Tls12Ticket) => {
                Some(ResumeBy::Ticket)
            }
            Load::Handshakes(Handshakes::Tls12Id) => Some(ResumeBy::Id),
            _ => None,
        }
    }

    /// The version of TLS that is spoken, if it is.
    pub fn tls_version(&self) -> TlsVersion {
        match self.load {
            Load::Handshakes(Handshakes::Tls12Ticket | Handshakes::Tls12Id) => TlsVersion::Tls12,
            _ => TlsVersion::Tls13,
        }
    }

    /// The request whose answer is verified before and while the cell is measured; none where the
    /// load verifies everything by itself.
    pub fn request(&self) -> Option<Get> {
        match self.load {
            Load::Get(get) | Load::Tails(get) => Some(get),
            Load::Handshakes(_) => Some(Get { tls: true, close: true, ..SMALL }),
            Load::Idle { tls } => Some(Get { tls, ..SMALL }),
            Load::Web99 => None,
        }
    }
}

impl Get {
    /// Name of the file asked for, in the document root.
    pub fn file_name(&self) -> String {
        format!("{}.bin", self.file_bytes)
    }
}

impl fmt::Display for Get {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file_bytes {
            bytes if bytes.is_multiple_of(MIB) => write!(f, "{} MiB", bytes / MIB)?,
            bytes if bytes.is_multiple_of(KIB) => write!(f, "{} KiB", bytes / KIB)?,
            bytes => write!(f, "{bytes} B")?,
        }
        f.write_str(match self.part {
            Part::Whole => "",
            Part::FirstKib => ", its first KiB (206)",
            Part::Changes => ", unchanged (304)",
        })?;
        if self.tls {
            f.write_str(", TLS")?;
        }
        f.write_str(if self.close { ", one request per connection" } else { ", keep-alive" })?;
        if self.pipeline > 1 {
            write!(f, ", {} requests in flight on each", self.pipeline)?;
        }
        Ok(())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.load {
            Load::Get(get) => write!(f, "{get}")?,
            Load::Tails(get) => write!(f, "{get}, at {:.0} % of its rate", TAILS_SHARE * 100.0)?,
            Load::Handshakes(handshakes) => f.write_str(match handshakes {
                Handshakes::Full => "full TLS handshakes",
                Handshakes::Ticket => "TLS handshakes resumed by ticket",
                Handshakes::Tls12Ticket => "TLS 1.2 handshakes resumed by ticket",
                Handshakes::Tls12Id => "TLS 1.2 handshakes resumed by id",
            })?,
            Load::Web99 => f.write_str("SPECweb99-style static mix")?,
            Load::Idle { tls } => {
                write!(f, "{}memory of idle connections", if tls { "TLS, " } else { "" })?;
            }
        }
        write!(f, ", {} connections", self.connections)
    }
}

/// The share of a server's own closed-loop rate, measured just before, that [`Load::Tails`] offers:
/// well below the knee, where queues stay short unless the server stalls.
pub const TAILS_SHARE: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_text_says_what_the_cell_is() {
        for cell in CELLS {
            assert_eq!(Cell::named(cell.name), Some(cell));
            assert!(cell.name.ends_with(&format!("-{}", cell.connections)), "{}", cell.name);
        }
        assert_eq!(Cell::named("2k"), None);
        let text = |name| Cell::named(name).unwrap().to_string();
        for (name, expected) in [
            ("102b-64", "102 B, keep-alive, 64 connections"),
            ("1m-16", "1 MiB, keep-alive, 16 connections"),
            ("1k-close-64", "1 KiB, one request per connection, 64 connections"),
            ("1k-304-64", "1 KiB, unchanged (304), keep-alive, 64 connections"),
            ("10k-206-64", "10 KiB, its first KiB (206), keep-alive, 64 connections"),
            ("1k-pipe16-64", "1 KiB, keep-alive, 16 requests in flight on each, 64 connections"),
            ("tls-100k-64", "100 KiB, TLS, keep-alive, 64 connections"),
            ("tls-ticket-64", "TLS handshakes resumed by ticket, 64 connections"),
            ("tls12-id-64", "TLS 1.2 handshakes resumed by id, 64 connections"),
            ("tails-1k-64", "1 KiB, keep-alive, at 70 % of its rate, 64 connections"),
            ("tls-idle-1000", "TLS, memory of idle connections, 1000 connections"),
        ] {
            assert_eq!(text(name), expected);
        }
    }

    #[test]
    fn tls_is_asked_for_where_the_load_is_tls() {
        for cell in CELLS {
            assert_eq!(cell.tls(), cell.name.starts_with("tls"), "{}", cell.name);
            assert!(cell.request().is_none_or(|get| get.tls == cell.tls()), "{}", cell.name);
        }
    }

    #[test]
    fn unchanged_means_since_it_was_written() {
        let field = Part::Changes.field().unwrap();
        assert_eq!(field, "If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT");
    }
}
