// SPDX-License-Identifier: Apache-2.0
//! Finds the first rule that matches a packet: each field's value has a set of boxes it allows, and the
//! first box that is in the sets of all fields decides (Lakshman and Stiliadis, "High-speed policy-based
//! packet forwarding", SIGCOMM 1998, with the summaries of Baboescu and Varghese, SIGCOMM 2001). Boxes that ask for
//! the same fields lie together. A summary has a bit for 64 boxes, and a single one among them that does not ask for a
//! field sets it; so in the order of the rules, the summaries of mixed lists would exclude nothing.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use click_core::{memory, sort};

use super::graph::values;
use super::region::{Cover, Region};
use super::sets::Sets;
use crate::headers::{Axis, Headers};

/// Fields that are used; of more those that most boxes ask for.
const MAX_FIELDS: usize = 16;
/// Bytes that the sets of a field may take; where they would be more, the field is not used, and rules that ask
/// for it are evaluated one by one.
const MAX_BYTES: usize = 16 << 20;

/// The boxes of all rules.
pub struct Table {
    fields: Vec<(Axis, Sets)>,
    boxes: Vec<Box>,
    /// The first rule of each word of boxes.
    firsts: Vec<u32>,
}

struct Box {
    rule: u32,
    /// True if the rule matches everything in the box.
    decides: bool,
}

impl Table {
    /// A table of what each rule matches, as far as `reserve` bytes of memory are left.
    pub fn new(rules: &[Cover], reserve: usize) -> Self {
        let number = |rule| u32::try_from(rule).expect("rules are limited");
        let mut list: Vec<(u32, bool, &Region)> = rules
            .iter()
            .enumerate()
            .flat_map(|(rule, c)| c.boxes.iter().map(move |b| (number(rule), c.exact, b)))
            .collect();
        // in the order of the rules where they ask for the same fields
        sort::by(&mut list, |(_, _, a), (_, _, b)| asked(a).cmp(asked(b)));
        let sets = |axis: Axis| {
            let boxes: Vec<_> = list.iter().map(|(_, _, r)| values(r, axis)).collect();
            let bytes = memory::part_of(MAX_BYTES, reserve);
            Some((axis, Sets::new(&boxes, bytes)?))
        };
        let fields: Vec<_> = axes(rules).into_iter().filter_map(sets).collect();
        let used = |region: &Region| region.iter().all(|(a, _)| fields.iter().any(|f| f.0 == *a));
        let boxes = list.iter().map(|(rule, exact, region)| Box {
            rule: *rule,
            decides: *exact && used(region),
        });
        let words = list.chunks(64);
        let firsts = words.map(|word| word.iter().map(|(rule, ..)| *rule).fold(u32::MAX, u32::min));
        Self {
            boxes: boxes.collect(),
            firsts: firsts.collect(),
            fields,
        }
    }

    /// The first rule that matches; `check` says whether one does, where the boxes cannot.
    pub fn find(
        &self,
        headers: &Headers<'_>,
        mut check: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let mut sets = [0; MAX_FIELDS];
        for (set, (axis, field)) in sets.iter_mut().zip(&self.fields) {
            *set = field.find(headers.value(*axis));
        }
        let (words, mut first) = (self.boxes.len().div_ceil(64), u32::MAX);
        for group in 0..words.div_ceil(64) {
            for word in Bits(self.both(&sets, words, group, Sets::summary)) {
                let word = group * 64 + word;
                if self.firsts[word] >= first {
                    continue;
                }
                for index in Bits(self.both(&sets, self.boxes.len(), word, Sets::word)) {
                    let Box { rule, decides } = self.boxes[word * 64 + index];
                    if rule < first && (decides || check(rule as usize)) {
                        first = rule;
                    }
                }
            }
        }
        (first < u32::MAX).then_some(first as usize)
    }

    /// The bits that are set for all fields; `all` is how many bits there are.
    fn both(
        &self,
        sets: &[usize; MAX_FIELDS],
        all: usize,
        word: usize,
        of: impl Fn(&Sets, usize, usize) -> u64,
    ) -> u64 {
        let left = all - word * 64;
        let whole = if left >= 64 {
            u64::MAX
        } else {
            (1 << left) - 1
        };
        let fields = self.fields.iter().zip(sets);
        fields.fold(whole, |bits, ((_, field), set)| {
            bits & of(field, *set, word)
        })
    }
}

/// The fields that a box asks for.
fn asked(region: &Region) -> impl Iterator<Item = Axis> {
    region.iter().map(|(axis, _)| *axis)
}

/// The places of the bits that are set.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let first = self.0.trailing_zeros() as usize;
        self.0 &= self.0.checked_sub(1)?;
        Some(first)
    }
}

/// The fields that boxes ask for, those that most do first.
pub fn axes(rules: &[Cover]) -> Vec<Axis> {
    let mut asked: BTreeMap<Axis, usize> = BTreeMap::new();
    for (axis, _) in rules.iter().flat_map(|c| c.boxes.iter().flatten()) {
        *asked.entry(*axis).or_default() += 1;
    }
    let mut asked: Vec<_> = asked.into_iter().collect();
    sort::by_key(&mut asked, |(_, boxes)| core::cmp::Reverse(*boxes));
    asked.truncate(MAX_FIELDS);
    asked.into_iter().map(|(axis, _)| axis).collect()
}
