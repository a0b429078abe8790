//! A response body that is sent from a file: the whole of it, a part, or several with text around.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use crate::http::{Body, ByteRange, Pull};
use crate::ring::SendBuf;

/// The rest of a response that is sent from a file.
#[derive(Clone, Debug)]
pub struct FileBody {
    /// The file, which stays open as long as anybody holds this.
    pub(super) file: Rc<OwnedFd>,
    /// Where the next piece starts, in bytes from the file's start.
    pub(super) offset: u64,
    /// Where the last piece ends. The file may have become shorter since.
    pub(super) end: u64,
    /// What follows then.
    pub(super) then: Option<Box<Parts>>,
}

/// Further parts of a file, each with text in front of it; the last is of text alone.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// All text of the response.
    pub(super) text: Rc<[u8]>,
    pub(super) queue: VecDeque<Part>,
}

/// Some text, then some bytes of the file.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Where in the text.
    pub(super) text: Range<u32>,
    pub(super) bytes: Option<ByteRange>,
}

impl FileBody {
    /// Part of a file.
    pub(super) fn of(file: &Rc<OwnedFd>, range: ByteRange) -> Self {
        Self { file: Rc::clone(file), offset: range.first, end: range.last + 1, then: None }
    }
}

impl FileBody {
    /// Bytes of the file that are still to come.
    pub fn left_bytes(&self) -> u64 {
        let parts = self.then.iter().flat_map(|parts| &parts.queue);
        let later: u64 =
            parts.filter_map(|part| part.bytes).map(|range| range.last + 1 - range.first).sum();
        self.end - self.offset + later
    }
}

impl Body for FileBody {
    type Bytes = SendBuf;
    type File = Rc<OwnedFd>;

    fn next(&mut self, max_bytes: usize) -> Pull<SendBuf, Rc<OwnedFd>> {
        if self.offset == self.end
            && let Some(parts) = &mut self.then
            && let Some(part) = parts.queue.front_mut()
        {
            let text = take_front(&mut part.text, max_bytes);
            if part.text.is_empty() {
                if let Some(ByteRange { first, last }) = part.bytes {
                    (self.offset, self.end) = (first, last + 1);
                }
                parts.queue.pop_front();
            }
            return Pull::Bytes(SendBuf::Shared(Rc::clone(&parts.text), text));
        }
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let (offset, bytes) = (self.offset, left.min(max_bytes));
        if bytes == 0 {
            return Pull::End;
        }
        self.offset += bytes as u64;
        Pull::File { file: Rc::clone(&self.file), offset, bytes }
    }
}

/// Takes up to `max` off the front of a range.
fn take_front(range: &mut Range<u32>, max: usize) -> Range<u32> {
    let middle = range.end.min(range.start.saturating_add(u32::try_from(max).unwrap_or(u32::MAX)));
    let front = range.start..middle;
    range.start = middle;
    front
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn file() -> Rc<OwnedFd> {
        Rc::new(File::open("/dev/null").expect("a file").into())
    }

    #[test]
    fn pieces_of_a_file_body_cover_it() {
        let mut body = FileBody::of(&file(), ByteRange { first: 3, last: 9 });
        let mut pieces = Vec::new();
        while let Pull::File { offset, bytes, .. } = body.next(3) {
            pieces.push((offset, bytes));
        }
        assert_eq!(pieces, [(3, 3), (6, 3), (9, 1)]);
    }

    #[test]
    fn text_and_parts_take_turns() {
        let parts = Parts {
            text: Rc::from(&b"abcdefg"[..]),
            queue: VecDeque::from([
                Part { text: 1..5, bytes: Some(ByteRange { first: 0, last: 1 }) },
                Part { text: 5..7, bytes: None },
            ]),
        };
        let body = FileBody {
            then: Some(Box::new(parts)),
            ..FileBody::of(&file(), ByteRange { first: 8, last: 9 })
        };
        for (max_bytes, expected) in
            [(100, "8+2 bcde 0+2 fg"), (3, "8+2 bcd e 0+2 fg"), (1, "8+1 9+1 b c d e 0+1 1+1 f g")]
        {
            let mut body = body.clone();
            let mut pieces = Vec::new();
            loop {
                pieces.push(match body.next(max_bytes) {
                    Pull::File { offset, bytes, .. } => format!("{offset}+{bytes}"),
                    Pull::Bytes(text) => text.as_slice().escape_ascii().to_string(),
                    Pull::Wait => unreachable!("files wait for nobody"),
                    Pull::End => break,
                });
            }
            assert_eq!(pieces.join(" "), expected);
        }
    }
}
