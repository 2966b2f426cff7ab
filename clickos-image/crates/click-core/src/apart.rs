// SPDX-License-Identifier: Apache-2.0
//! Whether copies of a batch may go out of one output after the other, instead of packet by packet.
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::engine::{Edge, Engine};

impl Engine {
    /// Whether all outputs but the last end at elements that only store or drop, each at another one,
    /// and the last does not lead there: then nobody can tell in which order the outputs were served.
    pub fn outputs_are_apart(&self, me: usize) -> bool {
        let Some((last, others)) = self.slots[me].outputs.split_last() else {
            return true;
        };
        let mut taken = self.pushed_to(*last);
        let mut ends = |edge: &Edge| self.is_quiet_end(edge.element) && taken.insert(edge.element);
        others.iter().flatten().all(&mut ends)
    }

    fn is_quiet_end(&self, element: usize) -> bool {
        self.plan.classes[element].quiet && self.slots[element].outputs.iter().all(Option::is_none)
    }

    /// The elements that packets sent along an edge can be pushed to.
    fn pushed_to(&self, edge: Option<Edge>) -> BTreeSet<usize> {
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
