//! Servers that speak TLS, who they and their clients say that they are, and clients of rustls.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedCipherSuite};

use super::server::{Exit, Stats, unused_address};
use super::{Args, Client, PATIENCE, Server, Site, wait_until};

pub(crate) use rustls::SupportedProtocolVersion as Version;

/// Both versions that are spoken.
pub(crate) const VERSIONS: [&Version; 2] = [&TLS12, &TLS13];

/// Who vouches for certificates.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        Authority { issuer }
    }

    /// Its own certificate, PEM.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("a certificate");
        roots
    }

    /// A certificate for these names and addresses.
    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |_| ())
    }

    /// The same, changed before it is signed.
    pub(crate) fn issue_with(
        &self,
        names: &[&str],
        adapt: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names.clone()).expect("names");
        params.distinguished_name.push(DnType::CommonName, names.concat());
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        adapt(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

/// A certificate and its key, PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Identity {
    /// Writes both beside a site's root, and returns where they are.
    pub(crate) fn keep(&self, site: &Site, stem: &str) -> [PathBuf; 2] {
        [
            site.keep(&format!("{stem}.pem"), &self.certificate),
            site.keep(&format!("{stem}.key"), &self.key),
        ]
    }
}

/// A site, who vouches for its server, and where the server's certificate is.
pub(crate) struct SecureSite {
    pub(crate) site: Site,
    pub(crate) authority: Authority,
}

impl SecureSite {
    /// With one file, for `localhost`, with an ECDSA key as `server.pem` and `server.key`.
    pub(crate) fn with(name: &str, content: impl AsRef<[u8]>) -> SecureSite {
        let site = Site::with(name, content);
        let authority = Authority::new("an authority of tests");
        authority.issue(&["localhost"]).keep(&site, "server");
        SecureSite { site, authority }
    }

    /// `onering serve` on it, with more settings in `[tls]`, and other tables behind them.
    pub(crate) fn serve_with(&self, settings: &str) -> Args {
        let certificates = "certificates = [{ cert = \"server.pem\", key = \"server.key\" }]";
        self.site.serve_with(&format!("[tls]\n{certificates}\n{settings}"))
    }

    /// Serves it.
    #[track_caller]
    pub(crate) fn start(&self) -> SecureServer {
        SecureServer::start(self.serve_with(""))
    }

    /// Of a client that trusts its authority and offers these versions.
    pub(crate) fn client(&self, versions: &[&'static Version]) -> ClientConfig {
        client_config(&self.authority, versions)
    }
}

/// Of a client that trusts an authority and offers these versions.
pub(crate) fn client_config(authority: &Authority, versions: &[&'static Version]) -> ClientConfig {
    config(aws_lc_rs::default_provider(), authority.roots(), versions, None)
}

/// Of a client that trusts an authority and offers one suite.
pub(crate) fn client_config_for(
    authority: &Authority,
    suite: SupportedCipherSuite,
) -> ClientConfig {
    let provider = CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() };
    config(provider, authority.roots(), &[suite.version()], None)
}

/// Of a client whose keys can be taken out, with a suite of which rustls seals from any sequence number on.
pub(crate) fn extractable_config(authority: &Authority, version: &'static Version) -> ClientConfig {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![
        aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    let mut config = config(provider, authority.roots(), &[version], None);
    config.enable_secret_extraction = true;
    config
}

/// Of a client that shows who it is where it is asked.
pub(crate) fn client_config_of(
    identity: &Identity,
    authority: &Authority,
    versions: &[&'static Version],
) -> ClientConfig {
    config(aws_lc_rs::default_provider(), authority.roots(), versions, Some(identity))
}

fn config(
    provider: CryptoProvider,
    roots: RootCertStore,
    versions: &[&'static Version],
    identity: Option<&Identity>,
) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .expect("suites for the versions")
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate, key }) => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
            let chain = chain.collect::<Result<_, _>>().expect("PEM");
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
            builder.with_client_auth_cert(chain, key).expect("a key that fits")
        }
    };
    config.resumption = Resumption::disabled();
    config
}

/// A server that is serving on an address with TLS, and on one without.
pub(crate) struct SecureServer {
    server: Server,
    address: SocketAddr,
}

impl SecureServer {
    /// Starts a server with `--tls-listen`, and what [`Server::start`] adds.
    #[track_caller]
    pub(crate) fn start(args: Args) -> SecureServer {
        let started = SecureServer::try_start(args);
        started.unwrap_or_else(|exit| panic!("the server did not start: {exit:#?}"))
    }

    /// The same for a server that may refuse to start.
    #[track_caller]
    pub(crate) fn try_start(args: Args) -> Result<SecureServer, Exit> {
        let address = unused_address();
        let server = Server::try_start(args.arg("--tls-listen").arg(address.to_string()))?;
        let url = format!("https://{address}");
        wait_until("the server prints its URL with TLS", || server.stdout().contains(&url));
        Ok(SecureServer { server, address })
    }

    /// Where TLS is spoken.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address without TLS.
    pub(crate) fn plain_address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL of `path`, which begins with a slash, by the name that the certificate has.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// What has curl and those like it go to that address for `localhost`.
    pub(crate) fn resolve(&self) -> String {
        format!("localhost:{}:{}", self.address.port(), self.address.ip())
    }

    #[track_caller]
    pub(crate) fn stop(self) -> Stats {
        self.server.stop()
    }
}

impl Deref for SecureServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// What carries a [`Client`]'s bytes over TLS.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl Client<TlsStream> {
    /// A client whose handshake is done; it asks for `localhost`.
    #[track_caller]
    pub(crate) fn secure(address: SocketAddr, config: &Arc<ClientConfig>) -> Self {
        Self::try_secure(address, config, "localhost").expect("the handshake is right")
    }

    /// One that asks for a name, unless the handshake fails.
    pub(crate) fn try_secure(
        address: SocketAddr,
        config: &Arc<ClientConfig>,
        name: &str,
    ) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let connection = ClientConnection::new(Arc::clone(config), name).expect("good settings");
        let mut stream = StreamOwned::new(connection, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Client::over(stream))
    }

    /// Says in TLS that we send no more.
    pub(crate) fn close_sending(&mut self) {
        let stream = self.stream_mut();
        stream.conn.send_close_notify();
        stream.flush().expect("the server reads");
    }
}

/// The alert by which a peer has ended, if rustls says so.
pub(crate) fn alert_of(error: &io::Error) -> Option<u8> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    match error {
        rustls::Error::AlertReceived(alert) => Some(u8::from(*alert)),
        _ => None,
    }
}

/// Everything that a client is told until the end of TLS: it fails where the connection ends without it.
pub(crate) fn until_close_notify(client: &mut Client<TlsStream>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    client.stream_mut().read_to_end(&mut bytes)?;
    Ok(bytes)
}
