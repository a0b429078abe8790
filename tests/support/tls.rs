//! A server's handshake that ends with the keys in the test's hands, by a suite of the test's choice, and
//! clients that read at a pace.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use onering::sys::ktls::{Cipher, Keys, Version};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::crypto::cipher::{AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter};
use rustls::kernel::KernelConnection;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{
    ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConfig,
    StreamOwned, SupportedCipherSuite,
};

use super::Client;
use super::secure::{Authority, Identity, client_config_for};

/// Every cipher suite that the kernel has.
pub(crate) const SUITES: [SupportedCipherSuite; 6] = [
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// Who a handshake of the test's own is made as.
static US: LazyLock<(Authority, Identity)> = LazyLock::new(|| {
    let authority = Authority::new("an authority of tests");
    let identity = authority.issue(&["localhost"]);
    (authority, identity)
});

/// A server that speaks one suite only, and gives its keys away.
pub(crate) fn server_config(suite: SupportedCipherSuite) -> Arc<ServerConfig> {
    let Identity { certificate, key } = &US.1;
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let provider = CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[suite.version()])
        .expect("the suite is of that version")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they belong together");
    config.enable_secret_extraction = true;
    Arc::new(config)
}

/// A client of such a server.
pub(crate) fn client(suite: SupportedCipherSuite) -> ClientConnection {
    connection(&US.0, suite)
}

fn connection(authority: &Authority, suite: SupportedCipherSuite) -> ClientConnection {
    let config = Arc::new(client_config_for(authority, suite));
    let name = ServerName::try_from("localhost").expect("a name");
    ClientConnection::new(config, name).expect("a configuration")
}

/// How fast a peer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As fast as it can.
    Fast,
    /// A few thousand bytes at a time, with pauses, and with little room for what it has not read.
    Slow,
}

/// The stream of a TLS client.
pub(crate) type Stream = StreamOwned<ClientConnection, Paced>;

/// A socket that is read from at a pace.
pub(crate) struct Paced {
    socket: TcpStream,
    pace: Pace,
}

impl Read for Paced {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.pace == Pace::Fast {
            return self.socket.read(into);
        }
        thread::sleep(Duration::from_millis(1));
        let most = into.len().min(8 << 10);
        self.socket.read(&mut into[..most])
    }
}

impl Write for Paced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Client<Stream> {
    /// One that speaks one suite only.
    #[track_caller]
    pub(crate) fn paced(
        address: SocketAddr,
        authority: &Authority,
        suite: SupportedCipherSuite,
        pace: Pace,
    ) -> Self {
        let plain = match pace {
            Pace::Fast => Client::connect(address),
            Pace::Slow => Client::narrow(address, 16 << 10),
        };
        let socket = Paced { socket: plain.into_stream(), pace };
        let mut stream = StreamOwned::new(connection(authority, suite), socket);
        stream.conn.complete_io(&mut stream.sock).expect("a handshake");
        Client::over(stream)
    }

    /// Goes on with other keys, and asks the server to do so, too (TLS 1.3).
    pub(crate) fn update_keys(&mut self) {
        self.stream_mut().conn.refresh_traffic_keys().expect("TLS 1.3");
    }
}

/// A server's side of a connection whose handshake is over.
pub(crate) struct Accepted {
    /// What the kernel needs to seal.
    pub(crate) keys: Keys,
    /// What opens the peer's records.
    pub(crate) opener: Opener,
}

/// The server's side of a handshake, to its end. Takes no byte after it from the stream.
pub(crate) fn accept(mut stream: &TcpStream, suite: SupportedCipherSuite) -> Accepted {
    let mut connection =
        UnbufferedServerConnection::new(server_config(suite)).expect("a configuration");
    let (mut incoming, mut outgoing) = (Vec::new(), Vec::new());
    loop {
        let UnbufferedStatus { discard, state, .. } = connection.process_tls_records(&mut incoming);
        let mut blocked = false;
        match state.expect("the client is in order") {
            ConnectionState::EncodeTlsData(mut data) => {
                let at = outgoing.len();
                outgoing.resize(at + (1 << 14) + 256, 0);
                let bytes = data.encode(&mut outgoing[at..]).expect("a record fits");
                outgoing.truncate(at + bytes);
            }
            ConnectionState::TransmitTlsData(data) => {
                stream.write_all(&outgoing).expect("the client reads");
                outgoing.clear();
                data.done();
            }
            ConnectionState::BlockedHandshake => blocked = true,
            ConnectionState::WriteTraffic(_) => break,
            other => panic!("{other:?}"),
        }
        incoming.drain(..discard);
        if blocked {
            read_record(stream, &mut incoming);
        }
    }
    let (secrets, kernel) =
        connection.dangerous_into_kernel_connection().expect("the handshake is over");
    let (sequence, transmit) = secrets.tx;
    Accepted {
        keys: keys(kernel.protocol_version(), sequence, transmit),
        opener: Opener::new(suite, kernel, secrets.rx),
    }
}

