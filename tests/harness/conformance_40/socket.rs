//! The program, over sockets of its own.

use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::Shutdown;

use super::{Case, masked};
use crate::support::{Client, Server, Site};

/// However slowly the pieces come.
const SETTINGS: &str = "[timeouts]\nhead = \"1h\"\nbody = \"1h\"\nidle = \"1h\"\nlinger = \"1h\"";

/// Ends a connection that lives on, in good order.
const LAST: &[u8] = b"GET /alpha.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const LAST_BODY: &[u8] = super::ALPHA;

/// A server that is asked.
pub(super) struct Target {
    server: Server,
}

impl Target {
    pub(super) fn start(site: &Site) -> Target {
        Target { server: Server::start(site.serve_with(SETTINGS).cpus("0")) }
    }

    /// All that comes back when these pieces are sent, each by a call of its own, on a connection of
    /// their own. Where it is to live on, `expected_bytes` are read, and one more request shows that
    /// it does.
    pub(super) fn answers(
        &self,
        pieces: &[&[u8]],
        case: &Case,
        expected_bytes: usize,
    ) -> Result<Vec<u8>> {
        let client = Client::connect(self.server.address());
        let mut stream = client.stream();
        for piece in pieces {
            match stream.write_all(piece) {
                Ok(()) => (),
                // What follows a last request, and is sent too late, is not listened to.
                Err(error) if case.closes && is_end(&error) => break,
                Err(error) => return Err(error),
            }
        }
        if case.ends {
            stream.shutdown(Shutdown::Write)?;
        }
        if case.closes {
            return until_the_end(&client);
        }
        let mut received = vec![0; expected_bytes];
        stream.read_exact(&mut received)?;
        stream.write_all(LAST)?;
        let last = until_the_end(&client)?;
        if last.starts_with(b"HTTP/1.1 200 OK\r\n") && last.ends_with(LAST_BODY) {
            return Ok(received);
        }
        Ok([received, b" and then ".to_vec(), last].concat())
    }

    /// On one connection, cuts what is sent at each of these places in turn.
    pub(super) fn answers_however_cut(
        &self,
        case: &Case,
        places: impl Iterator<Item = usize>,
        expected: &[u8],
    ) -> std::result::Result<(), String> {
        let client = Client::connect(self.server.address());
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

fn until_the_end(client: &Client) -> Result<Vec<u8>> {
    let mut received = Vec::new();
    match client.stream().read_to_end(&mut received) {
        Ok(_) => Ok(received),
        Err(error) if is_end(&error) => Ok(received),
        Err(error) => Err(Error::other(format!("{error} after {}", received.escape_ascii()))),
    }
}

/// The peer has gone.
fn is_end(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
