//! An entry: what was found out about a target, and the strategy that follows from it.
//!
//! The family is chosen when the entry is made, not when a request comes. What is kept beside the
//! ready answers ([`Document`]) is what another answer about the same file would be made of.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use crate::http::conditional::{self, Verdict};
use crate::http::{
    ByteRange, Coding, Field, FieldLines, Persistence, ResponseHead, Status, negotiation,
};
use crate::ring::SendBuf;
use crate::sys::file::FileStat;

use super::body::FileBody;
use super::cache::Weight;
use super::document::{Document, Origin};
use super::error_pages::{About, page, page_head};
use super::partial::{self, Bytes};
use super::ready::Ready;
use super::{Now, Reply, SiteId, Supplies, redirect};

/// What is kept of a target.
#[derive(Debug)]
pub(super) struct Entry {
    family: Family,
    ready: Ready,
    /// The 304s, once one was asked for.
    not_modified: Option<Box<Ready>>,
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

/// What a request wants to know of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) site: SiteId,
    pub(super) persistence: Persistence,
    pub(super) head_only: bool,
    pub(super) query: Option<&'a [u8]>,
    pub(super) fields: FieldLines<'a>,
    pub(super) now: &'a Now,
}

impl Family {
    #[inline]
    fn document(&self) -> Option<&Document> {
        match self {
            Self::Inline(document) | Self::File(document, _) => Some(document),
            Self::Redirect(_) | Self::Negative(_) => None,
        }
    }
}

impl Entry {
    fn new(family: Family, ready: Ready, fresh_until_ms: u64) -> Self {
        Self { family, ready, not_modified: None, fresh_until_ms }
    }

    /// A document that is kept whole. Makes the answer that is asked for.
    pub(super) fn inline(
        document: Document,
        body: &[u8],
        asked: &Asked<'_>,
        fresh_until_ms: u64,
        scratch: &mut Vec<u8>,
    ) -> Self {
        let mut ready = Ready::default();
        let head = document.head(Status::OK, asked.persistence);
        ready.make(&head, body, asked.head_only, asked.now, scratch);
        Self::new(Family::Inline(Box::new(document)), ready, fresh_until_ms)
    }

    /// A document that is sent from its file.
    pub(super) fn file(document: Document, file: OwnedFd, fresh_until_ms: u64) -> Self {
        let family = Family::File(Box::new(document), Rc::new(file));
        Self::new(family, Ready::default(), fresh_until_ms)
    }

    /// A directory, decoded and relative to the root, that lacks its slash.
    pub(super) fn redirect(path: &[u8], fresh_until_ms: u64) -> Self {
        let family = Family::Redirect(redirect::location(path).into());
        Self::new(family, Ready::default(), fresh_until_ms)
    }

    /// A status.
    pub(super) fn negative(status: Status, fresh_until_ms: u64) -> Self {
        Self::new(Family::Negative(status), Ready::default(), fresh_until_ms)
    }

    /// What to send.
    #[inline]
    pub(super) fn answer(&mut self, asked: &Asked<'_>, supplies: &mut Supplies) -> Reply {
        let Asked { persistence, head_only, now, .. } = *asked;
        let status = match &self.family {
            Family::Inline(_) | Family::File(..) => {
                if asked.fields.has_condition_or_range()
                    && let Some(reply) = self.answer_otherwise(asked, supplies)
                {
                    return reply;
                }
                Status::OK
            }
            Family::Redirect(location) => {
                if let Some(query) = asked.query {
                    let location = redirect::with_query(location, query);
                    let ready = &mut Ready::default();
                    let head = make_redirect(ready, REDIRECT, &location, asked, supplies);
                    return Reply { status: REDIRECT, head, body: None };
                }
                REDIRECT
            }
            Family::Negative(status) => return supplies.page(*status, About::default(), asked),
        };
        let head = match self.ready.take(persistence, head_only, now) {
            Some(head) => head,
            None => self.make(asked, supplies),
        };
        let body = match &self.family {
            Family::File(document, file) if !head_only && document.bytes > 0 => {
                Some(FileBody::of(file, ByteRange { first: 0, last: document.bytes - 1 }))
            }
            _ => None,
        };
        Reply { status, head, body }
    }

