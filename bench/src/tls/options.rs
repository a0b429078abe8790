//! What TLS is spoken, as it is asked for, and checked.

use super::error::TlsError;
use super::suites::{CIPHERS, Cipher, GROUPS, Group, TlsVersion, VERSIONS};
use super::verify::AnyCertificate;
use rustls::RootCertStore;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{
    ClientConfig, ClientConnection, Resumption, Tls12Resumption, WebPkiServerVerifier,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why TLS cannot be spoken as told.
#[derive(Debug, thiserror::Error)]
pub enum TlsOptionsError {
    /// Nothing is left to offer.
    #[error("none of --tls-cipher belongs to TLS {0}; add one, or give another --tls-version")]
    NoCipher(TlsVersion),
    /// TLS 1.3 has no ids.
    #[error(
        "sessions of TLS 1.3 are resumed by tickets alone; with --tls-resume-by id, leave it out of \
         --tls-version"
    )]
    NoId,
    /// Not a name or an address that a certificate may be for.
    #[error("`{0}` is no name of a server; give one with --sni")]
    Name(String),
    /// Certificates that cannot be read.
    #[error("cannot read certificates from {}: {error}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why.
        error: pem::Error,
    },
    /// Certificates that vouch for nothing.
    #[error("{} has no certificate that can be trusted: it must be PEM, of X.509 v3", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
}

/// By what a session is known to the server that is to resume it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum ResumeBy {
    /// A ticket (RFC 8446 §4.6.1, RFC 5077); the id of a server of TLS 1.2 that gives no tickets
    #[default]
    Ticket,
    /// The id of a session in the server's own cache, which only TLS 1.2 has (RFC 5246 §7.4.1.2); no
    /// ticket is asked for
    Id,
}

impl ResumeBy {
    /// Whether sessions of a version can be known by it.
    fn is_of(self, version: TlsVersion) -> bool {
        match self {
            Self::Ticket => true,
            Self::Id => version == TlsVersion::Tls12,
        }
    }

    /// What rustls offers of TLS 1.2.
    fn tls12(self) -> Tls12Resumption {
        match self {
            Self::Ticket => Tls12Resumption::SessionIdOrTickets,
            Self::Id => Tls12Resumption::SessionIdOnly,
        }
    }
}

/// What TLS is to be spoken, as written.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// The versions offered; empty: both.
    pub versions: Vec<TlsVersion>,
    /// The cipher suites offered, first the best; empty: all.
    pub ciphers: Vec<Cipher>,
    /// The groups offered, first the one whose key share is sent; empty: all.
    pub groups: Vec<Group>,
    /// The name that the server is asked for and that its certificate must have, if not the URL's.
    pub sni: Option<String>,
    /// Certificates, as PEM, of those who may vouch for the server's; without any, every
    /// certificate is accepted.
    pub cacert: Option<PathBuf>,
    /// By what sessions are resumed; by ids, only TLS 1.2 is offered.
    pub resume_by: ResumeBy,
}

/// What TLS is spoken, checked; each thread makes its own [`TlsClient`](super::TlsClient) of it.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// Each has one of the suites.
    versions: Vec<TlsVersion>,
    ciphers: Vec<Cipher>,
    groups: Vec<Group>,
    name: ServerName<'static>,
    /// `None`: every certificate is accepted. Never empty.
    roots: Option<Arc<RootCertStore>>,
    resume_by: ResumeBy,
}

