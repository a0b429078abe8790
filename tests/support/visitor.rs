//! Certificates of a test's own, and visitors that come by TLS.

use std::fs::Permissions;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::{Args, PATIENCE};

/// A directory that everyone may enter, with a configuration, what it names, and who signs that.
pub(crate) struct Pki {
    directory: TempDir,
    root: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    certificate_pem: String,
    key: KeyPair,
}

impl Pki {
    pub(crate) fn new() -> Pki {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let everyone = Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), everyone).expect("the directory is ours");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority of a test");
        let key = KeyPair::generate().expect("a key");
        let root = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let pki = Pki { directory, root };
        pki.write("ca.pem", &pki.root.pem(), 0o644);
        pki
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a file in its place at once, as everybody should.
    pub(crate) fn write(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        let (new, path) = (self.path("new"), self.path(name));
        std::fs::write(&new, content).expect("the directory is ours");
        std::fs::set_permissions(&new, Permissions::from_mode(mode)).expect("it is ours");
        std::fs::rename(new, &path).expect("the directory is ours");
        path
    }

    pub(crate) fn identity(&self, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        change(&mut params);
        let signed = params.signed_by(&key, &self.root).expect("a certificate");
        Identity { certificate: signed.der().clone(), certificate_pem: signed.pem(), key }
    }

    /// A new certificate for these names, in `NAME.pem` and `NAME.key`.
    pub(crate) fn issue(&self, name: &str, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let identity = self.identity(|params| {
            params.subject_alt_names =
                CertificateParams::new(names).expect("names").subject_alt_names;
        });
        self.put(name, &identity);
        identity
    }

    pub(crate) fn put(&self, name: &str, identity: &Identity) {
        self.write(&format!("{name}.pem"), &identity.certificate_pem, 0o644);
        self.write(&format!("{name}.key"), &identity.key.serialize_pem(), 0o600);
    }

    /// `onering COMMAND --config FILE` with this in the file.
    pub(crate) fn run(&self, command: &str, config: &str) -> Args {
        let path = self.write("onering.toml", config, 0o644);
        Args::of([command, "--config"]).arg(path)
    }
}

/// A client that trusts an authority, or whoever is there, and may say who it is.
pub(crate) struct Visitor {
    config: Arc<ClientConfig>,
}

impl Visitor {
    pub(crate) fn new(pki: &Pki, identity: Option<&Identity>) -> Visitor {
        let mut roots = RootCertStore::empty();
        roots.add(pki.root.der().clone()).expect("an authority");
        Visitor::trusting(roots, identity)
    }

    fn trusting(roots: RootCertStore, identity: Option<&Identity>) -> Visitor {
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("both")
            .with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(Identity { certificate, key, .. }) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
                config.with_client_auth_cert(vec![certificate.clone()], key).expect("it fits")
            }
        };
        Visitor { config: Arc::new(config) }
    }

    /// Connects, and comes to the end of the handshake.
    pub(crate) fn connect(&self, address: SocketAddr, name: &str) -> io::Result<Visit> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let tls = ClientConnection::new(Arc::clone(&self.config), name).expect("a client");
        let mut stream = StreamOwned::new(tls, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Visit { stream })
    }

    /// Connects and asks for one thing.
    pub(crate) fn ask(&self, address: SocketAddr, name: &str, request: &str) -> io::Result<String> {
        self.connect(address, name)?.ask(request)
    }
}

/// A connection after its handshake.
pub(crate) struct Visit {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl Visit {
    /// The certificate that was shown.
    pub(crate) fn shown(&self) -> CertificateDer<'static> {
        let chain = self.stream.conn.peer_certificates().expect("the handshake is over");
        chain[0].clone().into_owned()
    }

    /// The head of the answer to a request, in text. The body has a length, and is passed over.
    pub(crate) fn ask(&mut self, request: &str) -> io::Result<String> {
        self.stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&answer);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.to_ascii_lowercase();
                let length = length.split_once("content-length: ").map(|(_, rest)| rest);
                let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
                if body.len() >= length.unwrap_or(0) {
                    return Ok(head.to_owned());
                }
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => answer.extend_from_slice(&more[..bytes]),
            }
        }
    }
}
