//! TLS as it is on the wire: records that are made by hand, and what comes back.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::crypto::cipher::{
    InboundOpaqueMessage, MessageDecrypter, MessageEncrypter, OutboundPlainMessage,
};
use rustls::pki_types::ServerName;
use rustls::unbuffered::ConnectionState;
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion,
    SupportedCipherSuite,
};

use super::secure::{Authority, Version, extractable_config};
use super::{Client, PATIENCE};

/// Content types (RFC 8446 §5.1).
pub(crate) const ALERT: u8 = 21;
pub(crate) const HANDSHAKE: u8 = 22;
pub(crate) const APPLICATION_DATA: u8 = 23;

/// Alerts (RFC 8446 §6).
pub(crate) const CLOSE_NOTIFY: u8 = 0;

/// Bytes of the header of a record.
const HEADER_BYTES: usize = 5;

/// A record without protection, as any version that is spoken has it.
pub(crate) fn record(content: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("a record's payload").to_be_bytes();
    [&[content, 3, 3], &length[..], payload].concat()
}

/// The first flight of a client, as records.
pub(crate) fn client_hello(config: &Arc<ClientConfig>, name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::clone(config), name).expect("good settings");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("memory");
    bytes
}

/// The ClientHello of a client of that version, two bytes, that knows no extension.
pub(crate) fn old_client_hello(version: [u8; 2]) -> Vec<u8> {
    let random = [7; 32];
    // TLS_RSA_WITH_AES_128_CBC_SHA, and no compression.
    let rest = [0, 0, 2, 0, 0x2f, 1, 0];
    let body = [&version[..], &random, &rest].concat();
    let length = u8::try_from(body.len()).expect("it is short");
    let message = [&[1, 0, 0, length], &*body].concat();
    let mut record = record(HANDSHAKE, &message);
    record[1..3].copy_from_slice(&version);
    record
}

/// What comes on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A record: its content and its payload.
    Record(u8, Vec<u8>),
    /// The end, in good order or by a reset.
    End,
}

/// The next record of a socket.
#[track_caller]
pub(crate) fn next(mut stream: &TcpStream) -> Seen {
    let mut header = [0; HEADER_BYTES];
    match stream.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if is_end(&error) => return Seen::End,
        Err(error) => panic!("no record and no end: {error}"),
    }
    let mut payload = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
    stream.read_exact(&mut payload).expect("a whole record");
    Seen::Record(header[0], payload)
}

/// The fatal alert that comes without protection as the last thing on a connection.
#[track_caller]
pub(crate) fn last_alert(client: &Client) -> u8 {
    const FATAL: u8 = 2;
    let alert = match next(client.stream()) {
        Seen::Record(ALERT, alert) => alert,
        other => panic!("no alert: {other:?}"),
    };
    assert_eq!((alert[0], alert.len()), (FATAL, 2));
    assert_eq!(next(client.stream()), Seen::End, "after alert {}", alert[1]);
    alert[1]
}

fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset)
}

/// A connection whose handshake is right, and every record after it is made by hand.
pub(crate) struct Crafted {
    socket: TcpStream,
    version: ProtocolVersion,
    encrypter: Box<dyn MessageEncrypter>,
    decrypter: Box<dyn MessageDecrypter>,
    /// Sequence numbers.
    sent: u64,
    received: u64,
}

impl Crafted {
    /// Asks for `localhost` in this version.
    #[track_caller]
    pub(crate) fn connect(
        address: SocketAddr,
        authority: &Authority,
        version: &'static Version,
    ) -> Crafted {
        let config = extractable_config(authority, version);
        let socket = TcpStream::connect_timeout(&address, PATIENCE).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a limit on a socket");
        socket.set_write_timeout(Some(PATIENCE)).expect("a limit on a socket");
        socket.set_nodelay(true).expect("an option of a socket");
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = UnbufferedClientConnection::new(Arc::new(config), name);
        let connection = handshake(connection.expect("good settings"), &socket);
        let suite = connection.negotiated_cipher_suite().expect("the handshake is done");
        let version = connection.protocol_version().expect("the handshake is done");
        let (secrets, _) = connection.dangerous_into_kernel_connection().expect("it may be");
        let (encrypter, _) = ciphers(suite, secrets.tx.1);
        let (_, decrypter) = ciphers(suite, secrets.rx.1);
        let (sent, received) = (secrets.tx.0, secrets.rx.0);
        Crafted { socket, version, encrypter, decrypter, sent, received }
    }

