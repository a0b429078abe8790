//! Parts of a document: 206 with one part or several, 416 (RFC 9110 §14, §15.3.7, §15.5.17).

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use crate::http::multipart::{self, Boundary};
use crate::http::range::{self, Resolved};
use crate::http::{ByteRange, ContentRange, Field, ResponseHead, Status};
use crate::ring::SendBuf;

use super::body::{FileBody, Part, Parts};
use super::document::Document;
use super::entry::Asked;
use super::error_pages::About;
use super::{Reply, Supplies};

/// Where the bytes of a document are.
#[derive(Clone, Copy)]
pub(super) enum Bytes<'a> {
    Memory(&'a [u8]),
    File(&'a Rc<OwnedFd>),
}

/// The answer to a `Range` that is to be honoured; `None`: it changes nothing.
pub(super) fn reply(
    document: &Document,
    bytes: Bytes<'_>,
    asked: &Asked<'_>,
    supplies: &mut Supplies,
) -> Option<Reply> {
    // Several lines are no range.
    let value = asked.fields.single(Field::Range)?;
    match range::resolve(value, document.bytes) {
        Resolved::Whole => None,
        Resolved::Unsatisfiable => Some(unsatisfiable(document, asked, supplies)),
        Resolved::Parts(parts) => match *parts.as_slice() {
            [range] => Some(one_part(document, bytes, range, asked, supplies)),
            // A coding is that of the whole: parts of it inside of a multipart that has none cannot
            // say so.
            _ if document.coding.is_some() => None,
            ref ranges => several_parts(document, bytes, ranges, asked, supplies),
        },
    }
}

fn unsatisfiable(document: &Document, asked: &Asked<'_>, supplies: &mut Supplies) -> Reply {
    let content_range = Some(ContentRange { range: None, complete_bytes: document.bytes });
    let about = About { vary: document.vary(), content_range };
    supplies.page(Status::RANGE_NOT_SATISFIABLE, about, asked)
}

fn one_part(
    document: &Document,
    bytes: Bytes<'_>,
    range: ByteRange,
    asked: &Asked<'_>,
    supplies: &mut Supplies,
) -> Reply {
    let head = ResponseHead {
        content_range: Some(ContentRange { range: Some(range), complete_bytes: document.bytes }),
        content_length: Some(range.bytes()),
        ..part_head(document, asked)
    };
    let answer = supplies.write(&head, asked.now);
    let body = match bytes {
        Bytes::Memory(bytes) => {
            answer.extend_from_slice(slice(bytes, range));
            None
        }
        Bytes::File(file) => Some(FileBody::of(file, range)),
    };
    Reply { status: Status::PARTIAL_CONTENT, head: shared(answer), body }
}

/// `None`: it would be more than the whole.
fn several_parts(
    document: &Document,
    bytes: Bytes<'_>,
    ranges: &[ByteRange],
    asked: &Asked<'_>,
    supplies: &mut Supplies,
) -> Option<Reply> {
    let boundary = Boundary::from_random(supplies.nonces.draw_wide());
    let (mut text, mut places) = (Vec::new(), Vec::new());
    let body_bytes = multipart::compose(
        &boundary,
        ranges,
        &document.content_type,
        document.bytes,
        &mut text,
        &mut places,
    )?;
    let content_type = boundary.content_type();
    let head = ResponseHead {
        content_type: Some(&content_type),
        content_length: Some(body_bytes),
        ..part_head(document, asked)
    };
    let answer = supplies.write(&head, asked.now);
    let (head, body) = match bytes {
        Bytes::Memory(bytes) => {
            let mut written = 0;
            for (&place, &range) in places.iter().zip(ranges) {
                answer.extend_from_slice(&text[written..place]);
                answer.extend_from_slice(slice(bytes, range));
                written = place;
            }
            answer.extend_from_slice(&text[written..]);
            (shared(answer), None)
        }
        Bytes::File(file) => {
            // Head and text are one buffer; the first part's text is sent with the head.
            let head_bytes = answer.len();
            answer.extend_from_slice(&text);
            let text: Rc<[u8]> = answer.as_slice().into();
            let place = |at: usize| places.get(at).map_or(text.len(), |at| head_bytes + at) as u32;
            let queue: VecDeque<_> = (1..=ranges.len())
                .map(|at| Part { text: place(at - 1)..place(at), bytes: ranges.get(at).copied() })
                .collect();
            let head = SendBuf::Shared(Rc::clone(&text), 0..place(0));
            let then = Some(Box::new(Parts { text, queue }));
            (head, Some(FileBody { then, ..FileBody::of(file, ranges[0]) }))
        }
    };
    Some(Reply { status: Status::PARTIAL_CONTENT, head, body })
}

/// RFC 9110 §15.3.7: who sends `If-Range` has an earlier answer, and needs what identifies it.
fn part_head<'a>(document: &'a Document, asked: &Asked<'_>) -> ResponseHead<'a> {
    match asked.fields.has(Field::IfRange) {
        true => document.short_head(Status::PARTIAL_CONTENT, asked.persistence),
        false => document.head(Status::PARTIAL_CONTENT, asked.persistence),
    }
}

/// The bytes of a range that was resolved against the length of `bytes`.
fn slice(bytes: &[u8], range: ByteRange) -> &[u8] {
    &bytes[range.first as usize..=range.last as usize]
}

fn shared(answer: &[u8]) -> SendBuf {
    SendBuf::Shared(answer.into(), 0..answer.len() as u32)
}
