//! What is known of a user, and whom an ad is for: five groups of bits.

use std::ops::BitAnd;

use crate::random::Random;

/// One bit of each [group](GROUPS) for a user; any for an ad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demographics(pub u32);

/// One group of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its bits in [`Demographics`].
    pub mask: u32,
    /// Where its weight, of four bits, begins in an ad's weightings.
    pub weight_shift: u32,
}

/// Gender, age, region and two interests: 2, 4, 4, 10 and 10 values.
pub const GROUPS: [Group; 5] = [
    Group { mask: 0x3000_0000, weight_shift: 16 },
    Group { mask: 0x0f00_0000, weight_shift: 12 },
    Group { mask: 0x00f0_0000, weight_shift: 8 },
    Group { mask: 0x000f_fc00, weight_shift: 4 },
    Group { mask: 0x0000_03ff, weight_shift: 0 },
];

/// The last group: an ad with all its bits is for everybody.
pub(super) const LAST_INTEREST: u32 = GROUPS[4].mask;

impl Demographics {
    /// Somebody: one value of each group.
    pub(super) fn draw(random: &mut Random) -> Self {
        let value = |group: &Group| {
            1 << (group.mask.trailing_zeros() + random.below(group.mask.count_ones()))
        };
        Self(GROUPS.iter().map(value).sum())
    }

    /// The sum of the weights of the groups of which any bit is set.
    pub fn weight(self, weightings: u32) -> u32 {
        let weight = |group: &Group| match self.0 & group.mask {
            0 => 0,
            _ => weightings >> group.weight_shift & 0xf,
        };
        GROUPS.iter().map(weight).sum()
    }
}

impl BitAnd for Demographics {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn the_groups_have_2_4_4_10_and_10_values_and_share_none() {
        assert_eq!(GROUPS.map(|group| group.mask.count_ones()), [2, 4, 4, 10, 10]);
        assert_eq!(GROUPS.iter().fold(0, |all, group| all ^ group.mask), 0x3fff_ffff);
    }

    #[test]
    fn everybody_has_one_value_of_each_group_and_every_value_occurs() {
        let mut random = Random::new(1, Purpose::Users, 0);
        let mut seen = 0;
        for _ in 0..1_000 {
            let Demographics(bits) = Demographics::draw(&mut random);
            for group in GROUPS {
                assert_eq!((bits & group.mask).count_ones(), 1, "{bits:08X}");
            }
            seen |= bits;
        }
        assert_eq!(seen, 0x3fff_ffff);
    }

    #[test]
    fn weights_are_those_of_the_weightings_fields() {
        let weightings = 0x1_2345;
        let weights = GROUPS.map(|group| Demographics(group.mask).weight(weightings));
        assert_eq!(weights, [1, 2, 3, 4, 5]);
        assert_eq!(Demographics(0).weight(weightings), 0);
        assert_eq!(Demographics(u32::MAX).weight(0xf_ffff), 75);
    }
}
