//! The file cache of one shard: request target to entry, entry to strategy.
//!
//! ```text
//! reply ── hit, fresh ──────────────► entry::answer ─► head, or head and body, ready to send
//!   │                                      ▲
//!   ├─ hit, stale ─ unchanged (one stat) ──┤
//!   └─ miss, changed ─► resolve ─► a new entry, kept if there is room
//! ```
//!
//! | file | story |
//! |---|---|
//! | [`cache`] | the table and whom it evicts |
//! | `entry` | what is kept of a target, and the strategy that follows |
//! | `document` | what a head says about a file |
//! | `variants` | files that hold another one's bytes compressed |
//! | `partial`, `body` | parts of a file; what is sent from one |
//! | `ready` | buffers that are sent as they are, with the date of the second |
//! | `resolve` | the way of a miss: path to open file |
//! | `tree` | what may be reached beneath a root, and what is refused |
//! | `channel` | what TLS, or its absence, makes of a site |
//! | `hosts`, `site` | which site a request is for, where its files are, what it says about them |
//! | `headers` | field lines that the configuration adds |
//! | `etag`, `mime`, `redirect`, `nonces` | words and numbers of heads |
//! | `error_pages` | what is sent with an error |
//! | `listing`, `welcome` | pages that are no files |
//! | `method`, `request` | what is asked, by which method, and what is answered |
//!
//! It belongs to one thread: no locks, no atomics. It submits nothing to a ring, sends nothing and
//! waits for nobody: it says *what to send* ([`Reply`]). What it hands out stays whole as long as it
//! is held: evicting or replacing an entry neither changes a byte nor closes a file of a response
//! that is on its way.

mod body;
pub mod cache;
mod channel;
mod document;
mod entry;
mod error_pages;
mod etag;
mod headers;
mod hosts;
mod listing;
mod method;
mod mime;
mod nonces;
mod partial;
mod ready;
mod redirect;
mod request;
mod resolve;
mod site;
mod tree;
mod variants;
mod welcome;

#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::config;
use crate::http::{Coding, FieldLines, Persistence, ResponseHead, Status, target};
use crate::sys;

use cache::{Bounds, Sieve, Slot};
use channel::BothWays;
use document::{Document, Form};
use entry::{Asked, Entry};
use error_pages::{About, ErrorPages};
use hosts::Hosts;
use nonces::Nonces;
use resolve::{Found, Opened, Reading};
use site::{Root, Site};
use tree::Trouble;
use variants::Variants;

pub use body::FileBody;
pub use hosts::SiteId;
pub use request::{Channel, Now, Reply, Request};
pub use site::OpenError;

/// The file cache of one shard.
#[derive(Debug)]
pub struct Files {
    hosts: Hosts,
    /// Those configured, in their order, as they are without TLS; then some as they are over TLS.
    sites: Vec<Site>,
    /// Some of them only send requests on.
    sends_on: bool,
    /// What each of those configured is over TLS.
    over_tls: Box<[SiteId]>,
    cache: Sieve<Entry>,
    rules: Rules,
    scratch: Scratch,
    supplies: Supplies,
    counters: Counters,
}

/// What has happened and what is held. Everything but the last three only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests answered from an entry, revalidated or not.
    pub hits: u64,
    /// Look-ups of targets, or of a coding of theirs, that had no entry.
    pub misses: u64,
    /// Entries whose time was up and that were compared with the file system.
    pub revalidations: u64,
    /// Of these, and of those found out while being read: entries whose file had changed.
    pub stale_changed: u64,
    /// Entries that other ones had to make room for.
    pub evictions: u64,
    /// Files that became inline on a later hit, once they were in memory.
    pub promotions: u64,
    /// Small files not kept because they changed while they were being read.
    pub unsettled: u64,
    /// Answers not kept because they alone are larger than the cache.
    pub too_heavy: u64,
    /// Targets that name no path (400, 404).
    pub bad_targets: u64,
    /// Look-ups that found no descriptor free, and evicted entries for it.
    pub descriptors_short: u64,
    /// Look-ups that failed all the same, or because of the file system (500, 503).
    pub troubles: u64,
    /// Looks at a site's page about an error that found none to be sent.
    pub error_pages_missing: u64,
    /// Listings that do not have all names.
    pub listings_cut: u64,
    /// Entries held now.
    pub entries: usize,
    /// Bytes held now by all entries.
    pub bytes: usize,
    /// Descriptors held now by all entries.
    pub descriptors: usize,
}

