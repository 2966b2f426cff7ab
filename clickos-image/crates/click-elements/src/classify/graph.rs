// SPDX-License-Identifier: Apache-2.0
//! Finds the first rule that matches a packet by a graph of decisions: a node looks at one field, and its
//! value leads to the node for the boxes that are left. Nodes with the same boxes are one. Lists of
//! rules for which the graph would grow beyond its limit are finished by a [`Table`].
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use click_core::{memory, sort};

use super::region::{Cover, Region};
use super::sets::changes;
use super::table::{Table, axes};
use super::values::Values;
use crate::headers::{Axis, Headers, Place};
use crate::steps::Forest;

/// Boxes that all nodes are made of at most: a number, and a number for each box, but not more than this.
const MIN_WORK: usize = 1 << 12;
const WORK_PER_BOX: usize = 48;
const MAX_WORK: usize = 1 << 20;
/// Boxes that are put into nodes between two looks for memory.
const WORK_PER_PROBE: usize = 1 << 12;

/// Where to go on: the number of a node, or one of the kinds below with a number in its lower bits. A root of the
/// forest leads to the target that its function has for the value looked at last.
type Target = u32;

const KIND: Target = 7 << 28;
/// This rule matches.
const RULE: Target = 1 << 28;
/// The rules of this list must be evaluated one after the other.
const LIST: Target = 2 << 28;
/// There were too many possibilities.
const TABLE: Target = 3 << 28;
/// No rule matches.
const NOTHING: Target = 4 << 28;

/// Values of a field from `first` on, as many as `span` and one, are distinguished from the others.
#[derive(Clone, Copy)]
struct Node {
    field: Place,
    first: u32,
    span: u32,
    inside: Target,
    outside: Target,
    missing: Target,
}

impl Node {
    /// Continues to `target`, whatever the field's value.
    fn all(axis: Axis, target: Target) -> Self {
        Self {
            field: Place::of(axis),
            first: 0,
            span: u32::MAX,
            inside: target,
            outside: target,
            missing: target,
        }
    }

    /// The next target, and the value that was looked at.
    #[inline]
    fn next(&self, headers: &Headers<'_>) -> (Target, u32) {
        match self.field.value(headers) {
            Some(v) if v.wrapping_sub(self.first) <= self.span => (self.inside, v),
            Some(v) => (self.outside, v),
            None => (self.missing, 0),
        }
    }
}

/// The decisions.
pub struct Graph {
    nodes: Vec<Node>,
    start: Target,
    forest: Forest,
    /// The boxes of lists: a rule, and whether the box decides.
    lists: Vec<Vec<(u32, bool)>>,
    table: Option<Table>,
}

impl Graph {
    /// The decisions about what each rule matches, as far as `reserve` bytes of memory are left.
    pub fn new(rules: &[Cover], reserve: usize) -> Self {
        let boxes: usize = rules.iter().map(|cover| cover.boxes.len()).sum();
        let work = MAX_WORK.min(MIN_WORK + WORK_PER_BOX * boxes);
        Self::with_work(rules, work, reserve)
    }

    /// Decisions made of at most `work` boxes.
    fn with_work(rules: &[Cover], work: usize, reserve: usize) -> Self {
        let axes = axes(rules);
        let mut maker = Maker::new(rules, &axes, work, reserve);
        let all = maker.run();
        let mut graph = maker.graph;
        graph.nodes.shrink_to_fit();
        graph.forest.shrink();
        if !all {
            graph.table = Some(Table::new(rules, reserve));
        }
        graph
    }

    /// The first rule that matches; `check` says whether one does, where the boxes cannot.
    pub fn find(
        &self,
        headers: &Headers<'_>,
        mut check: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let end = self.end(headers);
        let number = (end & !KIND) as usize;
        match end & KIND {
            RULE => Some(number),
            LIST => {
                let mut list = self.lists[number].iter();
                let matches = |(rule, decides): &&(u32, bool)| *decides || check(*rule as usize);
                list.find(matches).map(|(rule, _)| *rule as usize)
            }
            TABLE => self.table.as_ref()?.find(headers, check),
            _ => None,
        }
    }