impl TlsOptions {
    /// Checks the options for a run against the server `host`, a name or an address.
    pub fn check(&self, host: &str) -> Result<TlsSettings, TlsOptionsError> {
        let ciphers = or_all(&self.ciphers, &CIPHERS);
        let mut versions = or_all(&self.versions, &VERSIONS);
        let spoken = |version| ciphers.iter().any(|cipher| cipher.is_of(version));
        // A version that was not asked for by name goes with its suites.
        if let Some(&version) = self.versions.iter().find(|&&version| !spoken(version)) {
            return Err(TlsOptionsError::NoCipher(version));
        }
        if self.versions.iter().any(|&version| !self.resume_by.is_of(version)) {
            return Err(TlsOptionsError::NoId);
        }
        versions.retain(|&version| spoken(version) && self.resume_by.is_of(version));
        if versions.is_empty() {
            return Err(TlsOptionsError::NoCipher(TlsVersion::Tls12));
        }
        let name = self.sni.as_deref().unwrap_or(host);
        Ok(TlsSettings {
            versions,
            ciphers,
            groups: or_all(&self.groups, &GROUPS),
            name: ServerName::try_from(name)
                .map_err(|_| TlsOptionsError::Name(name.to_owned()))?
                .to_owned(),
            roots: self.cacert.as_deref().map(read_roots).transpose()?.map(Arc::new),
            resume_by: self.resume_by,
        })
    }
}

/// Makes connections that are waited for.
#[derive(Clone, Debug)]
pub struct Dialer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Dialer {
    pub(crate) fn connection(&self) -> Result<ClientConnection, TlsError> {
        Ok(ClientConnection::new(Arc::clone(&self.config), self.name.clone())?)
    }
}

/// Of how many servers a dialer remembers sessions: it has one.
const SERVERS: usize = 1;

/// The protocol spoken inside, told to the server (RFC 7301).
const ALPN: &[u8] = b"http/1.1";

impl TlsSettings {
    /// Whether the server's certificate is verified.
    pub fn verifies(&self) -> bool {
        self.roots.is_some()
    }

    /// By what sessions are resumed.
    pub fn resume_by(&self) -> ResumeBy {
        self.resume_by
    }

    /// The name that the server is asked for.
    pub(super) fn name(&self) -> &ServerName<'static> {
        &self.name
    }

    /// Makes connections that are not measured; it resumes no session.
    pub(crate) fn forgetting(&self) -> Dialer {
        self.dialer(Resumption::disabled())
    }

    /// Makes connections that are not measured; it resumes its session each time.
    pub(crate) fn remembering(&self) -> Dialer {
        self.dialer(Resumption::in_memory_sessions(SERVERS))
    }

    fn dialer(&self, resumption: Resumption) -> Dialer {
        Dialer { config: Arc::new(self.config(resumption)), name: self.name.clone() }
    }

    /// A configuration that shares nothing which is counted with another one.
    pub(super) fn config(&self, resumption: Resumption) -> ClientConfig {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: self.ciphers.iter().map(|cipher| *cipher.suite).collect(),
            kx_groups: self.groups.iter().map(|group| group.group).collect(),
            ..aws_lc_rs::default_provider()
        });
        let verifier: Arc<dyn ServerCertVerifier> = match &self.roots {
            None => Arc::new(AnyCertificate::new(provider.signature_verification_algorithms)),
            Some(roots) => {
                WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), provider.clone())
                    .build()
                    .expect("there is a root, and no revocation list to be wrong")
            }
        };
        let versions: Vec<_> = self.versions.iter().map(|version| version.supported()).collect();
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .expect("there is a cipher suite for each version, and a group")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.resumption = resumption.tls12_resumption(self.resume_by.tls12());
        config.alpn_protocols = vec![ALPN.to_vec()];
        config
    }
}

/// What was given, or else everything there is.
fn or_all<T: Copy>(given: &[T], all: &[T]) -> Vec<T> {
    if given.is_empty() { all.to_vec() } else { given.to_vec() }
}

fn read_roots(path: &Path) -> Result<RootCertStore, TlsOptionsError> {
    let failed = |error| TlsOptionsError::Certificates { path: path.to_owned(), error };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    match roots.is_empty() {
        true => Err(TlsOptionsError::NoCertificate { path: path.to_owned() }),
        false => Ok(roots),
    }
}
