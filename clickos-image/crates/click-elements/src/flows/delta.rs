// SPDX-License-Identifier: Apache-2.0
//! What a rewritten field does to a checksum, computed once per flow (RFC 1624, equation 3).
use click_wire::checksum;

use super::id::FlowId;

/// The difference between the sums of old and new words; in ones' complement its negative is its inverse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta(u16);

fn fold(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    u16::try_from(sum).expect("folded to 16 bits")
}

/// The sum of the 16-bit words of 64 bits.
fn words(value: u64) -> u64 {
    (0..4).map(|n| (value >> (16 * n)) & 0xffff).sum()
}

impl Delta {
    /// For words that do not change.
    pub const NONE: Self = Self(0);

    /// For words that change from `old` to `new`.
    pub fn between(old: u64, new: u64) -> Self {
        Self(fold(words(!old) + words(new)))
    }

    /// For words that were zero; an odd byte at the end counts as the upper half of a word.
    pub fn of_words(bytes: &[u8]) -> Self {
        Self(!checksum::of(bytes))
    }

    /// For the addresses of a flow.
    pub fn of_addresses(old: &FlowId, new: &FlowId) -> Self {
        Self::between(old.addresses(), new.addresses())
    }

    /// For the ports of a flow.
    pub fn of_ports(old: &FlowId, new: &FlowId) -> Self {
        Self::between(old.ports().into(), new.ports().into())
    }

    /// Both one after the other.
    pub fn and(self, other: Self) -> Self {
        Self(fold(u64::from(self.0) + u64::from(other.0)))
    }

    /// For the way back.
    pub fn inverse(self) -> Self {
        Self(!self.0)
    }

    /// The checksum after the change.
    #[inline]
    pub fn apply(self, checksum: u16) -> u16 {
        let sum = u32::from(!checksum) + u32::from(self.0);
        // one carry at most
        !((sum & 0xffff) + (sum >> 16)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_one_word_after_the_other(sum in 0u16..0xffff, old: u64, new: u64) {
            let delta = Delta::between(old, new);
            let mut expected = sum;
            for n in 0..4 {
                let at = |value: u64| (value >> (16 * n)) as u16;
                expected = checksum::update(expected, at(old), at(new));
            }
            prop_assert_eq!(delta.apply(sum), expected);
            prop_assert_eq!(delta.inverse().apply(expected), sum);
        }
    }
}
