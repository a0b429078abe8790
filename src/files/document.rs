//! What a head says about a file, and what another head about it would be made of.

use std::path::PathBuf;

use crate::config::ETag;
use crate::http::conditional::{Modified, Validators};
use crate::http::{Coding, Codings, ImfDate, Persistence, ResponseHead, Status};
use crate::sys::file::FileStat;

use super::headers::Fields;
use super::nonces::Nonces;
use super::site::Sayings;
use super::variants::{self, Variants};
use super::{Now, etag, welcome};

/// What a head says about a file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) content_type: Box<str>,
    pub(super) coding: Option<Coding>,
    /// In which other codings it is there.
    variants: Codings,
    pub(super) bytes: u64,
    etag: Option<Box<[u8]>>,
    last_modified: Option<ImfDate>,
    vary: Option<Box<str>>,
    /// What the configuration adds.
    fields: Fields,
    /// Parts of it can be had: what is made anew each time has none that fit together.
    pub(super) has_parts: bool,
    modified: Option<Modified>,
    /// The file's time had settled when it was read.
    pub(super) settled: bool,
    /// Where it is; `None`: in the program itself.
    origin: Option<Origin>,
}

/// Where a document comes from, and how that was found.
#[derive(Debug)]
pub(super) struct Origin {
    /// Relative to the root.
    pub(super) path: PathBuf,
    pub(super) stat: FileStat,
    pub(super) variants: Variants,
    /// Equal stats prove that nothing has changed: another change would have had another time, and
    /// no name that did not exist would have been preferred.
    pub(super) conclusive: bool,
}

/// A file, as it was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) stat: FileStat,
    /// Relative to the root.
    pub(super) path: PathBuf,
    /// No other name would have been preferred, had it existed.
    pub(super) first_choice: bool,
    pub(super) form: Form,
}

/// What a file is to the target that it was found for.
#[derive(Debug)]
pub(super) enum Form {
    /// What was asked for, which is there in these codings too.
    Original(Variants),
    /// Its bytes in a coding.
    Coded(Coding),
}

impl Document {
    /// A file that was opened at `now`, on a site that says so of its files.
    pub(super) fn of(
        found: Found,
        sayings: &Sayings,
        made_of: ETag,
        now: &Now,
        nonces: &mut Nonces,
    ) -> Self {
        let Found { stat, path, first_choice, form } = found;
        let settled = etag::settled(stat.mtime_ns, now.unix_s);
        // RFC 9110 §8.8.2.1: never later than the response itself.
        let mtime_s = u64::try_from(stat.mtime_ns.div_euclid(1_000_000_000)).unwrap_or(0);
        let unix_s = mtime_s.min(now.unix_s);
        let (coding, variants) = match form {
            Form::Original(variants) => (None, variants),
            Form::Coded(coding) => (Some(coding), Variants::default()),
        };
        let (content_type, fields) = match coding {
            Some(coding) => sayings.of_file(variants::original_of(&path, coding)),
            None => sayings.of_file(&path),
        };
        let varies = coding.is_some() || !variants.codings().is_empty();
        Self {
            content_type: content_type.into(),
            vary: fields.vary(varies).map(Into::into),
            fields,
            has_parts: true,
            coding,
            variants: variants.codings(),
            bytes: stat.bytes,
            etag: match settled {
                true => etag::entity_tag(made_of, &stat, coding),
                false => etag::unsettled_tag(made_of, &stat, coding, nonces.draw()),
            },
            // Told of before it has settled, it might come to name two versions.
            last_modified: settled.then(|| ImfDate::from_unix_s(unix_s as i64)),
            settled,
            modified: Some(Modified { unix_s, strong: settled && mtime_s < now.unix_s }),
            origin: Some(Origin {
                path,
                stat,
                variants,
                // Whoever sets a modification time back (rsync, tar) cannot do so with the change's.
                conclusive: settled && etag::settled(stat.ctime_ns, now.unix_s) && first_choice,
            }),
        }
    }

    /// The page of the welcome site.
    pub(super) fn welcome() -> Self {
        Self {
            etag: Some(welcome::etag().into_bytes().into()),
            has_parts: true,
            ..Self::made(welcome::CONTENT_TYPE, welcome::PAGE.len(), Fields::default())
        }
    }

    /// A listing of a directory. It has no validator: whatever changes in the directory changes it,
    /// and nothing says when.
    pub(super) fn listing(bytes: usize, fields: Fields) -> Self {
        Self::made("text/html; charset=utf-8", bytes, fields)
    }

    /// What is no file.
    fn made(content_type: &str, bytes: usize, fields: Fields) -> Self {
        Self {
            content_type: content_type.into(),
            coding: None,
            variants: Codings::NONE,
            bytes: bytes as u64,
            etag: None,
            last_modified: None,
            vary: fields.vary(false).map(Into::into),
            fields,
            has_parts: false,
            modified: None,
            settled: true,
            origin: None,
        }
    }

