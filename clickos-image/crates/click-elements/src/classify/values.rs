// SPDX-License-Identifier: Apache-2.0
//! Sets of values of one header field; that the field is missing is one of the values.
use alloc::vec;
use alloc::vec::Vec;

use click_core::sort;

use super::expr::Compare;

/// A mask that leaves this many free bits above others is not written as ranges.
const FREE_BITS: u32 = 6;

/// Values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// True if a packet without the field is meant, too.
    pub missing: bool,
    /// Sorted, disjoint, inclusive.
    pub ranges: Vec<(u32, u32)>,
}

/// The largest value of `bits` bits.
pub fn largest(bits: u32) -> u32 {
    u32::MAX >> (32 - bits)
}

impl Values {
    /// Every value of `bits` bits, but not that it is missing.
    pub fn present(bits: u32) -> Self {
        Self::of(vec![(0, largest(bits))])
    }

    /// These ranges.
    pub fn of(ranges: Vec<(u32, u32)>) -> Self {
        Self {
            missing: false,
            ranges,
        }
    }

    /// The values for which a comparison is true; `None` if they are too many ranges.
    pub fn matching(compare: &Compare, bits: u32) -> Option<Self> {
        let plain = if compare.greater {
            greater(compare, bits)
        } else {
            equal(compare, bits)
        };
        let values = Self::of(plain?);
        Some(if compare.negated {
            values.others(bits)
        } else {
            values
        })
    }

    /// All other values of `bits` bits, but not that it is missing.
    pub fn others(&self, bits: u32) -> Self {
        let mut next = Some(0);
        let mut ranges = Vec::new();
        for (first, last) in &self.ranges {
            match next {
                Some(next) if next < *first => ranges.push((next, first - 1)),
                _ => {}
            }
            next = last.checked_add(1).filter(|n| *n <= largest(bits));
        }
        ranges.extend(next.map(|next| (next, largest(bits))));
        Self::of(ranges)
    }

    /// The complement of the set.
    pub fn complement(&self, bits: u32) -> Self {
        Self {
            missing: !self.missing,
            ..self.others(bits)
        }
    }

    /// True if nothing is in the set.
    pub fn is_empty(&self) -> bool {
        !self.missing && self.ranges.is_empty()
    }

    /// True if everything is in the set.
    pub fn is_everything(&self, bits: u32) -> bool {
        self.missing && self.ranges == [(0, largest(bits))]
    }

    /// The intersection of both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let (mut a, mut b) = (
            self.ranges.iter().peekable(),
            other.ranges.iter().peekable(),
        );
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let both = (x.0.max(y.0), x.1.min(y.1));
            if both.0 <= both.1 {
                ranges.push(both);
            }
            if x.1 < y.1 {
                a.next()
            } else {
                b.next()
            };
        }
        Self {
            missing: self.missing && other.missing,
            ranges,
        }
    }

    /// The union of both sets.
    pub fn union(&self, other: &Self) -> Self {
        let mut all: Vec<_> = self.ranges.iter().chain(&other.ranges).copied().collect();
        sort::by(&mut all, Ord::cmp);
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (first, last) in all {
            match ranges.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => ranges.push((first, last)),
            }
        }
        Self {
            missing: self.missing || other.missing,
            ranges,
        }
    }
}

/// Values whose bits under the mask are greater.
fn greater(compare: &Compare, bits: u32) -> Option<Vec<(u32, u32)>> {
    let max = largest(bits);
    let low = !compare.mask & max;
    if low & low.wrapping_add(1) != 0 {
        return (bits == 8).then(|| scanned(|v| v & compare.mask > compare.value));
    }
    let first = (compare.value | low).checked_add(1).filter(|f| *f <= max);
    Some(first.map(|first| (first, max)).into_iter().collect())
}

/// The values of a byte for which something holds.
fn scanned(holds: impl Fn(u32) -> bool) -> Vec<(u32, u32)> {
    let alone = (0..256).filter(|v| holds(*v)).map(|v| (v, v)).collect();
    Values::of(Vec::new()).union(&Values::of(alone)).ranges
}

/// Values whose bits under the mask are equal: a range for each setting of the bits that are free and
/// above one that is not.
fn equal(compare: &Compare, bits: u32) -> Option<Vec<(u32, u32)>> {
    let max = largest(bits);
    let mask = compare.mask & max;
    let low = largest_below(mask).min(max);
    let free = !mask & max & !low;
    if free.count_ones() > FREE_BITS {
        return None;
    }
    let fixed = compare.value & mask;
    let mut ranges = Vec::new();
    let mut setting = 0u32;
    loop {
        ranges.push((fixed | setting, fixed | setting | low));
        if setting == free {
            break;
        }
        setting = (setting | !free).wrapping_add(1) & free;
    }
    sort::by(&mut ranges, Ord::cmp);
    Some(ranges)
}

/// The bits below the lowest that is set.
fn largest_below(mask: u32) -> u32 {
    match mask.trailing_zeros() {
        32 => u32::MAX,
        zeros => (1 << zeros) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn has(values: &Values, v: u32) -> bool {
        values.ranges.iter().any(|(a, b)| (*a..=*b).contains(&v))
    }

    proptest! {
        #[test]
        fn comparisons_as_ranges(mask in 0u32..256, value in 0u32..256, greater: bool, negated: bool) {
            let compare = Compare { mask, value, greater, negated };
            if let Some(values) = Values::matching(&compare, 8) {
                for v in 0..256 {
                    let raw = if greater { v & mask > value } else { v & mask == value & mask };
                    prop_assert_eq!(has(&values, v), raw != negated, "{}", v);
                }
                prop_assert!(values.ranges.windows(2).all(|w| w[0].1 < w[1].0));
            }
        }

        #[test]
        fn algebra(a in prop::collection::vec((0u32..256, 0u32..9), 0..6),
                   b in prop::collection::vec((0u32..256, 0u32..9), 0..6)) {
            let set = |list: Vec<(u32, u32)>| list.iter().fold(Values::of(vec![]), |set, (first, len)| {
                set.union(&Values::of(vec![(*first, (first + len).min(255))]))
            });
            let (a, b) = (set(a), set(b));
            let (not, both, either) = (a.complement(8), a.intersection(&b), a.union(&b));
            prop_assert!(not.missing && !both.missing);
            for v in 0..256 {
                prop_assert_eq!(has(&not, v), !has(&a, v));
                prop_assert_eq!(has(&both, v), has(&a, v) && has(&b, v));
                prop_assert_eq!(has(&either, v), has(&a, v) || has(&b, v));
            }
            prop_assert_eq!(not.complement(8), a);
        }
    }

    #[test]
    fn masks_with_holes() {
        let fragment = Compare {
            mask: 0x3fff,
            value: 0,
            greater: false,
            negated: false,
        };
        let values = Values::matching(&fragment, 16);
        let whole = vec![(0, 0), (0x4000, 0x4000), (0x8000, 0x8000), (0xc000, 0xc000)];
        assert_eq!(values, Some(Values::of(whole)));
        let last_octet = Compare {
            mask: 0xff,
            ..fragment
        };
        assert_eq!(Values::matching(&last_octet, 32), None);
        let prefix = Compare {
            mask: 0xff00_0000,
            value: 0x0a00_0000,
            greater: false,
            negated: true,
        };
        let others = vec![(0, 0x09ff_ffff), (0x0b00_0000, u32::MAX)];
        assert_eq!(Values::matching(&prefix, 32), Some(Values::of(others)));
    }
}
