// SPDX-License-Identifier: Apache-2.0
//! The routes of a table, for addresses of any length: an entry is 16 bytes for IPv4 and 32 for IPv6, and equal hops are
//! kept once.
use core::mem;

use click_core::sort;

use crate::flows::{At, Index, Keys};
use crate::prelude::*;

/// A table may hash its hops by keys that everybody knows: who adds routes slows down only itself.
pub const KEYS: Keys = Keys([
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
]);

/// Where packets go.
pub trait Way: Copy + PartialEq {
    /// Equal for ways that are equal.
    fn hash(&self) -> u64;
}

/// A route.
#[derive(Clone, Copy)]
pub struct Entry<A> {
    pub network: A,
    pub length: u8,
    /// The number of its hop.
    pub hop: u32,
    /// The number of routes that came before.
    order: u32,
}

impl<A: Ord + Copy> Entry<A> {
    /// By what routes are in order: a network lies after those that it is in.
    pub fn rank(&self) -> (A, u8) {
        (self.network, self.length)
    }
}

/// A change: the hop of a network from now on, if it still has one.
pub type Change<A, H> = ((A, u8), Option<H>);

/// Ways by number, each of them once, and how many routes have it.
struct Ways<H> {
    ways: Vec<H>,
    users: Vec<u32>,
    free: Vec<u32>,
    index: Index,
}

impl<H: Way> Ways<H> {
    /// The number of a way, which has one more user.
    fn take(&mut self, way: H) -> u32 {
        let is = |at: At| self.ways[at.slot() as usize] == way;
        if let Some(at) = self.index.find(way.hash(), is) {
            self.users[at.slot() as usize] += 1;
            return at.slot();
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.ways[number as usize] = way;
                self.users[number as usize] = 1;
                number
            }
            None => {
                self.ways.push(way);
                self.users.push(1);
                u32::try_from(self.ways.len() - 1).expect("a table is smaller than 2 billion")
            }
        };
        let ways = &self.ways;
        let hash_of = |at: At| ways[at.slot() as usize].hash();
        self.index
            .insert(way.hash(), At::new(number, false), &hash_of);
        number
    }

    /// A way has one user less; without users its number is free.
    fn release(&mut self, number: u32) {
        let users = &mut self.users[number as usize];
        *users -= 1;
        if *users == 0 {
            let at = At::new(number, false);
            let hash_of = |at: At| self.ways[at.slot() as usize].hash();
            self.index.remove(hash_of(at), at, &hash_of);
            self.free.push(number);
        }
    }
}

/// Routes in the order of their networks.
pub struct Prefixes<A, H> {
    entries: Vec<Entry<A>>,
    ways: Ways<H>,
    next: u32,
}

impl<A, H> Default for Prefixes<A, H> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            ways: Ways {
                ways: Vec::new(),
                users: Vec::new(),
                free: Vec::new(),
                index: Index::new(),
            },
            next: 0,
        }
    }
}

impl<A: Ord + Copy, H: Way> Prefixes<A, H> {
    /// Routes as they come; of several for a network the first one counts, or the last one.
    pub fn of(routes: &[((A, u8), H)], last_counts: bool) -> Self {
        let mut made = Self::default();
        made.entries.reserve_exact(routes.len());
        for ((network, length), way) in routes {
            let entry = made.entry((*network, *length), *way);
            made.entries.push(entry);
        }
        if last_counts {
            made.entries.reverse();
        }
        sort_by_rank(&mut made.entries);
        let ways = &mut made.ways;
        made.entries.dedup_by(|later, first| {
            let same = later.rank() == first.rank();
            if same {
                // a route that is replaced leaves its place to the one that replaces it
                first.order = first.order.min(later.order);
                ways.release(later.hop);
            }
            same
        });
        made
    }

    fn entry(&mut self, (network, length): (A, u8), way: H) -> Entry<A> {
        let order = self.next;
        self.next = order.wrapping_add(1);
        Entry {
            network,
            length,
            hop: self.ways.take(way),
            order,
        }
    }

    /// The most hops that the search for one compares.
    #[cfg(test)]
    pub fn longest_search(&self) -> usize {
        self.ways.index.longest_search()
    }

    /// All routes.
    pub fn entries(&self) -> &[Entry<A>] {
        &self.entries
    }

    /// All hops by number, some of which no route has any more.
    pub fn hops(&self) -> &[H] {
        &self.ways.ways
    }

    /// The routes in the order in which they came.
    pub fn in_order(&self) -> Vec<Entry<A>> {
        let mut all = self.entries.clone();
        sort::by_key(&mut all, |entry| entry.order);
        all
    }

