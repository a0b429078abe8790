//! Records of fixed width, as all data files of the workload have them: read field by field, and
//! refused by line and column.

/// Why a file of records was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct RecordError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: Malformed,
}

/// What is wrong with a record. Columns are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The file ends within it.
    #[error("ends after {found} bytes of {expected}")]
    Cut {
        /// Bytes that are there.
        found: usize,
        /// Bytes of a record.
        expected: usize,
    },
    /// Something else than the blank or newline that belongs there.
    #[error("no {} in column {column}", if *.byte == b'\n' { "newline" } else { "blank" })]
    Separator {
        /// Where.
        column: usize,
        /// What belongs there.
        byte: u8,
    },
    /// No number in the form that the field has.
    #[error("no number in the field at column {column}")]
    Number {
        /// Where the field begins.
        column: usize,
    },
    /// A text that is not aligned left, or not printable.
    #[error("no text in the field at column {column}")]
    Text {
        /// Where the field begins.
        column: usize,
    },
    /// A number that the field may not have.
    #[error("{found} where {expected} belongs")]
    Unexpected {
        /// The number that is there.
        found: u64,
        /// The only one that may be.
        expected: u64,
    },
    /// More or fewer records than there must be.
    #[error("{found} records, and there must be {expected}")]
    Count {
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
}

/// Reads each record of a file, the first being on line `first_line`.
pub(super) fn records<const BYTES: usize, T>(
    file: &[u8],
    first_line: usize,
    mut read: impl FnMut(usize, &[u8; BYTES]) -> Result<T, Malformed>,
) -> Result<Vec<T>, RecordError> {
    let (whole, rest) = file.as_chunks::<BYTES>();
    let at = |index: usize| move |why| RecordError { line: first_line + index, why };
    let read = |(index, record)| read(index, record).map_err(at(index));
    let records = whole.iter().enumerate().map(read).collect::<Result<Vec<T>, _>>()?;
    if rest.is_empty() {
        return Ok(records);
    }
    Err(at(records.len())(Malformed::Cut { found: rest.len(), expected: BYTES }))
}

/// What is left of a record.
pub(super) struct Fields<'r> {
    record: &'r [u8],
    at: usize,
}

impl<'r> Fields<'r> {
    pub(super) fn of(record: &'r [u8]) -> Self {
        Self { record, at: 0 }
    }

    /// The next `width` bytes.
    fn take(&mut self, width: usize) -> &'r [u8] {
        let start = self.at.min(self.record.len());
        let end = (start + width).min(self.record.len());
        self.at += width;
        &self.record[start..end]
    }

    /// A decimal number, aligned right, without zeros before it.
    pub(super) fn decimal(&mut self, width: usize) -> Result<u64, Malformed> {
        self.number(width, 10, Padding::Blanks)
    }

    /// A hexadecimal number in capitals.
    pub(super) fn hex(&mut self, width: usize, padding: Padding) -> Result<u32, Malformed> {
        let column = self.at + 1;
        let number = self.number(width, 16, padding)?;
        u32::try_from(number).map_err(|_| Malformed::Number { column })
    }

    fn number(&mut self, width: usize, radix: u32, padding: Padding) -> Result<u64, Malformed> {
        let column = self.at + 1;
        let field = self.take(width);
        let blanks = field.iter().take_while(|&&byte| byte == b' ').count();
        let digits = match padding {
            Padding::Zeros => field,
            Padding::Blanks => &field[blanks..],
        };
        // Only one form of each number, so that a file is the same when it is written again.
        let canonical =
            padding == Padding::Zeros || digits.len() == 1 || digits.first() != Some(&b'0');
        let value = |sum: u64, byte: u8| {
            let digit = char::from(byte).to_digit(radix).filter(|_| !byte.is_ascii_lowercase())?;
            sum.checked_mul(radix.into())?.checked_add(digit.into())
        };
        let number = digits.iter().try_fold(0, |sum, &byte| value(sum, byte));
        number.filter(|_| !digits.is_empty() && canonical).ok_or(Malformed::Number { column })
    }

    /// A text without blanks, aligned left.
    pub(super) fn text(&mut self, width: usize) -> Result<&'r str, Malformed> {
        let column = self.at + 1;
        let field = self.take(width);
        let blanks = field.iter().rev().take_while(|&&byte| byte == b' ').count();
        let text = &field[..field.len() - blanks];
        let printable = !text.is_empty() && text.iter().all(u8::is_ascii_graphic);
        let text = std::str::from_utf8(text).ok().filter(|_| printable);
        text.ok_or(Malformed::Text { column })
    }

    pub(super) fn blank(&mut self) -> Result<(), Malformed> {
        self.separator(b' ')
    }

    pub(super) fn newline(&mut self) -> Result<(), Malformed> {
        self.separator(b'\n')
    }

    fn separator(&mut self, byte: u8) -> Result<(), Malformed> {
        let column = self.at + 1;
        if self.take(1) == [byte] { Ok(()) } else { Err(Malformed::Separator { column, byte }) }
    }
}

/// What stands before a number that is shorter than its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Padding {
    Zeros,
    Blanks,
}

/// That a number is the one that belongs there.
pub(super) fn expect(found: u64, expected: u64) -> Result<(), Malformed> {
    if found == expected { Ok(()) } else { Err(Malformed::Unexpected { found, expected }) }
}
