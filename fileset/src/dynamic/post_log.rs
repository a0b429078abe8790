//! The log that every POST appends a record to: a header with the count, then records of fixed width
//! whose place follows from their number, so that appending needs no lock.

use std::io::Write;

use super::post::PATH_MAX;
use super::record::{Fields, Malformed, RecordError, expect, records};
use crate::name::Name;

/// Bytes of the header, its newline included: the number of records, in ten columns.
pub const POST_HEADER_BYTES: usize = 11;

/// Bytes of a record, its newline included.
pub const POST_RECORD_BYTES: usize = 139;

/// Where in a record the path begins.
const PATH_OFFSET: usize = 56;

/// Ten columns hold no more.
const TEN_COLUMNS: u64 = 9_999_999_999;

/// One POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostRecord {
    /// From 1, without gaps over all workers.
    pub sequence: u64,
    /// When, in Unix time.
    pub time_s: u64,
    /// The process that has answered.
    pub pid: u32,
    /// The file that was asked for.
    pub name: Name,
    /// Who has sent it.
    pub client: u32,
    /// The file's path, of no more than [`PATH_MAX`] printable bytes.
    pub path: String,
    /// The id in the cookie of the request.
    pub user_id: u32,
}

/// A whole log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostLog(pub Vec<PostRecord>);

impl PostRecord {
    /// Where in the log the record of that number begins.
    pub const fn offset(sequence: u64) -> u64 {
        POST_HEADER_BYTES as u64 + POST_RECORD_BYTES as u64 * sequence.saturating_sub(1)
    }

    /// The record. Numbers that are too large for their columns are written as the largest that
    /// fits, and a path is cut at its column's end: neither can come from a [`Post`](super::Post).
    pub fn to_bytes(&self) -> [u8; POST_RECORD_BYTES] {
        let Self { sequence, time_s, pid, name, client, path, user_id } = self;
        let (sequence, time_s) = (sequence.min(&TEN_COLUMNS), time_s.min(&TEN_COLUMNS));
        let (directory, class, file) = (name.directory(), name.class(), name.file());
        let mut record = [b' '; POST_RECORD_BYTES];
        let mut columns = record.as_mut_slice();
        writeln!(
            columns,
            "{sequence:10} {time_s:10} {pid:10} {directory:5} {class:2} {file:2} {client:10} \
             {:PATH_MAX$} {pid:10} {user_id:10}",
            ""
        )
        .expect("the columns add up to the record");
        for (column, byte) in record[PATH_OFFSET..][..PATH_MAX].iter_mut().zip(path.bytes()) {
            *column = byte;
        }
        record
    }

    /// Reads a record.
    pub fn parse(record: &[u8; POST_RECORD_BYTES]) -> Result<Self, Malformed> {
        let mut fields = Fields::of(record);
        let number = |fields: &mut Fields<'_>, width, column| {
            let number = fields.decimal(width)?;
            fields.blank()?;
            u32::try_from(number).map_err(|_| Malformed::Number { column })
        };
        let sequence = fields.decimal(10)?;
        fields.blank()?;
        let time_s = fields.decimal(10)?;
        fields.blank()?;
        let pid = number(&mut fields, 10, 23)?;
        let directory = number(&mut fields, 5, 34)?;
        let class = number(&mut fields, 2, 40)?;
        let file = number(&mut fields, 2, 43)?;
        let client = number(&mut fields, 10, 46)?;
        let path = fields.text(PATH_MAX)?.to_owned();
        fields.blank()?;
        // The process once more.
        expect(number(&mut fields, 10, 118)?.into(), pid.into())?;
        let user_id = fields.decimal(10)?;
        fields.newline()?;
        let user_id = u32::try_from(user_id).map_err(|_| Malformed::Number { column: 129 })?;
        // Two columns, so that both fit.
        let name = Name::new(directory, class as u8, file as u8);
        let name = name.ok_or(Malformed::Number { column: 40 })?;
        Ok(Self { sequence, time_s, pid, name, client, path, user_id })
    }
}

impl PostLog {
    /// The header of a log of so many records.
    pub fn header(records: u64) -> [u8; POST_HEADER_BYTES] {
        let mut header = [b'\n'; POST_HEADER_BYTES];
        let mut columns = &mut header[..10];
        write!(columns, "{:10}", records.min(TEN_COLUMNS)).expect("ten columns");
        header
    }

