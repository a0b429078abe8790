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
//! | `ready` | buffers that are sent as they are, with the date of the second |
//! | `resolve` | the way of a miss: path to open file |
//! | `hosts` | which site a request is for |
//! | `etag`, `mime`, `redirect` | what a head says about a file |
//! | `error_pages`, `welcome` | what is sent without any file |
//!
//! It belongs to one thread: no locks, no atomics. It submits nothing to a ring, sends nothing and
//! waits for nobody: it says *what to send* ([`Reply`]). What it hands out stays whole as long as it
//! is held: evicting or replacing an entry neither changes a byte nor closes a file of a response
//! that is on its way.

pub mod cache;
mod entry;
mod error_pages;
mod etag;
mod hosts;
mod mime;
mod ready;
mod redirect;
mod resolve;
mod welcome;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use crate::config;
use crate::http::{ImfDate, Persistence, Status, target};
use crate::ring::SendBuf;
use crate::sys;

use cache::{Bounds, Sieve, Slot};
use entry::{Asked, Document, Entry};
use error_pages::ErrorPages;
use hosts::Hosts;
use resolve::{Found, Opened, Reading, Root, Trouble};

pub use entry::FileBody;
pub use hosts::SiteId;

/// The file cache of one shard.
#[derive(Debug)]
pub struct Files {
    hosts: Hosts,
    sites: Vec<Site>,
    cache: Sieve<Entry>,
    pages: ErrorPages,
    rules: Rules,
    scratch: Scratch,
    counters: Counters,
}

/// The time, as a shard knows it: read once a turn, so that one turn has one time.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Seconds since the Unix epoch.
    pub unix_s: u64,
    /// The same second as a `Date` says it.
    pub date: ImfDate,
    /// Milliseconds on a clock that never goes back.
    pub monotonic_ms: u64,
}

/// What to send for a request.
#[derive(Debug)]
pub struct Reply {
    /// The status, which `head` says too.
    pub status: Status,
    /// The head; followed by the body, if there is one that is short.
    pub head: SendBuf,
    /// The rest, if it is to be sent from a file.
    pub body: Option<FileBody>,
}

/// Why the files of a site cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A root is not there, or is no directory.
    #[error("cannot serve {root}: no such directory; create it, or name another one")]
    NotFound {
        /// The site's root.
        root: PathBuf,
    },
    /// A root may not be entered.
    #[error(
        "cannot serve {root}: permission denied; every directory on the way to it needs to be \
         searchable (chmod +x) by the user that runs onering"
    )]
    Forbidden {
        /// The site's root.
        root: PathBuf,
    },
    /// No descriptor is left.
    #[error(
        "cannot serve {root}: out of file descriptors; raise `ulimit -n` (LimitNOFILE= of systemd)"
    )]
    NoDescriptors {
        /// The site's root.
        root: PathBuf,
    },
    /// The file system fails.
    #[error("cannot serve {root}: {cause}; see the kernel's log (dmesg)")]
    Failed {
        /// The site's root.
        root: PathBuf,
        /// What the kernel said.
        cause: std::io::Error,
    },
    /// There are more sites than can be told apart.
    #[error("{0} sites are too many: one process serves 65536 at most; divide them")]
    TooManySites(usize),
}

/// What has happened and what is held. Everything but the last three only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests answered from an entry, revalidated or not.
    pub hits: u64,
    /// Requests whose target had no entry.
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
    /// Entries held now.
    pub entries: usize,
    /// Bytes held now by all entries.
    pub bytes: usize,
    /// Descriptors held now by all entries.
    pub descriptors: usize,
}

#[derive(Debug)]
struct Site {
    root: Root,
    index: Vec<String>,
}

/// What the configuration says of every entry.
#[derive(Debug)]
struct Rules {
    valid_ms: u64,
    inline_bytes: u64,
    etag: config::ETag,
}

/// Memory that is used again and again, so that a miss need not ask for it.
#[derive(Debug, Default)]
struct Scratch {
    path: Vec<u8>,
    body: Vec<u8>,
    answer: Vec<u8>,
}

/// An entry just made, and whether it may answer later requests too.
struct Fresh {
    entry: Entry,
    keep: bool,
}

