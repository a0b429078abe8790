//! Names the first syntax fault of a head that httparse has refused.
//!
//! httparse says *that* a byte is wrong; a counter, a log line and a status need to know *what* is
//! wrong. This walk runs once for a refused head, so it favours plainness over speed. It never
//! accepts anything: where it finds no fault, the head is merely not decided yet.

use super::bytes::{TCHAR, is_field_text};
use super::{HeadLimits, Refusal};

/// Looks for the first fault of `head`, which starts at its request line and may end anywhere.
///
/// The first in the order of bytes: more input never changes the answer. `Ok` if the bytes can
/// still be read in two ways, as a CR at the very end can.
pub(super) fn first_fault(head: &[u8], limits: &HeadLimits) -> Result<(), Refusal> {
    let (line, mut rest) = Line::split(head);
    request_line(line, limits.request_line_bytes)?;
    let mut fields = 0;
    while !rest.is_empty() {
        let (line, after) = Line::split(rest);
        if line.content.is_empty() {
            return line.check_end();
        }
        if fields == limits.fields {
            return Err(Refusal::TooManyFields);
        }
        field_line(line, fields == 0)?;
        fields += 1;
        rest = after;
    }
    Ok(())
}

/// A line: its bytes up to its end.
#[derive(Clone, Copy)]
struct Line<'a> {
    content: &'a [u8],
    end: LineEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    CrLf,
    Lf,
    /// Not received yet, but perhaps its CR.
    Open,
}

impl<'a> Line<'a> {
    /// The first line of `bytes`, and what follows it.
    fn split(bytes: &'a [u8]) -> (Self, &'a [u8]) {
        let (line, rest, ended) = match memchr::memchr(b'\n', bytes) {
            Some(lf) => (&bytes[..lf], &bytes[lf + 1..], true),
            None => (bytes, &[][..], false),
        };
        let (content, end) = match (line, ended) {
            ([content @ .., b'\r'], true) => (content, LineEnd::CrLf),
            (content, true) => (content, LineEnd::Lf),
            ([content @ .., b'\r'], false) | (content, false) => (content, LineEnd::Open),
        };
        (Self { content, end }, rest)
    }

    fn check_end(self) -> Result<(), Refusal> {
        if self.end == LineEnd::Lf { Err(Refusal::BareLf) } else { Ok(()) }
    }
}

fn request_line(line: Line<'_>, bytes_max: usize) -> Result<(), Refusal> {
    // What lies beyond the limit is not judged: it would not have been received.
    match line.content.get(..bytes_max) {
        Some(within) if within.len() < line.content.len() => {
            words(within, false)?;
            Err(Refusal::RequestLineTooLong)
        }
        _ => {
            words(line.content, line.end != LineEnd::Open)?;
            line.check_end()
        }
    }
}

/// Judges `method SP request-target SP HTTP-version`, of which the end may be missing unless
/// `complete`.
fn words(line: &[u8], complete: bool) -> Result<(), Refusal> {
    let missing = |fault| if complete { Err(fault) } else { Ok(()) };

    let Some(method_bytes) = line.iter().position(|&byte| !TCHAR.has(byte)) else {
        return missing(Refusal::RequestLine);
    };
    if method_bytes == 0 || line[method_bytes] != b' ' {
        return Err(named(line[method_bytes], Refusal::Method));
    }

    let target = &line[method_bytes + 1..];
    let Some(target_bytes) =
        target.iter().position(|&byte| byte == b' ' || byte.is_ascii_control())
    else {
        let empty = target.is_empty();
        return missing(if empty { Refusal::RequestLine } else { Refusal::SimpleRequest });
    };
    if target[target_bytes] != b' ' {
        return Err(named(target[target_bytes], Refusal::Target));
    }
    if target_bytes == 0 {
        return Err(Refusal::RequestLine);
    }
    if str::from_utf8(&target[..target_bytes]).is_err() {
        return Err(Refusal::Target);
    }

    let version = &target[target_bytes + 1..];
    for (index, &byte) in version.iter().enumerate() {
        match (index, byte) {
            (0..7, _) if byte == b"HTTP/1."[index] => {}
            (7, b'0'..=b'9') => {}
            (5, b'0'..=b'9') => return Err(Refusal::VersionUnsupported),
            _ => return Err(named(byte, Refusal::Version)),
        }
    }
    if version.len() < b"HTTP/1.1".len() { missing(Refusal::Version) } else { Ok(()) }
}

fn field_line(line: Line<'_>, first: bool) -> Result<(), Refusal> {
    if let [b' ' | b'\t', ..] = line.content {
        return Err(if first { Refusal::SpaceBeforeFields } else { Refusal::ObsFold });
    }
    let Some(name_bytes) = line.content.iter().position(|&byte| !TCHAR.has(byte)) else {
        line.check_end()?;
        return if line.end == LineEnd::Open { Ok(()) } else { Err(Refusal::FieldName) };
    };
    match line.content[name_bytes] {
        b':' if name_bytes > 0 => {}
        b' ' | b'\t' => return Err(Refusal::SpaceBeforeColon),
        byte => return Err(named(byte, Refusal::FieldName)),
    }
    let value = &line.content[name_bytes + 1..];
    if let Some(&byte) = value.iter().find(|&&byte| !is_field_text(byte)) {
        return Err(named(byte, Refusal::Control));
    }
    line.check_end()
}

/// The refusal for a byte that must not be where it is: NUL and CR have refusals of their own.
fn named(byte: u8, otherwise: Refusal) -> Refusal {
    match byte {
        b'\0' => Refusal::Nul,
        b'\r' => Refusal::BareCr,
        _ => otherwise,
    }
}
