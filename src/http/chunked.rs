//! The chunked transfer coding is taken off a request body (RFC 9112 §7.1).
//!
//! ```text
//! 5;name="a \"value\""⏎    size in hexadecimal, extensions
//! hello⏎                   data, as much as was said
//! 0⏎                       the last chunk
//! Name: value⏎             trailer fields
//! ⏎
//! ```
//!
//! A [`Decoder`] is a state machine over bytes: it takes input that is split anywhere, keeps none of
//! it, and hands out the data where it lies. Extensions and trailer fields are checked and stepped
//! over; what has no reader cannot be merged into the head.
//!
//! Strict as the head's reader: a line ends in CRLF and nothing else does, and what the grammar has
//! no place for is refused. Whitespace around `;` and `=` of extensions is in the grammar (BWS) and
//! harmless, for it moves no boundary; elsewhere in the line of a size there is none.
//!
//! Everything is bounded: data, and with it any size (by the caller), what is neither data nor trailer,
//! zeros in front of a size among it ([`FRAMING_BYTES`]), trailers (by the limits of a head).

use super::head::{FIELDS_MAX, HeadLimits, Refusal, TCHAR, is_field_text};
use super::request_body::BodyPiece;

/// Bytes that a body may have beside its data and trailers, besides [`FRAMING_PER_DATA_BYTE`].
///
/// Whoever sends extensions sends a few short ones; this is room for a signature on each of a
/// hundred chunks. Without a bound, a megabyte of one-byte chunks could bring gigabytes of
/// extensions for us to read.
pub const FRAMING_BYTES: u32 = 16 * 1024;

/// As many more for each byte of data. A chunk of one byte comes with five: they are for nothing,
/// however many there are.
pub const FRAMING_PER_DATA_BYTE: u32 = 8;

/// Takes the coding off one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoder {
    at: At,
    /// Bytes of data that the chunk still has; while its size is being read, the size so far.
    /// `chunk_bytes <= data_left`.
    chunk_bytes: u64,
    /// Bytes of data that may still come, in this chunk's size and after it.
    data_left: u64,
    /// Bytes other than data that may still come, until the trailers; then, of these.
    framing_left: u32,
}

/// What the next byte is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// A chunk's size, of which there is a digit, or is none yet.
    Size { begun: bool },
    /// Its extensions.
    Extension(Extension),
    /// The LF that ends its line.
    SizeLf,
    /// Its data.
    Data,
    /// The CR after the data.
    DataCr,
    /// The LF after that.
    DataLf,
    /// The trailer section, of which so many lines have begun.
    Trailer { lines: u8, place: Trailer },
    /// Nothing: the body has ended.
    Ended,
}

/// A place in `*( BWS ";" BWS name [ BWS "=" BWS value ] )`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// In whitespace that `;` must follow.
    Semicolon,
    /// After `;`, before the name.
    BeforeName,
    Name,
    /// In whitespace that `=` or `;` must follow.
    AfterName,
    /// After `=`, before the value.
    BeforeValue,
    /// In a value that is a token.
    Token,
    /// In a value that is a quoted string.
    Quoted,
    /// There, after a backslash.
    Escaped,
    /// After the closing quote.
    Unquoted,
}

/// A place in `*( name ":" value CRLF ) CRLF`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trailer {
    LineStart,
    Name,
    Value,
    /// At the LF of a line.
    LineLf,
    /// At the LF of the empty line.
    LastLf,
}

const _: () = assert!(FIELDS_MAX <= u8::MAX as usize, "trailer lines are counted in a byte");

impl Decoder {
    /// For a body that has yet to begin, with so many bytes of data at most.
    pub const fn new(data_bytes_max: u64) -> Self {
        Self {
            at: At::Size { begun: false },
            chunk_bytes: 0,
            data_left: data_bytes_max,
            framing_left: FRAMING_BYTES,
        }
    }