/// What the configuration says of every entry.
#[derive(Debug)]
struct Rules {
    valid_ms: u64,
    inline_bytes: u64,
    listing_entries: usize,
    etag: config::ETag,
}

/// Memory that is used again and again, so that a miss need not ask for it.
#[derive(Debug, Default)]
struct Scratch {
    path: Vec<u8>,
    body: Vec<u8>,
}

/// What answers are made with.
#[derive(Debug)]
struct Supplies {
    pages: ErrorPages,
    nonces: Nonces,
    /// Memory that is used again and again.
    answer: Vec<u8>,
}

/// An entry just made, and whether it may answer later requests too.
struct Fresh {
    entry: Entry,
    keep: bool,
}

impl Files {
    /// Opens the sites' roots. A root that is renamed later is still the one that is served.
    pub fn open(sites: &[config::Site], cache: &config::Cache) -> Result<Self, OpenError> {
        let hosts = Hosts::of(sites).ok_or(OpenError::TooManySites(sites.len()))?;
        let BothWays { open, configured, over_tls } = BothWays::of(sites)?;
        Ok(Self {
            hosts,
            supplies: Supplies {
                pages: ErrorPages::open(&open, &configured, cache),
                nonces: Nonces::default(),
                answer: Vec::new(),
            },
            sends_on: open.iter().any(|site| site.elsewhere.is_some()),
            sites: open,
            over_tls,
            cache: Sieve::new(Bounds {
                entries: cache.entries,
                bytes: cache.bytes,
                descriptors: cache.descriptors,
            }),
            rules: Rules {
                valid_ms: millis(cache.valid),
                inline_bytes: cache.inline_bytes as u64,
                listing_entries: cache.listing_entries,
                etag: cache.etag,
            },
            scratch: Scratch::default(),
            counters: Counters::default(),
        })
    }

    /// What to send for a request.
    ///
    /// Allocates nothing on a hit whose answer was made before, be it a 304; the head of a part is made
    /// for each request. A miss looks the path up in the file system, which may wait for a disk; it
    /// never waits for file contents.
    #[inline]
    pub fn reply(&mut self, site: SiteId, request: &Request<'_>, now: &Now) -> Reply {
        // The query does not select a file, so it is no part of the key: an endless row of queries
        // is one entry.
        let (path, query) = target::split_query(request.target);
        let Request { head_only, persistence, fields, .. } = *request;
        let asked = Asked { site, persistence, head_only, query, fields, now };
        // The path is looked at when it is looked up.
        if let Some(query) = query
            && let Err(error) = target::check_query(query)
        {
            self.counters.bad_targets += 1;
            return self.supplies.page(error.status(), About::default(), &asked);
        }
        match self.find_current(site, None, path, &asked) {
            Some(slot) => match self.cache.value(slot).coding_for(&fields) {
                None => self.answer_from(slot, path, &asked),
                Some(coding) => self.reply_coded(site, coding, path, &asked),
            },
            None => self.look_up(site, path, &asked),
        }
    }

    /// What to send for a request that is answered by a status, whatever it asks for. 204 is the
    /// answer to OPTIONS. Of a request that was not understood nobody knows the site:
    /// [`SiteId::DEFAULT`].
    pub fn status(
        &mut self,
        site: SiteId,
        status: Status,
        persistence: Persistence,
        head_only: bool,
        now: &Now,
    ) -> Reply {
        let fields = FieldLines::NONE;
        let asked = Asked { site, persistence, head_only, query: None, fields, now };
        self.supplies.page(status, About::default(), &asked)
    }

    /// What has happened until now.
    pub fn counters(&self) -> Counters {
        let held = self.cache.held();
        Counters {
            evictions: self.cache.evictions(),
            entries: self.cache.entries(),
            bytes: held.bytes,
            descriptors: held.descriptors,
            error_pages_missing: self.supplies.pages.missing(),
            ..self.counters
        }
    }