    /// What a condition is compared with.
    pub(super) fn validators(&self) -> Validators<'_> {
        Validators { etag: self.etag.as_deref(), modified: self.modified }
    }

    /// The request fields that have decided what is sent.
    pub(super) fn vary(&self) -> Option<&str> {
        self.vary.as_deref()
    }

    /// In which codings the target of this document is there too.
    #[inline]
    pub(super) fn variants(&self) -> Codings {
        self.variants
    }

    /// Where it comes from.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The head of an answer that carries the whole, or some of it to somebody who may have none.
    pub(super) fn head(&self, status: Status, persistence: Persistence) -> ResponseHead<'_> {
        ResponseHead {
            content_type: Some(&self.content_type),
            content_encoding: self.coding.map(Coding::name),
            content_length: Some(self.bytes),
            last_modified: self.last_modified,
            accept_ranges: self.has_parts,
            more: &self.fields.lines,
            ..self.short_head(status, persistence)
        }
    }

    /// The head of an answer to somebody who has an earlier one: what RFC 9110 §15.4.5 and §15.3.7
    /// ask for, and no more.
    pub(super) fn short_head(&self, status: Status, persistence: Persistence) -> ResponseHead<'_> {
        ResponseHead {
            etag: self.etag.as_deref(),
            last_modified: self.last_modified.filter(|_| self.etag.is_none()),
            vary: self.vary(),
            more: &self.fields.short,
            ..ResponseHead::new(status, persistence)
        }
    }

    /// Bytes that this takes in memory, about.
    pub(super) fn held_bytes(&self) -> usize {
        let etag = self.etag.as_ref().map_or(0, |etag| etag.len());
        let origin = self
            .origin
            .as_ref()
            .map_or(0, |origin| origin.path.as_os_str().len() + origin.variants.held_bytes());
        let vary = self.vary().map_or(0, str::len);
        size_of::<Self>()
            + self.content_type.len()
            + vary
            + self.fields.held_bytes()
            + etag
            + origin
    }
}

#[cfg(test)]
mod tests {
    use super::super::site::Site;
    use super::*;
    use crate::config;
    use crate::sys::file::FileKind;

    const NOW_S: u64 = 1_000_000;
    const OLD_NS: i128 = 5_000_000_000;
    const JUST_NOW_NS: i128 = NOW_S as i128 * 1_000_000_000 - 1;

    fn document(mtime_ns: i128, ctime_ns: i128, first_choice: bool) -> Document {
        let found = Found {
            stat: FileStat {
                kind: FileKind::File,
                bytes: 1,
                mtime_ns,
                ctime_ns,
                inode: 1,
                device: 1,
                mode: 0o644,
                owner: 0,
            },
            path: "file".into(),
            first_choice,
            form: Form::Original(Variants::default()),
        };
        let site = config::Site::of(config::Root::Welcome);
        let sayings = Site::open(&site, &config::Policies::default()).expect("no patterns").sayings;
        let (now, nonces) = (&Now::new(NOW_S, 0), &mut Nonces::default());
        Document::of(found, &sayings, ETag::MtimeSize, now, nonces)
    }

    /// Kernels since 6.13 give two changes two times if somebody looked in between, so that what
    /// depends on this cannot be seen to fail there.
    #[test]
    fn equal_stats_prove_something_only_when_all_times_have_settled() {
        let conclusive = |mtime_ns, ctime_ns, first_choice| {
            let document = document(mtime_ns, ctime_ns, first_choice);
            document.origin.expect("it is a file").conclusive
        };
        assert!(conclusive(OLD_NS, OLD_NS, true));
        assert!(!conclusive(JUST_NOW_NS, JUST_NOW_NS, true));
        assert!(!conclusive(OLD_NS, JUST_NOW_NS, true), "the modification time was set back");
        assert!(!conclusive(OLD_NS, OLD_NS, false), "a preferred index may appear");
    }

    #[test]
    fn a_date_is_told_when_it_has_settled() {
        let modified =
            |mtime_ns| document(mtime_ns, mtime_ns, true).modified.expect("it is a file");
        let told = |mtime_ns| document(mtime_ns, mtime_ns, true).last_modified;
        assert_eq!(modified(OLD_NS), Modified { unix_s: 5, strong: true });
        assert_eq!(told(OLD_NS), Some(ImfDate::from_unix_s(5)));
        assert_eq!(modified(JUST_NOW_NS), Modified { unix_s: NOW_S - 1, strong: false });
        assert_eq!(told(JUST_NOW_NS), None);
        // A time in the future is told as now, which is another one next time.
        let future_ns = JUST_NOW_NS + 3_600_000_000_000;
        assert_eq!(modified(future_ns), Modified { unix_s: NOW_S, strong: false });
        assert_eq!(told(future_ns), Some(ImfDate::from_unix_s(NOW_S as i64)));
        assert_eq!(modified(-1), Modified { unix_s: 0, strong: true });
    }

    #[test]
    fn two_readings_of_an_unsettled_file_have_two_tags() {
        let tag = |mtime_ns| document(mtime_ns, mtime_ns, true).etag;
        assert_eq!(tag(OLD_NS), tag(OLD_NS));
        assert_ne!(tag(JUST_NOW_NS), tag(JUST_NOW_NS));
    }
}
