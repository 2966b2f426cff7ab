// SPDX-License-Identifier: Apache-2.0
//! Finds the first rule that matches each packet of a batch, for lists of at most 64 boxes: a field's value has a set
//! of boxes it allows, which is one word, and the first box that all fields allow decides. One field after the other
//! is looked at in all packets, so that nothing waits for the outcome of a packet's decision before.
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::slice;

use click_core::sort;

use super::graph::values;
use super::pairs::Numbers;
use super::region::{Cover, Region};
use super::sets::changes;
use super::table::axes;
use super::values::Values;
use crate::headers::{Axis, Headers, Place, plain};
use crate::lanes::{LANES, Lanes, WIDTH};
use crate::prelude::Packet;
use crate::steps::Forest;

/// Boxes, one for each bit of a set.
const MAX_BOXES: usize = 64;

/// A bit for each box.
pub type Set = u64;

/// The sets of a field's values.
enum Sets {
    Range(Range),
    /// One for each value of a byte.
    Bytes(Box<[Set; 256]>),
    Pairs(Pairs),
    Steps(Steps),
}

/// Values from `first` on, as many as `span` and one, are distinguished from the others.
struct Range {
    first: u32,
    span: u32,
    inside: Set,
    outside: Set,
}

/// The number of the set is what the function with this root says.
struct Steps {
    forest: Forest,
    root: u32,
    list: Vec<Set>,
}

/// The same for values of two bytes.
struct Pairs {
    numbers: Numbers,
    list: Vec<Set>,
}

struct Field {
    place: Place,
    /// Where that is in plain headers.
    in_plain: Option<usize>,
    missing: Set,
    /// The boxes that test its value.
    asking: Set,
    sets: Sets,
}

