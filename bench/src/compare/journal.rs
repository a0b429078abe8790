//! Measurements on disk as they come, so that an interrupted comparison can be gone on with.
//!
//! A line of JSON each: first what the comparison is, then what came of each measurement. A
//! comparison is gone on with only by the same settings and the same programs, since a ratio between
//! two builds measured as one would be a lie. A last line that was cut off is dropped. A block that
//! is not complete is measured again as a whole: its servers must be neighbours in time.

use super::comparison::{Measurement, Place, Skipped};
use super::contender::Contender;
use super::options::Settings;
use super::order::Block;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be made, read or written.
    #[error("journal {}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A new one would take its place.
    #[error("journal {0} is there already\n  fix: go on with it by --resume {0}, or name another")]
    Exists(String),
    /// A line in the middle is not one.
    #[error("journal {}, line {line}: {error}", path.display())]
    Line {
        /// Which.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// It has not even its first line.
    #[error("{} is no journal of a comparison, or was interrupted before it began", .0.display())]
    Empty(PathBuf),
    /// It is of another comparison.
    #[error(
        "journal {} is of another comparison: {}\n  fix: give the options it was begun with, or \
         begin another",
        path.display(), differences.join("; ")
    )]
    Other {
        /// Which.
        path: PathBuf,
        /// What differs.
        differences: Vec<String>,
    },
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    schema: SchemaName,
    settings: Settings,
    contenders: Vec<Contender>,
}

/// The name of the one form that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum SchemaName {
    #[serde(rename = "onering-bench/compare-journal/1")]
    Journal1,
}

/// What came of one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// Figures.
    Measured(Measurement),
    /// None.
    Skipped {
        /// Where they would have been.
        place: Place,
        /// Why there are none.
        why: String,
    },
}

impl Entry {
    fn place(&self) -> &Place {
        match self {
            Self::Measured(measurement) => &measurement.place,
            Self::Skipped { place, .. } => place,
        }
    }
}

impl Header {
    /// The first line for a comparison by `settings` of `contenders`.
    pub(super) fn new(settings: Settings, contenders: Vec<Contender>) -> Self {
        Self { schema: SchemaName::Journal1, settings, contenders }
    }

    /// The seed of the orders.
    pub(super) fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// How the comparison that is asked for differs from this one.
    fn differences(&self, asked_for: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let fields = |settings| match serde_json::to_value(settings) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (old, new) = (fields(&self.settings), fields(&asked_for.settings));
        for (name, value) in &old {
            let other = new.get(name).unwrap_or(&serde_json::Value::Null);
            if other != value {
                all.push(format!("{name} was {value} and is {other}"));
            }
        }
        let names = |header: &Self| {
            header.contenders.iter().map(|c| c.program.name.clone()).collect::<Vec<_>>()
        };
        if names(self) != names(asked_for) {
            let (old, new) = (names(self).join(", "), names(asked_for).join(", "));
            all.push(format!("the servers installed were {old} and are {new}"));
        }
        for (old, new) in self.contenders.iter().zip(&asked_for.contenders) {
            let same = old.sha256 == new.sha256 && old.configurations == new.configurations;
            if old.program.name == new.program.name && !same {
                all.push(format!("{} has another program or configuration", old.program.name));
            }
        }
        all
    }
}

/// What came so far, and where it is kept.
#[derive(Debug, Default)]
pub(super) struct Journal {
    file: Option<(PathBuf, File)>,
    entries: Vec<Entry>,
}

/// What was read of a journal, before it is known what to go on with.
#[derive(Debug)]
pub(super) struct Former {
    path: PathBuf,
    file: File,
    header: Header,
    entries: Vec<Entry>,
    /// Where the last whole line ends.
    whole_bytes: u64,
    /// Whether something that is not a whole line comes after it, which will be dropped.
    pub(super) cut_off: bool,
}

impl Former {
    /// Reads a journal.
    pub(super) fn read(path: &Path) -> Result<Self, JournalError> {
        let failed = |error| JournalError::File { path: path.to_owned(), error };
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate();
        let wrong = |line, error| JournalError::Line { path: path.to_owned(), line, error };
        let (_, first) = lines.next().ok_or_else(|| JournalError::Empty(path.to_owned()))?;
        let header = serde_json::from_slice(first).map_err(|error| wrong(1, error))?;
        let entries = lines
            .map(|(index, line)| serde_json::from_slice(line).map_err(|e| wrong(index + 1, e)))
            .collect::<Result<_, _>>()?;
        let cut_off = whole < text.len();
        let path = path.to_owned();
        Ok(Self { path, file, header, entries, whole_bytes: whole as u64, cut_off })
    }

    /// The seed of its orders.
    pub(super) fn seed(&self) -> u64 {
        self.header.seed()
    }

    /// Goes on with it, if it is of the comparison that is asked for.
    pub(super) fn resume(mut self, asked_for: &Header) -> Result<Journal, JournalError> {
        let differences = self.header.differences(asked_for);
        if !differences.is_empty() {
            return Err(JournalError::Other { path: self.path, differences });
        }
        let cut = self.file.set_len(self.whole_bytes);
        match cut.and_then(|()| self.file.seek(SeekFrom::End(0))) {
            Ok(_) => Ok(Journal { file: Some((self.path, self.file)), entries: self.entries }),
            Err(error) => Err(JournalError::File { path: self.path, error }),
        }
    }
}

