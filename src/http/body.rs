//! The seam between what makes a response body and what frames it: a body is pulled, never pushed.
//!
//! Whoever sends decides how much it can take now: the socket's quantum, a TLS record, an HTTP/2
//! window. What bytes and files *are* is left to the implementor, for this layer owns neither.

/// A response body, handed out a piece at a time.
pub trait Body {
    /// Bytes in memory, owned or lent.
    type Bytes;
    /// A file to send from.
    type File;

    /// The next piece, of `max_bytes` at most; `max_bytes` is never zero.
    ///
    /// After [`Pull::End`] it is not called again.
    fn next(&mut self, max_bytes: usize) -> Pull<Self::Bytes, Self::File>;
}

/// The next piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull<B, F> {
    /// Bytes in memory; never empty.
    Bytes(B),
    /// A range of a file.
    File {
        /// The file.
        file: F,
        /// Where the range starts, in bytes from the file's start.
        offset: u64,
        /// Length of the range; never zero.
        bytes: usize,
    },
    /// Nothing is ready. Whoever makes the body says when to call again.
    Wait,
    /// Everything has been handed out.
    End,
}
