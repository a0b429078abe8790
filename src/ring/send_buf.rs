//! Bytes on their way to the kernel.

use std::ops::Range;
use std::rc::Rc;

use super::Lease;

/// Bytes to send, with whatever keeps them in place. The ring holds it until the last completion.
#[derive(Clone, Debug)]
pub enum SendBuf {
    /// Bytes of the program itself.
    Static(&'static [u8]),
    /// A range of bytes that others may hold as well; nobody can change them meanwhile.
    Shared(Rc<[u8]>, Range<u32>),
    /// The first bytes of a leased buffer.
    Leased(Rc<Lease>, Range<u32>),
    /// All of a vector. Whoever made it keeps a count of it, and can fill it again when that is the
    /// last ([`Rc::get_mut`]): so nothing is allocated for bytes that are made for one send.
    Refillable(Rc<Vec<u8>>),
}

impl SendBuf {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            SendBuf::Static(bytes) => bytes,
            SendBuf::Shared(bytes, range) => &bytes[range.start as usize..range.end as usize],
            SendBuf::Leased(lease, range) => &lease[range.start as usize..range.end as usize],
            SendBuf::Refillable(bytes) => bytes,
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            SendBuf::Static(bytes) => bytes.len(),
            SendBuf::Shared(_, range) | SendBuf::Leased(_, range) => {
                (range.end - range.start) as usize
            }
            SendBuf::Refillable(bytes) => bytes.len(),
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
