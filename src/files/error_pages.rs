//! What is sent where there is nothing else to send: a status, and a page about it.
//!
//! The page is a file of the site where the configuration names one, and a few words of our own where
//! it does not, or where that file cannot be sent: it is missing, refused by the site's policies, too
//! large. That is counted, and said once in the log until it is well again. The status stays what it
//! is. Conditions and ranges are for what was asked for, so they do not apply to a page about its
//! absence (RFC 9110 §13.2.1, §14.2).
//!
//! A page's file is read whole, which waits for the disk where it must: when the shard starts, so that
//! a page about a shortage is there when there is one, and after each change. A page may lie where
//! strangers cannot ask for it, beneath a name with a dot.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::config;
use crate::http::{ContentRange, Persistence, ResponseHead, Status};
use crate::ring::SendBuf;
use crate::sys::file::{self, FileKind, FileStat};

use super::entry::Asked;
use super::headers::Fields;
use super::ready::Ready;
use super::site::{Root, Sayings, Site};
use super::tree::{Opening, Tree, Trouble};
use super::{Now, Reply, SiteId, etag};

/// What may be done with any file.
const ALLOWED: &str = "GET, HEAD, OPTIONS";

/// When a 503 may be over: a shortage of descriptors ends with the next few responses. A second is the
/// least that can be said, and spreads those who come again at once.
const RETRY_AFTER_S: u32 = 1;

const BUILT_IN_TYPE: &str = "text/html; charset=utf-8";

/// The pages of one shard.
#[derive(Debug)]
pub(super) struct ErrorPages {
    sites: Box<[SitePages]>,
    bytes_max: usize,
    valid_ms: u64,
    missing: u64,
}

/// The pages of a site. There are as many as there are statuses: a few, so that they are looked
/// through rather than looked up.
#[derive(Debug)]
struct SitePages {
    pages: Vec<Page>,
    root: Root,
    sayings: Rc<Sayings>,
    /// What is said in an answer without a file.
    fields: Fields,
}

#[derive(Debug)]
struct Page {
    status: Status,
    file: Option<PageFile>,
    ready: Ready,
}

/// A page that is a file of the site.
#[derive(Debug)]
struct PageFile {
    /// Relative to the root.
    path: PathBuf,
    read: Option<Read>,
    fresh_until_ms: u64,
    /// It was said in the log that the file cannot be sent.
    said: bool,
}

/// A page's file, as it was read.
#[derive(Debug)]
struct Read {
    stat: FileStat,
    body: Box<[u8]>,
    content_type: String,
    fields: Fields,
}

/// What an answer says of the file that it is about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct About<'a> {
    pub(super) vary: Option<&'a str>,
    pub(super) content_range: Option<ContentRange>,
}

impl About<'_> {
    fn says_nothing(&self) -> bool {
        self.vary.is_none() && self.content_range.is_none()
    }
}

impl ErrorPages {
    /// The pages of these sites, in their order. Those that are files are read.
    pub(super) fn open(
        sites: &[Site],
        configured: &[&config::Site],
        cache: &config::Cache,
    ) -> Self {
        let sites = sites.iter().zip(configured).map(|(site, configured)| {
            let page = |(&code, path): (&u16, &String)| {
                let path = path.trim_start_matches('/').into();
                let file = PageFile { path, read: None, fresh_until_ms: 0, said: false };
                let status = Status::from_code(code)?;
                Some(Page { status, file: Some(file), ready: Ready::default() })
            };
            SitePages {
                pages: configured.error_pages.iter().filter_map(page).collect(),
                root: site.root.clone(),
                sayings: Rc::clone(&site.sayings),
                fields: site.sayings.without_file(),
            }
        });
        let mut pages = Self {
            sites: sites.collect(),
            bytes_max: cache.error_page_bytes,
            valid_ms: super::millis(cache.valid),
            missing: 0,
        };
        for site in &mut pages.sites {
            let SitePages { pages: site_pages, root, sayings, .. } = site;
            for page in site_pages {
                pages.missing += u64::from(page.read(root, sayings, pages.bytes_max));
            }
        }
        pages
    }

    /// What is said in an answer of a site without a file.
    pub(super) fn fields(&self, site: SiteId) -> &Fields {
        &self.sites[usize::from(site.0)].fields
    }

