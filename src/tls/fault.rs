//! Why a connection cannot go on, under a name that an operator can use, and the alert that tells the peer.

use std::fmt;

use rustls::{
    AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible, PeerMisbehaved,
};

/// An alert's description: its number (RFC 8446 §6, RFC 5246 §7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert(u8);

impl Alert {
    /// The sender sends no more.
    pub const CLOSE_NOTIFY: Alert = Alert(0);
    /// TLS 1.2: there will be no second handshake on this connection.
    pub const NO_RENEGOTIATION: Alert = Alert(100);
    /// The sender gives up, for a reason that is none of the protocol's. Only a warning, even in TLS 1.3.
    pub(crate) const USER_CANCELED: Alert = Alert(90);

    const UNEXPECTED_MESSAGE: Alert = Alert(10);
    const BAD_RECORD_MAC: Alert = Alert(20);
    const RECORD_OVERFLOW: Alert = Alert(22);
    const HANDSHAKE_FAILURE: Alert = Alert(40);
    const BAD_CERTIFICATE: Alert = Alert(42);
    const CERTIFICATE_REVOKED: Alert = Alert(44);
    const CERTIFICATE_EXPIRED: Alert = Alert(45);
    const ILLEGAL_PARAMETER: Alert = Alert(47);
    const UNKNOWN_CA: Alert = Alert(48);
    const ACCESS_DENIED: Alert = Alert(49);
    const DECODE_ERROR: Alert = Alert(50);
    const PROTOCOL_VERSION: Alert = Alert(70);
    const INTERNAL_ERROR: Alert = Alert(80);
    const CERTIFICATE_REQUIRED: Alert = Alert(116);
    const NO_APPLICATION_PROTOCOL: Alert = Alert(120);

    /// The alert with this number, whether or not it is known.
    pub(crate) fn from_byte(byte: u8) -> Alert {
        Alert(byte)
    }

    /// The content of its record: level and description. Every alert is fatal but close_notify,
    /// user_canceled and no_renegotiation.
    pub fn to_bytes(self) -> [u8; 2] {
        const WARNING: u8 = 1;
        const FATAL: u8 = 2;
        match self {
            Alert::CLOSE_NOTIFY | Alert::USER_CANCELED | Alert::NO_RENEGOTIATION => {
                [WARNING, self.0]
            }
            _ => [FATAL, self.0],
        }
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match AlertDescription::from(self.0).as_str() {
            Some(name) => write!(formatter, "{name} ({})", self.0),
            None => write!(formatter, "{}", self.0),
        }
    }
}

/// Declares the faults once: each with what it is, its name, and the alert that it is told by.
macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $fault:ident = $name:literal => $alert:expr,)+) => {
        /// Why a connection cannot go on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[doc = $doc])+ $fault,)+
            /// The peer gives up, and says so.
            PeerAlert(Alert),
        }

        impl Fault {
            /// Every fault but the peer's own alert.
            pub const ALL: &[Fault] = &[$(Fault::$fault,)+];

            /// Its name in a log.
            pub fn name(self) -> &'static str {
                match self {
                    $(Fault::$fault => $name,)+
                    Fault::PeerAlert(_) => "peer's alert",
                }
            }

            /// The alert that tells the peer; `None` where there is nobody to tell, or no TLS to tell it in.
            pub fn alert(self) -> Option<Alert> {
                match self {
                    $(Fault::$fault => $alert,)+
                    Fault::PeerAlert(_) => None,
                }
            }
        }
    };
}

