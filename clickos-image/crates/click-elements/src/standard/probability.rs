// SPDX-License-Identifier: Apache-2.0
//! A probability as an argument and as a decision.
use crate::decimal;
use crate::prelude::*;
use click_core::ArgContext;

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

/// Random numbers are compared below this power of two, as in Click.
const ONE: u32 = 1 << 28;

impl Probability {
    /// The other outcome.
    pub fn complement(self) -> Self {
        Self(1.0 - self.0)
    }

    /// True if it happens, given what was drawn.
    pub fn happens(self, drawn: u32) -> bool {
        f64::from(drawn % ONE) < self.0 * f64::from(ONE)
    }
}

impl core::fmt::Display for Probability {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromArg for Probability {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number = decimal::parse(text).filter(|_| plain);
        match number {
            Some(p) if p <= 1.0 => Ok(Self(p)),
            _ => Err(format!(
                "expected a number between 0 and 1, got \"{}\"",
                text.shown()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_certain_and_a_half_is_a_half() {
        for drawn in [0, u32::MAX] {
            assert!(!Probability(0.0).happens(drawn));
            assert!(Probability(1.0).happens(drawn));
        }
        assert!(Probability(0.5).happens(ONE / 2 - 1));
        assert!(!Probability(0.5).happens(ONE / 2));
        assert_eq!(Probability(0.25).complement().to_string(), "0.75");
    }
}
