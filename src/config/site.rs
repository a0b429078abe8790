//! What a site is told: its names, where its files are, which of them are served, and what is said
//! about them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder};
use toml::de::DeValue;

use super::defaults;
use super::problem::Origin;
use super::resolve::Draft;
use super::table::{Table, boolean, choice, list, path, string, text, texts};
use super::tls::{self, SiteTls};

/// A set of names and what is served under them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Host names in lower case; empty for a site that only serves as the default.
    pub names: Vec<String>,
    /// What is served.
    pub root: Root,
    /// Names tried, in order, when a directory is asked for.
    pub index: Vec<String>,
    /// Whether a directory without any of them is listed.
    pub listing: bool,
    /// What is said of the character encoding of texts; `None`: nothing.
    pub charset: Option<String>,
    /// Field lines of answers; of two rules that set one field the later holds.
    pub headers: Vec<HeaderRule>,
    /// Files that are sent with an error, by its status: paths from the root, with their slash. A
    /// request that was not understood has no site: it gets the first one's.
    pub error_pages: BTreeMap<u16, String>,
    /// Which files are served, by their permission bits.
    pub modes: Modes,
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// Whether names that begin with a dot are served.
    pub dotfiles: Dotfiles,
    /// What TLS means for it.
    pub tls: SiteTls,
}

/// What a site serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// The files beneath a directory.
    Directory(PathBuf),
    /// The welcome site that is built into the program.
    Welcome,
}

/// Fields that some answers have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRule {
    /// Which answers.
    pub answers: Answers,
    /// Names and values, in the order of the names. An empty value takes away what an earlier rule
    /// has set.
    pub set: Vec<(String, String)>,
}

/// The answers that a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Those that carry a file whose path, from the root and without a slash at its start, matches:
    /// the file that is served, so `*.html` holds for what a directory is served as, too.
    Files(Glob),
    /// All: errors, redirects and listings too.
    All,
}

/// A filter on the permission bits of files, as TUX had it (`net.tux.mode_allowed`, whose numbers were
/// decimal: its 255 is 0o377). TUX wanted a bit for others by default; here nothing is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// At least one of these bits is needed; `None`: none is.
    pub allowed: Option<u32>,
    /// None of these bits may be there.
    pub forbidden: u32,
}

/// Which symbolic links are followed. None ever leads out of the root, and one whose text begins with a
/// slash counts as leading out, wherever it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symlinks {
    /// All that stay beneath the root.
    Beneath,
    /// Of these, the ones whose owner also owns what they lead to; whoever exchanges links, files or
    /// directories meanwhile only makes the look-up fail.
    Owner,
    /// None.
    Off,
}

/// What becomes of names that begin with a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dotfiles {
    /// They are not found, `.well-known` excepted (RFC 8615).
    Refuse,
    /// They are names like any other.
    Serve,
}

/// The statuses that a page can be made for: the errors that the server answers with.
pub const ERRORS: [u16; 16] =
    [400, 403, 404, 405, 408, 412, 413, 414, 416, 417, 421, 431, 500, 501, 503, 505];

impl Site {
    /// A site with this root and the defaults.
    pub fn of(root: Root) -> Self {
        Self {
            names: Vec::new(),
            root,
            index: vec![defaults::INDEX.to_owned()],
            listing: defaults::LISTING,
            charset: Some(defaults::CHARSET.to_owned()),
            headers: Vec::new(),
            error_pages: BTreeMap::new(),
            modes: defaults::MODES,
            symlinks: defaults::SYMLINKS,
            dotfiles: defaults::DOTFILES,
            tls: SiteTls::default(),
        }
    }
}

