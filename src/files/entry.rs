//! An entry: what was found out about a target, and the strategy that follows from it.
//!
//! The family is chosen when the entry is made, not when a request comes. What is kept beside the
//! ready answers ([`Document`]) is what another answer about the same file would be made of.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use crate::config::ETag;
use crate::http::{Body, ImfDate, Persistence, Pull, ResponseHead, Status};
use crate::ring::SendBuf;
use crate::sys::file::FileStat;

use super::cache::Weight;
use super::error_pages::{ErrorPages, page, page_head};
use super::ready::Ready;
use super::resolve::Opened;
use super::{Now, Reply, etag, mime, redirect, welcome};

/// What is kept of a target.
#[derive(Debug)]
pub(super) struct Entry {
    family: Family,
    ready: Ready,
    /// Until then it is served without a look at the file system, on the clock of
    /// [`Now::monotonic_ms`].
    pub(super) fresh_until_ms: u64,
}

/// How a target is answered.
#[derive(Debug)]
pub(super) enum Family {
    /// Head and body in one buffer, sent at once. No descriptor is held.
    Inline(Box<Document>),
    /// The head from a buffer, the body from a file.
    File(Box<Document>, Rc<OwnedFd>),
    /// Another place to ask: the path of a directory, encoded, with its slash.
    Redirect(Box<str>),
    /// Nothing but a status, whose page all targets share.
    Negative(Status),
}

/// What a head says about a file.
#[derive(Debug)]
pub(super) struct Document {
    content_type: Cow<'static, str>,
    bytes: u64,
    etag: Option<Box<[u8]>>,
    last_modified: Option<ImfDate>,
    /// Where it is; `None`: in the program itself.
    origin: Option<Origin>,
}

/// Where a document comes from, and how that was found.
#[derive(Debug)]
pub(super) struct Origin {
    /// Relative to the root.
    pub(super) path: PathBuf,
    pub(super) stat: FileStat,
    /// Equal stats prove that nothing has changed: another change would have had another time, and
    /// no name that did not exist would have been preferred.
    pub(super) conclusive: bool,
}

/// What a request wants to know of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) persistence: Persistence,
    pub(super) head_only: bool,
    pub(super) query: Option<&'a [u8]>,
    pub(super) now: &'a Now,
}

/// The rest of a response that is sent from a file.
#[derive(Clone, Debug)]
pub struct FileBody {
    /// The file, which stays open as long as anybody holds this.
    pub file: Rc<OwnedFd>,
    /// Where the next piece starts, in bytes from the file's start.
    pub offset: u64,
    /// Where the last piece ends. The file may have become shorter since.
    pub end: u64,
}

impl Body for FileBody {
    type Bytes = SendBuf;
    type File = Rc<OwnedFd>;

    fn next(&mut self, max_bytes: usize) -> Pull<SendBuf, Rc<OwnedFd>> {
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let (offset, bytes) = (self.offset, left.min(max_bytes));
        if bytes == 0 {
            return Pull::End;
        }
        self.offset += bytes as u64;
        Pull::File { file: Rc::clone(&self.file), offset, bytes }
    }
}

impl Document {
    /// A file that was opened at `now`.
    pub(super) fn of(opened: &Opened, made_of: ETag, now: &Now) -> Self {
        let Opened { stat, path, first_choice, .. } = opened;
        let settled = etag::settled(stat.mtime_ns, now.unix_s);
        let mtime_s = i64::try_from(stat.mtime_ns.div_euclid(1_000_000_000)).unwrap_or(0);
        Self {
            content_type: mime::content_type(path.as_os_str().as_encoded_bytes()),
            bytes: stat.bytes,
            etag: etag::entity_tag(made_of, stat, settled),
            // RFC 9110 §8.8.2.1: never later than the response itself.
            last_modified: Some(ImfDate::from_unix_s(mtime_s.min(now.unix_s as i64))),
            origin: Some(Origin {
                path: path.clone(),
                stat: *stat,
                // Whoever sets a modification time back (rsync, tar) cannot do so with the change's.
                conclusive: settled && etag::settled(stat.ctime_ns, now.unix_s) && *first_choice,
            }),
        }
    }

