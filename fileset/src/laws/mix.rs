//! What kind of request is made for a file: 70 % static, and four dynamic kinds.

use crate::random::Random;

/// A kind of request. Each draws its file from the same law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// GET of the file itself.
    Static,
    /// Dynamic GET with a cookie: the file with its ads replaced.
    CustomAd,
    /// Dynamic GET without a cookie: the file within a page.
    Dynamic,
    /// POST: a record in the log, and the file within a page.
    Post,
    /// As [`Dynamic`](Self::Dynamic), from a process that is started for it.
    Cgi,
}

/// Of how many requests [`RequestKind::per_2000`] are.
const WHOLE: u32 = 2000;

impl RequestKind {
    /// Every kind, the most frequent first.
    pub const ALL: [Self; 5] = [Self::Static, Self::CustomAd, Self::Dynamic, Self::Post, Self::Cgi];

    /// Requests of this kind among 2000: 30 % are dynamic, of which 42 % custom ads, 16 % POST, 0.5 %
    /// CGI and the rest plain.
    const fn per_2000(self) -> u32 {
        match self {
            Self::Static => 1400,
            Self::CustomAd => 252,
            Self::Dynamic => 249,
            Self::Post => 96,
            Self::Cgi => 3,
        }
    }

    /// The share of this kind in all requests.
    pub fn share(self) -> f64 {
        f64::from(self.per_2000()) / f64::from(WHOLE)
    }

    /// The kind of a request.
    #[inline]
    pub fn draw(random: &mut Random) -> Self {
        let mut left = random.below(WHOLE);
        for kind in Self::ALL {
            match left.checked_sub(kind.per_2000()) {
                Some(rest) => left = rest,
                None => return kind,
            }
        }
        Self::Static
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_those_of_the_mix_and_add_up() {
        let percents = RequestKind::ALL.map(|kind| format!("{:.2}", kind.share() * 100.0));
        assert_eq!(percents, ["70.00", "12.60", "12.45", "4.80", "0.15"]);
        assert_eq!(RequestKind::ALL.map(RequestKind::per_2000).iter().sum::<u32>(), WHOLE);
        let dynamic = [0.42, 1.0 - 0.16 - 0.42 - 0.005, 0.16, 0.005].map(|share| 0.30 * share);
        for (kind, share) in RequestKind::ALL[1..].iter().zip(dynamic) {
            assert!((kind.share() - share).abs() < 1e-12, "{kind:?}");
        }
    }
}
