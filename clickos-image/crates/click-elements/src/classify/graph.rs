// SPDX-License-Identifier: Apache-2.0
//! Finds the first rule that matches a packet by a graph of decisions: a node looks at one field, and its
//! value leads to the node for the boxes that are left. Nodes with the same boxes are one. Lists of
//! rules for which the graph would grow beyond its limit are finished by a [`Table`].
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::fields::{Axis, Headers};
use super::region::{Cover, Region};
use super::sets::changes;
use super::table::{Table, axes};
use super::values::Values;
use crate::steps::Forest;

/// Boxes that all nodes are made of at most: so many and so many for each box there is, but not more than this.
const LEAST_WORK: usize = 1 << 12;
const WORK_PER_BOX: usize = 32;
const MOST_WORK: usize = 1 << 20;

#[derive(Clone, Copy)]
enum Node {
    /// Values of a field from `first` on, as many as `span` and one, are told from the others.
    Range {
        axis: Axis,
        first: u32,
        span: u32,
        inside: u32,
        outside: u32,
        missing: u32,
    },
    /// The next node is what the function with this root says of a field's value.
    Field { axis: Axis, root: u32, missing: u32 },
    /// This rule matches.
    Rule(u32),
    /// No rule matches.
    Nothing,
    /// Boxes whose rules must be evaluated one after the other.
    List { first: u32, len: u32 },
    /// There were too many possibilities.
    Table,
}

/// The decisions.
pub struct Graph {
    nodes: Vec<Node>,
    start: u32,
    forest: Forest,
    /// The boxes of lists: a rule, and whether the box decides.
    lists: Vec<(u32, bool)>,
    table: Option<Table>,
}

impl Graph {
    /// The decisions about what each rule matches.
    pub fn new(rules: &[Cover]) -> Self {
        let boxes: usize = rules.iter().map(|cover| cover.boxes.len()).sum();
        Self::with_work(rules, MOST_WORK.min(LEAST_WORK + WORK_PER_BOX * boxes))
    }

    /// Decisions made of at most `work` boxes.
    fn with_work(rules: &[Cover], work: usize) -> Self {
        let axes = axes(rules);
        let mut maker = Maker::new(rules, &axes, work);
        maker.run();
        let mut graph = maker.graph;
        if graph.nodes.iter().any(|n| matches!(n, Node::Table)) {
            graph.table = Some(Table::new(rules));
        }
        graph
    }

    /// The first rule that matches; `check` says whether one does, where the boxes cannot.
    pub fn find(
        &self,
        headers: &Headers<'_>,
        mut check: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let mut at = self.start;
        loop {
            at = match self.nodes[at as usize] {
                Node::Range {
                    axis,
                    first,
                    span,
                    inside,
                    outside,
                    missing,
                } => match headers.value(axis) {
                    Some(v) if v.wrapping_sub(first) <= span => inside,
                    Some(_) => outside,
                    None => missing,
                },
                Node::Field {
                    axis,
                    root,
                    missing,
                } => match headers.value(axis) {
                    Some(v) => self.forest.get(root, v),
                    None => missing,
                },
                Node::Rule(rule) => return Some(rule as usize),
                Node::Nothing => return None,
                Node::List { first, len } => {
                    let list = &self.lists[first as usize..(first + len) as usize];
                    let mut list = list
                        .iter()
                        .map(|(rule, decides)| (*rule as usize, *decides));
                    return list
                        .find(|(rule, decides)| *decides || check(*rule))
                        .map(|(rule, _)| rule);
                }
                Node::Table => return self.table.as_ref()?.find(headers, check),
            };
        }
    }
}

/// A box of a rule.
struct Entry<'a> {
    rule: u32,
    region: &'a Region,
    /// Whether the rule matches everything in the box.
    decides: bool,
    /// Which of the fields it asks for, a bit for each.
    asks: u32,
}

/// What is left to decide at a node: boxes, and the fields that have been looked at.
type Left = (Vec<u32>, u32);

struct Maker<'a> {
    boxes: Vec<Entry<'a>>,
    axes: &'a [Axis],
    graph: Graph,
    known: BTreeMap<Left, u32>,
    rules: BTreeMap<u32, u32>,
    queue: VecDeque<(u32, Left)>,
    /// Boxes that may still be put into nodes.
    work: usize,
}

const NOTHING: u32 = 0;

