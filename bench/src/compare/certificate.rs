//! The certificate that all servers of a comparison have, what TLS is spoken with them, and a client
//! that trusts that certificate alone.
//!
//! A P-256 key made anew for each comparison; nothing of it outlives the directory it is in.

use super::cell::Cell;
use crate::tls::{TlsOptions, TlsOptionsError, TlsSettings, TlsVersion};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Where the certificate and its key are.
#[derive(Clone, Debug)]
pub struct Certificate {
    directory: PathBuf,
}

impl Certificate {
    /// Makes one for `localhost` and 127.0.0.1, and keeps it in a directory.
    pub(super) fn make(directory: &Path) -> io::Result<Self> {
        let names = ["localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()];
        // P-256 is what is made if nothing else is said.
        let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        let this = Self::kept_in(directory);
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        fs::write(this.certificate(), &certificate)?;
        fs::write(this.key(), &key)?;
        fs::write(this.both(), certificate + &key)?;
        Ok(this)
    }

    /// One that is already in a directory.
    pub(super) fn kept_in(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The certificate, as PEM.
    pub(super) fn certificate(&self) -> PathBuf {
        self.directory.join("certificate.pem")
    }

    /// Its private key, as PEM.
    pub(super) fn key(&self) -> PathBuf {
        self.directory.join("key.pem")
    }

    /// Both in one file.
    pub(super) fn both(&self) -> PathBuf {
        self.directory.join("both.pem")
    }

    /// How a client speaks in a cell that trusts the certificate and no other.
    pub(super) fn tls(&self, cell: Cell) -> Result<TlsSettings, TlsOptionsError> {
        let version = cell.tls_version();
        let options = TlsOptions {
            versions: vec![version],
            ciphers: vec![cipher(version).parse().expect("a name that is spoken")],
            cacert: Some(self.certificate()),
            resume_by: cell.resumed_by().unwrap_or_default(),
            ..TlsOptions::default()
        };
        options.check(&Ipv4Addr::LOCALHOST.to_string())
    }
}

/// The cipher suite of a version: AES-128-GCM in both, by OpenSSL's name. It is the only one that the
/// client offers.
pub(super) fn cipher(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::Tls12 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        TlsVersion::Tls13 => "TLS_AES_128_GCM_SHA256",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::cell::CELLS;

    #[test]
    fn a_client_is_made_that_trusts_what_was_made() {
        let directory = tempfile::tempdir().unwrap();
        let certificate = Certificate::make(directory.path()).unwrap();
        for cell in CELLS {
            assert!(certificate.tls(cell).unwrap().verifies());
        }
        let both = fs::read_to_string(certificate.both()).unwrap();
        assert!(both.contains("BEGIN CERTIFICATE") && both.contains("PRIVATE KEY"), "{both}");
    }
}
