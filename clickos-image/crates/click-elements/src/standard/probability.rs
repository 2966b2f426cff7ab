// SPDX-License-Identifier: Apache-2.0
//! A probability as an argument and as a decision.
use crate::prelude::*;
use click_core::Surroundings;

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

/// Two to the power of 32: random numbers are compared below it.
const ONE: f64 = 4_294_967_296.0;

impl Probability {
    /// What happens else.
    pub fn complement(self) -> Self {
        Self(1.0 - self.0)
    }

    /// Whether it happens, given 64 random bits.
    pub fn happens(self, random: u64) -> bool {
        ((random >> 32) as f64) < self.0 * ONE
    }
}

impl core::fmt::Display for Probability {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromArg for Probability {
    fn from_arg(text: &str, _: Surroundings<'_>) -> Result<Self, String> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number = text.parse().ok().filter(|_| plain);
        match number {
            Some(p) if p <= 1.0 => Ok(Self(p)),
            _ => Err(format!(
                "expected a number between 0 and 1, got \"{}\"",
                text.escape_debug()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_certain_and_a_half_is_a_half() {
        for random in [0, u64::MAX] {
            assert!(!Probability(0.0).happens(random));
            assert!(Probability(1.0).happens(random));
        }
        assert!(Probability(0.5).happens((1 << 63) - 1));
        assert!(!Probability(0.5).happens(1 << 63));
        assert_eq!(Probability(0.25).complement().to_string(), "0.75");
    }
}
