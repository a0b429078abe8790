//! The program, over sockets of its own, with TLS and without.

use std::borrow::Cow;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;

use super::{Case, masked};
use crate::support::secure::{
    Authority, SecureServer, TlsStream, VERSIONS, Version, client_config,
};
use crate::support::{Client, Site};

/// However slowly the pieces come.
const SETTINGS: &str = "[timeouts]\nhead = \"1h\"\nbody = \"1h\"\nidle = \"1h\"\nlinger = \"1h\"";

/// Who the server is where TLS is spoken.
const TLS: &str = "[tls]\ncertificates = [{ cert = \"server.pem\", key = \"server.key\" }]";

/// Ends a connection that lives on, in good order.
const LAST: &[u8] = b"GET /alpha.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const LAST_BODY: &[u8] = super::ALPHA;

/// A server that is asked.
pub(super) struct Target {
    server: SecureServer,
    tls: [Arc<ClientConfig>; 2],
}

/// What carries the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transport {
    Tcp,
    /// Each piece is a record.
    Tls12,
    Tls13,
}

impl Transport {
    pub(super) const ALL: [Transport; 3] = [Transport::Tcp, Transport::Tls12, Transport::Tls13];

    /// The same request as it is made this way: what is `http` without TLS is `https` with it, and what is
    /// wrong there is wrong here.
    pub(super) fn asks<'a>(self, sends: &'a [u8]) -> Cow<'a, [u8]> {
        let target = sends.iter().position(|&byte| byte == b' ').map_or(sends.len(), |at| at + 1);
        let (method, rest) = sends.split_at(target);
        let scheme = rest.iter().position(|&byte| byte == b':').map_or(&[][..], |at| &rest[..at]);
        let other: &[u8] = match (self, &*scheme.to_ascii_lowercase()) {
            (Transport::Tls12 | Transport::Tls13, b"http") => b"https",
            (Transport::Tls12 | Transport::Tls13, b"https") => b"http",
            _ => return sends.into(),
        };
        [method, other, &rest[scheme.len()..]].concat().into()
    }
}

impl Target {
    pub(super) fn start(site: &Site) -> Target {
        let authority = Authority::new("an authority of tests");
        authority.issue(&["localhost"]).keep(site, "server");
        let server = SecureServer::start(site.serve_with(&format!("{SETTINGS}\n{TLS}")).cpus("0"));
        let config = |version: &'static Version| {
            let mut config = client_config(&authority, &[version]);
            // Each case has a connection of its own.
            config.resumption = Resumption::default();
            Arc::new(config)
        };
        Target { server, tls: VERSIONS.map(config) }
    }

    /// All that comes back when these pieces are sent, each by a call of its own, on a connection of
    /// their own. Where it is to live on, `expected_bytes` are read, and one more request shows that
    /// it does.
    pub(super) fn answers(
        &self,
        transport: Transport,
        pieces: &[&[u8]],
        case: &Case,
        expected_bytes: usize,
    ) -> Result<Vec<u8>> {
        let secure = |config| Client::try_secure(self.server.address(), config, "localhost");
        let [tls12, tls13] = &self.tls;
        match transport {
            Transport::Tcp => {
                let client = Client::connect(self.server.plain_address());
                exchange(&mut client.stream(), pieces, case, expected_bytes)
            }
            Transport::Tls12 => exchange(secure(tls12)?.stream_mut(), pieces, case, expected_bytes),
            Transport::Tls13 => exchange(secure(tls13)?.stream_mut(), pieces, case, expected_bytes),
        }
    }

    /// On one connection, cuts what is sent at each of these places in turn.
    pub(super) fn answers_however_cut(
        &self,
        case: &Case,
        places: impl Iterator<Item = usize>,
        expected: &[u8],
    ) -> std::result::Result<(), String> {
        let client = Client::connect(self.server.plain_address());
        let mut stream = client.stream();
        let mut received = vec![0; expected.len()];
        for place in places {
            let (first, second) = case.sends.split_at(place);
            let mut exchange = || {
                stream.write_all(first)?;
                stream.write_all(second)?;
                stream.read_exact(&mut received)
            };
            exchange().map_err(|error| format!("before byte {place}: {error}"))?;
            if masked(&received, case) != expected {
                return Err(format!("before byte {place}: {}", received.escape_ascii()));
            }
        }
        Ok(())
    }
}

/// One end of a connection.
trait Peer: Read + Write {
    /// Says that nothing more comes from this side.
    fn end(&mut self) -> Result<()>;
}

impl Peer for &TcpStream {
    fn end(&mut self) -> Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Peer for TlsStream {
    fn end(&mut self) -> Result<()> {
        self.conn.send_close_notify();
        self.flush()
    }
}

/// All that comes back on a new connection: see [`Target::answers`].
fn exchange(
    peer: &mut impl Peer,
    pieces: &[&[u8]],
    case: &Case,
    expected_bytes: usize,
) -> Result<Vec<u8>> {
    for piece in pieces {
        match peer.write_all(piece) {
            Ok(()) => (),
            // What follows a last request, and is sent too late, is not listened to.
            Err(error) if case.closes && is_end(&error) => break,
            Err(error) => return Err(error),
        }
    }
    if case.ends {
        peer.end()?;
    }
    if case.closes {
        return until_the_end(peer);
    }
    let mut received = vec![0; expected_bytes];
    peer.read_exact(&mut received)?;
    peer.write_all(LAST)?;
    let last = until_the_end(peer)?;
    if last.starts_with(b"HTTP/1.1 200 OK\r\n") && last.ends_with(LAST_BODY) {
        return Ok(received);
    }
    Ok([received, b" and then ".to_vec(), last].concat())
}

/// TLS that ends without having said so is an error here.
fn until_the_end(peer: &mut impl Peer) -> Result<Vec<u8>> {
    let mut received = Vec::new();
    match peer.read_to_end(&mut received) {
        Ok(_) => Ok(received),
        Err(error) if is_end(&error) => Ok(received),
        Err(error) => Err(Error::other(format!("{error} after {}", received.escape_ascii()))),
    }
}

/// The peer has gone.
fn is_end(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
