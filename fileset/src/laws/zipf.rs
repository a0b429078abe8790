//! Zipf's law with exponent 1 over ranks: the first is asked for twice as often as the second.
//!
//! Drawn by the alias method (Walker 1977, built as Vose 1991 shows): one random word, one look into
//! a table, however many ranks there are.

use crate::random::Random;

/// The law over a number of ranks.
#[derive(Clone, Debug)]
pub struct Zipf {
    slots: Box<[Slot]>,
    /// The sum of 1/rank.
    harmonic: f64,
}

/// One of equally likely slots: its own rank below the threshold, its alias from there on.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The share of the slot's own rank in the slot, of 2^64.
    threshold: u64,
    alias: u32,
}

impl Zipf {
    /// The law over `ranks` ranks, at least one.
    pub fn new(ranks: u32) -> Self {
        assert!(ranks > 0, "a law over nothing");
        let harmonic: f64 = (1..=ranks).map(|rank| 1.0 / f64::from(rank)).sum();
        // What each rank has, where the average is 1.
        let mut weights: Vec<f64> =
            (1..=ranks).map(|rank| f64::from(ranks) / (f64::from(rank) * harmonic)).collect();
        // Whoever has too little is filled up by one who has too much. Only additions, divisions and
        // comparisons: the same table on every machine.
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) =
            (0..ranks).partition(|&rank| weights[rank as usize] < 1.0);
        let full = |rank| Slot { threshold: u64::MAX, alias: rank };
        let mut slots: Box<[Slot]> = (0..ranks).map(full).collect();
        while let (Some(taker), Some(&giver)) = (poor.pop(), rich.last()) {
            let weight = weights[taker as usize];
            slots[taker as usize] = Slot { threshold: of_2_64(weight), alias: giver };
            weights[giver as usize] -= 1.0 - weight;
            if weights[giver as usize] < 1.0 {
                rich.pop();
                poor.push(giver);
            }
        }
        Self { slots, harmonic }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The share of a rank, 0 being the most popular.
    pub fn share(&self, rank: u32) -> f64 {
        if rank < self.ranks() { 1.0 / (f64::from(rank + 1) * self.harmonic) } else { 0.0 }
    }

    /// A rank, 0 being the most popular.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let (rank, within) = random.scaled(self.ranks());
        let slot = self.slots[rank as usize];
        if within < slot.threshold { rank } else { slot.alias }
    }
}

/// A share as the number of 64 bits that are below it.
fn of_2_64(share: f64) -> u64 {
    (share * 2_f64.powi(64)) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The shares that the table really gives.
    fn drawn_shares(zipf: &Zipf) -> Vec<f64> {
        let slot_share = 1.0 / f64::from(zipf.ranks());
        let mut shares = vec![0.0; zipf.slots.len()];
        for (rank, slot) in zipf.slots.iter().enumerate() {
            let own = slot.threshold as f64 / 2_f64.powi(64);
            shares[rank] += own * slot_share;
            shares[slot.alias as usize] += (1.0 - own) * slot_share;
        }
        shares
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_table_gives_the_shares_of_the_law(ranks in 1_u32..5_000) {
            let zipf = Zipf::new(ranks);
            let shares = drawn_shares(&zipf);
            for (rank, share) in shares.iter().enumerate() {
                prop_assert!((share - zipf.share(rank as u32)).abs() < 1e-12, "{rank}: {share}");
            }
        }
    }

    #[test]
    fn the_first_of_2811_directories_has_11_74_per_cent() {
        let share = Zipf::new(2811).share(0);
        assert_eq!(format!("{:.2}", share * 100.0), "11.74");
    }

    #[test]
    fn the_largest_set_too() {
        let zipf = Zipf::new(100_000);
        let shares = drawn_shares(&zipf);
        let worst = (0..).zip(&shares).map(|(rank, s)| (s / zipf.share(rank) - 1.0).abs());
        assert!(worst.fold(0.0, f64::max) < 1e-6);
        assert_eq!(zipf.share(100_000), 0.0);
    }
}
