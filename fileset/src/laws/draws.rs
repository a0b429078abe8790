//! Requests one after another: decks of a thousand that hold each class's exact count, shuffled and
//! dealt without putting back.

use std::sync::Arc;

use super::popularity::{CLASS_PER_DECK, Popularity};
use crate::name::Name;
use crate::random::{Purpose, Random};

/// Requests in a deck.
pub const DECK: usize = 1000;

/// An endless sequence of files to request.
#[derive(Clone, Debug)]
pub struct Draws {
    popularity: Arc<Popularity>,
    /// The classes of this deck's requests, in the order in which they are dealt.
    deck: Box<[u8; DECK]>,
    dealt: usize,
    random: Random,
}

impl Draws {
    /// The sequence number `stream` under a seed: one for each user, thread or generator, all of
    /// which share the tables of `popularity`.
    pub fn new(popularity: Arc<Popularity>, seed: u64, stream: u64) -> Self {
        let mut deck = Box::new([0; DECK]);
        let classes = (0..).zip(CLASS_PER_DECK);
        let cards = classes.flat_map(|(class, count)| (0..count).map(move |_| class));
        deck.iter_mut().zip(cards).for_each(|(place, class)| *place = class);
        let random = Random::new(seed, Purpose::Popularity, stream);
        Self { popularity, deck, dealt: DECK, random }
    }

    /// The file that is requested next.
    #[inline]
    pub fn draw(&mut self) -> Name {
        if self.dealt == DECK {
            self.random.shuffle(self.deck.as_mut_slice());
            self.dealt = 0;
        }
        let class = self.deck[self.dealt];
        self.dealt += 1;
        self.popularity.draw(class, &mut self.random)
    }
}

impl Iterator for Draws {
    type Item = Name;

    /// Never ends.
    fn next(&mut self) -> Option<Name> {
        Some(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Directories;

    fn draws(seed: u64, stream: u64) -> Draws {
        let popularity = Popularity::new(Directories::new(90).unwrap());
        Draws::new(Arc::new(popularity), seed, stream)
    }

    #[test]
    fn every_deck_holds_each_class_exactly() {
        let mut draws = draws(3, 0);
        for _ in 0..5 {
            let mut counts = [0; 4];
            (0..DECK).for_each(|_| counts[usize::from(draws.draw().class())] += 1);
            assert_eq!(counts, CLASS_PER_DECK);
        }
    }

    #[test]
    fn decks_are_shuffled_anew() {
        let names: Vec<_> = draws(3, 0).take(2 * DECK).collect();
        let classes = |deck: &[Name]| deck.iter().map(|name| name.class()).collect::<Vec<_>>();
        assert_ne!(classes(&names[..DECK]), classes(&names[DECK..]));
    }

    #[test]
    fn the_same_seed_and_stream_draw_the_same() {
        let first = |seed, stream| draws(seed, stream).take(50).collect::<Vec<_>>();
        assert_eq!(first(3, 1), first(3, 1));
        assert_ne!(first(3, 1), first(3, 2));
        assert_ne!(first(3, 1), first(4, 1));
    }
}
