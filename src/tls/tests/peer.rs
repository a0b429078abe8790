//! A client that seals whatever it is told to, in records as it likes them.

use rustls::ConnectionTrafficSecrets;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};

use super::super::open::{self, Opener};
use super::super::seal::{Gather, Sealer};
use super::*;

pub(super) struct Peer {
    version: Version,
    sealer: Sealer,
    opener: Opener,
    next: KernelConnection<ClientConnectionData>,
}

impl Peer {
    /// A client and a session with this suite.
    pub(super) fn pair(suite: SupportedCipherSuite) -> (Peer, Session) {
        let mut config = client_config(&[suite]);
        config.enable_secret_extraction = true;
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = UnbufferedClientConnection::new(Arc::new(config), name).unwrap();
        // A ticket is no message that our opener takes.
        let mut server = server_config();
        server.send_tls13_tickets = 0;
        let mut handshake = Handshake::new(Arc::new(server));
        let mut incoming = Vec::new();
        loop {
            let mut progress = Progress::More;
            for record in split(&drive(&mut client, &mut incoming)) {
                handshake.push(&record);
                progress = handshake.advance();
                incoming.append(&mut handshake.outgoing());
            }
            if progress == Progress::Done {
                break;
            }
        }
        drive(&mut client, &mut incoming);
        let session = handshake.finish(&Options::default()).unwrap();
        let (secrets, next) = client.dangerous_into_kernel_connection().unwrap();
        let version = open::version(suite);
        let (sent, tx): (u64, ConnectionTrafficSecrets) = secrets.tx;
        let peer = Peer {
            version,
            sealer: Sealer::new(version, &tx, sent).unwrap(),
            opener: Opener::new(suite, secrets.rx.1, secrets.rx.0).unwrap(),
            next,
        };
        (peer, session)
    }

    /// One record.
    pub(super) fn seal(&mut self, content: Content, text: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        self.sealer.seal(content, &mut Gather::new(&[text]), text.len(), &mut record).unwrap();
        record
    }

    /// Seals with the next key, whatever was said before.
    pub(super) fn update_keys(&mut self) {
        let (sequence, secrets) = self.next.update_tx_secret().unwrap();
        self.sealer = Sealer::new(self.version, &secrets, sequence).unwrap();
    }

    /// Opens one record.
    pub(super) fn open_one(&mut self, record: &mut [u8]) -> Result<Opened, Fault> {
        self.opener.open(record)
    }

    /// Opens records, and returns the data in them and how often the server has changed its key.
    pub(super) fn open(&mut self, bytes: &[u8]) -> Result<(Vec<u8>, usize), Fault> {
        let (mut data, mut updates) = (Vec::new(), 0);
        for mut record in split(bytes) {
            match self.opener.open(&mut record)? {
                Opened::Data(range) => data.extend_from_slice(&record[range]),
                Opened::KeyUpdated { .. } => {
                    updates += 1;
                    self.opener.rekey(self.next.update_rx_secret().unwrap().1)?;
                }
                other => panic!("{other:?} is no data"),
            }
        }
        Ok((data, updates))
    }
}

/// Lets the client go on as far as it can: what it has to send.
fn drive(client: &mut UnbufferedClientConnection, incoming: &mut Vec<u8>) -> Vec<u8> {
    let (mut out, mut room) = (Vec::new(), vec![0; 1 << 15]);
    loop {
        let UnbufferedStatus { discard, state } = client.process_tls_records(incoming);
        let wants_more = match state.unwrap() {
            ConnectionState::EncodeTlsData(mut record) => {
                let bytes = record.encode(&mut room).unwrap();
                out.extend_from_slice(&room[..bytes]);
                false
            }
            ConnectionState::TransmitTlsData(record) => {
                record.done();
                false
            }
            ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => true,
            other => panic!("{other:?} in a handshake"),
        };
        incoming.drain(..discard);
        if wants_more {
            return out;
        }
    }
}