    /// The page of the welcome site.
    pub(super) fn welcome() -> Self {
        Self {
            content_type: welcome::CONTENT_TYPE.into(),
            bytes: welcome::PAGE.len() as u64,
            etag: Some(welcome::etag().into_bytes().into()),
            last_modified: None,
            origin: None,
        }
    }

    fn head(&self, persistence: Persistence) -> ResponseHead<'_> {
        ResponseHead {
            content_type: Some(&self.content_type),
            content_length: Some(self.bytes),
            etag: self.etag.as_deref(),
            last_modified: self.last_modified,
            ..ResponseHead::new(Status::OK, persistence)
        }
    }

    /// Bytes that this takes in memory, about.
    fn held_bytes(&self) -> usize {
        let path = self.origin.as_ref().map_or(0, |origin| origin.path.as_os_str().len());
        let etag = self.etag.as_ref().map_or(0, |etag| etag.len());
        size_of::<Self>() + path + etag
    }
}

impl Entry {
    /// A document that is kept whole. Makes the answer that is asked for.
    pub(super) fn inline(
        document: Document,
        body: &[u8],
        asked: &Asked<'_>,
        fresh_until_ms: u64,
        scratch: &mut Vec<u8>,
    ) -> Self {
        let mut ready = Ready::default();
        ready.make(&document.head(asked.persistence), body, asked.head_only, asked.now, scratch);
        Self { family: Family::Inline(Box::new(document)), ready, fresh_until_ms }
    }

    /// A document that is sent from its file.
    pub(super) fn file(document: Document, file: OwnedFd, fresh_until_ms: u64) -> Self {
        let family = Family::File(Box::new(document), Rc::new(file));
        Self { family, ready: Ready::default(), fresh_until_ms }
    }

    /// A directory, decoded and relative to the root, that lacks its slash.
    pub(super) fn redirect(path: &[u8], fresh_until_ms: u64) -> Self {
        let family = Family::Redirect(redirect::location(path).into());
        Self { family, ready: Ready::default(), fresh_until_ms }
    }

    /// A status.
    pub(super) fn negative(status: Status, fresh_until_ms: u64) -> Self {
        Self { family: Family::Negative(status), ready: Ready::default(), fresh_until_ms }
    }

    /// What to send.
    #[inline]
    pub(super) fn answer(
        &mut self,
        asked: &Asked<'_>,
        pages: &mut ErrorPages,
        scratch: &mut Vec<u8>,
    ) -> Reply {
        let Asked { persistence, head_only, now, .. } = *asked;
        let status = match &self.family {
            Family::Inline(_) | Family::File(..) => Status::OK,
            Family::Redirect(location) => {
                if let Some(query) = asked.query {
                    let location = redirect::with_query(location, query);
                    let head = make_redirect(&mut Ready::default(), &location, asked, scratch);
                    return Reply { status: REDIRECT, head, body: None };
                }
                REDIRECT
            }
            Family::Negative(status) => {
                let head = pages.take(*status, persistence, head_only, now, scratch);
                return Reply { status: *status, head, body: None };
            }
        };
        let head = match self.ready.take(persistence, head_only, now) {
            Some(head) => head,
            None => self.make(asked, scratch),
        };
        let body = match &self.family {
            Family::File(document, file) if !head_only && document.bytes > 0 => {
                Some(FileBody { file: Rc::clone(file), offset: 0, end: document.bytes })
            }
            _ => None,
        };
        Reply { status, head, body }
    }

    #[cold]
    fn make(&mut self, asked: &Asked<'_>, scratch: &mut Vec<u8>) -> SendBuf {
        let Self { family, ready, .. } = self;
        match family {
            Family::Inline(document) | Family::File(document, _) => {
                let head = document.head(asked.persistence);
                ready.make(&head, b"", asked.head_only, asked.now, scratch)
            }
            Family::Redirect(location) => make_redirect(ready, location, asked, scratch),
            Family::Negative(_) => unreachable!("a negative entry has no answers of its own"),
        }
    }

    /// The file that a small body could be read from, to be kept instead.
    #[inline]
    pub(super) fn small_file(&self, bytes_max: u64) -> Option<(&OwnedFd, &FileStat)> {
        match &self.family {
            Family::File(document, file) if document.bytes <= bytes_max => {
                Some((file, &document.origin.as_ref()?.stat))
            }
            _ => None,
        }
    }

