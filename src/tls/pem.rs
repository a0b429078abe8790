//! Files of certificates and keys, as administrators keep them: PEM (RFC 7468).
//!
//! It reads regular files of some length only: a FIFO would be waited for, and whoever is waiting can
//! neither serve nor be told to end.

use std::fmt;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::{Zeroize as _, Zeroizing};

use super::problem::{Problems, Severity};

/// Some twenty times what all roots of the web take.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A private key, which is gone from memory when this is.
pub(super) struct PrivateKey(PrivateKeyDer<'static>);

impl PrivateKey {
    pub(super) fn of(der: PrivateKeyDer<'static>) -> Self {
        Self(der)
    }

    pub(super) fn der(&self) -> &PrivateKeyDer<'static> {
        &self.0
    }
}

impl Drop for PrivateKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

/// The certificates of a file, in their order; at least one.
pub(super) fn certificates(
    path: &Path,
    problems: &mut Problems,
) -> Option<Vec<CertificateDer<'static>>> {
    let text = read(path, problems)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let at = path.display();
    let message = match found {
        Ok(found) if !found.is_empty() => return Some(found),
        Ok(_) if has(&text, "PRIVATE KEY-----") => {
            "holds a private key and no certificate: were the two files exchanged?".into()
        }
        Ok(_) if is_der(&text) => format!(
            "is not PEM but DER, it seems; convert it: `openssl x509 -inform der -in {at} -out {at}.pem`"
        ),
        Ok(_) => "has no certificate in it: PEM is needed, with a line `BEGIN CERTIFICATE`".into(),
        Err(error) => damaged(&error),
    };
    problems.add(Severity::Fatal, path, message);
    None
}

/// The private key of a file: the first one, if it has several.
pub(super) fn private_key(path: &Path, problems: &mut Problems) -> Option<PrivateKey> {
    let text = read(path, problems)?;
    let at = path.display();
    let message = match PrivateKeyDer::from_pem_slice(&text) {
        _ if has(&text, "BEGIN ENCRYPTED PRIVATE KEY") || has(&text, "Proc-Type: 4,ENCRYPTED") => {
            format!(
                "is encrypted, and nobody is there to type its passphrase at each start; decrypt it: \
                 `openssl pkey -in {at} -out {at}.plain && chmod 600 {at}.plain`, and name that file"
            )
        }
        Ok(key) => {
            warn_if_open(path, problems);
            return Some(PrivateKey::of(key));
        }
        Err(Error::NoItemsFound) if has(&text, "BEGIN CERTIFICATE") => {
            "holds a certificate and no private key: were the two files exchanged?".into()
        }
        Err(Error::NoItemsFound) if is_der(&text) => format!(
            "is not PEM but DER, it seems; convert it: `openssl pkey -inform der -in {at} -out {at}.pem`"
        ),
        Err(Error::NoItemsFound) => {
            "has no private key in it: PEM is needed, with a line `BEGIN PRIVATE KEY`".into()
        }
        Err(error) => damaged(&error),
    };
    problems.add(Severity::Fatal, path, message);
    None
}

/// Reads a file whole; what is read may be a secret.
fn read(path: &Path, problems: &mut Problems) -> Option<Zeroizing<Vec<u8>>> {
    let content = std::fs::metadata(path).and_then(|found| match found.is_file() {
        true if found.len() <= FILE_BYTES_MAX => std::fs::read(path).map(Ok),
        true => {
            Ok(Err(format!("is larger than {} MiB: this is no PEM file", FILE_BYTES_MAX >> 20)))
        }
        false => Ok(Err("is no regular file; name the file itself".to_owned())),
    });
    match content {
        Ok(Ok(content)) => return Some(Zeroizing::new(content)),
        Ok(Err(message)) => problems.add(Severity::Fatal, path, message),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let message = "cannot be read by this user; start as one who may (root reads keys, and can \
                           listen on ports below 1024), or give it to this one: `chown`";
            problems.forbidden(path, message);
        }
        Err(error) => {
            let message =
                format!("cannot be read: {error}; correct the name, or put the file there");
            problems.add(Severity::Fatal, path, message);
        }
    }
    None
}

/// A key that everybody on the host can read is not much of a secret. (Groups are made for this.)
fn warn_if_open(path: &Path, problems: &mut Problems) {
    let Ok(found) = std::fs::metadata(path) else { return };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o007 != 0 {
        let message = format!(
            "is open to every user of this host (mode {mode:04o}), and holds a private key: `chmod 600 {}`",
            path.display()
        );
        problems.add(Severity::Warning, path, message);
    }
}

fn damaged(error: &Error) -> String {
    let what = match error {
        Error::MissingSectionEnd { end_marker } => {
            format!("`END {}` is missing", String::from_utf8_lossy(end_marker).escape_default())
        }
        Error::IllegalSectionStart { .. } => {
            "a line that begins a section does not end well".into()
        }
        Error::Base64Decode(_) => "a section is not base64".into(),
        other => other.to_string(),
    };
    format!("is damaged: {what}; copy it anew")
}

fn has(text: &[u8], words: &str) -> bool {
    memchr::memmem::find(text, words.as_bytes()).is_some()
}

/// A DER `SEQUENCE` whose length takes two bytes, as certificates and keys have it.
fn is_der(content: &[u8]) -> bool {
    matches!(content, [0x30, 0x81 | 0x82, ..])
}
