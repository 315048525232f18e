//! Randomness that can be repeated: a seed is printed when a test fails, and given again to see
//! the same run.

/// A sequence of numbers that depends on nothing but its seed (splitmix64).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound; 0 when the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }

    /// One of these. Panics when there are none.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let bound = u64::try_from(choices.len()).expect("a length is a number");
        let place = usize::try_from(self.below(bound)).expect("below a length");
        choices
            .get(place)
            .expect("there is something to choose from")
    }

    /// True so many times in a thousand.
    pub fn per_mille(&mut self, times: u32) -> bool {
        self.below(1000) < u64::from(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_sequence_and_bounds_hold() {
        let numbers = |seed| {
            let mut chance = SeededRandom::new(seed);
            [(); 64].map(|()| chance.below(10))
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(7).iter().all(|number| *number < 10));
        assert_eq!(SeededRandom::new(1).below(0), 0);
        assert!(!SeededRandom::new(1).per_mille(0) && SeededRandom::new(1).per_mille(1000));
    }
}
