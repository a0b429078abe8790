//! Handshakes and records against clients: one of rustls, and one that seals whatever it is told to.

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedCipherSuite,
    SupportedProtocolVersion,
};

use super::*;

mod handshakes;
mod hellos;
mod messages;
mod peer;
mod records;
mod updates;

use peer::Peer;

/// Every suite that the server has.
fn suites() -> impl Iterator<Item = SupportedCipherSuite> {
    // The certificate is ECDSA: the suites of TLS 1.2 for RSA cannot be agreed upon.
    let has_key = |suite: &SupportedCipherSuite| !suite.suite().as_str().unwrap().contains("_RSA_");
    aws_lc_rs::ALL_CIPHER_SUITES.iter().copied().filter(has_key)
}

/// A certificate for `localhost` and its key.
static IDENTITY: LazyLock<(CertificateDer<'static>, KeyPair)> = LazyLock::new(|| {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().into(), key)
});

fn identity() -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let (certificate, key) = &*IDENTITY;
    (vec![certificate.clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

fn server_config() -> ServerConfig {
    server_config_with(aws_lc_rs::default_provider(), rustls::ALL_VERSIONS, None)
}

/// A configuration with other suites, versions or clients than the usual.
fn server_config_with(
    provider: CryptoProvider,
    versions: &[&'static SupportedProtocolVersion],
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> ServerConfig {
    let (chain, key) = identity();
    let builder = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap();
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.enable_secret_extraction = true;
    config
}

fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(IDENTITY.0.clone()).unwrap();
    roots
}

/// A client that offers these suites and no others.
fn client_config(suites: &[SupportedCipherSuite]) -> ClientConfig {
    let provider =
        CryptoProvider { cipher_suites: suites.to_vec(), ..aws_lc_rs::default_provider() };
    let versions: Vec<&SupportedProtocolVersion> =
        suites.iter().map(|suite| suite.version()).collect();
    ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(roots())
        .with_no_client_auth()
}

/// A client of rustls, and the bytes that have come from the server.
struct Client {
    connection: ClientConnection,
}

impl Client {
    fn new(config: ClientConfig) -> Client {
        let name = ServerName::try_from("localhost").unwrap();
        Client { connection: ClientConnection::new(Arc::new(config), name).unwrap() }
    }

    /// What the client has to send, in whole records.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut bytes).unwrap();
        }
        split(&bytes)
    }

    /// Gives the client bytes, and returns the data in them.
    fn receive(&mut self, mut bytes: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let mut data = Vec::new();
        while !bytes.is_empty() {
            self.connection.read_tls(&mut bytes).unwrap();
            let state = self.connection.process_new_packets()?;
            let start = data.len();
            data.resize(start + state.plaintext_bytes_to_read(), 0);
            self.connection.reader().read_exact(&mut data[start..]).unwrap();
        }
        Ok(data)
    }

    /// Seals data of the client's.
    fn seal(&mut self, data: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        for piece in data.chunks(16 * 1024) {
            self.connection.writer().write_all(piece).unwrap();
            records.append(&mut self.sent());
        }
        records
    }
}

/// Cuts bytes into records.
fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let length = record_bytes(bytes, Stage::Handshake).unwrap().unwrap();
        let (record, rest) = bytes.split_at(length);
        records.push(record.to_vec());
        bytes = rest;
    }
    records
}

/// Brings a handshake to its end. If it fails: why, and what the client says of that.
fn shake(
    client: &mut Client,
    config: impl Into<Arc<ServerConfig>>,
    options: &Options,
) -> Result<Session, (Fault, Option<rustls::Error>)> {
    let mut handshake = Handshake::new(config.into());
    let mut records = client.sent().into_iter();
    loop {
        let record = records.next().expect("the client has more to say");
        handshake.push(&record);
        let progress = handshake.advance();
        let received = client.receive(&handshake.outgoing());
        match progress {
            Progress::More => received.map(drop).unwrap(),
            Progress::Done => return Ok(handshake.finish(options).unwrap()),
            Progress::Failed(fault) => return Err((fault, received.err())),
        }
        records = records.chain(client.sent()).collect::<Vec<_>>().into_iter();
    }
}

/// A finished handshake with this suite.
fn pair(suite: SupportedCipherSuite) -> (Client, Session) {
    let mut client = Client::new(client_config(&[suite]));
    let options = Options { ktls: true, ..Options::default() };
    let session = shake(&mut client, server_config(), &options).unwrap();
    assert_eq!(session.info().suite, suite.suite());
    (client, session)
}

/// Opens records of data.
fn open_data(session: &mut Session, records: Vec<Vec<u8>>) -> Vec<u8> {
    let mut data = Vec::new();
    for mut record in records {
        match session.open(&mut record).unwrap() {
            Opened::Data(range) => data.extend_from_slice(&record[range]),
            other => panic!("{other:?} is no data"),
        }
    }
    data
}

/// Bytes of which no two places look alike.
fn noise(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(bytes as u64);
    (0..bytes).map(|_| random.u8(..)).collect()
}

/// Seals data of the session's.
fn seal_data(session: &mut Session, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    session.seal(Content::ApplicationData, &[data], &mut out).unwrap();
    out
}
