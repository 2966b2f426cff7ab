// SPDX-License-Identifier: Apache-2.0
//! The structure that packets are looked up in: the address space as ranges that have the same hop, an index of
//! their first addresses by the highest bits, and a binary search behind it. A thousand routes are some 30 KB.
use alloc::collections::BTreeMap;

use super::route::{Hop, Network};
use super::table::Table;
use crate::prelude::*;

/// The index has at most this many bits.
const MOST_BITS: u32 = 16;
/// No route.
const NOWHERE: u32 = u32::MAX;

/// Ranges of addresses with the same hop.
pub struct Ranges {
    /// Highest bits of an address, to the number of ranges that begin at or below the first address with these bits.
    index: Vec<u32>,
    shift: u32,
    /// First address of each range; the first is 0.
    starts: Vec<u32>,
    /// The hop of each range.
    range_hops: Vec<u32>,
    hops: Vec<Hop>,
}

impl Ranges {
    /// The ranges of a table.
    pub fn of(table: &Table) -> Self {
        let mut ranges = Self {
            index: Vec::new(),
            shift: 0,
            starts: Vec::new(),
            range_hops: Vec::new(),
            hops: Vec::new(),
        };
        ranges.fill(table);
        ranges.fill_index();
        ranges
    }

    /// Walks through the networks in order of their first address; `around` is those that are not over.
    fn fill(&mut self, table: &Table) {
        let mut numbers: BTreeMap<Hop, u32> = BTreeMap::new();
        let mut around: Vec<(Network, u32)> = Vec::new();
        self.start(0, NOWHERE);
        for route in table.iter() {
            self.leave(&mut around, Some(route.network.first));
            let number = *numbers.entry(route.hop).or_insert_with(|| {
                self.hops.push(route.hop);
                u32::try_from(self.hops.len() - 1).expect("a table is smaller than 4 billion")
            });
            self.start(route.network.first, number);
            around.push((route.network, number));
        }
        self.leave(&mut around, None);
    }

    /// Ends the networks that are over before `next`, or all.
    fn leave(&mut self, around: &mut Vec<(Network, u32)>, next: Option<u32>) {
        while let Some((network, _)) = around.last().copied() {
            if next.is_some_and(|next| next <= network.last()) {
                return;
            }
            around.pop();
            let outer = around.last().map_or(NOWHERE, |(_, number)| *number);
            if let Some(behind) = network.last().checked_add(1) {
                self.start(behind, outer);
            }
        }
    }

    /// From `first` on the hop is `number`.
    fn start(&mut self, first: u32, number: u32) {
        if self.starts.last() == Some(&first) {
            self.starts.pop();
            self.range_hops.pop();
        }
        if self.range_hops.last() != Some(&number) {
            self.starts.push(first);
            self.range_hops.push(number);
        }
    }

    fn fill_index(&mut self) {
        let wanted = usize::BITS - self.starts.len().leading_zeros() + 2;
        let bits = wanted.clamp(1, MOST_BITS);
        self.shift = 32 - bits;
        let mut range = 0;
        for bucket in 0..1u64 << bits {
            let first = bucket << self.shift;
            while self
                .starts
                .get(range)
                .is_some_and(|start| u64::from(*start) <= first)
            {
                range += 1;
            }
            self.index
                .push(u32::try_from(range).expect("fewer ranges than addresses"));
        }
        let all = u32::try_from(self.starts.len()).expect("fewer ranges than addresses");
        self.index.push(all);
    }

    /// Where packets to `address` go.
    pub fn lookup(&self, address: u32) -> Option<Hop> {
        let bucket = (address >> self.shift) as usize;
        let (low, high) = (self.index[bucket] as usize, self.index[bucket + 1] as usize);
        let behind = self.starts[low..high].partition_point(|start| *start <= address);
        let number = self.range_hops[low + behind - 1];
        self.hops.get(number as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::route::Route;
    use super::super::table::Command;
    use super::*;
    use proptest::prelude::*;

    fn table(routes: &[(u32, u8, usize)]) -> Table {
        let mut table = Table::default();
        for (address, length, port) in routes {
            let hop = Hop {
                gateway: None,
                port: *port,
            };
            let network = Network::of(*address, *length);
            let command = Command::Set(Route { network, hop });
            table.run(&command, usize::MAX).unwrap();
        }
        table
    }

    proptest! {
        #[test]
        fn ranges_say_what_the_table_says(
            routes in prop::collection::vec((any::<u32>(), 0u8..=32, 0usize..4), 0..60),
            others in prop::collection::vec(any::<u32>(), 0..20),
        ) {
            // few networks, so that they lie in each other
            let near: Vec<_> = routes.iter().map(|(a, l, p)| (a & 0xc300_0301, *l, *p)).collect();
            for routes in [routes, near] {
                let table = table(&routes);
                let ranges = Ranges::of(&table);
                let edges = table.iter().flat_map(|r| {
                    let (first, last) = (r.network.first, r.network.last());
                    [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
                });
                for address in edges.chain(others.iter().copied()).chain([0, u32::MAX]) {
                    prop_assert_eq!(ranges.lookup(address), table.lookup(address), "{}", address);
                }
            }
        }
    }

    #[test]
    fn a_thousand_routes_are_compact() {
        let routes: Vec<_> = (0..1000u32)
            .map(|n| (n.wrapping_mul(0x9e37_79b9), 24, n as usize % 8))
            .collect();
        let ranges = Ranges::of(&table(&routes));
        let words = ranges.index.len() + ranges.starts.len() + ranges.range_hops.len();
        assert!(words * 4 < 64 * 1024, "{words} words");
        assert_eq!(ranges.hops.len(), 8);
    }
}
