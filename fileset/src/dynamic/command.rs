//! Commands, as the query of a dynamic GET: the client prepares a run, and fetches the log after it.

use super::ads::ADS;
use super::pairs::{self, PairsError};
use super::post;
use super::users::USERS_MAX;

/// What the server is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'q> {
    /// Make users and ads anew, empty the log.
    Reset(Reset<'q>),
    /// Answer with the log.
    Fetch,
}

/// What a run needs: `maxload=…&pttime=…&maxthread=…&exp=a,b&urlroot=…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset<'q> {
    /// The most connections.
    pub maxload: u32,
    /// How long it takes.
    pub pttime_s: u32,
    /// The client's threads.
    pub threads: u32,
    /// Where two runs of expired ads begin.
    pub expired_from: [u16; 2],
    /// What precedes a file's name in a path.
    pub urlroot: &'q str,
}

/// The longest run: years, and the expiration still fits its ten columns.
const PTTIME_MAX_S: u32 = 100_000_000;

impl<'q> Command<'q> {
    /// Reads a query; `None` when it is no command, but the path of a file.
    pub fn parse(query: &'q [u8]) -> Option<Result<Self, PairsError>> {
        let command = query.strip_prefix(b"command/")?;
        if command == b"Fetch" {
            return Some(Ok(Self::Fetch));
        }
        let Some(parameters) = command.strip_prefix(b"Reset&") else {
            return Some(Err(PairsError::Unknown));
        };
        Some(Reset::parse(parameters).map(Self::Reset))
    }
}

impl<'q> Reset<'q> {
    fn parse(parameters: &'q [u8]) -> Result<Self, PairsError> {
        let keys = ["maxload", "pttime", "maxthread", "exp", "urlroot"];
        let [maxload, pttime, threads, expired, urlroot] = pairs::parse(parameters, keys)?;
        let (first, second) = expired.split_once(',').ok_or(PairsError::Value("exp"))?;
        let ad = |id| pairs::number("exp", id, u32::from(ADS) - 1).map(|id| id as u16);
        Ok(Self {
            maxload: pairs::number("maxload", maxload, USERS_MAX)?,
            pttime_s: pairs::number("pttime", pttime, PTTIME_MAX_S)?,
            threads: pairs::number("maxthread", threads, USERS_MAX)?,
            expired_from: [ad(first)?, ad(second)?],
            urlroot: post::urlroot(urlroot)?,
        })
    }

    /// How many users there are to be.
    pub fn users(&self) -> u32 {
        self.maxload.max(self.threads)
    }

    /// The query.
    pub fn to_query(&self) -> String {
        let Self { maxload, pttime_s, threads, expired_from: [first, second], urlroot } = self;
        format!(
            "command/Reset&maxload={maxload}&pttime={pttime_s}&maxthread={threads}\
             &exp={first},{second}&urlroot={urlroot}"
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dynamic::Tables;

    const RESET: &str =
        "command/Reset&maxload=100&pttime=1800&maxthread=150&exp=10,350&urlroot=/file_set/";

    #[test]
    fn commands_are_told_from_paths() {
        assert_eq!(Command::parse(b"/file_set/dir00012/class1_4"), None);
        assert_eq!(Command::parse(b"command/Fetch"), Some(Ok(Command::Fetch)));
        let reset = Reset {
            maxload: 100,
            pttime_s: 1800,
            threads: 150,
            expired_from: [10, 350],
            urlroot: "/file_set/",
        };
        assert_eq!(Command::parse(RESET.as_bytes()), Some(Ok(Command::Reset(reset))));
        assert_eq!(reset.to_query(), RESET);
        assert_eq!(reset.users(), 150);
    }

    #[test]
    fn what_is_malformed_is_named() {
        let refused = |query: &str| Command::parse(query.as_bytes()).unwrap().unwrap_err();
        for query in ["command/", "command/Fetch&x=1", "command/Reset", "command/Finish"] {
            assert_eq!(refused(query), PairsError::Unknown, "{query}");
        }
        for (old, new, key) in [
            ("100", "100001", "maxload"),
            ("1800", "x", "pttime"),
            ("150", "", "maxthread"),
            ("10,350", "10", "exp"),
            ("10,350", "10,360", "exp"),
            ("/file_set/", "file_set", "urlroot"),
        ] {
            assert_eq!(refused(&RESET.replace(old, new)), PairsError::Value(key), "{new}");
        }
    }

    #[test]
    fn a_reset_makes_the_tables_of_a_run() {
        let Some(Ok(Command::Reset(reset))) = Command::parse(RESET.as_bytes()) else {
            panic!("a reset");
        };
        let tables = Tables::reset(1, 1_000_000_000, &reset);
        assert_eq!(tables.users.count(), 150);
        let expired: Vec<usize> =
            (0..360).filter(|&id| tables.ads.as_slice()[id].expires_s < 1_000_000_000).collect();
        let expected: Vec<usize> =
            (0..34).chain(350..360).filter(|&id| id < 14 || id >= 10).collect();
        assert_eq!(expired, expected);
        assert_eq!(tables, Tables::reset(1, 1_000_000_000, &reset));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Command::parse(&[b"command/Reset&", bytes.as_slice()].concat());
            let _ = Command::parse(&bytes);
        }
    }
}
