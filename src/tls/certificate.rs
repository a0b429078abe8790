//! A certificate, its chain and its key: loaded, and judged as a client will judge them, so that whoever
//! put them there is told before visitors are.
//!
//! What only clients can judge is left to them: whether they trust whoever has signed the last
//! certificate of the chain.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SigningKey};
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;

use crate::config::CertificateFiles;

use super::pem::{self, PrivateKey};
use super::problem::{Problems, Severity};

/// The keys that clients can verify with.
const SUPPORTED: &str = "ECDSA with P-256 or P-384, RSA with 2048 to 8192 bits, Ed25519";

/// RFC 8446 and the CA/Browser Forum's baseline agree on the least, our cryptography sets the most.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// A certificate that can be shown.
pub(super) struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
    kind: KeyKind,
    names: Vec<String>,
    not_after_s: i64,
}

/// What a certificate's key is. The preferred one comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyKind {
    /// The cheapest to sign with, and known to every client of TLS 1.2.
    Ecdsa,
    /// As cheap, but hardly a browser knows it.
    Ed25519,
    /// For the rest. A signature takes twenty times as long.
    Rsa {
        /// Bits of the modulus.
        bits: usize,
    },
}

impl Certificate {
    /// Reads a certificate and its key.
    pub(super) fn load(
        files: &CertificateFiles,
        now_s: i64,
        problems: &mut Problems,
    ) -> Option<Self> {
        // Both are read, so that what is wrong with either is said at once.
        let chain = pem::certificates(&files.chain, problems);
        let key = pem::private_key(&files.key, problems);
        let (chain, key) = chain.zip(key)?;
        Self::judge(chain, &key, files, now_s, problems)
    }

    /// One that was just made.
    pub(super) fn made(chain: Vec<CertificateDer<'static>>, key: &PrivateKey, now_s: i64) -> Self {
        let here = CertificateFiles { chain: "made".into(), key: "made".into() };
        Self::judge(chain, key, &here, now_s, &mut Problems::default())
            .expect("what was just made fits together")
    }

    fn judge(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKey,
        files: &CertificateFiles,
        now_s: i64,
        problems: &mut Problems,
    ) -> Option<Self> {
        let mut parsed = Vec::new();
        for (at, der) in (1..).zip(&chain) {
            match X509Certificate::from_der(der) {
                Ok((_, certificate)) => parsed.push(certificate),
                Err(error) => {
                    let message =
                        format!("certificate {at} of it is damaged ({error}); copy it anew");
                    problems.add(Severity::Fatal, &files.chain, message);
                    return None;
                }
            }
        }
        let leaf = &parsed[0];
        let (kind, key) = match match_key(&parsed, key, files) {
            Ok(matched) => matched,
            Err((file, message)) => {
                problems.add(Severity::Fatal, file, message);
                return None;
            }
        };
        for message in unlinked(&parsed).into_iter().chain(untimely(&parsed, now_s)) {
            problems.add(Severity::Refused, &files.chain, message);
        }
        let names = names(leaf);
        if names.is_empty() {
            let message = "names no host: clients look at its `subjectAltName` alone, which is missing; \
                           have it issued anew";
            problems.add(Severity::Refused, &files.chain, message);
        }
        let not_after_s = leaf.validity().not_after.timestamp();
        drop(parsed);
        Some(Self { chain, key, kind, names, not_after_s })
    }

    /// What its key is.
    pub(super) fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The hosts it is for, in lower case: names, of which some may begin with `*.`, and addresses.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The second from which on it has expired, since the Unix epoch.
    pub(super) fn not_after_s(&self) -> i64 {
        self.not_after_s
    }

    /// What rustls shows and signs with. The copy is the caller's; the key in it is shared, whose
    /// count of references each full handshake touches: little beside the signature.
    pub(super) fn certified_key(&self) -> CertifiedKey {
        CertifiedKey::new(self.chain.clone(), Arc::clone(&self.key))
    }

    /// Whether both show the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.chain == other.chain
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, names, .. } = self;
        f.debug_struct("Certificate").field("kind", kind).field("names", names).finish()
    }
}

/// A file and what is wrong with it.
type Misfit<'f> = (&'f Path, String);

