//! The secrets that ticket keys are derived from: from a file that the hosts of a fleet share, or drawn
//! at the start.
//!
//! # The file
//!
//! One secret a line, of 32 random bytes or more, in hexadecimal or base64. The first one encrypts, all of
//! them decrypt. Empty lines, and those that begin with `#`, are passed over. A file that is not text
//! is one secret, as it is.
//!
//! ```text
//! (umask 077; openssl rand -hex 32 > ticket-secret)
//! ```
//!
//! Whoever reads it can decrypt every ticket that was made from it. So nobody but its owner may have any
//! access, and the owner must be root or the server's own user; else it is refused. What it means for
//! forward secrecy, and how it is changed, is said at [`tickets`](super::tickets).

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::rand;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

/// Bytes that a secret has at least: as many as a key that is derived from it.
pub const SECRET_BYTES_MIN: usize = 32;

/// Secrets that a file has at most. Two are enough to change one for another; each costs three keys in
/// every context of every shard.
pub const SECRETS_MAX: usize = 8;

/// Bytes of the largest file: room for [`SECRETS_MAX`] lines with a comment each.
pub const FILE_BYTES_MAX: usize = 4096;

/// One secret. Wiped when it is dropped, and shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// The bytes, to be given to a key derivation and to nothing else.
    pub(super) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// One secret or more, in the order of their rank: the first encrypts, all decrypt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// One that nobody has seen: for a server alone, until it ends.
    pub fn random() -> Result<Secrets, SecretError> {
        let mut bytes = Zeroizing::new(vec![0; SECRET_BYTES_MIN]);
        rand::fill(&mut bytes).map_err(|_| SecretError::Random)?;
        Ok(Secrets(vec![Secret(bytes)]))
    }

    /// Those in the file at `path`. A symbolic link is followed: that is how secrets are mounted into a
    /// container, and it is the file that must be protected.
    pub fn read(path: &Path) -> Result<Secrets, SecretError> {
        let failed = |error| SecretError::Unreadable { path: path.into(), error };
        // Opening a FIFO would wait for a writer.
        let open = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = open.map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        check_access(&metadata, nix::unistd::geteuid().as_raw(), path)?;
        // With room for all, so that no copy is left behind by growing.
        let mut bytes = Zeroizing::new(Vec::with_capacity(FILE_BYTES_MAX + 64));
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        Secrets::parse(&bytes).map_err(|fault| SecretError::Content { path: path.into(), fault })
    }

    /// Those in the bytes of a file.
    fn parse(bytes: &[u8]) -> Result<Secrets, Fault> {
        if bytes.len() > FILE_BYTES_MAX {
            return Err(Fault::FileTooLarge);
        }
        let text = std::str::from_utf8(bytes).ok();
        let text =
            text.filter(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace()));
        let Some(text) = text else {
            let secret = Secret(Zeroizing::new(bytes.to_vec()));
            return match bytes.len() {
                SECRET_BYTES_MIN.. => Ok(Secrets(vec![secret])),
                length => Err(Fault::FileTooShort { length }),
            };
        };
        let mut secrets = Vec::with_capacity(SECRETS_MAX);
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if secrets.len() == SECRETS_MAX {
                return Err(Fault::TooMany);
            }
            let line_number = index + 1;
            let secret = decode(line).ok_or(Fault::Undecodable { line: line_number })?;
            if secret.0.len() < SECRET_BYTES_MIN {
                return Err(Fault::TooShort { line: line_number, length: secret.0.len() });
            }
            secrets.push(secret);
        }
        if secrets.is_empty() { Err(Fault::Empty) } else { Ok(Secrets(secrets)) }
    }

    /// In the order of their rank; there is one at least.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }
}

/// A line of hexadecimal digits, else of base64 in either alphabet, padded or not.
fn decode(line: &str) -> Option<Secret> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);

    let digits = line.as_bytes();
    let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len()));
    if digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit) {
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
        bytes.extend(digits.chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])));
    } else {
        let engine = if line.contains(['-', '_']) { URL_SAFE } else { STANDARD };
        engine.decode_vec(line, &mut bytes).ok()?;
    }
    Some(Secret(bytes))
}

/// Refuses a file that others than its owner have access to, or that a stranger owns.
fn check_access(metadata: &Metadata, user: u32, path: &Path) -> Result<(), SecretError> {
    let path = || path.into();
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if !metadata.is_file() {
        Err(SecretError::NoFile { path: path() })
    } else if owner != 0 && owner != user {
        Err(SecretError::Owner { path: path(), owner, user })
    } else if mode & 0o077 != 0 {
        Err(SecretError::Mode { path: path(), mode })
    } else {
        Ok(())
    }
}

/// Why there is no secret, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be opened or read.
    #[error(
        "{path}: {error}; a secret is made by: (umask 077; openssl rand -hex 32 > {path})",
        path = .path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is a directory, a pipe or a device.
    #[error(
        "{path} is not a file; a secret is made by: (umask 077; openssl rand -hex 32 > FILE)",
        path = .path.display()
    )]
    NoFile {
        /// What was named.
        path: PathBuf,
    },
    /// It belongs to somebody who then could read and change it.
    #[error(
        "{path} belongs to user {owner}, who is neither root nor the server's user ({user}), and \
         could read every ticket; remedy: chown root {path}",
        path = .path.display()
    )]
    Owner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it may be, besides root.
        user: u32,
    },
    /// Others than its owner have access.
    #[error(
        "{path} has mode {mode:04o}: others than its owner have access, and could read every \
         ticket; remedy: chmod 600 {path}, and a new secret if somebody may have read it",
        path = .path.display()
    )]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode, the lower 12 bits.
        mode: u32,
    },
    /// What is in it is no secret.
    #[error(
        "{path}: {fault}; a secret is a line made by: openssl rand -hex 32",
        path = .path.display()
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers for a secret of tickets")]
    Random,
}

/// What is wrong with the content of a file of secrets. Never says what the content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is no secret in it.
    #[error("has no secret in it")]
    Empty,
    /// It is larger than any such file.
    #[error("has more than {FILE_BYTES_MAX} bytes")]
    FileTooLarge,
    /// It is not text, and as a secret too short.
    #[error("is not text, and as a secret its {length} bytes are fewer than {SECRET_BYTES_MIN}")]
    FileTooShort {
        /// Bytes of the file.
        length: usize,
    },
    /// More than [`SECRETS_MAX`] secrets.
    #[error("has more than {SECRETS_MAX} secrets")]
    TooMany,
    /// Neither hexadecimal nor base64.
    #[error("line {line} is neither hexadecimal nor base64")]
    Undecodable {
        /// The line, counted from 1.
        line: usize,
    },
    /// Too few bytes to be guessed by nobody.
    #[error("line {line} has {length} bytes, of which {SECRET_BYTES_MIN} are needed")]
    TooShort {
        /// The line, counted from 1.
        line: usize,
        /// Bytes that it decodes to.
        length: usize,
    },
}

#[cfg(test)]
mod tests;
