// SPDX-License-Identifier: Apache-2.0
//! Whether a batch may go out of one output after the other, instead of packet by packet.
use alloc::collections::{BTreeMap, BTreeSet};
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

    /// Whether packets that leave by different outputs meet nowhere but where all are dropped: then the packets
    /// of one output may overtake those of another, and on every connection they still come in their order.
    pub fn outputs_never_meet(&self, me: usize) -> bool {
        let mut reached = BTreeMap::new();
        let outputs = self.slots[me].outputs.iter().enumerate();
        let mut passed = outputs.flat_map(|(output, edge)| {
            let elements = self.pushed_to(*edge).into_iter();
            elements.map(move |element| (element, output))
        });
        passed.all(|(element, output)| {
            *reached.entry(element).or_insert(output) == output || self.only_drops(element)
        })
    }

    pub fn only_drops(&self, element: usize) -> bool {
        let stored = self.slots[element].element.as_ref().map(|e| e.stored());
        self.is_quiet_end(element) && stored == Some(None)
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
