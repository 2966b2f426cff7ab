// SPDX-License-Identifier: Apache-2.0
//! What elements can see of others: how full the storage of packets is, whose signals are on.
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use click_lang::sort;

use crate::engine::ElementSlot;
use crate::engine::context::Context;

/// A reference to an element that stores packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageRef(usize);

impl Context<'_> {
    /// The element of this name, looked up from this element's compound outwards, if it stores packets.
    pub fn storage(&self, name: &str) -> Option<StorageRef> {
        let index = self.engine.find_element(self.me, name)?;
        self.is_storage(index).then_some(StorageRef(index))
    }

    /// The elements that store what this element pushes, or what it pulls.
    pub fn nearest_storage(&self) -> Vec<StorageRef> {
        let down = self.output_is_push(0);
        let (mut found, mut pending) = (Vec::new(), Vec::from([self.me]));
        let mut seen = BTreeSet::from([self.me]);
        while let Some(element) = pending.pop() {
            let slot = &self.engine.slots[element];
            let edges = if down { &slot.outputs } else { &slot.inputs };
            for next in edges.iter().flatten().map(|edge| edge.element) {
                match seen.insert(next) {
                    true if self.is_storage(next) => found.push(StorageRef(next)),
                    true => pending.push(next),
                    false => {}
                }
            }
        }
        sort::by_key(&mut found, |storage| storage.0);
        found
    }

    fn is_storage(&self, index: usize) -> bool {
        let element = self.engine.slots[index].element.as_ref();
        element.is_some_and(|e| e.storage().is_some())
    }

    /// How many packets are stored there.
    pub fn stored(&self, storage: StorageRef) -> usize {
        let element = self.engine.slots[storage.0].element.as_ref();
        element.and_then(|e| e.storage()).map_or(0, |s| s.stored())
    }

    /// Its element's name.
    pub fn storage_name(&self, storage: StorageRef) -> String {
        self.engine.slots[storage.0].name.clone()
    }

    /// The signals for a pull at input 0, in the order of the elements. In a push path they stand
    /// for room behind output 0. The answer is `None` if the element must always try.
    pub fn signals(&mut self) -> Option<Vec<bool>> {
        let (me, push) = (self.me, self.output_is_push(0));
        if push {
            self.engine.is_writable(me, 0);
        } else {
            self.engine.is_readable(me, 0);
        }
        let slot = &self.engine.slots[me];
        let watches = if push {
            &slot.downstream
        } else {
            &slot.upstream
        };
        let watch = watches[0].as_ref().filter(|watch| !watch.always)?;
        let mut elements = watch.signals.clone();
        sort::by(&mut elements, Ord::cmp);
        let slots = elements.iter().map(|e| &self.engine.slots[*e]);
        Some(
            slots
                .map(|s| if push { s.writable } else { s.readable })
                .collect(),
        )
    }

    /// True if this element's compound has an element, or a compound with elements, of this name.
    pub fn has_elements(&self, name: &str) -> bool {
        let around = self.name().rsplit_once('/');
        let full = around.map_or(name.to_string(), |(outer, _)| format!("{outer}/{name}"));
        let rest = |slot: &ElementSlot| {
            slot.name
                .strip_prefix(&full)
                .map(|r| r.is_empty() || r.starts_with('/'))
        };
        self.engine
            .slots
            .iter()
            .any(|slot| rest(slot) == Some(true))
    }
}