impl<'a> Maker<'a> {
    fn new(rules: &'a [Cover], axes: &'a [Axis], work: usize) -> Self {
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
            boxes,
            axes,
            graph: Graph {
                nodes: Vec::from([Node::Nothing]),
                start: NOTHING,
                forest: Forest::default(),
                lists: Vec::new(),
                table: None,
            },
            known: BTreeMap::new(),
            rules: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    fn run(&mut self) {
        let all = self.useful(0..number(self.boxes.len()), 0);
        self.graph.start = self.target(all, 0);
        while let Some((node, (list, tested))) = self.queue.pop_front() {
            if let Some(made) = self.expanded(&list, tested) {
                self.graph.nodes[node as usize] = made;
            }
        }
    }

    /// Whether nothing more has to be known for a box to match.
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

    /// The node for what is left.
    fn target(&mut self, list: Vec<u32>, tested: u32) -> u32 {
        let next = number(self.graph.nodes.len());
        let Some(first) = list.first().copied() else {
            return NOTHING;
        };
        if self.is_decided(first, tested) {
            let rule = self.boxes[first as usize].rule;
            let node = *self.rules.entry(rule).or_insert(next);
            if node == next {
                self.graph.nodes.push(Node::Rule(rule));
            }
            return node;
        }
        let left = (list, tested);
        if let Some(node) = self.known.get(&left) {
            return *node;
        }
        self.graph.nodes.push(Node::Table);
        self.known.insert(left.clone(), next);
        self.queue.push_back((next, left));
        next
    }

    /// The node that decides what is left; `None` if that is too much work.
    fn expanded(&mut self, list: &[u32], tested: u32) -> Option<Node> {
        let Some(place) = self.best_field(list, tested) else {
            return Some(self.list(list));
        };
        let axis = self.axes[place];
        let tested = tested | 1 << place;
        let values: Vec<Option<&Values>> = list
            .iter()
            .map(|index| values(self.boxes[*index as usize].region, axis))
            .collect();
        let mut active: BTreeSet<usize> = (0..list.len())
            .filter(|at| values[*at].is_none_or(|v| v.missing))
            .collect();
        let missing = self.next(list, &active, tested)?;
        let from_zero = |v: &Values| v.ranges.first().is_some_and(|(first, _)| *first == 0);
        active = (0..list.len())
            .filter(|at| values[*at].is_none_or(from_zero))
            .collect();
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
            let different: BTreeSet<_> = asking.clone().map(first).collect();
            (asking.count(), different.len())
        };
        let counted = untested.map(|at| (asked(at), core::cmp::Reverse(at)));
        let (most, at) = counted.max()?;
        (most.0 > 0).then_some(at.0)
    }

    /// The node for the boxes of a list that are active.
    fn next(&mut self, list: &[u32], active: &BTreeSet<usize>, tested: u32) -> Option<u32> {
        let left = self.useful(active.iter().map(|at| list[*at]), tested);
        self.work = self.work.checked_sub(left.len() + 1)?;
        Some(self.target(left, tested))
    }

    fn decision(&mut self, axis: Axis, missing: u32, below: u32, steps: &[(u32, u32)]) -> Node {
        let range = |first: u32, span: u32, inside: u32| Node::Range {
            axis,
            first,
            span,
            inside,
            outside: below,
            missing,
        };
        match *steps {
            [] => range(0, u32::MAX, below),
            [(first, inside)] => range(first, u32::MAX - first, inside),
            [(first, inside), (end, outside)] if outside == below => {
                range(first, end - first - 1, inside)
            }
            _ => Node::Field {
                axis,
                root: self.graph.forest.plant(below, steps),
                missing,
            },
        }
    }

    fn list(&mut self, list: &[u32]) -> Node {
        let first = number(self.graph.lists.len());
        let boxes = list.iter().map(|index| &self.boxes[*index as usize]);
        let entries = boxes.map(|b| (b.rule, b.decides));
        self.graph.lists.extend(entries);
        Node::List {
            first,
            len: number(list.len()),
        }
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("the work is limited")
}

/// What a box asks of a field, if anything.
pub fn values(region: &Region, axis: Axis) -> Option<&Values> {
    let at = region.binary_search_by_key(&axis, |(a, _)| *a).ok()?;
    Some(&region[at].1)
}

#[cfg(test)]
mod tests {
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
        fn graph_and_table_find_the_first_rule(
            rules in prop::collection::vec(cover(), 0..40),
            packets in prop::collection::vec((prop::array::uniform5(0u8..8), 0usize..5), 30),
            work in prop_oneof![Just(usize::MAX), 0usize..200],
        ) {
            let graph = Graph::with_work(&rules, work);
            let table = Table::new(&rules);
            for ([protocol, source, destination, sport, dport], transport) in packets {
                let mut network = [0; 20];
                (network[9], network[15], network[19]) = (protocol, source, destination);
                let headers = Headers {
                    network: &network,
                    transport: &[0, sport, 0, dport][..transport],
                    link: &[],
                };
                let holds = |rule: usize| (rule + usize::from(protocol)) % 3 == 0;
                let naive = rules.iter().enumerate().position(|(rule, c)| {
                    c.boxes.iter().any(|b| contains(b, &headers)) && (c.exact || holds(rule))
                });
                prop_assert_eq!(graph.find(&headers, holds), naive);
                prop_assert_eq!(table.find(&headers, holds), naive);
            }
        }
    }
}
