// SPDX-License-Identifier: Apache-2.0
//! The structure that packets are looked up in: the address space in equal parts, and for each part how the hop
//! depends on the address. Most parts have at most two networks in them, which takes two loads; parts where all
//! addresses have one hop are kept once for each hop. A change of a network rebuilds the parts that it reaches into.
use alloc::collections::BTreeMap;
use core::ops::RangeInclusive;

use super::prefixes::Entry;
use super::route::{Hop, Network};
use super::table::Table;
use crate::prelude::*;
use crate::steps::Forest;

/// There are 2 to the power of this many parts for each route, so that a part seldom has three networks in it,
const PARTS_A_ROUTE: u32 = 3;
/// and at most 2 to the power of this many.
const MAX_BITS: u32 = 20;
/// Most bytes of old parts that the table keeps, or the size of the parts in use.
pub const LEFT_BEHIND: usize = 64 << 10;
/// Most steps of two networks.
const MAX_SIMPLE: usize = 4;
/// No route.
const NOWHERE: u32 = Forest::MAX_VALUES - 1;

/// Addresses from `first` on, as many as `span` and one.
#[derive(Clone, Copy)]
struct Interval {
    first: u32,
    span: u32,
}

impl Interval {
    const ALL: Self = Self::new(0, None);

    const fn new(first: u32, end: Option<u32>) -> Self {
        let last = match end {
            Some(end) => end - 1,
            None => u32::MAX,
        };
        let span = last - first;
        Self { first, span }
    }

    #[inline]
    fn has(self, address: u32) -> bool {
        address.wrapping_sub(self.first) <= self.span
    }

    /// What differs from `below` and is the root there, if that is one interval at most.
    fn only(below: u32, steps: &[(u32, u32)]) -> Option<(Self, u32)> {
        match *steps {
            [] => Some((Self::ALL, below)),
            [(first, root)] => Some((Self::new(first, None), root)),
            [(first, root), (end, behind)] if behind == below => {
                Some((Self::new(first, Some(end)), root))
            }
            _ => None,
        }
    }
}

/// The hops of a part's addresses: the first interval that contains an address counts. That is
/// enough for two networks, side by side or one in the other.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Part {
    intervals: [Interval; 2],
    /// For addresses in neither, in the second, in the first, and in both: read without a decision.
    roots: [u32; 4],
}

impl Part {
    /// A part where all addresses have one root.
    fn plain(root: u32) -> Self {
        Self {
            intervals: [Interval::ALL; 2],
            roots: [root; 4],
        }
    }

    /// A part that begins with `below` and has such steps, if it needs no more.
    fn simple(below: u32, steps: &[(u32, u32)]) -> Option<Self> {
        (0..steps.len()).find_map(|n| {
            let (first, root) = steps[n];
            let end = steps.get(n + 1).map(|(start, _)| *start);
            // what is left if no caller asks what the function is there
            let mut rest = steps.to_vec();
            rest.remove(n);
            let before = n.checked_sub(1).map_or(below, |n| steps[n].1);
            if rest.get(n).is_some_and(|(_, root)| *root == before) {
                rest.remove(n);
            }
            let (other, other_root) = Interval::only(below, &rest)?;
            Some(Self {
                intervals: [Interval::new(first, end), other],
                roots: [below, other_root, root, root],
            })
        })
    }

    /// The hop, if all addresses have the same one.
    fn only_hop(&self) -> Option<u32> {
        let root = self.roots[0];
        (self.roots == [root; 4] && !Forest::is_root(root)).then_some(root)
    }

    #[inline]
    fn root(&self, address: u32) -> u32 {
        let [first, second] = self.intervals.map(|i| usize::from(i.has(address)));
        self.roots[first << 1 | second]
    }
}

/// The data of a look-up, kept for a whole batch: writes to packets cannot change them.
#[derive(Clone, Copy)]
pub struct Ready<'a> {
    numbers: &'a [u32],
    parts: &'a [Part],
    shift: u32,
    forest: &'a Forest,
    hops: &'a [Hop],
}

impl<'a> Ready<'a> {
    /// Where packets to `address` go.
    #[inline(always)]
    pub fn hop(self, address: u32) -> Option<&'a Hop> {
        let number = self.numbers[(address >> self.shift) as usize];
        let root = self.parts[number as usize].root(address);
        // what `further` has to find is no hop's number, as is that there is no route: one comparison finds both
        let near = self.hops.get(root as usize).ok_or(root);
        near.map_or_else(|root| self.further(root, address), Some)
    }

    /// The hop in a part with more than two networks, of which there are few, or where there is no route.
    #[inline(never)]
    fn further(self, root: u32, address: u32) -> Option<&'a Hop> {
        let is_root = Forest::is_root(root);
        let hop = is_root.then(|| self.forest.get(root, address))?;
        self.hops.get(hop as usize)
    }
}

/// The base-2 logarithm of the number of parts for this number of routes.
pub fn bits(routes: usize) -> u32 {
    (routes.max(1).ilog2() + PARTS_A_ROUTE).min(MAX_BITS)
}

