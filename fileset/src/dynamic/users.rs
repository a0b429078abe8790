//! `User.Personality`: what is known of each user.

use super::demographics::Demographics;
use super::record::{Fields, Padding, RecordError, expect, records};
use crate::random::{Purpose, Random};

/// Bytes of a record, its newline included: index (5 columns), blank, demographics (8 digits).
pub const USER_BYTES: usize = 15;

/// The index has five columns.
pub const USERS_MAX: u32 = 100_000;

/// All users, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(Vec<Demographics>);

impl Users {
    /// So many users (no more than [`USERS_MAX`]), the same for the same seed.
    pub fn generate(seed: u64, count: u32) -> Self {
        let mut random = Random::new(seed, Purpose::Users, 0);
        Self((0..count.min(USERS_MAX)).map(|_| Demographics::draw(&mut random)).collect())
    }

    /// Reads the file.
    pub fn parse(file: &[u8]) -> Result<Self, RecordError> {
        let read = |index: usize, record: &[u8; USER_BYTES]| {
            let mut fields = Fields::of(record);
            expect(fields.decimal(5)?, index as u64)?;
            fields.blank()?;
            let demographics = fields.hex(8, Padding::Zeros)?;
            fields.newline()?;
            Ok(Demographics(demographics))
        };
        records(file, 1, read).map(Self)
    }

    /// The file.
    pub fn to_file(&self) -> Vec<u8> {
        let records = self.0.iter().enumerate();
        let record = |(index, user): (usize, &Demographics)| format!("{index:5} {:08X}\n", user.0);
        records.map(record).collect::<String>().into_bytes()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The user of that index, if there is one.
    pub fn find(&self, index: u32) -> Option<Demographics> {
        self.0.get(index as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_has_15_bytes() {
        let file = Users::generate(1, 100_000).to_file();
        assert_eq!(file.len(), 100_000 * 15);
        let lines: Vec<_> = std::str::from_utf8(&file).unwrap().lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let (number, demographics) = line.split_at(6);
            assert_eq!(number, format!("{index:5} "));
            assert_eq!(demographics.len(), 8);
            assert_eq!(demographics, demographics.to_uppercase());
        }
    }

    #[test]
    fn what_is_malformed_is_named_by_line_and_column() {
        for (file, message) in [
            ("    0 24808100\n    1 2480810", "line 2: ends after 13 bytes of 15"),
            ("    0 24808100\n    0 24808100\n", "line 2: 0 where 1 belongs"),
            ("    0 2480810g\n", "line 1: no number in the field at column 7"),
            ("    0 2480810f\n", "line 1: no number in the field at column 7"),
            ("    0  4808100\n", "line 1: no number in the field at column 7"),
            ("      24808100\n", "line 1: no number in the field at column 1"),
            ("   00 24808100\n", "line 1: no number in the field at column 1"),
            ("\t   0 24808100\n", "line 1: no number in the field at column 1"),
            ("   +0 24808100\n", "line 1: no number in the field at column 1"),
            ("    0-24808100\n", "line 1: no blank in column 6"),
            ("    0 24808100 ", "line 1: no newline in column 15"),
        ] {
            assert_eq!(Users::parse(file.as_bytes()).unwrap_err().to_string(), message);
        }
        assert_eq!(Users::parse(b""), Ok(Users::default()));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seed in any::<u64>(), count in 0_u32..300) {
            let users = Users::generate(seed, count);
            prop_assert_eq!(users.count(), count as usize);
            prop_assert_eq!(Users::parse(&users.to_file()), Ok(users));
        }

        #[test]
        fn any_other_byte_is_noticed(at in 0_usize..150, byte in any::<u8>()) {
            let users = Users::generate(1, 10);
            let mut file = users.to_file();
            prop_assume!(file[at] != byte);
            file[at] = byte;
            prop_assert!(Users::parse(&file) != Ok(users));
        }
    }
}
