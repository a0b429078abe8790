//! Why a TLS connection cannot go on: small, so that millions can be counted.

use rustls::{AlertDescription, CertificateError, Error};

/// What went wrong on a TLS connection. No record can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The server sent a fatal alert (RFC 8446 §6.2).
    #[error("the server sent the alert {0:?}")]
    Alert(AlertDescription),
    /// The server's certificate was not accepted.
    #[error("{0}")]
    Certificate(#[from] CertificateFault),
    /// No version, cipher or group is known to both sides.
    #[error("the server speaks no TLS version, cipher suite or group that is offered")]
    Incompatible,
    /// The server broke a rule of the protocol.
    #[error("the server broke the TLS protocol")]
    Misbehaved,
    /// A message that has no place here, such as application data before the handshake is done.
    #[error("the server sent a TLS message out of turn")]
    Unexpected,
    /// Not a TLS record, or not one of the messages that a record may hold.
    #[error("what the server sent is not TLS")]
    Malformed,
    /// A record that was altered, or written with other keys.
    #[error("the server sent a TLS record that cannot be decrypted")]
    Undecryptable,
    /// The handshake was not done when the server closed the connection.
    #[error("the server closed the connection in the TLS handshake")]
    CutOff,
    /// This side cannot go on: no time, no random numbers, keys used up.
    #[error("TLS failed on this side")]
    Local,
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// Its time is over.
    #[error("the server's certificate has expired")]
    Expired,
    /// Its time has not begun.
    #[error("the server's certificate is not valid yet")]
    NotYetValid,
    /// It is another server's.
    #[error("the server's certificate is for another name; give the right one with --sni")]
    Name,
    /// No certificate of `--cacert` vouches for it.
    #[error("the server's certificate was not issued by any of --cacert")]
    Issuer,
    /// The key is not the server's own, or the signature is of a kind that is not supported.
    #[error("the signature by the server's certificate does not hold")]
    Signature,
    /// Anything else.
    #[error("the server's certificate cannot be used")]
    Other,
}

impl From<&CertificateError> for CertificateFault {
    fn from(error: &CertificateError) -> Self {
        use CertificateError as E;
        match error {
            E::Expired | E::ExpiredContext { .. } => Self::Expired,
            E::NotValidYet | E::NotValidYetContext { .. } => Self::NotYetValid,
            E::NotValidForName | E::NotValidForNameContext { .. } => Self::Name,
            E::UnknownIssuer => Self::Issuer,
            E::BadSignature
            | E::UnsupportedSignatureAlgorithmContext { .. }
            | E::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => Self::Signature,
            _ => Self::Other,
        }
    }
}

impl From<Error> for TlsError {
    fn from(error: Error) -> Self {
        match &error {
            Error::AlertReceived(alert) => Self::Alert(*alert),
            Error::InvalidCertificate(error) => Self::Certificate(error.into()),
            Error::NoCertificatesPresented => Self::Certificate(CertificateFault::Other),
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Self::Incompatible,
            Error::PeerMisbehaved(_) => Self::Misbehaved,
            Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
                Self::Unexpected
            }
            Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => Self::Malformed,
            Error::DecryptError => Self::Undecryptable,
            _ => Self::Local,
        }
    }
}