/// For each address the hop.
pub struct Ranges {
    /// For each part of the address space where it is in `parts`.
    numbers: Vec<u32>,
    parts: Vec<Part>,
    /// The parts with one hop for all addresses, by that hop.
    plain: BTreeMap<u32, u32>,
    shift: u32,
    forest: Forest,
    /// The root of all addresses, if it is known to be the same.
    only: Option<u32>,
    /// Bytes that it took after the last rebuild of everything.
    bytes: usize,
}

impl Ranges {
    /// The ranges of a table.
    pub fn of(table: &Table) -> Self {
        let bits = bits(table.len());
        let mut ranges = Self {
            numbers: vec![0; 1 << bits],
            parts: vec![Part::plain(NOWHERE)],
            plain: BTreeMap::from([(NOWHERE, 0)]),
            shift: 32 - bits,
            forest: Forest::default(),
            only: None,
            bytes: 0,
        };
        ranges.fill(table, 0..=(1 << bits) - 1);
        ranges.parts.shrink_to_fit();
        ranges.forest.shrink();
        ranges.bytes = ranges.bytes();
        ranges
    }

    /// The data of a look-up; the hops are those of the table.
    #[inline]
    pub fn ready<'a>(&'a self, hops: &'a [Hop]) -> Ready<'a> {
        Ready {
            numbers: &self.numbers,
            parts: &self.parts,
            shift: self.shift,
            forest: &self.forest,
            hops,
        }
    }

    /// The number of the hop of packets to any address, if that is known to be the same.
    #[inline]
    pub fn only_hop(&self) -> Option<u32> {
        self.only
    }

    /// Takes over a change of the route for a network, which is made already.
    pub fn update(&mut self, table: &Table, network: Network) {
        if self.bytes() > 2 * self.bytes + LEFT_BEHIND {
            *self = Self::of(table);
        } else {
            let (first, last) = (network.first >> self.shift, network.last() >> self.shift);
            self.fill(table, first..=last);
        }
    }

    fn bytes(&self) -> usize {
        let numbers = size_of_val(self.numbers.as_slice());
        let plain = self.plain.len() * size_of::<(u32, u32)>();
        numbers + plain + size_of_val(self.parts.as_slice()) + self.forest.bytes()
    }

    /// Makes this a part of the address space.
    fn put(&mut self, at: usize, part: Part) {
        let old = self.numbers[at];
        let is_shared = self.parts[old as usize].only_hop().is_some();
        let hop = part.only_hop();
        if let Some(known) = hop.and_then(|hop| self.plain.get(&hop)) {
            self.numbers[at] = *known;
        } else if hop.is_none() && !is_shared {
            self.parts[old as usize] = part;
        } else {
            let number = u32::try_from(self.parts.len()).expect("fewer than 2 billion parts");
            self.numbers[at] = number;
            self.parts.push(part);
            self.plain.extend(hop.map(|hop| (hop, number)));
        }
    }

    /// A part that begins with `below` and has such steps.
    fn part(&mut self, below: u32, steps: &[(u32, u32)]) -> Part {
        match steps {
            [] => Some(Part::plain(below)),
            _ if steps.len() <= MAX_SIMPLE => Part::simple(below, steps),
            _ => None,
        }
        .unwrap_or_else(|| Part::plain(self.forest.plant(below, steps)))
    }

    /// Rebuilds some parts.
    fn fill(&mut self, table: &Table, parts: RangeInclusive<u32>) {
        let shift = self.shift;
        let bounds = |part: u32| (part << shift, part << shift | ((1 << shift) - 1));
        let ((begin, _), (_, end)) = (bounds(*parts.start()), bounds(*parts.end()));
        let around = table.around(begin, 32 - shift);
        let before = around.unwrap_or(NOWHERE);
        let steps = steps(table.within(begin, end), begin, before);
        self.only = match *steps {
            [(_, hop)] if (begin, end) == (0, u32::MAX) => Some(hop),
            _ => None,
        };
        cut(&steps, before, shift, parts, &mut |part, below, steps| {
            let made = self.part(below, steps);
            self.put(part as usize, made);
        });
    }
}

/// Where the hop changes from `begin` on, by routes in the order of their networks; it is `around` where there is not one.
fn steps(routes: &[Entry<u32>], begin: u32, around: u32) -> Vec<(u32, u32)> {
    let mut steps = Steps::new(begin, around);
    for entry in routes {
        steps.leave(Some(entry.network));
        let network = Network {
            first: entry.network,
            length: entry.length,
        };
        steps.enter(network, entry.hop);
    }
    steps.leave(None);
    steps.list
}

/// A way to make one part: its number, what it begins with, and its steps behind its beginning.
type MakePart<'a> = &'a mut dyn FnMut(u32, u32, &[(u32, u32)]);

/// Makes some parts of 2 to the power of `shift` numbers from steps. Before the first step the value is `before`.
pub fn cut(
    steps: &[(u32, u32)],
    mut before: u32,
    shift: u32,
    parts: RangeInclusive<u32>,
    make: MakePart<'_>,
) {
    let mut rest = steps;
    for part in parts {
        let (begin, end) = (part << shift, part << shift | ((1 << shift) - 1));
        let inside = rest.iter().take_while(|(start, _)| *start <= end).count();
        let (here, behind) = rest.split_at(inside);
        match here {
            [(start, hop), rest @ ..] if *start == begin => make(part, *hop, rest),
            _ => make(part, before, here),
        }
        before = here.last().map_or(before, |(_, hop)| *hop);
        rest = behind;
    }
}