    /// Reads a log whose header tells the number of its records, which are numbered without gaps.
    pub fn parse(log: &[u8]) -> Result<Self, RecordError> {
        let (header, records_part) = log.split_at(log.len().min(POST_HEADER_BYTES));
        let in_header = |why| RecordError { line: 1, why };
        if header.len() < POST_HEADER_BYTES {
            let why = Malformed::Cut { found: header.len(), expected: POST_HEADER_BYTES };
            return Err(in_header(why));
        }
        let mut fields = Fields::of(header);
        let count = fields.decimal(10).map_err(in_header)?;
        fields.newline().map_err(in_header)?;
        let records = records(records_part, 2, |index, record| {
            let record = PostRecord::parse(record)?;
            expect(record.sequence, index as u64 + 1)?;
            Ok(record)
        })?;
        expect(records.len() as u64, count).map_err(in_header)?;
        Ok(Self(records))
    }

    /// The log.
    pub fn to_file(&self) -> Vec<u8> {
        let mut file = Self::header(self.0.len() as u64).to_vec();
        self.0.iter().for_each(|record| file.extend_from_slice(&record.to_bytes()));
        file
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(sequence: u64) -> PostRecord {
        PostRecord {
            sequence,
            time_s: 952_393_980,
            pid: 4711,
            name: Name::new(12, 1, 4).unwrap(),
            client: 7,
            path: "/file_set/dir00012/class1_4".to_owned(),
            user_id: 10_003,
        }
    }

    #[test]
    fn a_record_has_139_bytes_in_these_columns() {
        let path = format!("{:60}", "/file_set/dir00012/class1_4");
        let expected = format!(
            "         3  952393980       4711    12  1  4          7 {path}       4711      10003\n"
        );
        assert_eq!(expected.len(), 139);
        assert_eq!(String::from_utf8_lossy(&record(3).to_bytes()), expected);
    }

    #[test]
    fn the_header_has_11_bytes_and_records_follow_by_number() {
        assert_eq!(PostLog::header(42), *b"        42\n");
        assert_eq!(PostRecord::offset(1), 11);
        assert_eq!(PostRecord::offset(3), 11 + 2 * 139);
        let log = PostLog((1..=3).map(record).collect()).to_file();
        assert_eq!(log.len() as u64, PostRecord::offset(4));
        let third = &log[PostRecord::offset(3) as usize..];
        assert_eq!(third, record(3).to_bytes());
    }

    #[test]
    fn a_log_that_is_not_whole_is_refused_by_line() {
        let log = |numbers: &[u64], count| {
            let mut log = PostLog::header(count).to_vec();
            numbers.iter().for_each(|&number| log.extend_from_slice(&record(number).to_bytes()));
            log
        };
        let refused = |log: &[u8]| PostLog::parse(log).unwrap_err().to_string();
        assert_eq!(refused(&log(&[1, 3], 2)), "line 3: 3 where 2 belongs");
        assert_eq!(refused(&log(&[1, 1], 2)), "line 3: 1 where 2 belongs");
        assert_eq!(refused(&log(&[1, 2], 3)), "line 1: 2 where 3 belongs");
        assert_eq!(refused(&log(&[1, 2], 2)[..200]), "line 3: ends after 50 bytes of 139");
        assert_eq!(refused(b"   0\n"), "line 1: ends after 5 bytes of 11");
        assert_eq!(PostLog::parse(&log(&[], 0)), Ok(PostLog::default()));
    }

    #[test]
    fn nothing_is_wider_than_its_columns() {
        let wide = PostRecord {
            sequence: u64::MAX,
            time_s: u64::MAX,
            pid: u32::MAX,
            name: Name::new(99_999, 3, 8).unwrap(),
            client: u32::MAX,
            path: "\u{e9}x".repeat(50),
            user_id: u32::MAX,
        };
        let record = wide.to_bytes();
        assert_eq!(PostRecord::parse(&record), Err(Malformed::Text { column: 57 }));
        let narrow = PostRecord { path: "x".repeat(100), ..wide };
        assert_eq!(PostRecord::parse(&narrow.to_bytes()).unwrap().path, "x".repeat(60));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            time_s in 0..=TEN_COLUMNS,
            pid: u32,
            client: u32,
            user_id: u32,
            path in "/[!-~]{0,59}",
            records in 0_u64..5,
        ) {
            let record = |sequence| PostRecord {
                time_s, pid, client, user_id, path: path.clone(), ..record(sequence)
            };
            let log = PostLog((1..=records).map(record).collect());
            prop_assert_eq!(PostLog::parse(&log.to_file()), Ok(log));
        }

        #[test]
        fn any_other_byte_is_noticed(at in 0_usize..11 + 2 * 139, byte in any::<u8>()) {
            let log = PostLog(vec![record(1), record(2)]);
            let mut file = log.to_file();
            prop_assume!(file[at] != byte);
            file[at] = byte;
            prop_assert!(PostLog::parse(&file) != Ok(log));
        }
    }
}
