// SPDX-License-Identifier: Apache-2.0
//! Random numbers: unpredictable ones, and those that follow a seed as Click's do.
use alloc::boxed::Box;

/// How far back the two numbers are whose sum is the next one.
const LAGS: (usize, usize) = (31, 3);
/// Numbers that are made and not used, so that the seed's neighbors differ.
const DISCARDED: usize = 310;
/// Modulus and factor of what fills the state from the seed (Park, Miller 1988).
const MINIMAL: (i64, i64) = (2_147_483_647, 16_807);
/// The largest number that is drawn.
pub const MOST: u32 = 0x7fff_ffff;

/// The source of a router's random numbers.
pub struct Random {
    state: u64,
    foreseen: Option<Box<Additive>>,
}

impl Random {
    /// Numbers that follow `state`, which must be secret.
    pub fn new(state: u64) -> Self {
        Self {
            state,
            foreseen: None,
        }
    }

    /// 64 bits, for keys and the like: no seed of a configuration leads to them.
    /// SplitMix64 (Steele, Lea, Flood 2014).
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Lets what is drawn follow from `seed`, or be unforeseeable again.
    pub fn seed(&mut self, seed: Option<u32>) {
        self.foreseen = seed.map(|seed| Box::new(Additive::new(seed)));
    }

    /// A number up to `MOST`.
    pub fn draw(&mut self) -> u32 {
        match &mut self.foreseen {
            Some(additive) => additive.next(),
            None => u32::try_from(self.bits() >> 33).expect("31 bits are left"),
        }
    }

    /// A number from `low` to `high`, every one as likely; `low` if the two are in the wrong order.
    pub fn draw_from(&mut self, low: u32, high: u32) -> u32 {
        match high.checked_sub(low) {
            None => low,
            Some(1) => low + (self.draw() >> 14 & 1),
            Some(most) if most > MOST => low + self.draw_wide(most),
            Some(most) => low + self.draw_up_to(most),
        }
    }

    fn draw_up_to(&mut self, most: u32) -> u32 {
        let each = (MOST + 1) / (most + 1);
        loop {
            let number = self.draw();
            if number < each * (most + 1) {
                return number / each;
            }
        }
    }

    /// A number up to `most`, which is more than one drawing gives.
    fn draw_wide(&mut self, most: u32) -> u32 {
        loop {
            let number = (self.draw() << 17) ^ (self.draw() >> 14);
            if number <= most {
                return number;
            }
        }
    }
}

/// The additive generator of the C library that Click is built with, so that a configuration with
/// RandomSeed does the same here.
struct Additive {
    numbers: [u32; LAGS.0],
    at: usize,
}

impl Additive {
    fn new(seed: u32) -> Self {
        let mut number = i64::from(i32::from_ne_bytes(seed.max(1).to_ne_bytes()));
        let mut numbers = [0; LAGS.0];
        for (index, slot) in numbers.iter_mut().enumerate() {
            if index > 0 {
                number = (MINIMAL.1 * number).rem_euclid(MINIMAL.0);
            }
            *slot = u32::try_from(number & i64::from(u32::MAX)).expect("32 bits are left");
        }
        let mut made = Self {
            numbers,
            at: LAGS.1,
        };
        (0..DISCARDED).for_each(|_| {
            made.next();
        });
        made
    }

    fn next(&mut self) -> u32 {
        let earlier = (self.at + LAGS.0 - LAGS.1) % LAGS.0;
        let number = self.numbers[self.at].wrapping_add(self.numbers[earlier]);
        self.numbers[self.at] = number;
        self.at = (self.at + 1) % LAGS.0;
        number >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_leads_to_the_numbers_of_the_c_library() {
        let mut random = Random::new(7);
        random.seed(Some(1));
        let mut seeded = |seed| {
            random.seed(Some(seed));
            [random.draw(), random.draw(), random.draw()]
        };
        assert_eq!(seeded(1), [1_804_289_383, 846_930_886, 1_681_692_777]);
        assert_eq!(seeded(0), seeded(1));
        assert_eq!(
            seeded(1 << 31),
            [1_336_741_213, 1_210_407_648, 1_447_044_896]
        );
        assert_eq!(seeded(u32::MAX), [254_925_627, 1_205_188_300, 366_127_624]);
    }

    #[test]
    fn ranges_are_kept_with_and_without_a_seed() {
        for seed in [None, Some(3), Some(u32::MAX)] {
            let mut random = Random::new(9);
            random.seed(seed);
            for (low, high) in [
                (0, 0),
                (4, 5),
                (7, 9),
                (0, u32::MAX),
                (5, 2),
                (1 << 31, u32::MAX),
            ] {
                let number = random.draw_from(low, high);
                assert!(
                    (low..=high.max(low)).contains(&number),
                    "{low} {high} {number}"
                );
            }
        }
    }

    #[test]
    fn keys_do_not_follow_the_seed() {
        let [mut one, mut other] = [1, 2].map(Random::new);
        one.seed(Some(5));
        other.seed(Some(5));
        assert_eq!(one.draw(), other.draw());
        assert_ne!(one.bits(), other.bits());
    }
}
