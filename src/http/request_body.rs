//! A request body is taken, a piece at a time, whatever frames it (RFC 9112 §6).
//!
//! Nothing is kept: a piece is lent out where it was received, to whoever wants the body, and is
//! consumed whether anybody did.

use super::chunked::Decoder;
use super::head::{HeadLimits, Refusal, RequestBody};

/// A part of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyPiece<'a> {
    /// Bytes of the input that it takes up, framing included.
    pub bytes: usize,
    /// What of them is data; empty if they are but framing.
    pub data: &'a [u8],
    /// Nothing of the body follows.
    pub is_last: bool,
}

/// Takes one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyReader {
    /// So many bytes are still to come; never zero.
    Length(u64),
    Chunked(Decoder),
}

impl BodyReader {
    /// For the body that a head announces, if it does; refused if it is larger than `bytes_max`. Of
    /// a chunked one that shows as it comes.
    pub(super) fn new(body: RequestBody, bytes_max: u64) -> Result<Option<Self>, Refusal> {
        match body {
            RequestBody::None => Ok(None),
            RequestBody::Length(bytes) if bytes > bytes_max => Err(Refusal::BodyTooLarge),
            RequestBody::Length(bytes) => Ok(Some(Self::Length(bytes))),
            RequestBody::Chunked => Ok(Some(Self::Chunked(Decoder::new(bytes_max)))),
        }
    }

    /// Takes the next piece from the start of `input`; one of no bytes if there is none.
    pub(super) fn next<'a>(
        &mut self,
        input: &'a [u8],
        limits: &HeadLimits,
    ) -> Result<BodyPiece<'a>, Refusal> {
        match self {
            Self::Length(left) => {
                let bytes = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= bytes as u64;
                Ok(BodyPiece { bytes, data: &input[..bytes], is_last: *left == 0 })
            }
            Self::Chunked(decoder) => decoder.decode(input, limits),
        }
    }
}
