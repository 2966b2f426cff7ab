// SPDX-License-Identifier: Apache-2.0
//! What the outcome of one test says about another.
use super::Test;

/// The outcome of a test that was made, in a packet known to have that many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    pub test: Test,
    pub is: bool,
    pub length: usize,
}

impl Fact {
    /// The outcome of another test, if this one says it.
    pub fn decides(&self, other: &Test) -> Option<bool> {
        if other.mask == 0 {
            return Some(true);
        }
        let outcome = if self.is {
            self.equal_decides(other)
        } else {
            self.unequal_decides(other)
        }?;
        self.survives_short_packets(other, outcome)
            .then_some(outcome)
    }

    /// All bits of the other test are known.
    fn equal_decides(&self, other: &Test) -> Option<bool> {
        let known = self.test.offset == other.offset && self.test.mask & other.mask == other.mask;
        known.then_some(self.test.value & other.mask == other.value)
    }

    /// The other test asks for what is not so, or for the other value of the same bit.
    fn unequal_decides(&self, other: &Test) -> Option<bool> {
        let Test { mask, value, .. } = self.test;
        if self.test.offset != other.offset {
            return None;
        }
        if mask & other.mask == mask && other.value & mask == value {
            return Some(false);
        }
        (mask.is_power_of_two() && mask == other.mask).then_some(true)
    }

    /// True if the outcome is right, too, if the test was decided by missing bytes.
    fn survives_short_packets(&self, other: &Test, outcome: bool) -> bool {
        let (mine, its) = (self.test.length(), other.length());
        self.test.short != self.is
            || self.test.offset + 4 <= self.length
            || mine <= self.length
            || (mine <= its && outcome == other.short)
    }
}

impl Test {
    /// True if both can be true of one packet; `with_short` if it may lack bytes.
    pub fn is_compatible(&self, other: &Self, with_short: bool) -> bool {
        if self.mask == 0 || other.mask == 0 {
            return true;
        }
        let differs = other.short != self.short && self.length() < other.length();
        let both = self.mask & other.mask;
        self.offset == other.offset
            && !(with_short && differs)
            && self.value & both == other.value & both
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(offset: usize, value: u32, mask: u32) -> Test {
        Test {
            offset,
            mask,
            value,
            short: false,
        }
    }

    #[test]
    fn outcomes_decide_others() {
        let fact = |test, is| Fact {
            test,
            is,
            length: 1000,
        };
        let tcp = test(264, 6 << 16, 0xff << 16);
        let udp = test(264, 17 << 16, 0xff << 16);
        assert_eq!(fact(tcp, true).decides(&udp), Some(false));
        assert_eq!(fact(tcp, true).decides(&tcp), Some(true));
        assert_eq!(fact(tcp, false).decides(&tcp), Some(false));
        assert_eq!(fact(tcp, false).decides(&udp), None);
        assert_eq!(fact(tcp, true).decides(&test(260, 0, 1)), None);
        let bit = test(0, 0, 8);
        assert_eq!(fact(bit, false).decides(&test(0, 8, 8)), Some(true));
        let (wide, narrow) = (test(0, 0x12, 0xff), test(0, 2, 0xf));
        assert_eq!(fact(narrow, false).decides(&wide), Some(false));
        assert_eq!(fact(wide, false).decides(&narrow), None);
    }

    #[test]
    fn missing_bytes_are_thought_of() {
        let negated = Test {
            short: true,
            ..test(512, 0, 0x00ff_0000)
        };
        let is = |length| Fact {
            test: negated,
            is: true,
            length,
        };
        let plain = test(512, 0, 0x00ff_0000);
        assert_eq!(
            is(0).decides(&plain),
            None,
            "it may be true for lack of bytes"
        );
        assert_eq!(is(516).decides(&plain), Some(true));
    }
}
