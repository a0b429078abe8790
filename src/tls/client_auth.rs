//! Who vouches for clients, and whether they are asked.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::config::ClientAuth;

use super::pem;
use super::problem::{Problems, Severity};

/// What is asked of clients, with the certificates that vouch for them.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// Nothing.
    Nothing,
    /// A certificate, if they have one.
    Optional(Authorities),
    /// A certificate.
    Required(Authorities),
}

/// Certificates that vouch for those of clients, ready to be used.
#[derive(Clone, Debug)]
pub(super) struct Authorities {
    roots: Arc<RootCertStore>,
    /// The certificates, each once and in an order of their own: who vouches does not depend on how the
    /// file is written.
    ders: Vec<CertificateDer<'static>>,
}

impl Asked {
    /// Reads what a configuration names.
    pub(super) fn load(client_auth: &ClientAuth, problems: &mut Problems) -> Option<Self> {
        match client_auth {
            ClientAuth::Off => Some(Self::Nothing),
            ClientAuth::Optional { authorities } => {
                Authorities::load(authorities, problems).map(Self::Optional)
            }
            ClientAuth::Required { authorities } => {
                Authorities::load(authorities, problems).map(Self::Required)
            }
        }
    }

    /// What rustls asks and verifies with.
    pub(super) fn verifier(&self, provider: &Arc<CryptoProvider>) -> Arc<dyn ClientCertVerifier> {
        let of = |authorities: &Authorities| {
            let roots = Arc::clone(&authorities.roots);
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
        };
        let built = match self {
            Self::Nothing => return WebPkiClientVerifier::no_client_auth(),
            Self::Optional(authorities) => of(authorities).allow_unauthenticated().build(),
            Self::Required(authorities) => of(authorities).build(),
        };
        built.expect("there are roots, and no revocation lists that could be damaged")
    }

    /// What makes one policy another one.
    pub(super) fn identity(&self) -> (&'static [u8], &[CertificateDer<'static>]) {
        match self {
            Self::Nothing => (b"nothing", &[]),
            Self::Optional(authorities) => (b"optional", &authorities.ders),
            Self::Required(authorities) => (b"required", &authorities.ders),
        }
    }
}

impl Authorities {
    fn load(path: &Path, problems: &mut Problems) -> Option<Self> {
        let mut ders = pem::certificates(path, problems)?;
        ders.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        ders.dedup();
        let mut roots = RootCertStore::empty();
        for der in &ders {
            if let Err(error) = roots.add(der.clone()) {
                let message =
                    format!("a certificate of it cannot vouch for others ({error}); take it out");
                problems.add(Severity::Fatal, path, message);
                return None;
            }
        }
        Some(Self { roots: Arc::new(roots), ders })
    }
}
