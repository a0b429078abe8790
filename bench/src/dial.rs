//! A connection that is waited for, plain or with TLS: for what is asked before and after a run.

use crate::tls::{TlsError, TlsSettings};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The server does not take it.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// The server.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// It takes it, but the handshake came to nothing.
    #[error("cannot speak TLS with {address}: {error}")]
    Tls {
        /// The server.
        address: SocketAddr,
        /// Why.
        error: TlsError,
    },
    /// The connection broke in the handshake, or nothing came in time.
    #[error("{address} did not answer in the TLS handshake: {error}")]
    Silent {
        /// The server.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
}

/// A connection that stands, its TLS handshake done.
#[derive(Debug)]
pub enum Connection {
    /// Over TCP alone.
    Plain(TcpStream),
    /// Over TLS.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Connection {
    /// Connects to `address`, with TLS if there are settings for it. `timeout` is for the connect, and
    /// for each time that something is awaited afterwards.
    pub fn dial(
        address: SocketAddr,
        tls: Option<&TlsSettings>,
        timeout: Duration,
    ) -> Result<Self, DialError> {
        let connect = || {
            let stream = TcpStream::connect_timeout(&address, timeout)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            Ok(stream)
        };
        let mut stream = connect().map_err(|error| DialError::Connect { address, error })?;
        let Some(settings) = tls else { return Ok(Self::Plain(stream)) };
        let mut tls =
            settings.single_connection().map_err(|error| DialError::Tls { address, error })?;
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).map_err(|error| failed(address, error))?;
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(tls, stream))))
    }
}

/// rustls wraps its own errors as those of the stream.
fn failed(address: SocketAddr, error: io::Error) -> DialError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(inner) => DialError::Tls { address, error: inner.clone().into() },
        None => DialError::Silent { address, error },
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
