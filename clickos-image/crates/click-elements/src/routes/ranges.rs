// SPDX-License-Identifier: Apache-2.0
//! The structure that packets are looked up in: the address space in equal parts, and for each part how the hop
//! depends on the address. Most parts have at most one network in them, which takes one look. A change of a network
//! makes the parts that it reaches into anew. A thousand routes are some 540 KB, a million some 70 MB.
use alloc::collections::BTreeMap;

use super::route::{Hop, Network, Route};
use super::table::Table;
use crate::prelude::*;
use crate::steps::Forest;

/// There are 2 to the power of this many parts for each route,
const PARTS_A_ROUTE: u32 = 4;
/// or of this many, so that a part seldom has two networks in it,
const PARTS_A_ROUTE_OF_FEW: u32 = 6;
/// as long as there are not more than 2 to the power of this many parts.
const FEW_BITS: u32 = 15;
/// There are at most 2 to the power of this many parts.
const MOST_BITS: u32 = 20;
/// A network that reaches into more parts has all of them made anew.
const FEW_PARTS: u32 = 256;
/// What old parts left behind is kept up to this many bytes, or the size of what is in use.
const LEFT_BEHIND: usize = 64 << 10;
/// No route.
const NOWHERE: u32 = Forest::MOST_VALUES - 1;

/// A part of the address space: what is the root for addresses from `first` on, as many as `span` and one, and for
/// the others.
#[derive(Clone, Copy)]
struct Part {
    first: u32,
    span: u32,
    inside: u32,
    outside: u32,
}

impl Part {
    #[inline]
    fn root(self, address: u32) -> u32 {
        if address.wrapping_sub(self.first) <= self.span {
            self.inside
        } else {
            self.outside
        }
    }
}

/// What a look-up needs, at hand for a whole batch: what is written to packets cannot change it.
#[derive(Clone, Copy)]
pub struct Ready<'a> {
    parts: &'a [Part],
    shift: u32,
    forest: &'a Forest,
    hops: &'a [Hop],
}

impl<'a> Ready<'a> {
    /// Where packets to `address` go.
    #[inline]
    pub fn hop(self, address: u32) -> Option<&'a Hop> {
        let root = self.parts[(address >> self.shift) as usize].root(address);
        self.hops.get(self.forest.get(root, address) as usize)
    }
}

/// There are 2 to the power of this many parts for so many routes.
fn bits(routes: usize) -> u32 {
    let routes = routes.max(1).ilog2();
    let few = (routes + PARTS_A_ROUTE_OF_FEW).min(FEW_BITS);
    few.max(routes + PARTS_A_ROUTE).min(MOST_BITS)
}

/// For each address the hop.
pub struct Ranges {
    parts: Vec<Part>,
    shift: u32,
    forest: Forest,
    hops: Vec<Hop>,
    numbers: BTreeMap<Hop, u32>,
    /// Bytes it took when everything was made anew.
    bytes: usize,
}

impl Ranges {
    /// The ranges of a table.
    pub fn of(table: &Table) -> Self {
        let bits = bits(table.len());
        let mut ranges = Self {
            parts: Vec::new(),
            shift: 32 - bits,
            forest: Forest::default(),
            hops: Vec::new(),
            numbers: BTreeMap::new(),
            bytes: 0,
        };
        ranges.fill(table);
        ranges.bytes = ranges.bytes();
        ranges
    }

