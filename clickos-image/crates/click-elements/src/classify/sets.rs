// SPDX-License-Identifier: Apache-2.0
//! Sets of boxes, one for each interval of a field's values: bits in chunks of 512, equal chunks kept
//! once, and above them a bit for each word that is not zero.
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use click_core::sort;

use super::values::Values;
use crate::steps::Forest;

/// Words of a chunk.
const CHUNK: usize = 8;
type Chunk = [u64; CHUNK];

/// The sets of one field.
pub struct Sets {
    /// The number of the set for a value, as the function with this root.
    set_of: Forest,
    root: u32,
    /// The set for packets without the field.
    missing: u32,
    /// Chunks of a set.
    per_set: usize,
    /// Words of a set's summary.
    per_summary: usize,
    numbers: Vec<u32>,
    summaries: Vec<u64>,
    chunks: Vec<Chunk>,
}

impl Sets {
    /// For each box what it asks of the field, if it asks for something. `None` if more than `most` bytes are
    /// needed.
    pub fn new(boxes: &[Option<&Values>], most: usize) -> Option<Self> {
        let mut maker = Maker::new(boxes, most);
        let missing = maker.add()?;
        for (index, values) in boxes.iter().enumerate() {
            if let Some(values) = values {
                maker.set(index, values.ranges.first().is_some_and(|r| r.0 == 0));
            }
        }
        let below = maker.add()?;
        let mut steps = Vec::new();
        for (start, list) in changes(boxes) {
            list.iter().for_each(|(index, is)| maker.set(*index, *is));
            steps.push((start, maker.add()?));
        }
        maker.finish(below, &steps, missing)
    }

    /// The number of the set for a value.
    pub fn find(&self, value: Option<u32>) -> usize {
        value.map_or(self.missing, |v| self.set_of.get(self.root, v)) as usize
    }

    /// 64 bits of a set's summary.
    pub fn summary(&self, set: usize, group: usize) -> u64 {
        self.summaries[set * self.per_summary + group]
    }

    /// A word of a set.
    pub fn word(&self, set: usize, word: usize) -> u64 {
        let chunk = self.numbers[set * self.per_set + word / CHUNK];
        self.chunks[chunk as usize][word % CHUNK]
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.set_of.bytes()
            + size_of_val(self.numbers.as_slice())
            + size_of_val(self.summaries.as_slice())
            + size_of_val(self.chunks.as_slice())
    }
}

/// For each value at which ranges begin or end: which boxes, and whether they begin. Ends come first, so
/// that adjoining ranges of a box stay.
pub fn changes(boxes: &[Option<&Values>]) -> BTreeMap<u32, Vec<(usize, bool)>> {
    let mut changes: BTreeMap<u32, Vec<(usize, bool)>> = BTreeMap::new();
    let ranges = boxes.iter().enumerate().flat_map(|(index, v)| {
        v.iter()
            .flat_map(move |v| v.ranges.iter().map(move |r| (index, *r)))
    });
    for (index, (first, last)) in ranges {
        if first > 0 {
            changes.entry(first).or_default().push((index, true));
        }
        if let Some(next) = last.checked_add(1) {
            changes.entry(next).or_default().push((index, false));
        }
    }
    changes
        .values_mut()
        .for_each(|list| sort::by_key(list, |c| c.1));
    changes
}

/// Makes sets one after the other, each a change of the one before.
struct Maker {
    bits: Vec<Chunk>,
    numbers: Vec<u32>,
    changed: Vec<usize>,
    known: BTreeMap<Chunk, u32>,
    made: Sets,
    most: usize,
}

impl Maker {
    fn new(boxes: &[Option<&Values>], most: usize) -> Self {
        let per_set = boxes.len().div_ceil(64 * CHUNK);
        let mut maker = Self {
            bits: vec![[0; CHUNK]; per_set],
            numbers: vec![0; per_set],
            changed: (0..per_set).collect(),
            known: BTreeMap::new(),
            made: Sets {
                set_of: Forest::default(),
                root: 0,
                missing: 0,
                per_set,
                per_summary: (per_set * CHUNK).div_ceil(64),
                numbers: Vec::new(),
                summaries: Vec::new(),
                chunks: Vec::new(),
            },
            most,
        };
        for (index, values) in boxes.iter().enumerate() {
            maker.set(index, values.is_none_or(|v| v.missing));
        }
        maker
    }