fn read_record(mut stream: &TcpStream, into: &mut Vec<u8>) {
    let at = into.len();
    into.resize(at + 5, 0);
    stream.read_exact(&mut into[at..]).expect("the client goes on");
    let bytes = usize::from(u16::from_be_bytes([into[at + 3], into[at + 4]]));
    into.resize(at + 5 + bytes, 0);
    stream.read_exact(&mut into[at + 5..]).expect("the client goes on");
}

fn keys(version: ProtocolVersion, sequence: u64, secrets: ConnectionTrafficSecrets) -> Keys {
    let key_32 = |key: &AeadKey| key.as_ref().try_into().expect("32 bytes");
    let (cipher, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
            (Cipher::Aes128Gcm(key.as_ref().try_into().expect("16 bytes")), iv)
        }
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm(key_32(&key)), iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            (Cipher::ChaCha20Poly1305(key_32(&key)), iv)
        }
        other => panic!("the kernel has none of {:?}", std::mem::discriminant(&other)),
    };
    let mut iv: [u8; 12] = iv.as_ref().try_into().expect("12 bytes");
    let version = match version {
        ProtocolVersion::TLSv1_3 => Version::Tls13,
        _ => Version::Tls12,
    };
    if version == Version::Tls12 && !matches!(cipher, Cipher::ChaCha20Poly1305(_)) {
        // rustls has sealed the records before with this nonce and its neighbours.
        iv[4] ^= 0x80;
    }
    Keys { version, cipher, iv, sequence: sequence.to_be_bytes() }
}

/// Opens what a client sends, record by record, through changes of its keys.
pub(crate) struct Opener {
    suite: SupportedCipherSuite,
    kernel: KernelConnection<ServerConnectionData>,
    decrypter: Box<dyn MessageDecrypter>,
    sequence: u64,
    received: Vec<u8>,
}

impl Opener {
    fn new(
        suite: SupportedCipherSuite,
        kernel: KernelConnection<ServerConnectionData>,
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
    ) -> Self {
        let decrypter = decrypter(suite, secrets);
        Self { suite, kernel, decrypter, sequence, received: Vec::new() }
    }

    /// Takes bytes as they come, and returns the content of each record that they complete.
    pub(crate) fn open(&mut self, bytes: &[u8]) -> Vec<(ContentType, Vec<u8>)> {
        self.received.extend_from_slice(bytes);
        let mut opened = Vec::new();
        while let Some(header) = self.received.first_chunk::<5>() {
            let whole = 5 + usize::from(u16::from_be_bytes([header[3], header[4]]));
            let (content_type, version) = (
                ContentType::from(header[0]),
                ProtocolVersion::from(u16::from_be_bytes([header[1], header[2]])),
            );
            if self.received.len() < whole {
                break;
            }
            let mut record: Vec<u8> = self.received.drain(..whole).collect();
            let message = InboundOpaqueMessage::new(content_type, version, &mut record[5..]);
            let plain = self.decrypter.decrypt(message, self.sequence).expect("it is authentic");
            self.sequence += 1;
            let content = (plain.typ, plain.payload.to_vec());
            if content.0 == ContentType::Handshake && content.1.starts_with(&[24, 0, 0, 1]) {
                let (sequence, secrets) = self.kernel.update_rx_secret().expect("TLS 1.3");
                self.decrypter = decrypter(self.suite, secrets);
                self.sequence = sequence;
            }
            opened.push(content);
        }
        opened
    }
}

fn decrypter(
    suite: SupportedCipherSuite,
    secrets: ConnectionTrafficSecrets,
) -> Box<dyn MessageDecrypter> {
    let (key, iv): (AeadKey, Iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
        other => panic!("a suite has none of {:?}", std::mem::discriminant(&other)),
    };
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.aead_alg.decrypter(key, iv),
        SupportedCipherSuite::Tls12(suite) => {
            let implicit = suite.aead_alg.key_block_shape().fixed_iv_len;
            suite.aead_alg.decrypter(key, &iv.as_ref()[..implicit])
        }
    }
}