    /// What a look-up needs.
    #[inline]
    pub fn ready(&self) -> Ready<'_> {
        Ready {
            parts: &self.parts,
            shift: self.shift,
            forest: &self.forest,
            hops: &self.hops,
        }
    }

    /// Takes over a change of the route for a network, which is made already.
    pub fn update(&mut self, table: &Table, network: Network) {
        let (first, last) = (network.first >> self.shift, network.last() >> self.shift);
        if last - first >= FEW_PARTS || self.bytes() > 2 * self.bytes + LEFT_BEHIND {
            *self = Self::of(table);
            return;
        }
        for part in first..=last {
            let begin = part << self.shift;
            let end = begin | ((1 << self.shift) - 1);
            let around = table
                .around(begin, 32 - self.shift)
                .map(|hop| self.number(hop));
            let routes = table.within(begin, end);
            let mut steps = self.steps(routes, begin, around.unwrap_or(NOWHERE));
            steps.retain(|(start, _)| *start <= end);
            self.parts[part as usize] = self.part(steps[0].1, &steps[1..]);
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(self.parts.as_slice())
            + self.forest.bytes()
            + self.hops.len() * (size_of::<Hop>() * 2)
    }

    fn number(&mut self, hop: Hop) -> u32 {
        *self.numbers.entry(hop).or_insert_with(|| {
            self.hops.push(hop);
            u32::try_from(self.hops.len() - 1).expect("a table is smaller than 2 billion")
        })
    }

    /// A part that begins with `below` and has such steps.
    fn part(&mut self, below: u32, steps: &[(u32, u32)]) -> Part {
        let (first, span, within) = match *steps {
            [(first, inside), ref within @ .., (end, behind)] if behind == below => {
                (first, end - first - 1, Some((inside, within)))
            }
            [(first, inside)] => (first, u32::MAX - first, Some((inside, &[][..]))),
            _ => (0, u32::MAX, None),
        };
        let (below_inside, steps_inside) = within.unwrap_or((below, steps));
        Part {
            first,
            span,
            inside: self.forest.plant(below_inside, steps_inside),
            outside: below,
        }
    }

    fn fill(&mut self, table: &Table) {
        let steps = self.steps(table.iter(), 0, NOWHERE);
        let mut rest = steps.as_slice();
        let mut before = NOWHERE;
        for part in 0..1u64 << (32 - self.shift) {
            let (begin, end) = (part << self.shift, (part + 1) << self.shift);
            let inside = rest.partition_point(|(start, _)| u64::from(*start) < end);
            let (here, behind) = rest.split_at(inside);
            let part = match here {
                [(start, number), rest @ ..] if u64::from(*start) == begin => {
                    self.part(*number, rest)
                }
                _ => self.part(before, here),
            };
            self.parts.push(part);
            before = here.last().map_or(before, |(_, number)| *number);
            rest = behind;
        }
    }

    /// Where the hop changes from `begin` on, by routes in the order of their networks; it is `around` where there
    /// is none.
    fn steps(
        &mut self,
        routes: impl Iterator<Item = Route>,
        begin: u32,
        around: u32,
    ) -> Vec<(u32, u32)> {
        let mut steps = Steps {
            list: vec![(begin, around)],
            open: Vec::new(),
            around,
        };
        for route in routes {
            steps.leave(Some(route.network.first));
            let number = self.number(route.hop);
            steps.start(route.network.first, number);
            steps.open.push((route.network, number));
        }
        steps.leave(None);
        steps.list
    }
}

/// Steps in the making.
struct Steps {
    list: Vec<(u32, u32)>,
    /// Networks that are not over, each in the one before.
    open: Vec<(Network, u32)>,
    around: u32,
}

impl Steps {
    /// Ends the networks that are over before `next`, or all.
    fn leave(&mut self, next: Option<u32>) {
        while let Some((network, _)) = self.open.last().copied() {
            if next.is_some_and(|next| next <= network.last()) {
                return;
            }
            self.open.pop();
            let outer = self.open.last().map_or(self.around, |(_, number)| *number);
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
        let edges = table.iter().flat_map(|r| {
            let (first, last) = (r.network.first, r.network.last());
            [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
        });
        for address in edges.chain(others.iter().copied()).chain([0, u32::MAX]) {
            let found = ranges.ready().hop(address).copied();
            assert_eq!(found, table.lookup(address), "{address}");
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
        assert_eq!(ranges.hops.len(), 8);
        let least = ranges.bytes();
        assert!(least < 600 << 10, "{least}");
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