    /// Takes what it can from the start of `input`: up to the end of a run of data, of the body, or
    /// of the input. `limits` are those of the head; they bound the trailers.
    ///
    /// # Errors
    /// The first fault, in the order of bytes. After one, and after the last piece, there is nothing
    /// more to be had.
    pub fn decode<'a>(
        &mut self,
        input: &'a [u8],
        limits: &HeadLimits,
    ) -> Result<BodyPiece<'a>, Refusal> {
        let mut bytes = 0;
        while let Some(&byte) = input.get(bytes) {
            match self.at {
                At::Ended => break,
                At::Data => {
                    let data = self.data(&input[bytes..]);
                    return Ok(BodyPiece { bytes: bytes + data.len(), data, is_last: false });
                }
                at => {
                    self.at = self.framing(at, byte, limits)?;
                    bytes += 1;
                }
            }
        }
        Ok(BodyPiece { bytes, data: b"", is_last: self.at == At::Ended })
    }

    /// Takes the chunk's data from the start of `input`.
    fn data<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let left = usize::try_from(self.chunk_bytes).unwrap_or(usize::MAX);
        let data = &input[..input.len().min(left)];
        self.chunk_bytes -= data.len() as u64;
        if self.chunk_bytes == 0 {
            self.at = At::DataCr;
        }
        let more = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.framing_left =
            self.framing_left.saturating_add(more.saturating_mul(FRAMING_PER_DATA_BYTE));
        data
    }

    /// Takes one byte that is not data; says what comes next.
    fn framing(&mut self, at: At, byte: u8, limits: &HeadLimits) -> Result<At, Refusal> {
        let too_long = match at {
            At::Trailer { .. } => Refusal::TrailerTooLong,
            _ => Refusal::ChunkOverhead,
        };
        self.framing_left = self.framing_left.checked_sub(1).ok_or(too_long)?;
        match (at, byte) {
            (At::Size { begun }, _) => self.size(begun, byte),
            (At::Extension(place), _) => extension(place, byte),
            (At::SizeLf, b'\n') if self.chunk_bytes == 0 => {
                self.framing_left = u32::try_from(limits.head_bytes).unwrap_or(u32::MAX);
                Ok(At::Trailer { lines: 0, place: Trailer::LineStart })
            }
            (At::SizeLf, b'\n') => {
                self.data_left -= self.chunk_bytes;
                Ok(At::Data)
            }
            (At::SizeLf, _) => Err(Refusal::ChunkLineEnd),
            (At::DataCr, b'\r') => Ok(At::DataLf),
            (At::DataLf, b'\n') => Ok(At::Size { begun: false }),
            (At::DataCr | At::DataLf, _) => Err(Refusal::ChunkDataEnd),
            (At::Trailer { lines, place }, _) => trailer(lines, place, byte, limits),
            (At::Data | At::Ended, _) => Ok(at),
        }
    }

    /// A size is too large with the digit that makes it so: what follows can only enlarge it.
    fn size(&mut self, begun: bool, byte: u8) -> Result<At, Refusal> {
        match (char::from(byte).to_digit(16), byte) {
            (Some(digit), _) => {
                let size = self.chunk_bytes.checked_mul(16).map(|size| size | u64::from(digit));
                match size.filter(|&size| size <= self.data_left) {
                    Some(size) => self.chunk_bytes = size,
                    None => return Err(Refusal::BodyTooLarge),
                }
                Ok(At::Size { begun: true })
            }
            _ if !begun => Err(Refusal::ChunkSize),
            (None, b'\r') => Ok(At::SizeLf),
            (None, b';') => Ok(At::Extension(Extension::BeforeName)),
            (None, b' ' | b'\t') => Ok(At::Extension(Extension::Semicolon)),
            (None, b'\n') => Err(Refusal::ChunkLineEnd),
            (None, _) => Err(Refusal::ChunkSize),
        }
    }
}

fn extension(place: Extension, byte: u8) -> Result<At, Refusal> {
    use Extension::{
        AfterName, BeforeName, BeforeValue, Escaped, Name, Quoted, Semicolon, Token, Unquoted,
    };
    let next = match (place, byte) {
        (Name | Token | Unquoted, b'\r') => return Ok(At::SizeLf),
        (Semicolon | Name | AfterName | Token | Unquoted, b';') => BeforeName,
        (Name | AfterName, b'=') => BeforeValue,
        (BeforeValue, b'"') => Quoted,

        (Quoted, b'"') => Unquoted,
        (Quoted, b'\\') => Escaped,
        (Quoted | Escaped, _) if is_field_text(byte) => Quoted,

        (Name, b' ' | b'\t') => AfterName,
        (Token | Unquoted, b' ' | b'\t') => Semicolon,
        (Semicolon | BeforeName | AfterName | BeforeValue, b' ' | b'\t') => place,

        (BeforeName | Name, _) if TCHAR.has(byte) => Name,
        (BeforeValue | Token, _) if TCHAR.has(byte) => Token,
        (_, b'\r' | b'\n') => return Err(Refusal::ChunkLineEnd),
        _ => return Err(Refusal::ChunkExtension),
    };
    Ok(At::Extension(next))
}

fn trailer(lines: u8, place: Trailer, byte: u8, limits: &HeadLimits) -> Result<At, Refusal> {
    let (lines, place) = match (place, byte) {
        (Trailer::LineStart, b'\r') => (lines, Trailer::LastLf),
        (Trailer::LineStart, _) if TCHAR.has(byte) => {
            if usize::from(lines) >= limits.fields.min(FIELDS_MAX) {
                return Err(Refusal::TooManyTrailers);
            }
            (lines + 1, Trailer::Name)
        }
        (Trailer::Name, b':') => (lines, Trailer::Value),
        (Trailer::Name, _) if TCHAR.has(byte) => (lines, Trailer::Name),
        (Trailer::Value, b'\r') => (lines, Trailer::LineLf),
        (Trailer::Value, _) if is_field_text(byte) => (lines, Trailer::Value),
        (Trailer::LineLf, b'\n') => (lines, Trailer::LineStart),
        (Trailer::LastLf, b'\n') => return Ok(At::Ended),
        _ => return Err(Refusal::TrailerLine),
    };
    Ok(At::Trailer { lines, place })
}

#[cfg(test)]
mod tests;
