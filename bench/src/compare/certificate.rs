//! The certificate that all servers of a comparison have, and a client that trusts it alone.
//!
//! A P-256 key made anew for each comparison; nothing of it outlives the directory it is in.

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the certificate and its key are.
#[derive(Clone, Debug)]
pub struct Certificate {
    directory: PathBuf,
}

/// What a connection over TLS is to the one who reads and writes.
pub(super) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

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
        fs::write(this.der(), made.cert.der())?;
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

    fn der(&self) -> PathBuf {
        self.directory.join("certificate.der")
    }

    /// A client that trusts the certificate and no other, and speaks what the comparison's servers
    /// are told to speak: TLS 1.3 with AES-128-GCM.
    pub(super) fn client(&self) -> io::Result<Arc<ClientConfig>> {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
        provider.cipher_suites = vec![suite];
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(fs::read(self.der())?)).map_err(io::Error::other)?;
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

/// TLS on a connection that has been made; the handshake is done with the first bytes.
pub(super) fn over(stream: TcpStream, config: Arc<ClientConfig>) -> io::Result<TlsStream> {
    let name = ServerName::from(stream.peer_addr()?.ip());
    let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(session, stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_made_that_trusts_what_was_made() {
        let directory = tempfile::tempdir().unwrap();
        let certificate = Certificate::make(directory.path()).unwrap();
        assert_eq!(certificate.client().unwrap().crypto_provider().cipher_suites.len(), 1);
        let both = fs::read_to_string(certificate.both()).unwrap();
        assert!(both.contains("BEGIN CERTIFICATE") && both.contains("PRIVATE KEY"), "{both}");
    }
}