impl Now {
    /// The time.
    pub fn new(unix_s: u64, monotonic_ms: u64) -> Self {
        let date = ImfDate::from_unix_s(i64::try_from(unix_s).unwrap_or(i64::MAX));
        Self { unix_s, date, monotonic_ms }
    }

    /// Goes on to this time; the date is written anew only if the second is another one.
    pub fn advance(&mut self, unix_s: u64, monotonic_ms: u64) {
        if self.unix_s == unix_s {
            self.monotonic_ms = monotonic_ms;
        } else {
            *self = Self::new(unix_s, monotonic_ms);
        }
    }
}

impl Files {
    /// Opens the sites' roots. A root that is renamed later is still the one that is served.
    pub fn open(sites: &[config::Site], cache: &config::Cache) -> Result<Self, OpenError> {
        Ok(Self {
            hosts: Hosts::of(sites).ok_or(OpenError::TooManySites(sites.len()))?,
            sites: sites.iter().map(Site::open).collect::<Result<_, _>>()?,
            cache: Sieve::new(Bounds {
                entries: cache.entries,
                bytes: cache.bytes,
                descriptors: cache.descriptors,
            }),
            pages: ErrorPages::default(),
            rules: Rules {
                valid_ms: millis(cache.valid),
                inline_bytes: cache.inline_bytes as u64,
                etag: cache.etag,
            },
            scratch: Scratch::default(),
            counters: Counters::default(),
        })
    }

    /// The site that a request is for, by its authority: the first one if no other has that name.
    pub fn site(&self, host: Option<&[u8]>) -> SiteId {
        self.hosts.site(host)
    }

    /// What to send for GET, or with `head_only` for HEAD, of a target in origin form.
    ///
    /// Allocates nothing on a hit whose answer was made before. A miss looks the path up in the file
    /// system, which may wait for a disk; it never waits for file contents.
    #[inline]
    pub fn reply(
        &mut self,
        site: SiteId,
        target: &[u8],
        head_only: bool,
        persistence: Persistence,
        now: &Now,
    ) -> Reply {
        // The query does not select a file, so it is no part of the key: an endless row of queries
        // is one entry.
        let (path, query) = target::split_query(target);
        let asked = Asked { persistence, head_only, query, now };
        match self.cache.find(site.0, path) {
            Some(slot) if self.is_current(slot, site, &asked) => {
                self.counters.hits += 1;
                let entry = self.cache.value(slot);
                let reply = entry.answer(&asked, &mut self.pages, &mut self.scratch.answer);
                if entry.has_grown() {
                    let weight = entry.weight(path.len());
                    self.cache.reweigh(slot, weight);
                }
                reply
            }
            Some(_) => self.look_up(site, path, &asked),
            None => {
                self.counters.misses += 1;
                self.look_up(site, path, &asked)
            }
        }
    }

    /// What to send for a request that is refused, whatever it asks for.
    pub fn status(
        &mut self,
        status: Status,
        persistence: Persistence,
        head_only: bool,
        now: &Now,
    ) -> Reply {
        let scratch = &mut self.scratch.answer;
        let head = self.pages.take(status, persistence, head_only, now, scratch);
        Reply { status, head, body: None }
    }

    /// What has happened until now.
    pub fn counters(&self) -> Counters {
        let held = self.cache.held();
        Counters {
            evictions: self.cache.evictions(),
            entries: self.cache.entries(),
            bytes: held.bytes,
            descriptors: held.descriptors,
            ..self.counters
        }
    }

