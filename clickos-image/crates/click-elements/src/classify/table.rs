// SPDX-License-Identifier: Apache-2.0
//! Finds the rules that can match a packet: for each field, each interval of its values has a
//! set of boxes (bits in the order of the rules); the intersection of five sets is what is left
//! (Lakshman and Stiliadis, "High-speed policy-based packet forwarding", SIGCOMM 1998).
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::fields::Headers;
use super::region::{FIELDS, Region};

/// A field whose sets would take more than this is not used; the rules are then checked one by one.
const MAX_WORDS: usize = (4 << 20) / 8;

/// The sets of one field.
struct Axis {
    /// Where intervals begin; the first begins at 0.
    starts: Vec<u32>,
    /// For each interval where its set begins in `words`.
    sets: Vec<usize>,
    /// The set for a packet without the field: boxes that do not ask for it.
    absent: usize,
    words: Vec<u64>,
}

/// The boxes of all rules.
pub struct Table {
    axes: [Option<Axis>; FIELDS],
    /// The rule of each box, in rising order.
    rules: Vec<usize>,
    width: usize,
}

impl Table {
    /// A table of each rule's boxes.
    pub fn new(rules: &[Vec<Region>]) -> Self {
        let boxes: Vec<(usize, &Region)> = rules
            .iter()
            .enumerate()
            .flat_map(|(rule, list)| list.iter().map(move |r| (rule, r)))
            .collect();
        let width = boxes.len().div_ceil(64);
        let axis = |field: usize| {
            Axis::new(
                &boxes
                    .iter()
                    .map(|(_, r)| r[field].as_deref())
                    .collect::<Vec<_>>(),
                width,
            )
        };
        Self {
            axes: core::array::from_fn(axis),
            rules: boxes.iter().map(|(rule, _)| *rule).collect(),
            width,
        }
    }

    /// The first rule that can match and for which `check` is true.
    pub fn find(
        &self,
        headers: &Headers<'_>,
        mut check: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let values: [Option<u32>; FIELDS] = [
            headers.protocol().map(u32::from),
            headers.source(),
            headers.destination(),
            headers.source_port().map(u32::from),
            headers.destination_port().map(u32::from),
        ];
        let mut sets: [&[u64]; FIELDS] = [&[]; FIELDS];
        let mut used = 0;
        for (axis, value) in self.axes.iter().zip(values) {
            if let Some(axis) = axis {
                sets[used] = axis.set(value, self.width);
                used += 1;
            }
        }
        let mut failed = None;
        for word in 0..self.width {
            let mut left = sets[..used]
                .iter()
                .fold(self.all(word), |m, set| m & set[word]);
            while left != 0 {
                let rule = self.rules[word * 64 + left.trailing_zeros() as usize];
                left &= left - 1;
                if failed == Some(rule) {
                    continue;
                }
                if check(rule) {
                    return Some(rule);
                }
                failed = Some(rule);
            }
        }
        None
    }

    /// All boxes of one word.
    fn all(&self, word: usize) -> u64 {
        let behind = self.rules.len() - word * 64;
        if behind >= 64 {
            u64::MAX
        } else {
            (1 << behind) - 1
        }
    }
}

impl Axis {
    /// `None` if no box asks for the field, or the sets would be too large.
    fn new(boxes: &[Option<&[(u32, u32)]>], width: usize) -> Option<Self> {
        let mut changes: BTreeMap<u32, Vec<(usize, bool)>> = BTreeMap::from([(0, Vec::new())]);
        let mut current = vec![0; width];
        for (index, ranges) in boxes.iter().enumerate() {
            let Some(ranges) = ranges else {
                current[index / 64] |= 1 << (index % 64);
                continue;
            };
            for (first, last) in *ranges {
                changes.entry(*first).or_default().push((index, true));
                if let Some(next) = last.checked_add(1) {
                    changes.entry(next).or_default().push((index, false));
                }
            }
        }
        let unused = boxes.iter().all(Option::is_none);
        if unused || changes.len().saturating_mul(width) > MAX_WORDS {
            return None;
        }
        let mut axis = Self {
            starts: Vec::new(),
            sets: Vec::new(),
            absent: 0,
            words: current.clone(),
        };
        let mut known: BTreeMap<Vec<u64>, usize> = BTreeMap::from([(current.clone(), 0)]);
        for (start, list) in changes {
            // ends come before beginnings, so that adjoining ranges of a box stay
            for (index, begins) in list
                .iter()
                .filter(|c| !c.1)
                .chain(list.iter().filter(|c| c.1))
            {
                let bit = 1 << (index % 64);
                current[index / 64] = if *begins {
                    current[index / 64] | bit
                } else {
                    current[index / 64] & !bit
                };
            }
            let next = axis.words.len();
            let set = *known.entry(current.clone()).or_insert(next);
            if set == next {
                axis.words.extend_from_slice(&current);
            }
            axis.starts.push(start);
            axis.sets.push(set);
        }
        Some(axis)
    }

    fn set(&self, value: Option<u32>, width: usize) -> &[u64] {
        let at = match value {
            Some(v) => self.sets[self.starts.partition_point(|start| *start <= v) - 1],
            None => self.absent,
        };
        &self.words[at..at + width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_the_sets_of_their_boxes() {
        let (a, b) = ([(10, 20), (21, 30)], [(20, u32::MAX)]);
        let axis = Axis::new(&[Some(&a), None, Some(&b)], 1).unwrap();
        let set = |v| axis.set(v, 1)[0];
        assert_eq!(
            (set(Some(0)), set(Some(10)), set(Some(20)), set(Some(25))),
            (0b010, 0b011, 0b111, 0b111)
        );
        assert_eq!(
            (set(Some(31)), set(Some(u32::MAX)), set(None)),
            (0b110, 0b110, 0b010)
        );
        assert!(Axis::new(&[None, None], 1).is_none());
    }
}
