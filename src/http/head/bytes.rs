//! Sets of bytes from the grammars, as tables.

/// A set of bytes; membership is one load.
pub(in crate::http) struct ByteSet([bool; 256]);

impl ByteSet {
    /// ASCII letters, digits and `others`.
    const fn alphanumeric_and(others: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            set[byte] = (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        let mut index = 0;
        while index < others.len() {
            set[others[index] as usize] = true;
            index += 1;
        }
        Self(set)
    }

    /// Whether `byte` is one of the set.
    #[inline]
    pub(in crate::http) const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }

    /// Whether `bytes` are all of the set, and at least one.
    pub(super) fn spans(&self, bytes: &[u8]) -> bool {
        !bytes.is_empty() && bytes.iter().all(|&byte| self.has(byte))
    }
}

/// `tchar` (RFC 9110 §5.6.2).
pub(in crate::http) static TCHAR: ByteSet = ByteSet::alphanumeric_and(b"!#$%&'*+-.^_`|~");

/// `unreserved / sub-delims` (RFC 3986 §2.2 and §2.3): a registered name, but for `%`.
pub(super) static REG_NAME: ByteSet = ByteSet::alphanumeric_and(b"-._~!$&'()*+,;=");

/// Whether a field value may have `byte`, and a quoted string, save for quotes and backslashes
/// (RFC 9110 §5.5 and §5.6.4).
#[inline]
pub(in crate::http) const fn is_field_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}