impl Journal {
    /// Begins one in a file that is not there yet.
    pub(super) fn begin(path: &Path, header: &Header) -> Result<Self, JournalError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => JournalError::Exists(path.display().to_string()),
            _ => JournalError::File { path: path.to_owned(), error },
        };
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
        let mut this = Self { file: Some((path.to_owned(), file)), entries: Vec::new() };
        this.write(header)?;
        Ok(this)
    }

    /// The file to go on with later.
    pub(super) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| &**path)
    }

    /// Keeps what came of a measurement.
    pub(super) fn add(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.write(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            file.write_all(&line)?;
            file.sync_data()
        });
        written.map_err(|error| JournalError::File { path: path.clone(), error })
    }

    /// Whether all of a block came.
    pub(super) fn has(&self, block: &Block) -> bool {
        let came = |place| self.entries.iter().any(|entry| *entry.place() == place);
        block.servers.iter().all(|&server| came(block.place(server)))
    }

    /// What came, in the order in which it did: of what was measured again, the last.
    pub(super) fn into_entries(self) -> (Vec<Measurement>, Vec<Skipped>) {
        let (mut last, mut measured, mut skipped) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (index, entry) in self.entries.iter().enumerate() {
            last.insert(entry.place().clone(), index);
        }
        for (index, entry) in self.entries.into_iter().enumerate() {
            if last.get(entry.place()) != Some(&index) {
                continue;
            }
            match entry {
                Entry::Measured(measurement) => measured.push(measurement),
                Entry::Skipped { place, why } => {
                    skipped.push(Skipped { what: place.to_string(), why });
                }
            }
        }
        (measured, skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::analysis::tests::{measurement, settings};
    use crate::compare::cell::Cell;
    use crate::compare::options::Client;
    use crate::compare::peer::Server;
    use std::fs;
    use tempfile::TempDir;

    fn header() -> Header {
        Header::new(settings(), Vec::new())
    }

    fn measured(round: u32, server: Server, rate: f64) -> Entry {
        Entry::Measured(measurement(round, server, rate, None))
    }

    fn block(round: u32) -> Block {
        let (cell, client) = (Cell::named("1k-64").unwrap(), Client::Run);
        Block { round, cell, client, servers: vec![Server::Onering, Server::Floor] }
    }

    /// A journal of one whole block and half of another.
    fn written() -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::begin(&path, &header()).unwrap();
        journal.add(measured(0, Server::Onering, 1.0)).unwrap();
        let place = block(0).place(Server::Floor);
        journal.add(Entry::Skipped { place, why: "it fell".into() }).unwrap();
        journal.add(measured(1, Server::Floor, 2.0)).unwrap();
        assert_eq!(journal.path(), Some(&*path));
        (directory, path)
    }

    #[test]
    fn what_was_written_is_gone_on_with_and_half_a_block_is_not_one() {
        let (_directory, path) = written();
        let former = Former::read(&path).unwrap();
        assert!(!former.cut_off);
        assert_eq!(former.seed(), settings().seed);
        let mut journal = former.resume(&header()).unwrap();
        assert!(journal.has(&block(0)) && !journal.has(&block(1)) && !journal.has(&block(2)));
        for (server, rate) in [(Server::Floor, 3.0), (Server::Onering, 4.0)] {
            journal.add(measured(1, server, rate)).unwrap();
        }
        drop(journal);
        let journal = Former::read(&path).unwrap().resume(&header()).unwrap();
        assert!(journal.has(&block(1)));
        let (measurements, skipped) = journal.into_entries();
        let rates: Vec<_> =
            measurements.iter().map(|m| m.figures.requests_per_s.unwrap()).collect();
        assert_eq!(rates, [1.0, 3.0, 4.0], "what was measured again counts once");
        assert_eq!(skipped.len(), 1);
        assert_eq!(skipped[0].why, "it fell");
    }

    #[test]
    fn a_line_that_was_cut_off_anywhere_is_dropped_and_another_comes_in_its_place() {
        let (_directory, path) = written();
        let whole = fs::read(&path).unwrap();
        let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        for end in [last + 1, last + 20, whole.len() - 1] {
            fs::write(&path, &whole[..end]).unwrap();
            let former = Former::read(&path).unwrap();
            assert!(former.cut_off);
            let mut journal = former.resume(&header()).unwrap();
            journal.add(measured(1, Server::Floor, 2.0)).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn another_comparison_is_refused_by_what_differs() {
        let (_directory, path) = written();
        let other = Settings { rounds: 7, seed: 2, ..settings() };
        let resumed = Former::read(&path).unwrap().resume(&Header::new(other, Vec::new()));
        let said = resumed.unwrap_err().to_string();
        assert!(said.contains("rounds was 6 and is 7; seed was 1 and is 2"), "{said}");
        assert!(said.contains("fix: "), "{said}");
    }

    #[test]
    fn what_is_no_journal_is_refused_with_its_line() {
        let (_directory, path) = written();
        assert!(matches!(Journal::begin(&path, &header()), Err(JournalError::Exists(_))));
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, whole.replacen("\"measured\"", "\"forgot\"", 1)).unwrap();
        assert!(matches!(Former::read(&path), Err(JournalError::Line { line: 2, .. })));
        fs::write(&path, "hello\n").unwrap();
        assert!(matches!(Former::read(&path), Err(JournalError::Line { line: 1, .. })));
        fs::write(&path, "{").unwrap();
        assert!(matches!(Former::read(&path), Err(JournalError::Empty(_))));
        let nowhere = path.join("nowhere");
        assert!(matches!(Former::read(&nowhere), Err(JournalError::File { .. })));
    }
}