    /// Whether an entry may still answer.
    #[inline]
    fn is_current(&mut self, slot: Slot, site: SiteId, asked: &Asked<'_>) -> bool {
        let entry = self.cache.value(slot);
        if asked.now.monotonic_ms >= entry.fresh_until_ms && !self.revalidate(slot, site, asked) {
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
        let (Some(origin), Root::Directory(root)) =
            (entry.origin(), &self.sites[usize::from(site.0)].root)
        else {
            return false;
        };
        if sys::file::stat_to_compare(root, &origin.path) != Ok(origin.stat) {
            self.counters.stale_changed += 1;
            return false;
        }
        if !origin.conclusive {
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
                entry.keep_inline(&self.scratch.body, asked, &mut self.scratch.answer);
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
        let keep = matches!(fresh, Ok(Fresh { keep: true, .. }));
        if !keep && let Some(slot) = self.cache.find(site.0, path) {
            self.cache.remove(slot);
        }
        match fresh {
            Ok(Fresh { mut entry, .. }) => {
                let reply = entry.answer(asked, &mut self.pages, &mut self.scratch.answer);
                let weight = entry.weight(path.len());
                if keep && self.cache.insert(site.0, path, weight, entry).is_err() {
                    self.counters.too_heavy += 1;
                }
                reply
            }
            Err(status) => self.status(status, asked.persistence, asked.head_only, asked.now),
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
            Found::File(opened) => return Ok(self.open_entry(opened, asked)),
            Found::Directory => Entry::redirect(&self.scratch.path, fresh_until_ms),
            Found::Nothing(status) => Entry::negative(status, fresh_until_ms),
            Found::Welcome => {
                let answer = &mut self.scratch.answer;
                Entry::inline(Document::welcome(), welcome::PAGE, asked, u64::MAX, answer)
            }
        };
        Ok(Fresh { entry, keep: true })
    }

    /// What the decoded path means. Where descriptors are short, the cache gives some back first.
    fn find(&mut self, site: SiteId) -> Result<Found, Status> {
        let Site { root, index } = &self.sites[usize::from(site.0)];
        let path = &self.scratch.path;
        let mut found = resolve::resolve(root, path, index);
        if found.as_ref().err() == Some(&Trouble::NoDescriptors) {
            self.counters.descriptors_short += 1;
            // Not just one: it would be wanted again by the next miss.
            let some = self.cache.held().descriptors.div_ceil(8);
            if self.cache.evict_holders(some) > 0 {
                found = resolve::resolve(root, path, index);
            }
        }
        found.map_err(|trouble| {
            self.counters.troubles += 1;
            match trouble {
                Trouble::NoDescriptors => Status::SERVICE_UNAVAILABLE,
                Trouble::Failed => Status::INTERNAL_SERVER_ERROR,
            }
        })
    }

    /// Chooses how an open file is answered: whole from memory, where it is small and there.
    fn open_entry(&mut self, mut opened: Opened, asked: &Asked<'_>) -> Fresh {
        let fresh_until_ms = self.rules.fresh_until_ms(asked.now);
        let Scratch { body, answer, .. } = &mut self.scratch;
        let reading = match opened.stat.bytes <= self.rules.inline_bytes {
            true => resolve::read_whole(&opened.file, &opened.stat, body),
            false => Reading::Cold,
        };
        if reading == Reading::Changed {
            self.counters.unsettled += 1;
            // Somebody is writing it. This one response is sent from it as it is now.
            opened.stat = sys::file::stat(&opened.file).unwrap_or(opened.stat);
        }
        let document = Document::of(&opened, self.rules.etag, asked.now);
        let entry = match reading {
            Reading::Whole => Entry::inline(document, body, asked, fresh_until_ms, answer),
            Reading::Cold | Reading::Changed => Entry::file(document, opened.file, fresh_until_ms),
        };
        Fresh { entry, keep: reading != Reading::Changed }
    }
}

impl Rules {
    fn fresh_until_ms(&self, now: &Now) -> u64 {
        now.monotonic_ms.saturating_add(self.valid_ms)
    }
}

impl Site {
    fn open(site: &config::Site) -> Result<Self, OpenError> {
        let root = match &site.root {
            config::Root::Welcome => Root::Welcome,
            config::Root::Directory(path) => {
                let root = path.clone();
                Root::Directory(sys::file::open_directory(path).map_err(|error| match error {
                    sys::file::OpenError::Forbidden => OpenError::Forbidden { root },
                    sys::file::OpenError::NoDescriptors => OpenError::NoDescriptors { root },
                    sys::file::OpenError::NotFound
                    | sys::file::OpenError::Outside
                    | sys::file::OpenError::Changed => OpenError::NotFound { root },
                    sys::file::OpenError::Other(errno) => {
                        OpenError::Failed { root, cause: std::io::Error::from_raw_os_error(errno) }
                    }
                })?)
            }
        };
        Ok(Self { root, index: site.index.clone() })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