    /// The target at the end of a packet's decisions.
    #[inline]
    fn end(&self, headers: &Headers<'_>) -> Target {
        let (mut at, mut value) = (self.start, 0);
        loop {
            while let Some(node) = self.nodes.get(at as usize) {
                (at, value) = node.next(headers);
            }
            if !Forest::is_root(at) {
                return at;
            }
            at = self.forest.get(at, value);
        }
    }
}

/// A box of a rule.
struct Entry<'a> {
    rule: u32,
    region: &'a Region,
    /// True if the rule matches everything in the box.
    decides: bool,
    /// The fields that it reads, a bit for each.
    asks: u32,
}

/// The open decision at a node: boxes, and the fields already looked at.
type Left = (Vec<u32>, u32);

struct Maker<'a> {
    boxes: Vec<Entry<'a>>,
    axes: &'a [Axis],
    graph: Graph,
    known: BTreeMap<Left, Target>,
    queue: VecDeque<(Target, Left, usize)>,
    /// Boxes that may still be put into nodes.
    work: usize,
    reserve: usize,
}

impl<'a> Maker<'a> {
    fn new(rules: &'a [Cover], axes: &'a [Axis], work: usize, reserve: usize) -> Self {
        let place = |axis: Axis| axes.iter().position(|a| *a == axis);
        let entry = |rule: usize, region: &'a Region, exact: bool| {
            let asked = region.iter().filter_map(|(axis, _)| place(*axis));
            Entry {
                rule: number(rule),
                region,
                decides: exact && region.iter().all(|(axis, _)| place(*axis).is_some()),
                asks: asked.fold(0, |bits, at| bits | 1 << at),
            }
        };
        let of_rule = |(rule, cover): (usize, &'a Cover)| {
            let entries = cover.boxes.iter();
            entries.map(move |region| entry(rule, region, cover.exact))
        };
        let boxes: Vec<_> = rules.iter().enumerate().flat_map(of_rule).collect();
        Self {
            work,
            reserve,
            boxes,
            axes,
            graph: Graph {
                nodes: Vec::new(),
                start: NOTHING,
                forest: Forest::default(),
                lists: Vec::new(),
                table: None,
            },
            known: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// Makes all nodes; those for which there is too much work lead to the table. Returns whether there are none.
    fn run(&mut self) -> bool {
        let boxes = self.useful(0..number(self.boxes.len()), 0);
        self.graph.start = self.target(boxes, 0);
        let mut all = true;
        while let Some((node, (list, tested), place)) = self.queue.pop_front() {
            match self.expanded(&list, tested, place) {
                Some(made) => self.graph.nodes[node as usize] = made,
                None => all = false,
            }
        }
        all
    }

    /// True if nothing more has to be known for a box to match.
    fn is_decided(&self, index: u32, tested: u32) -> bool {
        let entry = &self.boxes[index as usize];
        entry.decides && entry.asks & !tested == 0
    }

    /// The boxes up to the first that is decided.
    fn useful(&self, boxes: impl Iterator<Item = u32>, tested: u32) -> Vec<u32> {
        let mut list = Vec::new();
        for index in boxes {
            list.push(index);
            if self.is_decided(index, tested) {
                break;
            }
        }
        list
    }

    /// Where to go on with what is left.
    fn target(&mut self, list: Vec<u32>, tested: u32) -> Target {
        let Some(first) = list.first().copied() else {
            return NOTHING;
        };
        if self.is_decided(first, tested) {
            return RULE | self.boxes[first as usize].rule;
        }
        let left = (list, tested);
        if let Some(target) = self.known.get(&left) {
            return *target;
        }
        let target = match self.best_field(&left.0, tested) {
            None => self.list(&left.0),
            Some(place) => self.planned(left.clone(), place),
        };
        self.known.insert(left, target);
        target
    }

    /// A node that will look at a field; until it is expanded it leads to the table.
    fn planned(&mut self, left: Left, place: usize) -> Target {
        let node = number(self.graph.nodes.len());
        self.graph.nodes.push(Node::all(self.axes[place], TABLE));
        self.queue.push_back((node, left, place));
        node
    }

    /// The node that decides what is left; `None` if that is too much work.
    fn expanded(&mut self, list: &[u32], tested: u32, place: usize) -> Option<Node> {
        let axis = self.axes[place];
        let tested = tested | 1 << place;
        let values: Vec<Option<&Values>> = list
            .iter()
            .map(|index| values(self.boxes[*index as usize].region, axis))
            .collect();
        let lacks = |at: &usize| values[*at].is_none_or(|v| v.missing);
        let mut active: BTreeSet<usize> = sort::tree((0..list.len()).filter(lacks));
        let missing = self.next(list, &active, tested)?;
        let from_zero = |v: &Values| v.ranges.first().is_some_and(|(first, _)| *first == 0);
        let starts = |at: &usize| values[*at].is_none_or(from_zero);
        active = sort::tree((0..list.len()).filter(starts));
        let below = self.next(list, &active, tested)?;
        let (mut steps, mut before) = (Vec::new(), below);
        for (start, change) in changes(&values) {
            for (at, begins) in change {
                if begins {
                    active.insert(at);
                } else {
                    active.remove(&at);
                }
            }
            let next = self.next(list, &active, tested)?;
            if next != before {
                steps.push((start, next));
            }
            before = next;
        }
        Some(self.decision(axis, missing, below, &steps))
    }

    /// The field that most boxes ask for, of those with the most different values.
    fn best_field(&self, list: &[u32], tested: u32) -> Option<usize> {
        let untested = (0..self.axes.len()).filter(|at| tested >> at & 1 == 0);
        let asked = |at: usize| {
            let boxes = list.iter().map(|index| &self.boxes[*index as usize]);
            let asking = boxes.filter(move |b| b.asks >> at & 1 == 1);
            let first = |b: &Entry<'_>| {
                let values = values(b.region, self.axes[at])?;
                Some((
                    values.ranges.first().copied(),
                    values.ranges.last().copied(),
                ))
            };
            let mut all: Vec<_> = asking.map(first).collect();
            let asked = all.len();
            sort::by(&mut all, Ord::cmp);
            all.dedup();
            (asked, all.len())
        };
        let counted = untested.map(|at| (asked(at), core::cmp::Reverse(at)));
        let (most, at) = counted.max()?;
        (most.0 > 0).then_some(at.0)
    }