/// Steps in the making.
pub struct Steps {
    pub list: Vec<(u32, u32)>,
    /// Networks that are not over, each in the one before.
    open: Vec<(Network, u32)>,
    around: u32,
}

impl Steps {
    /// None from `begin` on, where the value is `around`.
    pub fn new(begin: u32, around: u32) -> Self {
        Self {
            list: vec![(begin, around)],
            open: Vec::new(),
            around,
        }
    }

    /// The value of the narrowest network that is not over.
    pub fn inner(&self) -> u32 {
        self.open.last().map_or(self.around, |(_, number)| *number)
    }

    /// Begins a network, which is not before those that were begun.
    pub fn enter(&mut self, network: Network, number: u32) {
        self.start(network.first, number);
        self.open.push((network, number));
    }

    /// Ends the networks that are over before `next`, or all.
    pub fn leave(&mut self, next: Option<u32>) {
        while let Some((network, _)) = self.open.last().copied() {
            if next.is_some_and(|next| next <= network.last()) {
                return;
            }
            self.open.pop();
            let outer = self.inner();
            if let Some(behind) = network.last().checked_add(1) {
                self.start(behind, outer);
            }
        }
    }

    /// From `first` on the hop is `number`.
    fn start(&mut self, first: u32, number: u32) {
        if self.list.last().is_some_and(|(start, _)| *start == first) {
            self.list.pop();
        }
        if self.list.last().is_none_or(|(_, before)| *before != number) {
            self.list.push((first, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::route::Route;
    use super::super::table::Command;
    use super::*;
    use proptest::prelude::*;

    type Networks = Vec<(u32, u8, usize)>;

    fn set(table: &mut Table, (address, length, port): (u32, u8, usize)) -> Network {
        let hop = Hop {
            gateway: None,
            port,
            tunnel: None,
        };
        let network = Network::of(address, length);
        let command = Command::Set(Route { network, hop });
        table.run(&command, usize::MAX).unwrap();
        network
    }

    fn check(table: &Table, ranges: &Ranges, others: &[u32]) {
        let edges = table.in_order().into_iter().flat_map(|r| {
            let (first, last) = (r.network.first, r.network.last());
            [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
        });
        for address in edges.chain(others.iter().copied()).chain([0, u32::MAX]) {
            let found = ranges.ready(table.hops()).hop(address).copied();
            assert_eq!(found, table.lookup(address), "{address}");
            if let Some(only) = ranges.only_hop() {
                assert_eq!(found.as_ref(), table.hops().get(only as usize), "{address}");
            }
        }
    }

    fn networks(most: usize) -> impl Strategy<Value = Networks> {
        let far = prop::collection::vec((any::<u32>(), 0u8..=32, 0usize..4), 0..most);
        // few networks, so that they lie in each other
        let near = |n: Networks| {
            n.iter()
                .map(|(a, l, p)| (a & 0xc300_0301, *l, *p))
                .collect()
        };
        prop_oneof![far.clone(), far.prop_map(near)]
    }

    proptest! {
        #[test]
        fn ranges_say_what_the_table_says(
            routes in networks(60), others in prop::collection::vec(any::<u32>(), 0..20),
        ) {
            let mut table = Table::default();
            routes.into_iter().for_each(|r| { set(&mut table, r); });
            check(&table, &Ranges::of(&table), &others);
        }

        #[test]
        fn and_after_each_change(
            routes in networks(30),
            changes in networks(30),
            others in prop::collection::vec(any::<u32>(), 0..20),
        ) {
            let mut table = Table::default();
            routes.into_iter().for_each(|r| { set(&mut table, r); });
            let mut ranges = Ranges::of(&table);
            for (address, length, port) in changes {
                let network = Network::of(address, length);
                if port == 0 {
                    table.make(network, None);
                } else {
                    set(&mut table, (address, length, port));
                }
                ranges.update(&table, network);
                check(&table, &ranges, &others);
            }
        }
    }

    #[test]
    fn a_thousand_routes_are_compact_however_often_they_change() {
        let mut table = Table::default();
        for n in 0..1000u32 {
            set(
                &mut table,
                (n.wrapping_mul(0x9e37_79b9), 24, n as usize % 8),
            );
        }
        let mut ranges = Ranges::of(&table);
        assert_eq!(table.hops().len(), 8);
        let least = ranges.bytes();
        assert!(least < 56 << 10, "{least}");
        for n in 0..5000u32 {
            let network = set(
                &mut table,
                (n.wrapping_mul(0x9e37_79b9), 24, n as usize % 7),
            );
            ranges.update(&table, network);
            table.make(network, None);
            ranges.update(&table, network);
        }
        assert!(ranges.bytes() <= 2 * least + 2 * LEFT_BEHIND);
    }
}