    /// The entry of a target, or of a coding of it, that may still answer.
    #[inline]
    fn find_current(
        &mut self,
        site: SiteId,
        coding: Option<Coding>,
        path: &[u8],
        asked: &Asked<'_>,
    ) -> Option<Slot> {
        match self.cache.find(scope(site, coding), path) {
            Some(slot) => self.is_current(slot, site, asked).then_some(slot),
            None => {
                self.counters.misses += 1;
                None
            }
        }
    }

    #[inline]
    fn answer_from(&mut self, slot: Slot, path: &[u8], asked: &Asked<'_>) -> Reply {
        self.counters.hits += 1;
        let entry = self.cache.value(slot);
        let reply = entry.answer(asked, &mut self.supplies);
        if entry.has_grown() {
            let weight = entry.weight(path.len());
            self.cache.reweigh(slot, weight);
        }
        reply
    }

    /// Whether an entry may still answer.
    #[inline]
    fn is_current(&mut self, slot: Slot, site: SiteId, asked: &Asked<'_>) -> bool {
        let entry = self.cache.value(slot);
        // Until a file's time has settled, only another reading shows whether a client that has an
        // earlier one has this one.
        let is_due = asked.now.monotonic_ms >= entry.fresh_until_ms
            || asked.fields.has_condition_or_range() && !entry.is_settled();
        if is_due && !self.revalidate(slot, site, asked) {
            return false;
        }
        match self.cache.value(slot).small_file(self.rules.inline_bytes) {
            Some(_) => self.promote(slot, asked),
            None => true,
        }
    }

    /// Compares an entry whose time is up with the file system. False: it is to be looked up anew.
    #[cold]
    fn revalidate(&mut self, slot: Slot, site: SiteId, asked: &Asked<'_>) -> bool {
        self.counters.revalidations += 1;
        let entry = self.cache.value(slot);
        let (Some(origin), Root::Directory(tree)) =
            (entry.origin(), &self.sites[usize::from(site.0)].root)
        else {
            return false;
        };
        if tree.stat_to_compare(&origin.path) != Some(origin.stat) {
            self.counters.stale_changed += 1;
            return false;
        }
        // A variant that has come or gone changes what is said of the original.
        if !origin.conclusive || Variants::find(tree, &origin.path, &origin.stat) != origin.variants
        {
            return false;
        }
        entry.fresh_until_ms = self.rules.fresh_until_ms(asked.now);
        true
    }

    /// Takes a small file into memory if it has come to be in the page cache. False: it has changed.
    #[cold]
    fn promote(&mut self, slot: Slot, asked: &Asked<'_>) -> bool {
        let entry = self.cache.value(slot);
        let Some((file, stat)) = entry.small_file(self.rules.inline_bytes) else { return true };
        match resolve::read_whole(file, stat, &mut self.scratch.body) {
            Reading::Whole => {
                entry.keep_inline(&self.scratch.body, asked, &mut self.supplies.answer);
                self.counters.promotions += 1;
                true
            }
            Reading::Cold => true,
            Reading::Changed => {
                self.counters.stale_changed += 1;
                false
            }
        }
    }

    /// Makes a new entry for a target and answers from it.
    #[cold]
    fn look_up(&mut self, site: SiteId, path: &[u8], asked: &Asked<'_>) -> Reply {
        let fresh = self.resolve(site, path, asked);
        match fresh {
            Ok(Fresh { mut entry, keep }) => {
                let coding = entry.coding_for(&asked.fields);
                let reply = entry.answer(asked, &mut self.supplies);
                let kept = self.keep(keep, scope(site, None), path, entry);
                match coding {
                    Some(coding) if kept => self.reply_coded(site, coding, path, asked),
                    _ => reply,
                }
            }
            Err(status) => {
                self.forget(scope(site, None), path);
                self.supplies.page(status, About::default(), asked)
            }
        }
    }