    /// Where to go on with the boxes of a list that are active.
    fn next(&mut self, list: &[u32], active: &BTreeSet<usize>, tested: u32) -> Option<Target> {
        let left = self.useful(active.iter().map(|at| list[*at]), tested);
        let before = self.work;
        self.work = before.checked_sub(left.len() + 1)?;
        let probes = before / WORK_PER_PROBE != self.work / WORK_PER_PROBE;
        if probes && !memory::has_room(self.reserve) {
            self.work = 0;
            return None;
        }
        Some(self.target(left, tested))
    }

    fn decision(
        &mut self,
        axis: Axis,
        missing: Target,
        below: Target,
        steps: &[(u32, Target)],
    ) -> Node {
        let (first, span, inside) = match *steps {
            [(first, inside)] => (first, u32::MAX - first, inside),
            [(first, inside), (end, outside)] if outside == below => {
                (first, end - first - 1, inside)
            }
            _ => (0, u32::MAX, self.graph.forest.plant(below, steps)),
        };
        Node {
            first,
            span,
            inside,
            outside: below,
            missing,
            ..Node::all(axis, below)
        }
    }

    fn list(&mut self, list: &[u32]) -> Target {
        let boxes = list.iter().map(|index| &self.boxes[*index as usize]);
        let entries = boxes.map(|b| (b.rule, b.decides)).collect();
        self.graph.lists.push(entries);
        LIST | number(self.graph.lists.len() - 1)
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("the work is limited")
}

/// The condition of a box on a field, if there is one.
pub fn values(region: &Region, axis: Axis) -> Option<&Values> {
    let at = region.binary_search_by_key(&axis, |(a, _)| *a).ok()?;
    Some(&region[at].1)
}

#[cfg(test)]
mod tests {
    use super::super::short::Short;
    use super::*;
    use proptest::prelude::*;

