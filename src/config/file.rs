//! The configuration file: which keys there are, and which values each may have.
//!
//! ```toml
//! listen = ["0.0.0.0:80", "[::]:80"]   # listen_fds = [3] for inherited sockets
//! tls_listen = ["0.0.0.0:443"]
//! cpus = "0-3"
//! steer = "auto"                       # or "cpu", "hash"
//! stats = "stats.json"                 # relative to this file's directory
//!
//! [[listener]]                         # one that needs more to be said of it
//! address = "10.0.0.1:8443"            # or `fd = 4`
//! tls = true
//! certificates = [{ cert = "inside.pem", key = "inside.key" }]  # instead of those of [tls]
//! client_ca = "staff.pem"              # who must have signed its clients' certificates
//! client_auth = "required"             # or "optional"
//!
//! [tls]
//! certificates = [{ cert = "site.pem", key = "site.key" }]  # relative to this file's directory
//!
//! [[site]]                             # the first is the default one
//! names = ["example.org", "www.example.org"]
//! root = "/srv/www"                    # relative to this file's directory
//! index = ["index.html"]
//! listing = false                      # of directories that have no index
//! charset = "utf-8"                    # of texts; or another one, or "off"
//! error_pages = { 404 = "/errors/404.html" }
//! mode_allowed = "0004"                # files need one of these permission bits
//! mode_forbidden = "0002"              # and none of these
//! symlinks = "beneath"                 # or "owner", "off"
//! dotfiles = "refuse"                  # or "serve"
//!
//! [[site.headers]]                     # of several that set one field the last holds
//! match = "*.css"                      # names in any directory; "/a/*.css" and "/a/" are paths
//! set = { "Cache-Control" = "max-age=3600" }
//! [[site.headers]]
//! always = true                        # every answer of the site: errors and redirects too
//! set = { "X-Content-Type-Options" = "nosniff" }
//!
//! [site.tls]
//! certificates = [{ cert = "example.pem", key = "example.key" }]  # of this site's names
//! client_ca = "members.pem"            # in place of the listener's; with `client_auth`
//! hsts = "max-age=63072000"            # Strict-Transport-Security, over TLS only
//! redirect = true                      # plain requests are sent on to https; or to a port: 8443
//!
//! [limits]
//! head = "32KiB"
//! [timeouts]
//! idle = "20s"
//! [cache]
//! bytes = "64MiB"
//! [transfer]
//! quantum = "1MiB"
//! [ring]
//! entries = 1024
//! ```

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use toml::de::DeTable;

use super::defaults::FIELDS_MAX;
use super::problem::{Origin, Place};
use super::resolve::Draft;
use super::table::{Table, bytes, choice, cpus, duration, list, numbers, path, whole};
use super::{ETag, Endpoint, Listener, Steer, site, tls, units};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;
const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Overlays a draft with what a file says. `base` is the directory that relative paths start from.
pub(super) fn apply(document: &str, base: &Path, draft: &mut Draft) {
    let (parsed, errors) = DeTable::parse_recoverable(document);
    let offset = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    // What could be recovered from a text with errors may not be what was meant; and the later errors
    // follow from the first as often as not.
    if let Some(error) = errors.iter().min_by_key(|&error| offset(error)) {
        let place = Place::of(document, offset(error));
        return draft.problem(Origin::File(place), "", error.message());
    }
    let mut file = Table::new(document, parsed);
    top(&mut file, base, draft);
    for site in file.tables("site", draft) {
        site::read(site, base, draft);
    }
    limits(file.table("limits", draft), draft);
    timeouts(file.table("timeouts", draft), draft);
    tls::read(file.table("tls", draft), base, draft);
    cache(file.table("cache", draft), draft);
    transfer(file.table("transfer", draft), draft);
    ring(file.table("ring", draft), draft);
    file.finish(draft);
}

fn top(file: &mut Table<'_>, base: &Path, draft: &mut Draft) {
    let plain = Listener::plain;
    file.set("listen", draft, list(address), |draft, addresses| {
        draft.listen_all("listen", addresses.into_iter().map(Endpoint::Address).map(plain));
    });
    file.set("listen_fds", draft, numbers, |draft, descriptors| {
        draft
            .listen_all("listen_fds", descriptors.into_iter().map(Endpoint::Descriptor).map(plain));
    });
    file.set("tls_listen", draft, list(address), |draft, addresses| {
        draft.listen_all(
            "tls_listen",
            addresses.into_iter().map(Endpoint::Address).map(Listener::with_tls),
        );
    });
    for listener in file.tables("listener", draft) {
        tls::read_listener(listener, base, draft);
    }
    file.set("cpus", draft, cpus, |draft, cpus| draft.config.cpus = cpus);
    let steers = [("auto", Steer::Auto), ("cpu", Steer::Cpu), ("hash", Steer::Hash)];
    file.set("steer", draft, choice(&steers), |draft, steer| draft.config.steer = steer);
    file.set("stats", draft, path(base), |draft, path| draft.config.stats = Some(path));
}