    /// What to send of a target whose current entry says that it is there in this coding.
    #[cold]
    fn reply_coded(
        &mut self,
        site: SiteId,
        coding: Coding,
        path: &[u8],
        asked: &Asked<'_>,
    ) -> Reply {
        let coded = self.find_current(site, Some(coding), path, asked);
        let original = self.cache.find(scope(site, None), path);
        let original = original.expect("its entry was found, and nothing was evicted since");
        match coded {
            Some(slot) if self.cache.value(slot).is_document() => {
                self.answer_from(slot, path, asked)
            }
            // It was found before that it cannot be sent.
            Some(_) => self.answer_from(original, path, asked),
            None => self.look_up_coded(original, site, coding, path, asked),
        }
    }

    /// Makes a new entry for a coding of a target and answers from it; from the original if it cannot
    /// be opened.
    fn look_up_coded(
        &mut self,
        original: Slot,
        site: SiteId,
        coding: Coding,
        path: &[u8],
        asked: &Asked<'_>,
    ) -> Reply {
        let opened =
            match (self.cache.value(original).origin(), &self.sites[usize::from(site.0)].root) {
                (Some(origin), Root::Directory(tree)) => {
                    let variant = variants::path_of(&origin.path, coding);
                    resolve::open_variant(tree, variant, &origin.stat)
                }
                _ => Ok(None),
            };
        let scope = scope(site, Some(coding));
        match opened {
            Ok(Some(opened)) => {
                let Fresh { mut entry, keep } = self.open_entry(opened, Form::Coded(coding), asked);
                let reply = entry.answer(asked, &mut self.supplies);
                self.keep(keep, scope, path, entry);
                reply
            }
            Ok(None) => {
                let reply = self.answer_from(original, path, asked);
                let fresh_until_ms = self.rules.fresh_until_ms(asked.now);
                self.keep(true, scope, path, Entry::negative(Status::NOT_FOUND, fresh_until_ms));
                reply
            }
            Err(_) => {
                self.counters.troubles += 1;
                self.answer_from(original, path, asked)
            }
        }
    }

    /// Keeps an entry, or nothing for its target if it is not to be kept. False: it is not there.
    fn keep(&mut self, keep: bool, scope: u32, path: &[u8], entry: Entry) -> bool {
        if !keep {
            self.forget(scope, path);
            return false;
        }
        let weight = entry.weight(path.len());
        let kept = self.cache.insert(scope, path, weight, entry).is_ok();
        self.counters.too_heavy += u64::from(!kept);
        // One that took an old one's place may have been the one that had to leave.
        kept && self.cache.find(scope, path).is_some()
    }

    fn forget(&mut self, scope: u32, path: &[u8]) {
        if let Some(slot) = self.cache.find(scope, path) {
            self.cache.remove(slot);
        }
    }

    /// What a target means now; an error is a status that says nothing about the next request.
    fn resolve(&mut self, site: SiteId, target: &[u8], asked: &Asked<'_>) -> Result<Fresh, Status> {
        let fresh_until_ms = self.rules.fresh_until_ms(asked.now);
        if let Err(error) = target::decode(target, &mut self.scratch.path) {
            self.counters.bad_targets += 1;
            return Err(error.status());
        }
        let entry = match self.find(site)? {
            Found::File(opened) => {
                let variants = match &self.sites[usize::from(site.0)].root {
                    Root::Directory(tree) => Variants::find(tree, &opened.path, &opened.stat),
                    Root::Welcome => Variants::default(),
                };
                return Ok(self.open_entry(opened, Form::Original(variants), asked));
            }
            Found::Directory => Entry::redirect(&self.scratch.path, fresh_until_ms),
            Found::Nothing(status) => Entry::negative(status, fresh_until_ms),
            Found::Listing(directory) => self.list(site, directory, asked)?,
            Found::Welcome => {
                let answer = &mut self.supplies.answer;
                Entry::inline(Document::welcome(), welcome::PAGE, asked, u64::MAX, answer)
            }
        };
        Ok(Fresh { entry, keep: true })
    }

