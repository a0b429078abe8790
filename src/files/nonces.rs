//! Numbers that nobody has seen before and nobody outside can guess.

use std::hash::{BuildHasher as _, RandomState};

/// A source of such numbers: SipHash of a counter, under a key that the operating system drew.
#[derive(Debug, Default)]
pub(super) struct Nonces {
    key: RandomState,
    drawn: u64,
}

impl Nonces {
    pub(super) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.key.hash_one(self.drawn)
    }

    pub(super) fn draw_wide(&mut self) -> u128 {
        u128::from(self.draw()) << 64 | u128::from(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::Nonces;

    #[test]
    fn no_two_are_equal_and_no_two_sources_are() {
        let (mut one, mut other) = (Nonces::default(), Nonces::default());
        let mut drawn: Vec<_> = (0..100).flat_map(|_| [one.draw(), other.draw()]).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 200);
        assert_ne!(one.draw_wide() >> 64, one.draw_wide() >> 64);
    }
}