/// A short list of rules.
pub struct Short {
    /// Those that only packets of IPv6 have are the last ones.
    fields: Vec<Field>,
    /// How many others there are.
    fields4: usize,
    /// The boxes that packets without these may be in.
    without6: Set,
    /// True if all other fields lie in plain headers.
    is_plain: bool,
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
        if list.len() > MAX_BOXES {
            return None;
        }
        let mut axes = axes(rules);
        sort::by_key(&mut axes, |axis| axis.is_ip6());
        let used = |region: &Region| region.iter().all(|(axis, _)| axes.contains(axis));
        let field = |axis: &Axis| {
            let boxes: Vec<_> = list.iter().map(|(_, _, r)| values(r, *axis)).collect();
            Field::new(*axis, &boxes)
        };
        let fields: Vec<_> = axes.iter().map(field).collect();
        let fields4 = axes.iter().filter(|axis| !axis.is_ip6()).count();
        let without6 = |set, field: &Field| set & field.missing;
        let boxes = list.iter();
        Some(Self {
            without6: fields[fields4..].iter().fold(all(list.len()), without6),
            fields4,
            boxes: boxes
                .map(|(rule, exact, region)| (*rule, *exact && used(region)))
                .collect(),
            is_plain: fields[..fields4]
                .iter()
                .all(|field| field.in_plain.is_some()),
            fields,
        })
    }

    /// For each of at most `LANES` packets the boxes that it may be in.
    #[inline]
    pub fn sets(&self, packets: &[Packet], lanes: &mut Lanes) -> [Set; LANES] {
        lanes.fill(packets, |packet| plain(packet).filter(|_| self.is_plain));
        let mut sets = self.plain_sets(lanes.iter());
        for n in lanes.others() {
            sets[n] = self.set(&Headers::of(&packets[n]));
        }
        sets
    }

    /// The same for packets with plain headers.
    #[inline]
    pub fn plain_sets(&self, lanes: slice::Iter<'_, [u8; WIDTH]>) -> [Set; LANES] {
        let mut sets = [self.without6; LANES];
        for field in &self.fields[..self.fields4] {
            let packets = sets.iter().take(lanes.len());
            if field.asking & packets.fold(0, |all, set| all | set) != 0 {
                field.narrow(lanes.clone(), &mut sets);
            }
        }
        sets
    }

    /// The same for one packet with any headers.
    #[cold]
    pub fn set(&self, headers: &Headers<'_>) -> Set {
        let fields = self.fields.iter();
        fields.fold(all(self.boxes.len()), |set, field| {
            set & field.allowed(headers)
        })
    }

    /// The rule of the first box of a set that matches.
    #[inline]
    pub fn first(&self, set: Set, check: impl FnMut(usize) -> bool) -> Option<usize> {
        if set == 0 {
            return None;
        }
        match self.boxes[set.trailing_zeros() as usize] {
            (rule, true) => Some(rule as usize),
            _ => self.first_checked(set, check),
        }
    }

    /// The same where the first box does not decide. This case is rare and takes registers, so it
    /// has its own function.
    #[inline(never)]
    fn first_checked(&self, mut set: Set, mut check: impl FnMut(usize) -> bool) -> Option<usize> {
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

/// The set of the first `n` boxes.
fn all(boxes: usize) -> Set {
    match boxes {
        MAX_BOXES => Set::MAX,
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
        let place = Place::of(axis);
        Self {
            place,
            in_plain: place.in_plain(),
            missing: those(&|v| v.missing),
            asking: all(boxes.len()) & !those(&|_| false),
            sets: Sets::new(axis, below, &steps),
        }
    }

    /// Leaves in each packet's set what the field's value allows. A function of its own: inlined, its loops lack
    /// registers.
    #[inline(never)]
    fn narrow(&self, lanes: slice::Iter<'_, [u8; WIDTH]>, sets: &mut [Set; LANES]) {
        match &self.sets {
            Sets::Range(range) => self.each(lanes, sets, |value| range.set(value)),
            Sets::Bytes(list) => self.each(lanes, sets, |value| list[value as usize & 255]),
            Sets::Pairs(pairs) => self.each(lanes, sets, |value| pairs.set(value)),
            Sets::Steps(steps) => self.each(lanes, sets, |value| steps.set(value)),
        }
    }

    #[inline]
    fn each(
        &self,
        lanes: slice::Iter<'_, [u8; WIDTH]>,
        sets: &mut [Set; LANES],
        allowed: impl Fn(u32) -> Set,
    ) {
        let (place, at) = (self.place, self.in_plain.unwrap_or_default());
        for (headers, set) in lanes.zip(sets) {
            *set &= allowed(place.plain_value(headers, at));
        }
    }

    /// The values that the field allows, whichever headers the packet has.
    fn allowed(&self, headers: &Headers<'_>) -> Set {
        let value = self.place.value(headers);
        value.map_or(self.missing, |value| match &self.sets {
            Sets::Range(range) => range.set(value),
            Sets::Bytes(list) => list[value as usize & 255],
            Sets::Pairs(pairs) => pairs.set(value),
            Sets::Steps(steps) => steps.set(value),
        })
    }
}

impl Range {
    #[inline]
    fn set(&self, value: u32) -> Set {
        if value.wrapping_sub(self.first) <= self.span {
            self.inside
        } else {
            self.outside
        }
    }
}

impl Steps {
    #[inline]
    fn set(&self, value: u32) -> Set {
        self.list[self.forest.get(self.root, value) as usize]
    }
}

impl Pairs {
    #[inline]
    fn set(&self, value: u32) -> Set {
        self.list[self.numbers.get(value)]
    }
}

impl Sets {
    /// The sets of a function that is `below` up to the first step.
    fn new(axis: Axis, below: Set, steps: &[(u32, Set)]) -> Self {
        let range = |first: u32, last: u32, inside: Set| {
            Self::Range(Range {
                first,
                span: last - first,
                inside,
                outside: below,
            })
        };
        match *steps {
            [(first, inside)] => range(first, u32::MAX, inside),
            [(first, inside), (end, outside)] if outside == below => range(first, end - 1, inside),
            _ if axis.bytes == 1 => Self::Bytes(Box::new(core::array::from_fn(|value| {
                let begun = steps.partition_point(|(start, _)| *start as usize <= value);
                begun.checked_sub(1).map_or(below, |last| steps[last].1)
            }))),
            _ => Self::numbered(axis, below, steps),
        }
    }

    fn numbered(axis: Axis, below: Set, steps: &[(u32, Set)]) -> Self {
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
        if let (2, Some(numbers)) = (axis.bytes, Numbers::new(below, &steps)) {
            return Self::Pairs(Pairs { numbers, list });
        }
        let mut forest = Forest::default();
        let root = forest.plant(below, &steps);
        Self::Steps(Steps { forest, root, list })
    }
}