    fn set(&mut self, index: usize, is: bool) {
        let chunk = index / 64 / CHUNK;
        let word = &mut self.bits[chunk][index / 64 % CHUNK];
        let bit = 1 << (index % 64);
        let after = if is { *word | bit } else { *word & !bit };
        if after != *word && self.changed.last() != Some(&chunk) {
            self.changed.push(chunk);
        }
        *word = after;
    }

    /// Adds the set as it is now.
    fn add(&mut self) -> Option<u32> {
        for at in core::mem::take(&mut self.changed) {
            let chunks = &mut self.made.chunks;
            let next = u32::try_from(chunks.len()).ok()?;
            let number = *self.known.entry(self.bits[at]).or_insert(next);
            if number == next {
                chunks.push(self.bits[at]);
            }
            self.numbers[at] = number;
        }
        let number = self.made.numbers.len() / self.made.per_set.max(1);
        self.made.numbers.extend(&self.numbers);
        self.summarize();
        let number = u32::try_from(number).ok();
        number.filter(|n| *n < Forest::MAX_VALUES && self.made.bytes() <= self.most)
    }

    fn summarize(&mut self) {
        let begin = self.made.summaries.len();
        self.made.summaries.resize(begin + self.made.per_summary, 0);
        let words = self.bits.iter().flatten().enumerate();
        for (word, _) in words.filter(|(_, w)| **w != 0) {
            self.made.summaries[begin + word / 64] |= 1 << (word % 64);
        }
    }

    fn finish(mut self, below: u32, steps: &[(u32, u32)], missing: u32) -> Option<Sets> {
        self.made.root = self.made.set_of.plant(below, steps);
        self.made.missing = missing;
        (self.made.bytes() <= self.most).then_some(self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_hold_the_boxes_of_a_value(
            boxes in prop::collection::vec(
                prop::option::of((any::<bool>(), prop::collection::vec((0u32..300, 0u32..40), 0..4))), 1..1300),
            values in prop::collection::vec(prop::option::of(0u32..340), 20),
        ) {
            let union = |(missing, list): &(bool, Vec<(u32, u32)>)| list.iter().fold(
                Values { missing: *missing, ranges: vec![] },
                |set, (first, len)| set.union(&Values::of(vec![(*first, first + len)])));
            let boxes: Vec<_> = boxes.iter().map(|b| b.as_ref().map(union)).collect();
            let asked: Vec<_> = boxes.iter().map(Option::as_ref).collect();
            let sets = Sets::new(&asked, usize::MAX).unwrap();
            for value in values {
                let set = sets.find(value);
                for (index, wanted) in boxes.iter().enumerate() {
                    let has = |w: &Values| value.map_or(w.missing, |v| {
                        w.ranges.iter().any(|(a, b)| (*a..=*b).contains(&v))
                    });
                    let is = wanted.as_ref().is_none_or(has);
                    let word = sets.word(set, index / 64);
                    prop_assert_eq!(word >> (index % 64) & 1 == 1, is, "box {} value {:?}", index, value);
                    let summary = sets.summary(set, index / 64 / 64) >> (index / 64 % 64) & 1;
                    prop_assert_eq!(summary == 1, word != 0);
                }
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        let values: Vec<_> = (0..2000)
            .map(|n| Values::of(vec![(n * 9, n * 9)]))
            .collect();
        let asked: Vec<_> = values.iter().map(Some).collect();
        let bytes = Sets::new(&asked, usize::MAX).unwrap().bytes();
        assert!(bytes < 400_000, "{bytes}");
        assert!(Sets::new(&asked, bytes - 1).is_none());
    }
}