/// Reads a `[[site]]`. `base` is the directory that a relative root starts from.
pub(super) fn read(mut table: Table<'_>, base: &Path, draft: &mut Draft) {
    let place = table.place();
    let t = &mut table;
    let mut root = None;
    let mut site = Site::of(Root::Welcome);
    t.set("names", draft, list(host_name), |_, names| site.names = names);
    t.set("root", draft, path(base), |_, path| root = Some(path));
    t.set("index", draft, list(file_name), |_, index| site.index = index);
    t.set("listing", draft, boolean, |_, listing| site.listing = listing);
    t.set("charset", draft, charset, |_, charset| site.charset = charset);
    t.set("error_pages", draft, error_pages, |_, pages| site.error_pages = pages);
    t.set("mode_allowed", draft, mode, |_, mode| site.modes.allowed = Some(mode));
    t.set("mode_forbidden", draft, mode, |_, mode| site.modes.forbidden = mode);
    let symlinks =
        [("beneath", Symlinks::Beneath), ("owner", Symlinks::Owner), ("off", Symlinks::Off)];
    t.set("symlinks", draft, choice(&symlinks), |_, symlinks| site.symlinks = symlinks);
    let dotfiles = [("refuse", Dotfiles::Refuse), ("serve", Dotfiles::Serve)];
    t.set("dotfiles", draft, choice(&dotfiles), |_, dotfiles| site.dotfiles = dotfiles);
    for rule in t.tables("headers", draft) {
        site.headers.extend(header_rule(rule, draft));
    }
    site.tls = tls::read_site(t.table("tls", draft), base, draft);
    let misses_root = root.is_none() && !draft.problems.iter().any(|p| p.key == "site.root");
    table.finish(draft);
    if misses_root {
        draft.problem(Origin::File(place), "site.root", "missing: the directory that is served");
    }
    site.root = Root::Directory(root.unwrap_or_default());
    draft.site_places.push(place);
    draft.config.sites.push(site);
}

/// Reads a `[[site.headers]]`.
fn header_rule(mut table: Table<'_>, draft: &mut Draft) -> Option<HeaderRule> {
    let origin = Origin::File(table.place());
    let problems = draft.problems.len();
    let (mut files, mut all, mut set) = (None, false, None);
    table.set("match", draft, |value| glob(&text(value)?), |_, glob| files = Some(glob));
    table.set("always", draft, boolean, |_, always| all = always);
    table.set("set", draft, fields, |_, fields| set = Some(fields));
    table.finish(draft);
    if draft.problems.len() > problems {
        return None;
    }
    let answers = match (files, all) {
        (Some(files), false) => Answers::Files(files),
        (None, true) => Answers::All,
        (Some(_), true) => {
            draft.problem(
                origin,
                "site.headers.always",
                "is for every answer of the site, so `match` cannot hold too: leave out one of \
                 them, or write two rules",
            );
            return None;
        }
        (None, false) => {
            draft.problem(
                origin,
                "site.headers.match",
                "missing: which files, such as \"*.html\"; or `always = true` for every answer",
            );
            return None;
        }
    };
    let Some(set) = set else {
        draft.problem(
            origin,
            "site.headers.set",
            "missing: the fields, such as { \"Cache-Control\" = \"max-age=3600\" }",
        );
        return None;
    };
    if answers == Answers::All && set.iter().any(|(name, _)| is(name, "content-type")) {
        draft.problem(
            origin,
            "site.headers.set",
            "`Content-Type` would be wrong for some of all answers: set it by `match`",
        );
    }
    Some(HeaderRule { answers, set })
}

/// A pattern of paths. Without a slash it is one of names, in whatever directory; with one, of paths
/// from the root; with one at its end, of everything beneath a directory.
fn glob(pattern: &str) -> Result<Glob, String> {
    let from_root = pattern.strip_prefix('/');
    let path = from_root.unwrap_or(pattern);
    let path = match path.strip_suffix('/') {
        Some(directory) => format!("{directory}/**"),
        None if path.is_empty() => "**".to_owned(),
        None if from_root.is_none() && !path.contains('/') => format!("**/{path}"),
        None => path.to_owned(),
    };
    if pattern.is_empty() {
        return Err("an empty pattern matches nothing; write \"**\" for every file".into());
    }
    let glob = GlobBuilder::new(&path).literal_separator(true).backslash_escape(true).build();
    glob.map_err(|error| {
        format!("`{pattern}` is not a pattern: {}; `\\` before a character means it", error.kind())
    })
}

/// The fields that a rule sets.
fn fields(value: &DeValue<'_>) -> Result<Vec<(String, String)>, String> {
    let fields = texts(value, "fields: { \"Cache-Control\" = \"max-age=3600\" }")?;
    let mut seen: Vec<String> = Vec::new();
    for (name, value) in &fields {
        if let Some((_, why)) = OWN_FIELDS.iter().find(|(own, _)| is(name, own)) {
            return Err(format!("`{name}` cannot be set: {why}"));
        }
        if !is_token(name) {
            return Err(format!("`{name}` is not the name of a field; write letters, digits, `-`"));
        }
        // RFC 9110 §5.5: other bytes mean different things to different recipients.
        if value.bytes().any(|byte| !matches!(byte, b' '..=b'~' | b'\t')) {
            return Err(format!("the value of `{name}` has a byte that is not printable ASCII"));
        }
        if value.trim_ascii() != value {
            return Err(format!("the value of `{name}` begins or ends with a space"));
        }
        let lower = name.to_ascii_lowercase();
        if seen.contains(&lower) {
            return Err(format!("`{name}` is there twice: names are the same in either case"));
        }
        seen.push(lower);
    }
    Ok(fields)
}

