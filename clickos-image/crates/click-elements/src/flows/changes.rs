// SPDX-License-Identifier: Apache-2.0
//! Which flows changed since they were last asked for, so that another guest can have a copy of them.
use alloc::collections::VecDeque;

use crate::prelude::*;

/// In this time each flow with packets counts as changed once, so that a copy does not time out.
const SWEEP_NS: u64 = 15_000_000_000;
/// The most flows that one step of a sweep looks at.
const SWEEP_STEP: u64 = 4096;

/// The slots of changed flows, by the owner of the flow. A slot is in one list once, until it is taken.
#[derive(Debug, Default)]
pub struct Changes {
    slots: Vec<VecDeque<u32>>,
    /// Flows are being copied from the other guest: they did not change here.
    pub is_copying: bool,
    cursor: u32,
    /// When the sweep began, and the one before.
    began_ns: [u64; 2],
    stepped_ns: u64,
}

impl Changes {
    /// Adds a slot that is in no list.
    pub fn add(&mut self, owner: u16, slot: u32) {
        let owner = usize::from(owner);
        if self.slots.len() <= owner {
            self.slots.resize_with(owner + 1, VecDeque::new);
        }
        self.slots[owner].push_back(slot);
    }

    /// A slot of an owner, the oldest.
    pub fn take(&mut self, owner: u16) -> Option<u32> {
        self.slots.get_mut(usize::from(owner))?.pop_front()
    }

    /// Puts a slot back in front.
    pub fn put_back(&mut self, owner: u16, slot: u32) {
        if let Some(slots) = self.slots.get_mut(usize::from(owner)) {
            slots.push_front(slot);
        }
    }

    /// The next slots that a sweep through `used` slots looks at, and since when a flow has to have had a packet.
    pub fn step(&mut self, used: u32, now_ns: u64) -> (core::ops::Range<u32>, u64) {
        if self.began_ns[0] == 0 {
            (self.began_ns, self.stepped_ns, self.cursor) = ([now_ns; 2], now_ns, used);
        }
        if self.cursor >= used && now_ns.saturating_sub(self.began_ns[0]) >= SWEEP_NS {
            self.cursor = 0;
            self.began_ns = [now_ns, self.began_ns[0]];
        }
        let passed_ns = now_ns.saturating_sub(self.stepped_ns).min(SWEEP_NS);
        let slots = (u64::from(used) * passed_ns / SWEEP_NS).clamp(1, SWEEP_STEP);
        self.stepped_ns = now_ns;
        let first = self.cursor;
        self.cursor = used.min(first.saturating_add(slots as u32));
        (first..self.cursor, self.began_ns[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_passes_each_slot_once_in_its_time() {
        let mut changes = Changes::default();
        let mut seen = vec![0; 1000];
        let pause_ns = 50_000_000;
        for step in 1..=3 * SWEEP_NS / pause_ns {
            let (slots, since_ns) = changes.step(1000, step * pause_ns);
            assert!(since_ns <= step * pause_ns);
            slots.for_each(|slot| seen[slot as usize] += 1);
        }
        assert!(seen.iter().all(|count| (1..=2).contains(count)));
    }

    #[test]
    fn owners_have_lists_of_their_own() {
        let mut changes = Changes::default();
        changes.add(3, 7);
        changes.add(3, 8);
        assert_eq!((changes.take(0), changes.take(4)), (None, None));
        assert_eq!(changes.take(3), Some(7));
        changes.put_back(3, 7);
        assert_eq!(
            [changes.take(3), changes.take(3), changes.take(3)],
            [Some(7), Some(8), None]
        );
    }
}