    const AXES: [Axis; 5] = [
        Axis::PROTOCOL,
        Axis::SOURCE,
        Axis::DESTINATION,
        Axis::SOURCE_PORT,
        Axis::DESTINATION_PORT,
    ];

    fn region() -> impl Strategy<Value = Region> {
        let range = (0u32..6, 0u32..3).prop_map(|(first, more)| (first, first + more));
        let values = (any::<bool>(), prop::collection::vec(range, 1..3));
        let union = |(missing, list): (bool, Vec<(u32, u32)>)| {
            let none = Values {
                missing,
                ranges: Vec::new(),
            };
            list.into_iter()
                .fold(none, |set, r| set.union(&Values::of(Vec::from([r]))))
        };
        let fields = prop::collection::btree_map(0usize..AXES.len(), values.prop_map(union), 0..4);
        fields.prop_map(|f| {
            let mut region: Region = f.into_iter().map(|(at, v)| (AXES[at], v)).collect();
            region.sort_by_key(|(axis, _)| *axis);
            region
        })
    }

    fn cover() -> impl Strategy<Value = Cover> {
        let boxes = prop::collection::vec(region(), 0..3);
        (boxes, any::<bool>()).prop_map(|(boxes, exact)| Cover { boxes, exact })
    }

    fn contains(region: &Region, headers: &Headers<'_>) -> bool {
        region
            .iter()
            .all(|(axis, values)| match headers.value(*axis) {
                Some(v) => values.ranges.iter().any(|(a, b)| (*a..=*b).contains(&v)),
                None => values.missing,
            })
    }

    proptest! {
        #[test]
        fn all_of_them_find_the_first_rule(
            rules in prop::collection::vec(cover(), 0..40),
            packets in prop::collection::vec((prop::array::uniform5(0u8..8), prop_oneof![0usize..5, Just(20)]), 30),
            work in prop_oneof![Just(usize::MAX), 0usize..200],
        ) {
            let graph = Graph::with_work(&rules, work, 0);
            let (table, short) = (Table::new(&rules, 0), Short::new(&rules));
            for ([protocol, source, destination, sport, dport], transport) in packets {
                let mut bytes = [0; 40];
                (bytes[9], bytes[15], bytes[19]) = (protocol, source, destination);
                (bytes[21], bytes[23]) = (sport, dport);
                let bytes = &bytes[..20 + transport];
                let headers = Headers::of_ip4(bytes, 20, None);
                let holds = |rule: usize| (rule + usize::from(protocol)) % 3 == 0;
                let naive = rules.iter().enumerate().position(|(rule, c)| {
                    c.boxes.iter().any(|b| contains(b, &headers)) && (c.exact || holds(rule))
                });
                prop_assert_eq!(graph.find(&headers, holds), naive);
                prop_assert_eq!(table.find(&headers, holds), naive);
                if let Some(short) = &short {
                    let set = short.set(&headers);
                    prop_assert_eq!(short.first(set, holds), naive);
                    if let Some(plain) = bytes.first_chunk() {
                        prop_assert_eq!(short.plain_sets([*plain].iter())[0], set);
                    }
                }
            }
        }
    }
}
