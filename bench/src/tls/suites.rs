//! Versions, cipher suites and groups: their names and what rustls has for them.

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{cipher_suite as suite, kx_group as group};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};
use std::fmt;
use std::str::FromStr;

/// A name that stands for nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not spoken; choose from {known}")]
pub struct UnknownName {
    name: String,
    known: String,
}

impl UnknownName {
    fn new<T: fmt::Display>(name: &str, known: &[T]) -> Self {
        let known = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Self { name: name.to_owned(), known }
    }
}

/// A protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2, RFC 5246.
    Tls12,
    /// TLS 1.3, RFC 8446.
    Tls13,
}

/// Both, in the order of preference.
pub(super) static VERSIONS: [TlsVersion; 2] = [TlsVersion::Tls13, TlsVersion::Tls12];

impl TlsVersion {
    /// The version that was negotiated.
    pub(super) fn negotiated(version: ProtocolVersion) -> Option<Self> {
        VERSIONS.into_iter().find(|known| known.supported().version == version)
    }

    pub(super) fn supported(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::Tls12 => &TLS12,
            Self::Tls13 => &TLS13,
        }
    }
}

impl FromStr for TlsVersion {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text {
            "1.2" => Ok(Self::Tls12),
            "1.3" => Ok(Self::Tls13),
            _ => Err(UnknownName::new(text, &VERSIONS)),
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        })
    }
}

/// A cipher suite, known by its name in the registry (RFC 8446, RFC 5289, RFC 7905) and by
/// OpenSSL's, which are the same for TLS 1.3.
#[derive(Clone, Copy)]
pub struct Cipher {
    name: &'static str,
    openssl: &'static str,
    pub(super) suite: &'static SupportedCipherSuite,
}

/// All that are spoken, in the order of preference.
pub(super) static CIPHERS: [Cipher; 9] = [
    cipher("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", &suite::TLS13_AES_256_GCM_SHA384),
    cipher("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", &suite::TLS13_AES_128_GCM_SHA256),
    cipher(
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
        &suite::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    cipher(
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        &suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    cipher(
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        &suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    cipher(
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        &suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    cipher(
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
        &suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    cipher(
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        &suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    cipher(
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
        &suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

impl Cipher {
    /// The suite that was negotiated.
    pub(super) fn negotiated(suite: CipherSuite) -> Option<Self> {
        CIPHERS.into_iter().find(|known| known.suite.suite() == suite)
    }

    /// Whether it is one of this version.
    pub(super) fn is_of(&self, version: TlsVersion) -> bool {
        self.suite.version().version == version.supported().version
    }
}

const fn cipher(
    name: &'static str,
    openssl: &'static str,
    suite: &'static SupportedCipherSuite,
) -> Cipher {
    Cipher { name, openssl, suite }
}

impl FromStr for Cipher {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let named = |cipher: &&Cipher| [cipher.name, cipher.openssl].contains(&text);
        CIPHERS.iter().find(named).copied().ok_or_else(|| UnknownName::new(text, &CIPHERS))
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Cipher {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Cipher {}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A group for the key exchange, known by its name in the registry and by OpenSSL's. The first one
/// offered comes with a key share (RFC 8446 §4.2.8).
#[derive(Clone, Copy)]
pub struct Group {
    names: &'static [&'static str],
    pub(super) group: &'static dyn SupportedKxGroup,
}

/// All that are spoken, in the order of preference.
pub(super) static GROUPS: [Group; 4] = [
    Group { names: &["x25519", "X25519"], group: group::X25519 },
    Group { names: &["secp256r1", "P-256", "prime256v1"], group: group::SECP256R1 },
    Group { names: &["secp384r1", "P-384"], group: group::SECP384R1 },
    Group { names: &["X25519MLKEM768"], group: group::X25519MLKEM768 },
];

impl FromStr for Group {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        GROUPS
            .iter()
            .find(|group| group.names.contains(&text))
            .copied()
            .ok_or_else(|| UnknownName::new(text, &GROUPS))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names[0])
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
