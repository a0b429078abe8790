//! The field lines of a head that has been read, for what wants to know more of them.
//!
//! Few requests have a condition or ask for a part. So only *that* such a field is there is noted
//! while a head is read; its values are looked for again when somebody wants them.

/// A field that decides which representation, or which part of it, is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `Accept-Encoding` (RFC 9110 §12.5.3).
    AcceptEncoding,
    /// `If-Match` (RFC 9110 §13.1.1).
    IfMatch,
    /// `If-None-Match` (RFC 9110 §13.1.2).
    IfNoneMatch,
    /// `If-Modified-Since` (RFC 9110 §13.1.3).
    IfModifiedSince,
    /// `If-Unmodified-Since` (RFC 9110 §13.1.4).
    IfUnmodifiedSince,
    /// `If-Range` (RFC 9110 §13.1.5).
    IfRange,
    /// `Range` (RFC 9110 §14.2).
    Range,
}

impl Field {
    /// The field of that name, in whatever case.
    #[inline]
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        // The length tells most fields apart before a byte is compared.
        let candidates: &[Self] = match name.len() {
            5 => &[Self::Range],
            8 => &[Self::IfMatch, Self::IfRange],
            13 => &[Self::IfNoneMatch],
            15 => &[Self::AcceptEncoding],
            17 => &[Self::IfModifiedSince],
            19 => &[Self::IfUnmodifiedSince],
            _ => &[],
        };
        candidates.iter().copied().find(|field| name.eq_ignore_ascii_case(field.name()))
    }

    const fn name(self) -> &'static [u8] {
        match self {
            Self::AcceptEncoding => b"accept-encoding",
            Self::IfMatch => b"if-match",
            Self::IfNoneMatch => b"if-none-match",
            Self::IfModifiedSince => b"if-modified-since",
            Self::IfUnmodifiedSince => b"if-unmodified-since",
            Self::IfRange => b"if-range",
            Self::Range => b"range",
        }
    }
}

/// A set of [`Field`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet(u8);

impl FieldSet {
    pub(super) fn insert(&mut self, field: Field) {
        self.0 |= 1 << field as u8;
    }

    const fn has(self, field: Field) -> bool {
        self.0 & (1 << field as u8) != 0
    }
}

/// The field lines of one request, borrowed from its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLines<'a> {
    /// Whole lines, each of a name, a colon, a value and CRLF.
    lines: &'a [u8],
    present: FieldSet,
}

impl<'a> FieldLines<'a> {
    /// No lines.
    pub const NONE: FieldLines<'static> = FieldLines { lines: b"", present: FieldSet(0) };

    /// `lines` as they were accepted, and what was noted about them.
    pub(super) const fn new(lines: &'a [u8], present: FieldSet) -> Self {
        Self { lines, present }
    }

    /// Whether there is a line of this field.
    #[inline]
    pub const fn has(&self, field: Field) -> bool {
        self.present.has(field)
    }

    /// Whether any field but `Accept-Encoding` is there: the answer may be another one than 200 with
    /// the whole.
    #[inline]
    pub const fn has_condition_or_range(&self) -> bool {
        self.present.0 & !(1 << Field::AcceptEncoding as u8) != 0
    }

    /// The values of a field, a line at a time, without whitespace around them. A list may be
    /// divided among lines (RFC 9110 §5.3).
    pub fn values(&self, field: Field) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = if self.has(field) { self.lines } else { b"" };
        std::iter::from_fn(move || {
            loop {
                let end = memchr::memchr(b'\n', rest)?;
                let line = &rest[..end];
                rest = &rest[end + 1..];
                let colon = memchr::memchr(b':', line)?;
                if line[..colon].eq_ignore_ascii_case(field.name()) {
                    return Some(line[colon + 1..].trim_ascii());
                }
            }
        })
    }

    /// The value of a field that must have just one line. `None` too if it has several: they
    /// contradict each other, so none is believed.
    pub fn single(&self, field: Field) -> Option<&'a [u8]> {
        let mut values = self.values(field);
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }
}

#[cfg(test)]
impl<'a> FieldLines<'a> {
    /// The lines of a text, each ending in CRLF, as a head would have them.
    pub(crate) fn of(lines: &'a str) -> Self {
        let mut present = FieldSet::default();
        for line in lines.split_terminator("\r\n") {
            let (name, _) = line.split_once(':').expect("a field line");
            Field::from_name(name.as_bytes()).into_iter().for_each(|field| present.insert(field));
        }
        Self { lines: lines.as_bytes(), present }
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, FieldLines};

    const ALL: [Field; 7] = [
        Field::AcceptEncoding,
        Field::IfMatch,
        Field::IfNoneMatch,
        Field::IfModifiedSince,
        Field::IfUnmodifiedSince,
        Field::IfRange,
        Field::Range,
    ];

    #[test]
    fn every_field_is_known_by_its_name_in_any_case() {
        for field in ALL {
            assert_eq!(Field::from_name(field.name()), Some(field));
            assert_eq!(Field::from_name(&field.name().to_ascii_uppercase()), Some(field));
        }
        for name in ["", "Rang", "Ranges", "Accept-Language", "If-Catch", "Transfer-Encoding"] {
            assert_eq!(Field::from_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn values_are_found_again_line_by_line() {
        let fields = FieldLines::of(
            "Host: a\r\nIF-NONE-MATCH: \"x\"\r\nX-If-None-Match: no\r\nif-none-match:\t\"y\" \r\n\
             Range:\r\n",
        );
        let tags: Vec<_> = fields.values(Field::IfNoneMatch).collect();
        assert_eq!(tags, [b"\"x\"", b"\"y\""]);
        assert_eq!(fields.single(Field::IfNoneMatch), None, "two lines");
        assert_eq!(fields.single(Field::Range), Some(&b""[..]));
        assert_eq!(fields.single(Field::IfRange), None);
        assert!(fields.has_condition_or_range());
        assert!(!FieldLines::of("Accept-Encoding: br\r\n").has_condition_or_range());
    }
}