faults! {
    /// A request of HTTP without TLS: to be answered without TLS.
    PlainHttp = "plain HTTP" => None,
    /// A hello of SSL 2.
    Ssl2Hello = "SSL 2" => Some(Alert::PROTOCOL_VERSION),
    /// Bytes that are no record.
    NotTls = "not TLS" => Some(Alert::PROTOCOL_VERSION),
    /// A record that is longer than any may be.
    RecordOverflow = "oversized record" => Some(Alert::RECORD_OVERFLOW),
    /// More bytes of a handshake in progress than are kept.
    HandshakeTooLarge = "oversized handshake" => Some(Alert::DECODE_ERROR),
    /// A message that cannot be read.
    Malformed = "malformed message" => Some(Alert::DECODE_ERROR),
    /// A message that contradicts another one, or the protocol.
    IllegalParameter = "illegal parameter" => Some(Alert::ILLEGAL_PARAMETER),
    /// A message, or a record, whose time it is not.
    Unexpected = "unexpected message" => Some(Alert::UNEXPECTED_MESSAGE),
    /// Too many records in a row that bring no data.
    Unproductive = "too many records without data" => Some(Alert::UNEXPECTED_MESSAGE),
    /// A record that its key does not open.
    BadRecord = "bad record" => Some(Alert::BAD_RECORD_MAC),
    /// The peer speaks no version that we do.
    NoSharedVersion = "no shared version" => Some(Alert::PROTOCOL_VERSION),
    /// The peer has no cipher suite, group or kind of signature that we have.
    NoSharedSuite = "no shared suite" => Some(Alert::HANDSHAKE_FAILURE),
    /// The peer speaks no application protocol that we do.
    NoSharedProtocol = "no shared application protocol" => Some(Alert::NO_APPLICATION_PROTOCOL),
    /// We have no certificate for what the peer asks for.
    NoCertificate = "no certificate for the name" => Some(Alert::ACCESS_DENIED),
    /// The client has shown no certificate, and must.
    ClientCertificateMissing = "client certificate missing" => Some(Alert::CERTIFICATE_REQUIRED),
    /// The client's certificate holds no more, or not yet.
    ClientCertificateExpired = "client certificate expired" => Some(Alert::CERTIFICATE_EXPIRED),
    /// The client's certificate was issued by nobody whom we know.
    ClientCertificateUnknownIssuer = "client certificate of unknown issuer" => Some(Alert::UNKNOWN_CA),
    /// The client's certificate was revoked.
    ClientCertificateRevoked = "client certificate revoked" => Some(Alert::CERTIFICATE_REVOKED),
    /// The client's certificate is bad in another way, or not its own.
    ClientCertificateBad = "bad client certificate" => Some(Alert::BAD_CERTIFICATE),
    /// So many handshakes wait that this one would wait too long.
    Overloaded = "too many handshakes" => Some(Alert::INTERNAL_ERROR),
    /// No key may seal more records than these, and there is no other key.
    LimitReached = "key used up" => Some(Alert::INTERNAL_ERROR),
    /// We have said that we send no more.
    Closed = "closed" => None,
    /// Something of our own failed.
    Internal = "internal error" => Some(Alert::INTERNAL_ERROR),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error {
            Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
                Fault::Unexpected
            }
            Error::InvalidMessage(InvalidMessage::MessageTooLarge)
            | Error::PeerSentOversizedRecord => Fault::RecordOverflow,
            Error::InvalidMessage(
                InvalidMessage::HandshakePayloadTooLarge
                | InvalidMessage::CertificatePayloadTooLarge,
            ) => Fault::HandshakeTooLarge,
            Error::InvalidMessage(_) => Fault::Malformed,
            Error::NoCertificatesPresented => Fault::ClientCertificateMissing,
            Error::DecryptError => Fault::BadRecord,
            Error::PeerIncompatible(why) => Fault::from_incompatible(&why),
            Error::PeerMisbehaved(why) => Fault::from_misbehaved(&why),
            Error::AlertReceived(alert) => Fault::PeerAlert(Alert(u8::from(alert))),
            Error::InvalidCertificate(why) => Fault::from_certificate(&why),
            Error::NoApplicationProtocol => Fault::NoSharedProtocol,
            Error::General(why) if why == NO_CERTIFICATE => Fault::NoCertificate,
            _ => Fault::Internal,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::PeerAlert(alert) => write!(formatter, "{}: {alert}", self.name()),
            _ => formatter.write_str(self.name()),
        }
    }
}

/// How rustls says that its resolver had no certificate: there is no variant for it.
const NO_CERTIFICATE: &str = "no server certificate chain resolved";

impl Fault {
    fn from_incompatible(why: &PeerIncompatible) -> Fault {
        match why {
            PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::Tls13RequiredForQuic => Fault::NoSharedVersion,
            _ => Fault::NoSharedSuite,
        }
    }

    fn from_misbehaved(why: &PeerMisbehaved) -> Fault {
        match why {
            PeerMisbehaved::TooManyEmptyFragments
            | PeerMisbehaved::TooManyKeyUpdateRequests
            | PeerMisbehaved::TooManyRenegotiationRequests
            | PeerMisbehaved::TooManyWarningAlertsReceived => Fault::Unproductive,
            PeerMisbehaved::IllegalMiddleboxChangeCipherSpec
            | PeerMisbehaved::KeyEpochWithPendingFragment
            | PeerMisbehaved::MessageInterleavedWithHandshakeMessage
            | PeerMisbehaved::RejectedEarlyDataInterleavedWithHandshakeMessage
            | PeerMisbehaved::TooMuchEarlyDataReceived
            | PeerMisbehaved::IllegalTlsInnerPlaintext => Fault::Unexpected,
            _ => Fault::IllegalParameter,
        }
    }

    fn from_certificate(why: &CertificateError) -> Fault {
        match AlertDescription::from(why.clone()) {
            AlertDescription::CertificateExpired => Fault::ClientCertificateExpired,
            AlertDescription::CertificateRevoked => Fault::ClientCertificateRevoked,
            AlertDescription::UnknownCA => Fault::ClientCertificateUnknownIssuer,
            _ => Fault::ClientCertificateBad,
        }
    }
}
