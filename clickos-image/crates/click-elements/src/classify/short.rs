// SPDX-License-Identifier: Apache-2.0
//! Finds the first rule that matches each packet of a batch, for lists of at most 64 boxes: a field's value has a set
//! of boxes it allows, which is one word, and the first box that all fields allow decides. One field after the other
//! is looked at in all packets, so that nothing waits for the outcome of a packet's decision before.
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::fields::{Axis, Headers, Place};
use super::graph::values;
use super::region::{Cover, Region};
use super::sets::changes;
use super::table::axes;
use super::values::Values;
use crate::steps::Forest;

/// Packets that are looked at together.
pub const LANES: usize = 32;
/// Boxes, one for each bit of a set.
const MOST_BOXES: usize = 64;

/// A bit for each box.
type Set = u64;

/// The sets of a field's values.
enum Sets {
    /// Values from `first` on, as many as `span` and one, are told from the others.
    Range {
        first: u32,
        span: u32,
        inside: Set,
        outside: Set,
    },
    /// One for each value of a byte.
    Bytes(Box<[Set; 256]>),
    /// The number of the set is what the function with this root says.
    Steps {
        forest: Forest,
        root: u32,
        list: Vec<Set>,
    },
}

struct Field {
    place: Place,
    missing: Set,
    sets: Sets,
}

/// A short list of rules.
pub struct Short {
    fields: Vec<Field>,
    /// The rule of each box, and whether it matches everything in the box.
    boxes: Vec<(u32, bool)>,
}

impl Short {
    /// A list of what each rule matches, if it is short.
    pub fn new(rules: &[Cover]) -> Option<Self> {
        let number = |rule| u32::try_from(rule).expect("rules are limited");
        let list: Vec<(u32, bool, &Region)> = rules
            .iter()
            .enumerate()
            .flat_map(|(rule, c)| c.boxes.iter().map(move |b| (number(rule), c.exact, b)))
            .collect();
        if list.len() > MOST_BOXES {
            return None;
        }
        let axes = axes(rules);
        let used = |region: &Region| region.iter().all(|(axis, _)| axes.contains(axis));
        let field = |axis: &Axis| {
            let boxes: Vec<_> = list.iter().map(|(_, _, r)| values(r, *axis)).collect();
            Field::new(*axis, &boxes)
        };
        let boxes = list.iter();
        Some(Self {
            boxes: boxes
                .map(|(rule, exact, region)| (*rule, *exact && used(region)))
                .collect(),
            fields: axes.iter().map(field).collect(),
        })
    }

    /// The first rule that matches each of at most `LANES` packets; `check` says whether one does, where the boxes
    /// cannot.
    #[inline]
    pub fn find(
        &self,
        packets: &[Headers<'_>],
        mut check: impl FnMut(&Headers<'_>, usize) -> bool,
        mut found: impl FnMut(Option<usize>),
    ) {
        let mut sets = [all(self.boxes.len()); LANES];
        for field in &self.fields {
            field.narrow(packets, &mut sets);
        }
        for (headers, set) in packets.iter().zip(sets) {
            found(self.first(set, |rule| check(headers, rule)));
        }
    }

    /// The rule of the first box of a set that matches.
    #[inline]
    fn first(&self, mut set: Set, mut check: impl FnMut(usize) -> bool) -> Option<usize> {
        while set != 0 {
            let (rule, decides) = self.boxes[set.trailing_zeros() as usize];
            if decides || check(rule as usize) {
                return Some(rule as usize);
            }
            set &= set - 1;
        }
        None
    }
}

/// The set of so many boxes.
fn all(boxes: usize) -> Set {
    match boxes {
        MOST_BOXES => Set::MAX,
        fewer => (1 << fewer) - 1,
    }
}

impl Field {
    /// For each box what it asks of the field, if it asks for something.
    fn new(axis: Axis, boxes: &[Option<&Values>]) -> Self {
        let those = |ask: &dyn Fn(&Values) -> bool| {
            let asking = boxes.iter().enumerate();
            asking.fold(0, |set, (n, v)| set | Set::from(v.is_none_or(ask)) << n)
        };
        let below = those(&|v| v.ranges.first().is_some_and(|range| range.0 == 0));
        let mut set = below;
        let change = |(start, list): (u32, Vec<(usize, bool)>)| {
            for (n, begins) in list {
                set = set & !(1 << n) | Set::from(begins) << n;
            }
            (start, set)
        };
        let steps: Vec<_> = changes(boxes).into_iter().map(change).collect();
        Self {
            place: Place::of(axis),
            missing: those(&|v| v.missing),
            sets: Sets::new(axis, below, &steps),
        }
    }

    /// Leaves in each packet's set what the field's value allows.
    fn narrow(&self, packets: &[Headers<'_>], sets: &mut [Set; LANES]) {
        match &self.sets {
            Sets::Range {
                first,
                span,
                inside,
                outside,
            } => self.each(packets, sets, |value| {
                if value.wrapping_sub(*first) <= *span {
                    *inside
                } else {
                    *outside
                }
            }),
            Sets::Bytes(list) => self.each(packets, sets, |value| list[value as usize & 255]),
            Sets::Steps { forest, root, list } => self.each(packets, sets, |value| {
                list[forest.get(*root, value) as usize]
            }),
        }
    }

    #[inline]
    fn each(&self, packets: &[Headers<'_>], sets: &mut [Set; LANES], allowed: impl Fn(u32) -> Set) {
        let (place, missing) = (self.place, self.missing);
        for (headers, set) in packets.iter().zip(sets) {
            let value = place.value(headers);
            *set &= value.map_or(missing, &allowed);
        }
    }
}

impl Sets {
    /// The sets of a function that is `below` up to the first step.
    fn new(axis: Axis, below: Set, steps: &[(u32, Set)]) -> Self {
        let range = |first: u32, last: u32, inside: Set| Self::Range {
            first,
            span: last - first,
            inside,
            outside: below,
        };
        match *steps {
            [(first, inside)] => range(first, u32::MAX, inside),
            [(first, inside), (end, outside)] if outside == below => range(first, end - 1, inside),
            _ if axis.bytes == 1 => Self::Bytes(Box::new(core::array::from_fn(|value| {
                let begun = steps.partition_point(|(start, _)| *start as usize <= value);
                begun.checked_sub(1).map_or(below, |last| steps[last].1)
            }))),
            _ => Self::numbered(below, steps),
        }
    }

    fn numbered(below: Set, steps: &[(u32, Set)]) -> Self {
        let (mut list, mut numbers) = (Vec::new(), BTreeMap::new());
        let mut number = |set: Set| {
            *numbers.entry(set).or_insert_with(|| {
                list.push(set);
                u32::try_from(list.len() - 1).expect("there are at most 64 boxes")
            })
        };
        let below = number(below);
        let steps: Vec<_> = steps
            .iter()
            .map(|(start, s)| (*start, number(*s)))
            .collect();
        let mut forest = Forest::default();
        let root = forest.plant(below, &steps);
        Self::Steps { forest, root, list }
    }
}
