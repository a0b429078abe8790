//! The generator that everything of this crate is drawn from.
//!
//! It is xoshiro256++ (Blackman and Vigna, 2019) from the crate `rand_xoshiro`: a fixed, published
//! algorithm in the crate's own name, whose output no version may change, with no system entropy and
//! no feature of the CPU involved. It makes eight bytes in about a nanosecond, far faster than a disk
//! takes them. What is random here need not be secret.
//!
//! How numbers are derived from its words is written here, for `rand`'s distributions may change with
//! a version. A test pins the words and the numbers: file sets that were generated once must verify
//! for good.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// What a sequence is for. Sequences of one seed for different purposes have nothing in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// The filler of one file.
    Content = 1,
    /// Which files are requested.
    Popularity = 2,
    /// How they are requested, and over which connections.
    Requests = 3,
    /// The users of the dynamic workload.
    Users = 4,
    /// The ads of the dynamic workload.
    Ads = 5,
    /// Where the ad tags of one file stand.
    Tags = 6,
}

/// A sequence of random numbers, the same for the same seed, purpose and index on every machine.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The sequence number `index` of a purpose under a seed.
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        // SplitMix64 turns numbers that differ in a bit into ones that differ in half of them, and is
        // what the authors of xoshiro256++ advise to seed it with.
        let mix = |state: u64, word: u64| SplitMix64::from_seed((state ^ word).to_le_bytes());
        let state = [seed, purpose as u64, index]
            .into_iter()
            .fold(0, |state, word| mix(state, word).next_u64());
        let mut words = mix(state, 0);
        let mut key = [0; 32];
        for part in key.chunks_exact_mut(8) {
            part.copy_from_slice(&words.next_u64().to_le_bytes());
        }
        Self(Xoshiro256PlusPlus::from_seed(key))
    }

    /// 64 random bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, which is not zero; the shares differ by no more than `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        self.scaled(bound).0
    }

    /// A number below `bound`, and 64 bits that say where between it and the next.
    #[inline]
    pub(crate) fn scaled(&mut self, bound: u32) -> (u32, u64) {
        let product = u128::from(self.word()) * u128::from(bound);
        ((product >> 64) as u32, product as u64)
    }

    /// Puts a slice into an order, each with the same chance.
    pub(crate) fn shuffle<T>(&mut self, slice: &mut [T]) {
        for last in (1..slice.len()).rev() {
            let bound = u32::try_from(last + 1).expect("what is shuffled is short");
            slice.swap(last, self.below(bound) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequences_never_change() {
        let words = |seed, purpose, index| {
            let mut random = Random::new(seed, purpose, index);
            [random.word(), random.word()]
        };
        assert_eq!(words(1, Purpose::Content, 0), PINNED[0]);
        assert_eq!(words(1, Purpose::Content, 1), PINNED[1]);
        assert_eq!(words(1, Purpose::Ads, 0), PINNED[2]);
        assert_eq!(words(u64::MAX, Purpose::Content, 0), PINNED[3]);
        let mut random = Random::new(1, Purpose::Requests, 0);
        assert_eq!([0; 8].map(|_| random.below(10)), PINNED_DIGITS);
    }

    /// From another implementation, written after this module's text and the authors' papers.
    const PINNED: [[u64; 2]; 4] = [
        [4_768_342_884_129_243_497, 6_886_254_094_158_327_724],
        [2_554_965_666_623_359_366, 8_568_899_989_577_279_925],
        [8_999_653_855_554_540_997, 2_501_096_426_853_162_813],
        [1_138_702_761_816_776_378, 9_713_188_809_252_921_650],
    ];
    const PINNED_DIGITS: [u32; 8] = [3, 7, 5, 1, 9, 6, 8, 6];

    #[test]
    fn numbers_stay_below_their_bound_and_reach_it() {
        let mut random = Random::new(7, Purpose::Requests, 0);
        let mut seen = [0_u32; 11];
        for _ in 0..1_100 {
            seen[random.below(11) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (50..200).contains(&count)), "{seen:?}");
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut random = Random::new(7, Purpose::Requests, 0);
        let mut deck: Vec<u32> = (0..100).collect();
        random.shuffle(&mut deck);
        assert_ne!(deck, (0..100).collect::<Vec<_>>());
        deck.sort_unstable();
        assert_eq!(deck, (0..100).collect::<Vec<_>>());
    }
}