/// The key to sign with, if it is that of the first certificate.
fn match_key<'f>(
    parsed: &[X509Certificate<'_>],
    key: &PrivateKey,
    files: &'f CertificateFiles,
) -> Result<(KeyKind, Arc<dyn SigningKey>), Misfit<'f>> {
    let CertificateFiles { chain: chain_file, key: key_file } = files;
    let shown = parsed[0].public_key();
    let bits = match shown.parsed() {
        Ok(PublicKey::RSA(rsa)) => Some(rsa.key_size()),
        _ => None,
    };
    if let Some(bits) = bits.filter(|bits| !RSA_BITS.contains(bits)) {
        let message = format!(
            "has an RSA key of {bits} bits, and clients take {} to {}; have it issued anew for a key of \
             ECDSA: `openssl ecparam -genkey -name prime256v1`",
            RSA_BITS.start(),
            RSA_BITS.end()
        );
        return Err((chain_file, message));
    }
    let Ok(signing) = any_supported_type(key.der()) else {
        let message =
            format!("is damaged, or of a kind that is not supported: those are {SUPPORTED}");
        return Err((key_file, message));
    };
    let ours = signing.public_key();
    let belongs_to = |certificate: &X509Certificate<'_>| {
        ours.as_ref().is_some_and(|key| key.as_ref() == certificate.public_key().raw)
    };
    if !belongs_to(&parsed[0]) {
        return Err(match parsed.iter().position(belongs_to) {
            Some(at) => {
                let message = format!(
                    "is out of order: the key is that of certificate {}; put that first, then the one \
                     that has signed it, and so on",
                    at + 1
                );
                (chain_file, message)
            }
            None => {
                let chain = chain_file.display();
                let message = format!(
                    "is not the key of {chain}: `openssl pkey -in {} -pubout` and `openssl x509 -in \
                     {chain} -noout -pubkey` differ; name the key that the certificate was asked for with",
                    key_file.display()
                );
                (key_file, message)
            }
        });
    }
    let kind = match (signing.algorithm(), bits) {
        (SignatureAlgorithm::ECDSA, _) => KeyKind::Ecdsa,
        (SignatureAlgorithm::ED25519, _) => KeyKind::Ed25519,
        (SignatureAlgorithm::RSA, Some(bits)) => KeyKind::Rsa { bits },
        _ => {
            let message = format!("is of a kind that is not supported: those are {SUPPORTED}");
            return Err((key_file, message));
        }
    };
    Ok((kind, signing))
}

/// What is wrong with the order of a chain: each certificate must be signed by the next one
/// (RFC 5246 §7.4.2; RFC 8446 §4.4.2 lets clients be lenient).
fn unlinked(parsed: &[X509Certificate<'_>]) -> Option<String> {
    let links =
        |pair: &[X509Certificate<'_>]| pair[0].issuer().as_raw() == pair[1].subject().as_raw();
    let broken = parsed.windows(2).position(|pair| !links(pair));
    if let Some(at) = broken {
        let (issuer, next) = (parsed[at].issuer(), parsed[at + 1].subject());
        let elsewhere = parsed.iter().position(|other| other.subject().as_raw() == issuer.as_raw());
        return Some(match elsewhere.filter(|&elsewhere| elsewhere != at) {
            Some(elsewhere) => format!(
                "is out of order: certificate {} was signed by certificate {}; put that right after it",
                at + 1,
                elsewhere + 1
            ),
            None => format!(
                "does not link: certificate {} was signed by `{issuer}`, and the next one is `{next}`; put \
                 what the authority calls the chain, or the intermediate certificates, after the first",
                at + 1
            ),
        });
    }
    let forged = parsed.windows(2).position(|pair| {
        // What we cannot verify, clients perhaps can.
        let verified = pair[0].verify_signature(Some(pair[1].public_key()));
        verified == Err(X509Error::SignatureVerificationError)
    });
    forged.map(|at| {
        format!(
            "does not link: certificate {} of the chain was not signed with the key of the next one, \
             though with one of that name; take the chain that came with the certificate",
            at + 1
        )
    })
}

/// What is wrong with the times of a chain.
fn untimely(parsed: &[X509Certificate<'_>], now_s: i64) -> Option<String> {
    let of = |at: usize| match at {
        0 => String::new(),
        _ => format!(" (certificate {} of the chain)", at + 1),
    };
    parsed.iter().enumerate().find_map(|(at, certificate)| {
        let validity = certificate.validity();
        if now_s > validity.not_after.timestamp() {
            Some(format!("has expired on {}{}; renew it", validity.not_after, of(at)))
        } else if now_s < validity.not_before.timestamp() {
            let when = validity.not_before;
            Some(format!("is not valid before {when}{}; is this host's clock right?", of(at)))
        } else {
            None
        }
    })
}

/// The hosts that a certificate is for (RFC 9525 §6: the subject's common name counts no more).
fn names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = leaf.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match *name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).to_string()),
            _ => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string()),
        },
        _ => None,
    };
    extension.value.general_names.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests;
