// SPDX-License-Identifier: Apache-2.0
//! What a turn of a task can meet, as far as connections and classes tell.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::engine::{Engine, Slot};

/// What a turn of a task can meet; handlers may change it.
pub struct Reach {
    /// As of so many handlers written.
    at: u64,
    /// All that it pushes to just passes packets on, changes, drops or stores them, and it pulls only from stores.
    pub plain: bool,
    /// What it pushes to, and itself.
    meets: BTreeSet<usize>,
    /// Stores among those, each with the task that alone pulls from it, if that is so.
    pub fills: Vec<(usize, Option<usize>)>,
    /// Packets that one can become on the way, at most.
    pub copies: usize,
    /// Stores that it pulls from.
    pub takes: Vec<usize>,
    /// Grows as it is asked in vain whether several turns can be taken at once.
    pub rest: u8,
    /// Other tasks, and whether theirs never meet it but where they take what it stored.
    others: Vec<(usize, bool)>,
}

impl Engine {
    /// What turns of an element's task meet, if that is known.
    pub fn known_reach(&self, me: usize) -> Option<&Reach> {
        let reach = self.slots[me].reach.as_deref();
        reach.filter(|reach| reach.at == self.writes)
    }

    /// Finds what turns of an element's task meet.
    #[cold]
    pub fn find_reach(&mut self, me: usize) {
        let outputs = self.slots[me].outputs.iter();
        let mut pushed = BTreeSet::new();
        pushed.extend(outputs.flat_map(|edge| self.pushed_to(*edge)));
        let inputs = self.slots[me].inputs.iter();
        let takes: Vec<usize> = inputs.flatten().map(|edge| edge.element).collect();
        let fills = pushed.iter().filter(|element| self.stores(**element));
        let pulls = self.slots[me].outputs.contains(&None);
        let ways = pushed.iter().map(|e| self.slots[*e].outputs.len());
        let mut reach = Reach {
            at: self.writes,
            plain: !pulls
                && pushed.iter().all(|e| self.is_plain(*e) || self.stores(*e))
                && takes.iter().all(|e| self.stores(*e))
                && !self.has_loop(&pushed),
            fills: fills.map(|store| (*store, self.taker(*store))).collect(),
            takes,
            copies: ways.map(|ways| ways.saturating_sub(1)).sum::<usize>() + 1,
            rest: 0,
            others: Vec::new(),
            meets: pushed,
        };
        reach.meets.insert(me);
        self.slots[me].reach = Some(reach.into());
    }

    /// Whether turns of another task meet nothing that ours meet but where all packets are dropped, or where it takes
    /// what we stored.
    #[inline]
    pub fn never_meets(&mut self, me: usize, other: usize) -> bool {
        let known = self.known_reach(me).map_or(&[][..], |reach| &reach.others);
        let known = known.iter().find(|(task, _)| *task == other);
        match known.copied() {
            Some((_, apart)) => apart,
            None => self.compare_reaches(me, other),
        }
    }

    #[cold]
    fn compare_reaches(&mut self, me: usize, other: usize) -> bool {
        if self.known_reach(other).is_none() {
            self.find_reach(other);
        }
        let apart = match (self.known_reach(me), self.known_reach(other)) {
            (Some(mine), Some(theirs)) => self.are_apart(mine, theirs),
            _ => false,
        };
        if let Some(reach) = &mut self.slots[me].reach {
            reach.others.push((other, apart));
        }
        apart
    }

    fn are_apart(&self, mine: &Reach, theirs: &Reach) -> bool {
        let mut both = mine.meets.intersection(&theirs.meets);
        let mut takes = mine.takes.iter();
        theirs.plain
            && both.all(|element| self.only_drops(*element))
            && takes.all(|store| !theirs.takes.contains(store) && !theirs.meets.contains(store))
    }

    /// The one element that pulls from a store.
    fn taker(&self, store: usize) -> Option<usize> {
        let pulls = |(element, slot): (usize, &Slot)| {
            let inputs = slot.inputs.iter().flatten();
            let count = inputs.filter(|edge| edge.element == store).count();
            core::iter::repeat_n(element, count)
        };
        let mut takers = self.slots.iter().enumerate().flat_map(pulls);
        takers.next().filter(|_| takers.next().is_none())
    }

    /// Whether an element is there to store packets.
    fn stores(&self, element: usize) -> bool {
        let element = self.slots[element].element.as_ref();
        element.is_some_and(|element| element.stored().is_some())
    }

    /// Whether an element is plain; one that runs just now might come to itself again.
    fn is_plain(&self, element: usize) -> bool {
        let element = self.slots[element].element.as_ref();
        element.is_some_and(|element| element.is_plain())
    }

    /// Whether packets can come to one of these elements twice; they go to no others.
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
