//! Which content coding a client would like best (RFC 9110 §12.5.3).
//!
//! | `Accept-Encoding` | means |
//! |---|---|
//! | absent | anything: no coding is sent, since nothing was asked for |
//! | empty | no coding |
//! | `br;q=0.5, gzip` | by weight; of equal weights [`Coding::ALL`] has the order |
//! | `*` | every coding that is not named, no coding included |
//! | `identity` | no coding; if it is not named it is the last choice |
//! | `identity;q=0` without a coding that we have | no coding all the same: better than 406 |
//! | a malformed member | nothing |

use super::head::{Field, FieldLines};

/// A content coding that files may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
    /// gzip (RFC 1952).
    Gzip,
}

impl Coding {
    /// Every coding, the one that usually is the shortest first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Its name in `Content-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    fn from_name(name: &[u8]) -> Option<Self> {
        // RFC 9110 §8.4.1.3: the old name means the same.
        let name = if name.eq_ignore_ascii_case(b"x-gzip") { b"gzip" } else { name };
        Self::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// A set of codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings(u8);

impl Codings {
    /// None.
    pub const NONE: Self = Self(0);

    /// The set with one more.
    pub const fn with(self, coding: Coding) -> Self {
        Self(self.0 | 1 << coding as u8)
    }

    /// Whether a coding is in the set.
    pub const fn has(self, coding: Coding) -> bool {
        self.0 & (1 << coding as u8) != 0
    }

    /// Whether there is none in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The coding to send of those that there are; `None`: send it without one.
pub fn preferred(fields: &FieldLines<'_>, available: Codings) -> Option<Coding> {
    if available.is_empty() || !fields.has(Field::AcceptEncoding) {
        return None;
    }
    let weights = Weights::read(fields.values(Field::AcceptEncoding));
    let mut best = None;
    let mut best_weight = weights.identity();
    for coding in Coding::ALL.into_iter().filter(|&coding| available.has(coding)) {
        let weight = weights.of(coding);
        // A coding wins over none at equal weight: whoever names both wants it shorter.
        if weight > best_weight || (best.is_none() && weight == best_weight && weight > 0) {
            (best, best_weight) = (Some(coding), weight);
        }
    }
    best
}

/// What was said of each coding, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    named: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    others: Option<u16>,
}

impl Weights {
    fn read<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut weights = Self::default();
        for member in values.flat_map(|value| value.split(|&byte| byte == b',')) {
            let Some((name, weight)) = read_member(member.trim_ascii()) else { continue };
            let said = match Coding::from_name(name) {
                Some(coding) => &mut weights.named[coding as usize],
                None if name.eq_ignore_ascii_case(b"identity") => &mut weights.identity,
                None if name == b"*" => &mut weights.others,
                None => continue,
            };
            // Said twice: the more cautious holds.
            *said = Some(said.map_or(weight, |earlier| earlier.min(weight)));
        }
        weights
    }

    fn of(&self, coding: Coding) -> u16 {
        self.named[coding as usize].or(self.others).unwrap_or(0)
    }

    fn identity(&self) -> u16 {
        self.identity.or(self.others).unwrap_or(0)
    }
}

/// `codings [ ";" "q=" qvalue ]`, with the weight in thousandths.
fn read_member(member: &[u8]) -> Option<(&[u8], u16)> {
    let Some(semicolon) = memchr::memchr(b';', member) else { return Some((member, 1000)) };
    let (name, parameter) = (member[..semicolon].trim_ascii_end(), &member[semicolon + 1..]);
    match parameter.trim_ascii_start() {
        [b'q' | b'Q', b'=', weight @ ..] => read_weight(weight).map(|weight| (name, weight)),
        _ => None,
    }
}

/// `qvalue` (RFC 9110 §12.4.2) in thousandths.
fn read_weight(weight: &[u8]) -> Option<u16> {
    let (whole, digits) = match weight {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', digits @ ..] if digits.len() <= 3 => (whole, digits),
        _ => return None,
    };
    let thousandths = digits.iter().chain(b"000").take(3).try_fold(0_u16, |value, &digit| {
        digit.is_ascii_digit().then(|| value * 10 + u16::from(digit - b'0'))
    })?;
    let weight = u16::from(whole - b'0') * 1000 + thousandths;
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests;