fn limits(mut table: Table<'_>, draft: &mut Draft) {
    let t = &mut table;
    t.set("request_line", draft, bytes(256..=MIB), |draft, bytes| {
        draft.config.limits.request_line_bytes = bytes;
    });
    t.set("head", draft, bytes(KIB..=MIB), |draft, bytes| draft.config.limits.head_bytes = bytes);
    t.set("fields", draft, whole(1..=FIELDS_MAX), |draft, count| {
        draft.config.limits.fields = count;
    });
    t.set("body", draft, bytes(0..=1 << 50), |draft, bytes| draft.config.limits.body_bytes = bytes);
    t.set("body_rate", draft, bytes(1..=1 << 30), |draft, bytes| {
        draft.config.limits.body_rate_bytes = bytes;
    });
    t.set("connections_per_shard", draft, whole(1..=1 << 20), |draft, count| {
        draft.config.limits.connections_per_shard = count;
    });
    t.set("requests_per_turn", draft, whole(1..=65_536), |draft, count| {
        draft.config.limits.requests_per_turn = count;
    });
    t.set("pipeline", draft, bytes(KIB..=16 * MIB), |draft, bytes| {
        draft.config.limits.pipeline_bytes = bytes;
    });
    t.set("backlog", draft, whole(1..=i32::MAX), |draft, length| {
        draft.config.limits.backlog = length;
    });
    table.finish(draft);
}

fn timeouts(mut table: Table<'_>, draft: &mut Draft) {
    let t = &mut table;
    let some = || duration(10 * MS, 24 * HOUR);
    t.set("head", draft, some(), |draft, time| draft.config.timeouts.head = time);
    t.set("body", draft, some(), |draft, time| draft.config.timeouts.body = time);
    t.set("handshake", draft, some(), |draft, time| draft.config.timeouts.handshake = time);
    t.set("idle", draft, some(), |draft, time| draft.config.timeouts.idle = time);
    t.set("write_stall", draft, some(), |draft, time| draft.config.timeouts.write_stall = time);
    t.set("linger", draft, some(), |draft, time| draft.config.timeouts.linger = time);
    t.set("grace", draft, duration(Duration::ZERO, 24 * HOUR), |draft, time| {
        draft.config.timeouts.grace = time;
    });
    t.set("defer_accept", draft, duration(Duration::ZERO, HOUR), |draft, time| {
        draft.config.timeouts.defer_accept = time;
    });
    table.finish(draft);
}

fn cache(mut table: Table<'_>, draft: &mut Draft) {
    let t = &mut table;
    let etags = [("mtime-size", ETag::MtimeSize), ("inode", ETag::Inode), ("off", ETag::Off)];
    t.set("entries", draft, whole(1..=1 << 24), |draft, count| {
        draft.config.cache.entries = count;
    });
    t.set("bytes", draft, bytes(0..=64 * GIB), |draft, bytes| draft.config.cache.bytes = bytes);
    t.set("descriptors", draft, whole(0..=1 << 24), |draft, count| {
        draft.config.cache.descriptors = count;
    });
    t.set("valid", draft, duration(Duration::ZERO, 24 * HOUR), |draft, time| {
        draft.config.cache.valid = time;
    });
    t.set("inline", draft, bytes(0..=16 * MIB), |draft, bytes| {
        draft.config.cache.inline_bytes = bytes;
    });
    t.set("error_page", draft, bytes(KIB..=16 * MIB), |draft, bytes| {
        draft.config.cache.error_page_bytes = bytes;
    });
    t.set("listing_entries", draft, whole(1..=1 << 20), |draft, count| {
        draft.config.cache.listing_entries = count;
    });
    t.set("etag", draft, choice(&etags), |draft, etag| draft.config.cache.etag = etag);
    table.finish(draft);
}

fn transfer(mut table: Table<'_>, draft: &mut Draft) {
    let t = &mut table;
    t.set("quantum", draft, bytes(4 * KIB..=GIB), |draft, bytes| {
        draft.config.transfer.quantum_bytes = bytes;
    });
    t.set("sealed_quantum", draft, bytes(4 * KIB..=16 * MIB), |draft, bytes| {
        draft.config.transfer.sealed_quantum_bytes = bytes;
    });
    t.set("cold_window", draft, bytes(4 * KIB..=16 * MIB), |draft, bytes| {
        draft.config.transfer.cold_window_bytes = bytes;
    });
    table.finish(draft);
}

fn ring(mut table: Table<'_>, draft: &mut Draft) {
    let t = &mut table;
    t.set("entries", draft, whole(8..=32_768), |draft, count| draft.config.ring.entries = count);
    t.set("recv_buffers", draft, whole(8..=32_768), |draft, count| {
        draft.config.ring.recv_buffers = count;
    });
    t.set("recv_buffer", draft, bytes(512..=1 << 20), |draft, bytes| {
        draft.config.ring.recv_buffer_bytes = bytes;
    });
    t.set("fixed_buffers", draft, whole(1..=16_384), |draft, count| {
        draft.config.ring.fixed_buffers = count;
    });
    t.set("min_wait", draft, duration(Duration::ZERO, 10 * MS), |draft, time| {
        draft.config.ring.min_wait = time;
    });
    table.finish(draft);
}

fn address(text: &str) -> Result<SocketAddr, String> {
    units::parse_address(text).map_err(|error| error.to_string())
}
