// SPDX-License-Identifier: Apache-2.0
//! Elements that a run of a task can meet, by the connections and classes of the router.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::engine::{ElementSlot, Engine};

/// Elements that a run of a task can meet; a handler write may change them.
pub struct Reachability {
    /// The number of handler writes when the engine found this.
    at: u64,
    /// The task pushes only to elements that pass, change, drop or store packets, and pulls only
    /// from stores.
    pub plain: bool,
    /// The element itself, and all elements that its packets reach.
    meets: BTreeSet<usize>,
    /// Stores among those, each with its only puller, if it has just one.
    pub fills: Vec<(usize, Option<usize>)>,
    /// Most copies that a packet can become on its path.
    pub copies: usize,
    /// Stores that it pulls from.
    pub takes: Vec<usize>,
    /// Task runs until the next try to batch runs; it grows with each try that fails.
    pub backoff: u8,
    /// Other tasks; true for those that only meet this one where they take packets from a store.
    others: Vec<(usize, bool)>,
}

impl Engine {
    /// The reachability of an element's task, if it is known and current.
    pub fn known_reachability(&self, me: usize) -> Option<&Reachability> {
        let reach = self.slots[me].reach.as_deref();
        reach.filter(|reach| reach.at == self.writes)
    }

    /// Finds the elements that runs of an element's task meet.
    #[cold]
    pub fn find_reachability(&mut self, me: usize) {
        let outputs = self.slots[me].outputs.iter();
        let mut pushed = BTreeSet::new();
        pushed.extend(outputs.flat_map(|edge| self.pushed_to(*edge)));
        let inputs = self.slots[me].inputs.iter();
        let takes: Vec<usize> = inputs.flatten().map(|edge| edge.element).collect();
        let fills = pushed.iter().filter(|element| self.stores(**element));
        let pulls = self.slots[me].outputs.contains(&None);
        let ways = pushed.iter().map(|e| self.slots[*e].outputs.len());
        let mut reach = Reachability {
            at: self.writes,
            plain: !pulls
                && pushed.iter().all(|e| self.is_plain(*e) || self.stores(*e))
                && takes.iter().all(|e| self.stores(*e))
                && !self.has_loop(&pushed),
            fills: fills.map(|store| (*store, self.taker(*store))).collect(),
            takes,
            copies: ways.map(|ways| ways.saturating_sub(1)).sum::<usize>() + 1,
            backoff: 0,
            others: Vec::new(),
            meets: pushed,
        };
        reach.meets.insert(me);
        self.slots[me].reach = Some(reach.into());
    }

    /// True if another task meets ours only where an element drops all packets, or where it takes
    /// packets that ours stored.
    #[inline]
    pub fn never_meets(&mut self, me: usize, other: usize) -> bool {
        let known = self
            .known_reachability(me)
            .map_or(&[][..], |reach| &reach.others);
        let known = known.iter().find(|(task, _)| *task == other);
        match known.copied() {
            Some((_, independent)) => independent,
            None => self.compare_reachability(me, other),
        }
    }

    #[cold]
    fn compare_reachability(&mut self, me: usize, other: usize) -> bool {
        if self.known_reachability(other).is_none() {
            self.find_reachability(other);
        }
        let independent = match (self.known_reachability(me), self.known_reachability(other)) {
            (Some(mine), Some(theirs)) => self.are_independent(mine, theirs),
            _ => false,
        };
        if let Some(reach) = &mut self.slots[me].reach {
            reach.others.push((other, independent));
        }
        independent
    }

    fn are_independent(&self, mine: &Reachability, theirs: &Reachability) -> bool {
        let mut both = mine.meets.intersection(&theirs.meets);
        let mut takes = mine.takes.iter();
        theirs.plain
            && both.all(|element| self.only_drops(*element))
            && takes.all(|store| !theirs.takes.contains(store) && !theirs.meets.contains(store))
    }

    /// The one element that pulls from a store.
    fn taker(&self, store: usize) -> Option<usize> {
        let pulls = |(element, slot): (usize, &ElementSlot)| {
            let inputs = slot.inputs.iter().flatten();
            let count = inputs.filter(|edge| edge.element == store).count();
            core::iter::repeat_n(element, count)
        };
        let mut takers = self.slots.iter().enumerate().flat_map(pulls);
        takers.next().filter(|_| takers.next().is_none())
    }

    /// True if storing packets is the element's purpose.
    pub fn stores(&self, element: usize) -> bool {
        let element = self.slots[element].element.as_ref();
        element.is_some_and(|element| element.storage().is_some())
    }

    /// True if an element is plain. An element that runs at the moment is not: its packets might
    /// come back to it.
    pub fn is_plain(&self, element: usize) -> bool {
        let element = self.slots[element].element.as_ref();
        element.is_some_and(|element| element.is_plain())
    }

    /// True if a packet can come to one of these elements twice. The set has all elements that it
    /// can reach.
    fn has_loop(&self, elements: &BTreeSet<usize>) -> bool {
        let mut entries = BTreeMap::new();
        entries.extend(elements.iter().map(|e| (*e, 0)));
        let next = |element: &usize| self.slots[*element].outputs.iter().flatten();
        for edge in elements.iter().flat_map(next) {
            *entries.entry(edge.element).or_default() += 1;
        }
        let mut free: Vec<usize> = elements
            .iter()
            .copied()
            .filter(|e| entries[e] == 0)
            .collect();
        let mut passed = 0;
        while let Some(element) = free.pop() {
            passed += 1;
            for edge in next(&element) {
                let left = entries.entry(edge.element).or_default();
                *left -= 1;
                if *left == 0 {
                    free.push(edge.element);
                }
            }
        }
        passed < elements.len()
    }
}