const FRAMING: &str = "it says how the connection is used, which only the server knows";
const OF_THE_FILE: &str = "it is worked out from the file, and caches rely on it";
const OF_THE_STATUS: &str = "it belongs to single statuses, and has one meaning there";

/// Fields that the server writes itself, and why nobody else may.
const OWN_FIELDS: [(&str, &str); 20] = [
    ("connection", FRAMING),
    ("content-length", FRAMING),
    ("keep-alive", FRAMING),
    ("proxy-connection", FRAMING),
    ("te", FRAMING),
    ("trailer", FRAMING),
    ("transfer-encoding", FRAMING),
    ("upgrade", FRAMING),
    ("accept-ranges", OF_THE_FILE),
    ("content-range", OF_THE_FILE),
    ("etag", "it is worked out from the file; `cache.etag` says how"),
    ("last-modified", OF_THE_FILE),
    (
        "content-encoding",
        "it is that of the compressed file beside the one asked for, if there is one",
    ),
    ("age", "it is for caches in front of the server to say"),
    ("date", "it is the time of the answer"),
    ("server", "it names the server"),
    ("allow", OF_THE_STATUS),
    ("location", OF_THE_STATUS),
    ("retry-after", OF_THE_STATUS),
    (
        "strict-transport-security",
        "it must not be said without TLS (RFC 6797 §7.2); write `hsts` in `[site.tls]`",
    ),
];

fn is(name: &str, lower: &str) -> bool {
    name.eq_ignore_ascii_case(lower)
}

/// RFC 9110 §5.6.2
fn is_token(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(legal)
}

/// The pages of errors.
fn error_pages(value: &DeValue<'_>) -> Result<BTreeMap<u16, String>, String> {
    let pages = texts(value, "pages by status: { 404 = \"/errors/404.html\" }")?;
    let page = |(status, path): (String, String)| {
        let known = status.parse().ok().filter(|code| ERRORS.contains(code));
        let known = known.ok_or_else(|| {
            let errors = ERRORS.map(|code| code.to_string()).join(", ");
            format!("`{status}` is not an error that the server answers with; these are: {errors}")
        })?;
        let segments = path.strip_prefix('/').unwrap_or_default().split('/');
        let odd = |segment: &str| matches!(segment, "" | "." | "..") || segment.contains('\0');
        if segments.into_iter().any(odd) {
            return Err(format!(
                "`{path}` is not a file's path from the site's root; write one such as \
                 \"/errors/{status}.html\", as the file is named and not percent-encoded"
            ));
        }
        Ok((known, path))
    };
    pages.into_iter().map(page).collect()
}

/// The name of a character encoding, or that there is none.
fn charset(value: &DeValue<'_>) -> Result<Option<String>, String> {
    match text(value)?.as_str() {
        "off" => Ok(None),
        name if is_token(name) => Ok(Some(name.to_owned())),
        name => Err(format!("`{name}` is not the name of a charset; write `utf-8` or `off`")),
    }
}

/// Permission bits.
fn mode(value: &DeValue<'_>) -> Result<u32, String> {
    let written = string(value, "permission bits in octal: \"0004\"")?;
    let mode = u32::from_str_radix(written, 8).ok().filter(|&mode| mode <= 0o7777);
    mode.filter(|_| !written.starts_with('+')).ok_or_else(|| {
        format!(
            "`{written}` are no permission bits; write them in octal, as chmod takes them: `0004`"
        )
    })
}

/// A host name, in lower case and without a port.
fn host_name(text: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if bracketed.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
        || (!text.is_empty() && text.bytes().all(legal))
    {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(format!(
            "`{text}` is not a host name; write letters, digits, `-` and `.`, no port and no `*`: \
             the first site answers for all other names"
        ))
    }
}

/// A name within a directory.
fn file_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['/', '\0']) || matches!(text, "." | "..") {
        Err(format!("`{text}` is not the name of a file"))
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests;