    /// How often a page's file was looked for that could not be sent.
    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    /// The answer with a status, and with the page about it. `scratch` is emptied and used.
    pub(super) fn reply(
        &mut self,
        status: Status,
        about: About<'_>,
        asked: &Asked<'_>,
        scratch: &mut Vec<u8>,
    ) -> Reply {
        let site = &mut self.sites[usize::from(asked.site.0)];
        let at = match site.pages.iter().position(|page| page.status == status) {
            Some(at) => at,
            None => {
                site.pages.push(Page { status, file: None, ready: Ready::default() });
                site.pages.len() - 1
            }
        };
        let page = &mut site.pages[at];
        if let Some(file) = &mut page.file
            && asked.now.monotonic_ms >= file.fresh_until_ms
        {
            file.fresh_until_ms = asked.now.monotonic_ms.saturating_add(self.valid_ms);
            if !file.is_unchanged(&site.root, asked.now) {
                let failed = page.read(&site.root, &site.sayings, self.bytes_max);
                self.missing += u64::from(failed);
            }
        }
        let head = page.answer(&site.fields, about, asked, scratch);
        Reply { status, head, body: None }
    }
}

impl Page {
    /// The whole answer. What is said about one file is for that answer alone.
    fn answer(
        &mut self,
        site: &Fields,
        about: About<'_>,
        asked: &Asked<'_>,
        scratch: &mut Vec<u8>,
    ) -> SendBuf {
        let Asked { persistence, head_only, now, .. } = *asked;
        let ready = match about.says_nothing() {
            true => match self.ready.take(persistence, head_only, now) {
                Some(answer) => return answer,
                None => &mut self.ready,
            },
            false => &mut Ready::default(),
        };
        let status = self.status;
        if status == Status::NO_CONTENT {
            let vary = site.vary(false);
            let head = ResponseHead {
                allow: Some(ALLOWED),
                vary: vary.as_deref(),
                more: &site.lines,
                ..ResponseHead::new(status, persistence)
            };
            return ready.make(&head, b"", head_only, now, scratch);
        }
        let built_in;
        let (content_type, body, fields) =
            match self.file.as_ref().and_then(|file| file.read.as_ref()) {
                Some(read) => (&*read.content_type, &*read.body, &read.fields),
                None => {
                    built_in = page(status);
                    (BUILT_IN_TYPE, built_in.as_bytes(), site)
                }
            };
        let vary = fields.vary(false);
        let head = ResponseHead {
            content_type: Some(content_type),
            content_length: Some(body.len() as u64),
            content_range: about.content_range,
            vary: about.vary.or(vary.as_deref()),
            // RFC 9110 §15.5.6: a 405 must say what would have been allowed.
            allow: (status == Status::METHOD_NOT_ALLOWED).then_some(ALLOWED),
            retry_after_s: (status == Status::SERVICE_UNAVAILABLE).then_some(RETRY_AFTER_S),
            more: &fields.lines,
            ..ResponseHead::new(status, persistence)
        };
        ready.make(&head, body, head_only, now, scratch)
    }

    /// Reads the page's file anew, if it has one. True: it cannot be sent.
    #[cold]
    fn read(&mut self, root: &Root, sayings: &Sayings, bytes_max: usize) -> bool {
        let (Some(file), Root::Directory(tree)) = (&mut self.file, root) else { return false };
        self.ready = Ready::default();
        match read(tree, &file.path, bytes_max) {
            Ok((stat, body)) => {
                let (content_type, fields) = sayings.of_file(&file.path);
                file.read = Some(Read { stat, body, content_type, fields });
                file.said = false;
                false
            }
            // It may well be there: what was read before holds until that is known.
            Err(Unsendable::ForNow) if file.read.is_some() => true,
            Err(why) => {
                file.read = None;
                if !std::mem::replace(&mut file.said, true) {
                    let (status, path) = (self.status.code(), file.path.display());
                    tracing::warn!(status, %path, %why, "a built-in page is sent for an error");
                }
                true
            }
        }
    }
}

impl PageFile {
    /// Whether what was read is sure to be what is there.
    fn is_unchanged(&self, root: &Root, now: &Now) -> bool {
        let (Some(Read { stat, .. }), Root::Directory(tree)) = (&self.read, root) else {
            return false;
        };
        etag::settled(stat.mtime_ns, now.unix_s)
            && etag::settled(stat.ctime_ns, now.unix_s)
            && tree.stat_to_compare(&self.path) == Some(*stat)
    }
}

/// Why a page's file cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Unsendable {
    #[error("there is no such file beneath the site's root")]
    NotFound,
    #[error("the file may not be read: see its permissions, `mode_allowed`, `mode_forbidden`")]
    Forbidden,
    #[error("it is no regular file")]
    NoFile,
    #[error("the file is larger than `cache.error_page`")]
    TooLarge,
    #[error("the file cannot be read now: descriptors are short, or the file system fails")]
    ForNow,
}

