// SPDX-License-Identifier: Apache-2.0
//! Random numbers for tests, the same in each run.

/// A linear congruential generator.
pub struct Dice(pub u64);

impl Dice {
    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// True in one of some cases.
    pub fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    /// One of some values.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// The seeds of a test: some usual ones, or as `VALE_SEED` and `VALE_SEEDS` say.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse().expect("a number"))
    };
    let first = number("VALE_SEED").unwrap_or(0);
    first..first + number("VALE_SEEDS").unwrap_or(usual)
}
