// SPDX-License-Identifier: Apache-2.0
//! Whether the order of packets at different outputs can be observed. If not, the outputs get whole batches, one after
//! the other.
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use crate::engine::apart::Apart;
use crate::engine::{Edge, Engine};

impl Engine {
    /// True if the order in which outputs get packets shows nowhere. All outputs but the last end
    /// at elements that only store or drop, each at another one. The last output does not lead
    /// there.
    pub fn outputs_are_independent(&self, me: usize) -> bool {
        let Some((last, others)) = self.slots[me].outputs.split_last() else {
            return true;
        };
        let mut taken = self.pushed_to(*last);
        let mut ends = |edge: &Edge| self.is_quiet_end(edge.element) && taken.insert(edge.element);
        others.iter().flatten().all(&mut ends)
    }

    /// Whether packets of different outputs meet only where an element drops all of them. Packets
    /// of one output may then overtake those of another; each connection still keeps their order.
    #[inline]
    pub fn outputs_apart(&mut self, me: usize) -> Apart {
        match self.slots[me].apart {
            Some(apart) => apart,
            None => self.find_apart(me),
        }
    }

    #[cold]
    fn find_apart(&mut self, me: usize) -> Apart {
        // the output by which an element was reached first
        let mut reached = vec![usize::MAX; self.slots.len()];
        let (mut disjoint, mut unseen) = (true, true);
        for (output, edge) in self.slots[me].outputs.iter().enumerate() {
            let mut pending: Vec<Edge> = edge.iter().copied().collect();
            while let Some(Edge { element, .. }) = pending.pop() {
                match core::mem::replace(&mut reached[element], output) {
                    usize::MAX => {}
                    before if before == output => continue,
                    _ => disjoint &= self.only_drops(element),
                }
                unseen &= self.is_plain(element) || self.stores(element);
                pending.extend(self.slots[element].outputs.iter().flatten());
            }
        }
        let apart = match (disjoint, unseen) {
            (false, _) => Apart::Meet,
            (true, false) => Apart::Disjoint,
            (true, true) => Apart::Unseen,
        };
        self.slots[me].apart = Some(apart);
        apart
    }

    pub fn only_drops(&self, element: usize) -> bool {
        let element_there = self.slots[element].element.as_ref();
        self.is_quiet_end(element) && element_there.is_some_and(|e| e.storage().is_none())
    }

    fn is_quiet_end(&self, element: usize) -> bool {
        self.plan.classes[element].quiet && self.slots[element].outputs.iter().all(Option::is_none)
    }

    /// The elements that packets sent along an edge can be pushed to.
    pub fn pushed_to(&self, edge: Option<Edge>) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut pending: Vec<Edge> = edge.into_iter().collect();
        while let Some(edge) = pending.pop() {
            if reached.insert(edge.element) {
                pending.extend(self.slots[edge.element].outputs.iter().flatten());
            }
        }
        reached
    }
}