    /// One sealed record, not sent.
    pub(crate) fn seal(&mut self, content: u8, payload: &[u8]) -> Vec<u8> {
        let message = OutboundPlainMessage {
            typ: ContentType::from(content),
            version: ProtocolVersion::TLSv1_2,
            payload: payload.into(),
        };
        let sealed = self.encrypter.encrypt(message, self.sent).expect("a short payload");
        self.sent += 1;
        sealed.encode()
    }

    /// Sends one record; whoever has given up need not read it.
    pub(crate) fn send(&mut self, content: u8, payload: &[u8]) {
        let record = self.seal(content, payload);
        self.send_raw(&record);
    }

    /// Sends bytes as they are.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// The next record, opened.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Seen {
        let Seen::Record(content, mut payload) = next(&self.socket) else { return Seen::End };
        let content = ContentType::from(content);
        let sealed = InboundOpaqueMessage::new(content, ProtocolVersion::TLSv1_2, &mut payload);
        let opened = self.decrypter.decrypt(sealed, self.received).expect("its keys are right");
        self.received += 1;
        Seen::Record(u8::from(opened.typ), opened.payload.to_vec())
    }

    /// All data until it ends like this. Tickets are passed over.
    #[track_caller]
    pub(crate) fn data(&mut self, end: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        while !data.ends_with(end) {
            match self.next() {
                Seen::Record(APPLICATION_DATA, more) => data.extend_from_slice(&more),
                Seen::Record(HANDSHAKE, _) => {}
                other => panic!("{other:?} after {:?}", data.escape_ascii().to_string()),
            }
        }
        data
    }

    /// All data until something else comes, and that: the description of an alert, or `None` for an end
    /// without one. Tickets are passed over.
    #[track_caller]
    pub(crate) fn until_the_end(&mut self) -> (Vec<u8>, Option<u8>) {
        let mut data = Vec::new();
        loop {
            match self.next() {
                Seen::Record(APPLICATION_DATA, more) => data.extend_from_slice(&more),
                Seen::Record(HANDSHAKE, _) => {}
                Seen::Record(_, alert) => return (data, Some(alert[1])),
                Seen::End => return (data, None),
            }
        }
    }

    /// Ends our side of TCP.
    pub(crate) fn end_sending(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    pub(crate) fn version(&self) -> ProtocolVersion {
        self.version
    }
}

/// Brings a handshake to its end, a record at a time, so that nothing behind it is read.
#[track_caller]
fn handshake(
    mut connection: UnbufferedClientConnection,
    mut socket: &TcpStream,
) -> UnbufferedClientConnection {
    let mut incoming = Vec::new();
    let mut outgoing = vec![0; 1 << 16];
    loop {
        let status = connection.process_tls_records(&mut incoming);
        let mut blocked = false;
        match status.state.expect("the server's handshake is right") {
            ConnectionState::EncodeTlsData(mut data) => {
                let bytes = data.encode(&mut outgoing).expect("flights are short");
                socket.write_all(&outgoing[..bytes]).expect("the server reads");
            }
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::BlockedHandshake => blocked = true,
            ConnectionState::WriteTraffic(_) => {
                let discard = status.discard;
                incoming.drain(..discard);
                assert!(incoming.is_empty(), "no more was read than the handshake");
                return connection;
            }
            other => panic!("no state of a handshake: {other:?}"),
        }
        let discard = status.discard;
        incoming.drain(..discard);
        if blocked {
            let mut header = [0; HEADER_BYTES];
            socket.read_exact(&mut header).expect("the server goes on");
            let mut payload = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
            socket.read_exact(&mut payload).expect("a whole record");
            incoming.extend_from_slice(&header);
            incoming.extend_from_slice(&payload);
        }
    }
}

/// What seals and what opens with such secrets.
fn ciphers(
    suite: SupportedCipherSuite,
    secrets: ConnectionTrafficSecrets,
) -> (Box<dyn MessageEncrypter>, Box<dyn MessageDecrypter>) {
    let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else {
        panic!("no other suite was offered")
    };
    let same_key = || key.as_ref().to_vec().try_into().map(<[u8; 32]>::into).expect("32 bytes");
    match suite {
        SupportedCipherSuite::Tls12(suite) => {
            let aead = suite.aead_alg;
            (aead.encrypter(same_key(), iv.as_ref(), &[]), aead.decrypter(same_key(), iv.as_ref()))
        }
        SupportedCipherSuite::Tls13(suite) => {
            let same_iv =
                || iv.as_ref().to_vec().try_into().map(<[u8; 12]>::into).expect("12 bytes");
            let aead = suite.aead_alg;
            (aead.encrypter(same_key(), same_iv()), aead.decrypter(same_key(), same_iv()))
        }
    }
}
