//! What the targets of TLS share: a server's configuration, and clients of rustls.

use std::sync::{Arc, LazyLock};

use onering::tls::{Handshake, Options, Progress, Session, Stage, record_bytes};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedCipherSuite};

/// A certificate for `localhost` and its key, new in every process.
pub static IDENTITY: LazyLock<Arc<CertifiedKey>> = LazyLock::new(|| {
    let key = rcgen::KeyPair::generate().expect("a key is made");
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("it is a name");
    let certificate = params.self_signed(&key).expect("it is signed");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("it is a key");
    let key = aws_lc_rs::sign::any_supported_type(&key).expect("it is of a kind that is known");
    Arc::new(CertifiedKey::new(vec![certificate.into()], key))
});

/// A server's configuration, whose certificates `resolver` chooses.
pub fn server(resolver: Arc<dyn rustls::server::ResolvesServerCert>) -> ServerConfig {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the suites are of both versions")
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.enable_secret_extraction = true;
    config
}

/// The six suites that an ECDSA key can be used with.
pub fn suites() -> Vec<SupportedCipherSuite> {
    let of_rsa = |suite: &SupportedCipherSuite| {
        suite.suite().as_str().is_some_and(|name| name.contains("_RSA_"))
    };
    aws_lc_rs::ALL_CIPHER_SUITES.iter().copied().filter(|suite| !of_rsa(suite)).collect()
}

/// A client that offers one suite.
pub fn client(suite: SupportedCipherSuite) -> ClientConnection {
    let provider = CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() };
    let mut roots = RootCertStore::empty();
    let certificate: &CertificateDer<'_> = &IDENTITY.cert[0];
    roots.add(certificate.clone()).expect("it is a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[suite.version()])
        .expect("the suite is of this version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("it is a name");
    ClientConnection::new(Arc::new(config), name).expect("it can be used")
}

/// What a client has to send, in whole records.
pub fn sent(client: &mut ClientConnection) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).expect("there is room");
    }
    split(&bytes)
}

/// Cuts bytes into records.
pub fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let length = record_bytes(bytes, Stage::Handshake).expect("it is one").expect("all there");
        let (record, rest) = bytes.split_at(length);
        records.push(record.to_vec());
        bytes = rest;
    }
    records
}

/// Brings a handshake to its end.
pub fn shake(client: &mut ClientConnection, config: Arc<ServerConfig>) -> Session {
    let mut handshake = Handshake::new(config);
    loop {
        for record in sent(client) {
            handshake.push(&record);
        }
        let progress = handshake.advance();
        let outgoing = handshake.outgoing();
        let mut outgoing = &outgoing[..];
        while !outgoing.is_empty() {
            client.read_tls(&mut outgoing).expect("there is room");
            client.process_new_packets().expect("it is what it expects");
        }
        match progress {
            Progress::More => {}
            Progress::Done => return handshake.finish(&Options::default()).expect("it is done"),
            Progress::Failed(fault) => panic!("{fault:?}"),
        }
    }
}
