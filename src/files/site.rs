//! Sites, open: roots, what is said about files, and why one cannot be served.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::config::{Answers, ClientAuth, HeaderRule, Policies, PolicyId, Redirect};
use crate::{config, sys};

use super::headers::{Fields, HeaderRules};
use super::mime;
use super::tree::Tree;

/// RFC 6797 §6.1
const HSTS: &str = "Strict-Transport-Security";

/// The port that a URI of `https` need not name.
pub(super) const HTTPS: u16 = 443;

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
        "cannot serve {root}: permission denied; it and every directory above it need to be \
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
    /// Header rules are too many or too long together.
    #[error("cannot serve {root}: {cause}; write fewer or shorter patterns in `site.headers`")]
    Patterns {
        /// The site's root.
        root: PathBuf,
        /// What cannot be compiled.
        cause: globset::Error,
    },
    /// There are more sites than can be told apart.
    #[error("{0} sites are too many: one process serves 65536 at most; divide them")]
    TooManySites(usize),
}

/// A site, open.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) root: Root,
    /// Names that stand for a directory, the preferred one first.
    pub(super) index: Vec<String>,
    /// A directory without any of them is listed.
    pub(super) listing: bool,
    pub(super) sayings: Rc<Sayings>,
    /// Requests are sent on to this port, with TLS.
    pub(super) elsewhere: Option<Elsewhere>,
    /// What its clients have to be, if it says so itself.
    pub(super) policy: Option<PolicyId>,
    /// Whether nobody reaches it who has not shown a certificate: so nobody without TLS.
    pub(super) is_for_clients: bool,
}

/// Where a site is that is not served without TLS.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    /// Its name, for requests that name no host.
    pub(super) name: Option<String>,
    pub(super) port: u16,
}

/// Where a site's paths begin.
#[derive(Clone, Debug)]
pub(super) enum Root {
    /// At a directory.
    Directory(Rc<Tree>),
    /// In the program itself.
    Welcome,
}

/// What a site says about its files.
#[derive(Debug)]
pub(super) struct Sayings {
    charset: Option<String>,
    headers: HeaderRules,
}

impl Site {
    /// Opens the root. One that is renamed later is still the one that is served.
    pub(super) fn open(site: &config::Site, policies: &Policies) -> Result<Self, OpenError> {
        let root = match &site.root {
            config::Root::Welcome => Root::Welcome,
            config::Root::Directory(path) => {
                let tree = Tree::open_root(path, site).map_err(|error| why(error, path.clone()))?;
                Root::Directory(Rc::new(tree))
            }
        };
        let sayings = Rc::new(Sayings::of(site, &site.headers)?);
        Ok(Self {
            root,
            index: site.index.clone(),
            listing: site.listing,
            sayings,
            elsewhere: Elsewhere::of(site),
            policy: site.tls.client_auth.as_ref().map(|client_auth| policies.id(client_auth)),
            is_for_clients: matches!(site.tls.client_auth, Some(ClientAuth::Required { .. })),
        })
    }

    /// The same site as it is over TLS; `None`: no difference.
    pub(super) fn over_tls(&self, site: &config::Site) -> Option<Result<Self, OpenError>> {
        let headers = match &site.tls.hsts {
            None if self.elsewhere.is_none() => return None,
            None => Ok(Rc::clone(&self.sayings)),
            Some(policy) => {
                let set = vec![(HSTS.to_owned(), policy.clone())];
                let rule = HeaderRule { answers: Answers::All, set };
                Sayings::of(site, &[&site.headers[..], &[rule]].concat()).map(Rc::new)
            }
        };
        Some(headers.map(|sayings| Self {
            root: self.root.clone(),
            index: self.index.clone(),
            sayings,
            elsewhere: None,
            ..*self
        }))
    }
}

impl Elsewhere {
    fn of(site: &config::Site) -> Option<Self> {
        let port = match site.tls.redirect {
            Redirect::Off => return None,
            Redirect::ToPort(port) => port,
            // Until it is bound, the listener's port is not known.
            Redirect::ToListener => HTTPS,
        };
        Some(Self { name: site.names.first().cloned(), port })
    }
}

impl Sayings {
    /// What a site says, by these rules.
    fn of(site: &config::Site, rules: &[HeaderRule]) -> Result<Self, OpenError> {
        let root = || match &site.root {
            config::Root::Directory(path) => path.clone(),
            config::Root::Welcome => PathBuf::new(),
        };
        let headers =
            HeaderRules::of(rules).map_err(|cause| OpenError::Patterns { root: root(), cause })?;
        Ok(Self { charset: site.charset.clone(), headers })
    }

    /// What is said of the file at a path, relative to the root: its media type, and further fields.
    pub(super) fn of_file(&self, path: &Path) -> (String, Fields) {
        let mut fields = self.headers.fields(Some(path));
        let content_type = match fields.content_type.take() {
            Some(content_type) => content_type.into(),
            None => {
                mime::content_type(path.as_os_str().as_encoded_bytes(), self.charset.as_deref())
            }
        };
        (content_type, fields)
    }

    /// What is said in an answer without a file.
    pub(super) fn without_file(&self) -> Fields {
        self.headers.fields(None)
    }
}

fn why(error: sys::file::OpenError, root: PathBuf) -> OpenError {
    match error {
        sys::file::OpenError::Forbidden => OpenError::Forbidden { root },
        sys::file::OpenError::NoDescriptors => OpenError::NoDescriptors { root },
        sys::file::OpenError::NotFound
        | sys::file::OpenError::Outside
        | sys::file::OpenError::Changed => OpenError::NotFound { root },
        sys::file::OpenError::Other(errno) => {
            OpenError::Failed { root, cause: std::io::Error::from_raw_os_error(errno) }
        }
    }
}