    /// What the decoded path means. Where descriptors are short, the cache gives some back first.
    fn find(&mut self, site: SiteId) -> Result<Found, Status> {
        let site = &self.sites[usize::from(site.0)];
        let path = &self.scratch.path;
        let mut found = resolve::resolve(site, path);
        if found.as_ref().err() == Some(&Trouble::NoDescriptors) {
            self.counters.descriptors_short += 1;
            // Not just one: it would be wanted again by the next miss.
            let some = self.cache.held().descriptors.div_ceil(8);
            if self.cache.evict_holders(some) > 0 {
                found = resolve::resolve(site, path);
            }
        }
        found.map_err(|trouble| self.trouble(trouble))
    }

    /// Makes the listing of the directory that the decoded path means.
    fn list(
        &mut self,
        site: SiteId,
        directory: OwnedFd,
        asked: &Asked<'_>,
    ) -> Result<Entry, Status> {
        let Root::Directory(tree) = &self.sites[usize::from(site.0)].root else {
            unreachable!("the welcome site has no directories")
        };
        let Scratch { path, body } = &mut self.scratch;
        let listed = listing::write(tree, directory, path, self.rules.listing_entries, body);
        self.counters.listings_cut += u64::from(listed.map_err(|trouble| self.trouble(trouble))?);
        let body = &self.scratch.body;
        let fields = self.sites[usize::from(site.0)].sayings.without_file();
        let document = Document::listing(body.len(), fields);
        let fresh_until_ms = self.rules.fresh_until_ms(asked.now);
        Ok(Entry::inline(document, body, asked, fresh_until_ms, &mut self.supplies.answer))
    }

    /// The status that a trouble is answered with.
    fn trouble(&mut self, trouble: Trouble) -> Status {
        self.counters.troubles += 1;
        match trouble {
            Trouble::NoDescriptors => Status::SERVICE_UNAVAILABLE,
            Trouble::Failed => Status::INTERNAL_SERVER_ERROR,
        }
    }

    /// Chooses how an open file is answered: whole from memory, where it is small and there.
    fn open_entry(&mut self, mut opened: Opened, form: Form, asked: &Asked<'_>) -> Fresh {
        let fresh_until_ms = self.rules.fresh_until_ms(asked.now);
        let body = &mut self.scratch.body;
        let reading = match opened.stat.bytes <= self.rules.inline_bytes {
            true => resolve::read_whole(&opened.file, &opened.stat, body),
            false => Reading::Cold,
        };
        if reading == Reading::Changed {
            self.counters.unsettled += 1;
            // Somebody is writing it. This one response is sent from it as it is now.
            opened.stat = sys::file::stat(&opened.file).unwrap_or(opened.stat);
        }
        let Opened { file, stat, path, first_choice } = opened;
        let Supplies { nonces, answer, .. } = &mut self.supplies;
        let found = document::Found { stat, path, first_choice, form };
        let sayings = &self.sites[usize::from(asked.site.0)].sayings;
        let document = Document::of(found, sayings, self.rules.etag, asked.now, nonces);
        let entry = match reading {
            Reading::Whole => Entry::inline(document, body, asked, fresh_until_ms, answer),
            Reading::Cold | Reading::Changed => Entry::file(document, file, fresh_until_ms),
        };
        Fresh { entry, keep: reading != Reading::Changed }
    }
}

impl Supplies {
    /// The answer with a status, and with the page about it.
    fn page(&mut self, status: Status, about: About<'_>, asked: &Asked<'_>) -> Reply {
        self.pages.reply(status, about, asked, &mut self.answer)
    }

    /// Writes a head that is for one answer alone; what it returns is used before anything else is.
    fn write(&mut self, head: &ResponseHead<'_>, now: &Now) -> &mut Vec<u8> {
        self.answer.clear();
        head.write(&now.date, &mut self.answer);
        &mut self.answer
    }
}

impl Rules {
    fn fresh_until_ms(&self, now: &Now) -> u64 {
        now.monotonic_ms.saturating_add(self.valid_ms)
    }
}

/// What a target is kept under: the site, and the coding if it is kept in one.
fn scope(site: SiteId, coding: Option<Coding>) -> u32 {
    u32::from(site.0) << 2 | coding.map_or(0, |coding| 1 + coding as u32)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