    /// Where the route for just this network is, or would be.
    pub fn find(&self, rank: (A, u8)) -> Result<usize, usize> {
        find(&self.entries, rank)
    }

    /// The hop of just this network.
    pub fn get(&self, rank: (A, u8)) -> Option<H> {
        let at = self.find(rank).ok()?;
        Some(self.ways.ways[self.entries[at].hop as usize])
    }

    /// Makes a change.
    pub fn set(&mut self, (rank, way): Change<A, H>) {
        match (self.find(rank), way) {
            (Ok(at), Some(way)) => {
                let number = self.ways.take(way);
                let old = mem::replace(&mut self.entries[at].hop, number);
                self.ways.release(old);
            }
            (Ok(at), None) => {
                let old = self.entries.remove(at);
                self.ways.release(old.hop);
            }
            (Err(at), Some(way)) => {
                let entry = self.entry(rank, way);
                self.entries.insert(at, entry);
            }
            (Err(_), None) => {}
        }
    }
}

#[inline(never)]
fn sort_by_rank<A: Ord + Copy>(entries: &mut [Entry<A>]) {
    sort::by(entries, |a, b| a.rank().cmp(&b.rank()));
}

/// Where a route is, or would be.
pub fn find<A: Ord + Copy>(entries: &[Entry<A>], rank: (A, u8)) -> Result<usize, usize> {
    entries.binary_search_by(|entry| entry.rank().cmp(&rank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl Way for u8 {
        fn hash(&self) -> u64 {
            u64::from(*self) << 60
        }
    }

    /// Routes with the order in which their networks came.
    type Model = BTreeMap<(u32, u8), (u32, u8)>;

    fn check(table: &Prefixes<u32, u8>, model: &Model) {
        let hop = |entry: &Entry<u32>| (entry.rank(), table.hops()[entry.hop as usize]);
        let all: Vec<_> = table.entries().iter().map(hop).collect();
        let want: Vec<_> = model.iter().map(|(rank, (_, way))| (*rank, *way)).collect();
        assert_eq!(all, want);
        let ordered: Vec<_> = table.in_order().iter().map(|e| e.rank()).collect();
        let mut want: Vec<_> = model
            .iter()
            .map(|(rank, (order, _))| (*order, *rank))
            .collect();
        want.sort_unstable();
        assert_eq!(
            ordered,
            want.into_iter().map(|(_, rank)| rank).collect::<Vec<_>>()
        );
        let used = table.ways.users.iter().filter(|users| **users > 0).count();
        assert_eq!(used + table.ways.free.len(), table.hops().len());
        assert_eq!(table.ways.users.iter().sum::<u32>() as usize, all.len());
    }

    fn rank() -> impl Strategy<Value = (u32, u8)> {
        (0u32..12, 0u8..3)
    }

    proptest! {
        #[test]
        fn routes_are_those_of_a_map(
            given in prop::collection::vec((rank(), 0u8..20), 0..40),
            last_counts in any::<bool>(),
            steps in prop::collection::vec((rank(), prop::option::of(0u8..20)), 0..90),
        ) {
            let mut table = Prefixes::of(&given, last_counts);
            let mut model = Model::new();
            for (order, (rank, way)) in (0..).zip(given) {
                let known = model.entry(rank).or_insert((order, way));
                known.1 = if last_counts { way } else { known.1 };
            }
            check(&table, &model);
            for (rank, way) in steps {
                match way {
                    None => drop(model.remove(&rank)),
                    Some(way) => {
                        let next = model.values().map(|(order, _)| order + 1).max();
                        model.entry(rank).or_insert((next.unwrap_or(0), way)).1 = way;
                    }
                }
                table.set((rank, way));
                check(&table, &model);
            }
        }
    }

    #[test]
    fn a_replaced_route_keeps_its_place_and_hops_come_and_go() {
        let mut table: Prefixes<u32, u8> = Prefixes::of(&[((5, 0), 1), ((3, 0), 2)], true);
        table.set(((5, 0), Some(9)));
        let firsts: Vec<_> = table.in_order().iter().map(|e| e.network).collect();
        assert_eq!(firsts, [5, 3]);
        for way in 0..200 {
            table.set(((7, 0), Some(way)));
        }
        assert!(table.hops().len() <= 4);
        (0..100).for_each(|n| table.set(((n, 0), None)));
        assert!(table.entries().is_empty());
        assert_eq!(table.get((7, 0)), None);
    }
}