    /// What a document answers to a condition or a range that makes it something else than 200.
    #[inline(never)]
    fn answer_otherwise(&mut self, asked: &Asked<'_>, supplies: &mut Supplies) -> Option<Reply> {
        let document = self.family.document()?;
        let validators = document.validators();
        match conditional::evaluate(&asked.fields, &validators, asked.now.unix_s) {
            Verdict::Failed => {
                let about = About { vary: document.vary(), ..About::default() };
                Some(supplies.page(Status::PRECONDITION_FAILED, about, asked))
            }
            Verdict::NotModified => Some(self.not_modified(asked, &mut supplies.answer)),
            // RFC 9110 §14.2: a range is of GET alone.
            Verdict::Perform
                if !asked.head_only
                    && document.has_parts
                    && asked.fields.has(Field::Range)
                    && conditional::range_applies(&asked.fields, &validators, asked.now.unix_s) =>
            {
                let bytes = match &self.family {
                    Family::File(_, file) => Bytes::File(file),
                    _ => Bytes::Memory(self.ready.body()?),
                };
                partial::reply(document, bytes, asked, supplies)
            }
            Verdict::Perform => None,
        }
    }

    /// A 304, ready as any answer.
    fn not_modified(&mut self, asked: &Asked<'_>, scratch: &mut Vec<u8>) -> Reply {
        let status = Status::NOT_MODIFIED;
        let ready = self.not_modified.get_or_insert_default();
        let head = match (ready.take(asked.persistence, true, asked.now), &self.family) {
            (Some(head), _) => head,
            (None, Family::Inline(document) | Family::File(document, _)) => {
                let head = document.short_head(status, asked.persistence);
                ready.make(&head, b"", true, asked.now, scratch)
            }
            (None, Family::Redirect(_) | Family::Negative(_)) => {
                unreachable!("only a document has validators")
            }
        };
        Reply { status, head, body: None }
    }

    #[cold]
    fn make(&mut self, asked: &Asked<'_>, supplies: &mut Supplies) -> SendBuf {
        let Self { family, ready, .. } = self;
        match family {
            Family::Inline(document) | Family::File(document, _) => {
                let head = document.head(Status::OK, asked.persistence);
                ready.make(&head, b"", asked.head_only, asked.now, &mut supplies.answer)
            }
            Family::Redirect(location) => make_redirect(ready, REDIRECT, location, asked, supplies),
            Family::Negative(_) => unreachable!("a negative entry has no answers of its own"),
        }
    }

    /// The coding in which the target is to be sent instead, if there is one that the client likes
    /// better.
    #[inline]
    pub(super) fn coding_for(&self, fields: &FieldLines<'_>) -> Option<Coding> {
        negotiation::preferred(fields, self.family.document()?.variants())
    }

    /// Whether any change from now on is sure to show in the document's validators.
    pub(super) fn is_settled(&self) -> bool {
        self.family.document().is_none_or(|document| document.settled)
    }

    /// Whether there is something to be sent, rather than a status.
    pub(super) fn is_document(&self) -> bool {
        self.family.document().is_some()
    }

    /// The file that a small body could be read from, to be kept instead.
    #[inline]
    pub(super) fn small_file(&self, bytes_max: u64) -> Option<(&OwnedFd, &FileStat)> {
        match &self.family {
            Family::File(document, file) if document.bytes <= bytes_max => {
                Some((file, &document.origin()?.stat))
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
                let head = document.head(Status::OK, asked.persistence);
                self.ready.make(&head, body, asked.head_only, asked.now, scratch);
                Family::Inline(document)
            }
            other => other,
        };
    }

    /// Where a document comes from.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.family.document()?.origin()
    }

    /// Whether [`Self::weight`] may be more than when this was last asked.
    #[inline]
    pub(super) fn has_grown(&mut self) -> bool {
        self.ready.has_grown() | self.not_modified.as_mut().is_some_and(|ready| ready.has_grown())
    }

    /// What is held by this entry, kept under a target of that length.
    pub(super) fn weight(&self, target_bytes: usize) -> Weight {
        let (more, descriptors) = match &self.family {
            Family::Inline(document) => (document.held_bytes(), 0),
            Family::File(document, _) => (document.held_bytes(), 1),
            Family::Redirect(location) => (location.len(), 0),
            Family::Negative(_) => (0, 0),
        };
        let ready =
            self.ready.bytes() + self.not_modified.as_ref().map_or(0, |ready| ready.bytes());
        Weight { bytes: target_bytes + ready + more, descriptors }
    }
}

/// Permanent, and kept by browsers: the slash belongs to a directory's name.
const REDIRECT: Status = Status::MOVED_PERMANENTLY;

/// Makes the answer that sends a client to `location`.
pub(super) fn make_redirect(
    ready: &mut Ready,
    status: Status,
    location: &str,
    asked: &Asked<'_>,
    supplies: &mut Supplies,
) -> SendBuf {
    let body = page(status);
    let fields = supplies.pages.fields(asked.site);
    let vary = fields.vary(false);
    let head = ResponseHead {
        location: Some(location.as_bytes()),
        vary: vary.as_deref(),
        more: &fields.lines,
        ..page_head(status, &body, asked.persistence)
    };
    ready.make(&head, body.as_bytes(), asked.head_only, asked.now, &mut supplies.answer)
}