/// Reads a page's file, and waits for the disk where it must.
fn read(tree: &Tree, path: &Path, bytes_max: usize) -> Result<(FileStat, Box<[u8]>), Unsendable> {
    let (file, stat) = match tree.open(path) {
        Ok(Opening::Open(file, stat)) => (file, stat),
        Ok(Opening::NoFile) => return Err(Unsendable::NoFile),
        Ok(Opening::NotFound) => return Err(Unsendable::NotFound),
        Ok(Opening::Forbidden) => return Err(Unsendable::Forbidden),
        Err(Trouble::NoDescriptors | Trouble::Failed) => return Err(Unsendable::ForNow),
    };
    if stat.kind != FileKind::File {
        return Err(Unsendable::NoFile);
    }
    let mut body = vec![0; bytes_max + 1];
    let mut bytes = 0;
    while bytes < body.len() {
        match file::read_at(&file, &mut body[bytes..], bytes as u64) {
            Ok(0) => break,
            Ok(more) => bytes += more,
            Err(_) => return Err(Unsendable::ForNow),
        }
    }
    if bytes > bytes_max {
        return Err(Unsendable::TooLarge);
    }
    body.truncate(bytes);
    Ok((stat, body.into()))
}

/// A page that says a status and nothing about us or about what was asked for.
pub(super) fn page(status: Status) -> String {
    let (code, reason) = (status.code(), status.reason());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{code} {reason}</title>\n\
         <body style=\"display:grid;place-content:center;min-height:90vh;text-align:center;\
         font-family:system-ui,sans-serif\">\n<h1>{code}</h1>\n<p>{reason}</p>\n</html>\n"
    )
}

/// The head that such a page has at least.
pub(super) fn page_head(
    status: Status,
    body: &str,
    persistence: Persistence,
) -> ResponseHead<'static> {
    ResponseHead {
        content_type: Some(BUILT_IN_TYPE),
        content_length: Some(body.len() as u64),
        ..ResponseHead::new(status, persistence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::FieldLines;

    fn pages() -> ErrorPages {
        let sites = [config::Site::of(config::Root::Welcome)];
        let policies = config::Policies::default();
        let open: Vec<_> = sites.iter().map(|site| Site::open(site, &policies).unwrap()).collect();
        ErrorPages::open(
            &open,
            &[&sites[0]],
            &config::resolve(
                None,
                &Default::default(),
                &config::Facts { allowed_cpus: vec![0], nofile: 4096 },
            )
            .unwrap()
            .cache,
        )
    }

    fn text(pages: &mut ErrorPages, status: Status, head_only: bool) -> String {
        let asked = Asked {
            site: SiteId::DEFAULT,
            persistence: Persistence::KeepAlive,
            head_only,
            query: None,
            fields: FieldLines::NONE,
            now: &Now::new(0, 0),
        };
        let reply = pages.reply(status, About::default(), &asked, &mut Vec::new());
        assert_eq!(reply.status, status);
        String::from_utf8(reply.head.as_slice().to_vec()).unwrap()
    }

    #[test]
    fn a_page_says_its_status_and_its_length() {
        let mut pages = pages();
        let page = text(&mut pages, Status::NOT_FOUND, false);
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())));
        assert!(!head.contains("Allow:") && !head.contains("Retry-After:"));
        assert!(body.contains("404") && body.contains("Not Found"));
        assert_eq!(text(&mut pages, Status::NOT_FOUND, true), format!("{head}\r\n\r\n"));
    }

    #[test]
    fn a_405_says_what_is_allowed() {
        let page = text(&mut pages(), Status::METHOD_NOT_ALLOWED, false);
        assert!(page.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"), "{page}");
    }

    /// RFC 9110 §15.6.4
    #[test]
    fn a_503_says_when_to_come_again() {
        let page = text(&mut pages(), Status::SERVICE_UNAVAILABLE, false);
        assert!(page.contains("\r\nRetry-After: 1\r\n"), "{page}");
    }

    #[test]
    fn a_204_says_the_same_and_has_no_body() {
        let page = text(&mut pages(), Status::NO_CONTENT, false);
        assert!(page.starts_with("HTTP/1.1 204 No Content\r\n"), "{page}");
        assert!(page.ends_with("\r\nAllow: GET, HEAD, OPTIONS\r\n\r\n"), "{page}");
        assert!(!page.contains("Content-"), "{page}");
    }

    #[test]
    fn pages_are_made_once() {
        let mut pages = pages();
        for _ in 0..3 {
            text(&mut pages, Status::NOT_FOUND, false);
            text(&mut pages, Status::FORBIDDEN, true);
        }
        assert_eq!(pages.sites[0].pages.len(), 2);
    }

    /// The configuration knows no statuses but by this list.
    #[test]
    fn pages_can_be_made_for_every_error() {
        let errors = Status::ALL.iter().map(|status| status.code()).filter(|code| *code >= 400);
        assert_eq!(errors.collect::<Vec<_>>(), config::ERRORS);
    }
}