    /// Turns a file into a document that is kept whole, now that its `body` has been read.
    pub(super) fn keep_inline(&mut self, body: &[u8], asked: &Asked<'_>, scratch: &mut Vec<u8>) {
        let nothing = Family::Negative(Status::NOT_FOUND);
        self.family = match std::mem::replace(&mut self.family, nothing) {
            Family::File(document, _) => {
                self.ready = Ready::default();
                let head = document.head(asked.persistence);
                self.ready.make(&head, body, asked.head_only, asked.now, scratch);
                Family::Inline(document)
            }
            other => other,
        };
    }

    /// Where a document comes from.
    pub(super) fn origin(&self) -> Option<&Origin> {
        match &self.family {
            Family::Inline(document) | Family::File(document, _) => document.origin.as_ref(),
            Family::Redirect(_) | Family::Negative(_) => None,
        }
    }

    /// Whether [`Self::weight`] may be more than when this was last asked.
    #[inline]
    pub(super) fn has_grown(&mut self) -> bool {
        self.ready.has_grown()
    }

    /// What is held by this entry, kept under a target of that length.
    pub(super) fn weight(&self, target_bytes: usize) -> Weight {
        let (more, descriptors) = match &self.family {
            Family::Inline(document) => (document.held_bytes(), 0),
            Family::File(document, _) => (document.held_bytes(), 1),
            Family::Redirect(location) => (location.len(), 0),
            Family::Negative(_) => (0, 0),
        };
        Weight { bytes: target_bytes + self.ready.bytes() + more, descriptors }
    }
}

/// Permanent, and kept by browsers: the slash belongs to a directory's name.
const REDIRECT: Status = Status::MOVED_PERMANENTLY;

fn make_redirect(
    ready: &mut Ready,
    location: &str,
    asked: &Asked<'_>,
    scratch: &mut Vec<u8>,
) -> SendBuf {
    let body = page(REDIRECT);
    let head = ResponseHead {
        location: Some(location.as_bytes()),
        ..page_head(REDIRECT, &body, asked.persistence)
    };
    ready.make(&head, body.as_bytes(), asked.head_only, asked.now, scratch)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::sys::file::FileKind;

    const NOW_S: u64 = 1_000_000;
    const OLD_NS: i128 = 5_000_000_000;
    const JUST_NOW_NS: i128 = NOW_S as i128 * 1_000_000_000 - 1;

    fn conclusive(mtime_ns: i128, ctime_ns: i128, first_choice: bool) -> bool {
        let opened = Opened {
            file: File::open("/dev/null").expect("a file").into(),
            stat: FileStat {
                kind: FileKind::File,
                bytes: 1,
                mtime_ns,
                ctime_ns,
                inode: 1,
                device: 1,
            },
            path: "file".into(),
            first_choice,
        };
        let document = Document::of(&opened, ETag::MtimeSize, &Now::new(NOW_S, 0));
        document.origin.expect("it is a file").conclusive
    }

    /// Kernels since 6.13 give two changes two times if somebody looked in between, so that what
    /// depends on this cannot be seen to fail there.
    #[test]
    fn equal_stats_prove_something_only_when_all_times_have_settled() {
        assert!(conclusive(OLD_NS, OLD_NS, true));
        assert!(!conclusive(JUST_NOW_NS, JUST_NOW_NS, true));
        assert!(!conclusive(OLD_NS, JUST_NOW_NS, true), "the modification time was set back");
        assert!(!conclusive(OLD_NS, OLD_NS, false), "a preferred index may appear");
    }

    #[test]
    fn pieces_of_a_file_body_cover_it() {
        let file = Rc::new(OwnedFd::from(File::open("/dev/null").expect("a file")));
        let mut body = FileBody { file, offset: 3, end: 10 };
        let mut pieces = Vec::new();
        while let Pull::File { offset, bytes, .. } = body.next(3) {
            pieces.push((offset, bytes));
        }
        assert_eq!(pieces, [(3, 3), (6, 3), (9, 1)]);
    }
}
