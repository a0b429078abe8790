//! The field lines that decide how a connection goes on: `Host`, `Connection`, `Content-Length`,
//! `Transfer-Encoding` and `Expect`. Of those that select a representation it is noted that they are there;
//! all other fields are stepped over.

use super::bytes::TCHAR;
use super::field_lines::{Field, FieldSet};
use super::{Persistence, Refusal, RequestBody, Version, authority};

/// What the fields seen so far say.
#[derive(Default)]
pub(super) struct Fields<'a> {
    host: Option<&'a [u8]>,
    close: bool,
    keep_alive: bool,
    content_length: Option<u64>,
    transfer_coding: Option<TransferCoding>,
    expectation: Option<Expectation>,
    selecting: FieldSet,
}

/// The transfer codings so far, in the order in which they were applied.
enum TransferCoding {
    /// Ends in `chunked`, so the body can be framed; nothing may follow.
    Chunked,
    /// Has a coding that we do not know.
    Unknown,
}

/// The expectations so far, all of which must be met.
#[derive(Clone, Copy)]
enum Expectation {
    /// `100-continue` and no other.
    Continue,
    /// One that we do not know.
    Unknown,
}

impl<'a> Fields<'a> {
    /// Takes one field line. `value` has no whitespace around it.
    #[inline]
    pub(super) fn add(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Refusal> {
        // The length tells most fields apart before a byte is compared.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => match self.host.replace(value) {
                None => Ok(()),
                Some(_) => Err(Refusal::HostRepeated),
            },
            6 if name.eq_ignore_ascii_case(b"expect") => {
                list(value).for_each(|expectation| self.add_expectation(expectation));
                Ok(())
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.add_connection(value);
                Ok(())
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                match self.content_length.replace(content_length(value)?) {
                    None => Ok(()),
                    Some(_) => Err(Refusal::LengthRepeated),
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                list(value).try_for_each(|coding| self.add_coding(coding))
            }
            _ => {
                if let Some(field) = Field::from_name(name) {
                    self.selecting.insert(field);
                }
                Ok(())
            }
        }
    }

    /// Which of the fields that select a representation there are.
    pub(super) fn selecting(&self) -> FieldSet {
        self.selecting
    }

    /// Options are case-insensitive and their order means nothing (RFC 9110 §7.6.1).
    fn add_connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Several lines are one list (RFC 9110 §5.3). An empty member is refused, though a list may
    /// have them: a peer that drops `Transfer-Encoding: ,chunked` would frame the body otherwise.
    fn add_coding(&mut self, coding: &[u8]) -> Result<(), Refusal> {
        if !TCHAR.spans(coding) || matches!(self.transfer_coding, Some(TransferCoding::Chunked)) {
            return Err(Refusal::CodingInvalid);
        }
        let chunked = coding.eq_ignore_ascii_case(b"chunked");
        let known = chunked && self.transfer_coding.is_none();
        self.transfer_coding =
            Some(if known { TransferCoding::Chunked } else { TransferCoding::Unknown });
        Ok(())
    }

    /// A member is compared as it stands, parameters and all (RFC 9110 §10.1.1): a comma within a
    /// quoted string divides what we do not know into what we do not know.
    fn add_expectation(&mut self, expectation: &[u8]) {
        let known = expectation.eq_ignore_ascii_case(b"100-continue");
        self.expectation = match self.expectation {
            _ if expectation.is_empty() => self.expectation,
            None | Some(Expectation::Continue) if known => Some(Expectation::Continue),
            _ => Some(Expectation::Unknown),
        };
    }

    /// Whether the client expects `100 Continue`. HTTP/1.0 had no expectations, and proxies of that
    /// version pass on what they do not know.
    pub(super) fn expects_continue(&self, version: Version) -> Result<bool, Refusal> {
        match self.expectation {
            Some(_) if version == Version::Http10 => Ok(false),
            Some(Expectation::Unknown) => Err(Refusal::Expectation),
            Some(Expectation::Continue) => Ok(true),
            None => Ok(false),
        }
    }

    /// `Host`, if it is valid and there where `version` needs it. An empty one names no host.
    pub(super) fn host(&self, version: Version) -> Result<Option<&'a [u8]>, Refusal> {
        match self.host {
            None if version == Version::Http11 => Err(Refusal::HostMissing),
            Some(host) if !authority::is_valid(host) => Err(Refusal::HostInvalid),
            host => Ok(host.filter(|host| !host.is_empty())),
        }
    }

    /// RFC 9112 §9.3: `close` wins; HTTP/1.0 must ask for persistence.
    pub(super) fn persistence(&self, version: Version) -> Persistence {
        match version {
            _ if self.close => Persistence::Close,
            Version::Http11 => Persistence::KeepAlive,
            Version::Http10 if self.keep_alive => Persistence::KeepAliveExplicit,
            Version::Http10 => Persistence::Close,
        }
    }

    /// RFC 9112 §6.3, with every way to read a length in two ways refused.
    pub(super) fn body(&self, version: Version) -> Result<RequestBody, Refusal> {
        match (&self.transfer_coding, self.content_length) {
            (None, None | Some(0)) => Ok(RequestBody::None),
            (None, Some(bytes)) => Ok(RequestBody::Length(bytes)),
            (Some(_), _) if version == Version::Http10 => Err(Refusal::CodingInHttp10),
            (Some(_), Some(_)) => Err(Refusal::LengthWithCoding),
            (Some(TransferCoding::Chunked), None) => Ok(RequestBody::Chunked),
            (Some(TransferCoding::Unknown), None) => Err(Refusal::CodingUnknown),
        }
    }
}

/// The members of a comma-separated list (RFC 9110 §5.6.1), empty ones too.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// `1*DIGIT` that fits 64 bits; a list of equal numbers is refused too (RFC 9110 §8.6 allows it).
fn content_length(value: &[u8]) -> Result<u64, Refusal> {
    if value.is_empty() {
        return Err(Refusal::LengthInvalid);
    }
    value.iter().try_fold(0_u64, |length, &byte| {
        let digit =
            if byte.is_ascii_digit() { byte - b'0' } else { return Err(Refusal::LengthInvalid) };
        length
            .checked_mul(10)
            .and_then(|length| length.checked_add(u64::from(digit)))
            .ok_or(Refusal::LengthInvalid)
    })
}
