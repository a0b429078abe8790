//! A connection that is waited for, plain or with TLS: for what is asked before and after a run.

use crate::once::is_silence;
use crate::tls::{Dialer, Negotiated, TlsError, TlsSettings};
use rustls::{ClientConnection, HandshakeKind, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The server does not take it.
    #[error(
        "cannot connect to {address}: {error}\n  fix: start the server there, or name another --target"
    )]
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
    /// Nothing came in time.
    #[error(
        "{address} did not answer in the TLS handshake in time\n  fix: see if it speaks TLS there, \
             or give it more time by --timeout"
    )]
    Late {
        /// The server.
        address: SocketAddr,
    },
    /// The connection broke in the handshake.
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
        match tls {
            None => Ok(Self::Plain(connect(address, timeout)?)),
            Some(settings) => Self::dial_with(&settings.forgetting(), address, timeout),
        }
    }

    /// The same with a dialer of TLS, which may remember sessions.
    pub fn dial_with(
        dialer: &Dialer,
        address: SocketAddr,
        timeout: Duration,
    ) -> Result<Self, DialError> {
        let mut stream = connect(address, timeout)?;
        let mut tls = dialer.connection().map_err(|error| DialError::Tls { address, error })?;
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).map_err(|error| failed(address, error))?;
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(tls, stream))))
    }

    /// How long something is awaited at a time from now on.
    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        let stream = match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        };
        stream.set_read_timeout(Some(timeout))
    }

    /// Whether it has resumed a session of TLS.
    pub fn is_resumed(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.conn.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// What TLS is spoken, if it is.
    pub fn negotiated(&self) -> Option<Negotiated> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => Negotiated::of(&stream.conn),
        }
    }
}

fn connect(address: SocketAddr, timeout: Duration) -> Result<TcpStream, DialError> {
    let connect = || {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(stream)
    };
    connect().map_err(|error| DialError::Connect { address, error })
}

/// rustls wraps its own errors as those of the stream.
fn failed(address: SocketAddr, error: io::Error) -> DialError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(inner) => DialError::Tls { address, error: inner.clone().into() },
        None if is_silence(&error) => DialError::Late { address },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{CertificateFault, TlsOptions};
    use rustls::ServerConfig;
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::PrivateKeyDer;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::thread;

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// A server that echoes one piece over TLS, and its certificate as PEM.
    fn echo() -> (SocketAddr, String) {
        let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(identity.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.cert.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let tls = rustls::ServerConnection::new(config.clone()).unwrap();
                let mut stream = StreamOwned::new(tls, stream.unwrap());
                let mut piece = [0; 100];
                if let Ok(length) = stream.read(&mut piece) {
                    let _ = stream.write_all(&piece[..length]);
                }
            }
        });
        (address, identity.cert.pem())
    }

    #[test]
    fn what_is_written_crosses_with_and_without_tls() {
        let (address, _) = echo();
        let settings = TlsOptions::default().check("localhost").unwrap();
        let mut connection = Connection::dial(address, Some(&settings), TIMEOUT).unwrap();
        connection.write_all(b"echo").unwrap();
        connection.flush().unwrap();
        let mut echoed = [0; 4];
        connection.read_exact(&mut echoed).unwrap();
        assert_eq!(&echoed, b"echo");

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut connection = Connection::dial(address, None, TIMEOUT).unwrap();
        connection.write_all(b"echo").unwrap();
        listener.accept().unwrap().0.read_exact(&mut echoed).unwrap();
        assert_eq!(&echoed, b"echo");
    }

    #[test]
    fn a_handshake_that_comes_to_nothing_is_named() {
        let (address, pem) = echo();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), pem).unwrap();
        let options = TlsOptions { cacert: Some(file.path().into()), ..TlsOptions::default() };
        let elsewhere = options.check("example.org").unwrap();
        match Connection::dial(address, Some(&elsewhere), TIMEOUT) {
            Err(DialError::Tls { error, .. }) => {
                assert_eq!(error, TlsError::Certificate(CertificateFault::Name));
            }
            other => panic!("{other:?}"),
        }
        let settings = TlsOptions::default().check("localhost").unwrap();
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let brief = Duration::from_millis(50);
        let error = Connection::dial(address, Some(&settings), brief).unwrap_err();
        assert!(matches!(error, DialError::Late { .. }), "{error}");
        drop(silent);
        let error = Connection::dial(address, Some(&settings), TIMEOUT).unwrap_err();
        assert!(matches!(error, DialError::Connect { .. }), "{error}");
    }
}
