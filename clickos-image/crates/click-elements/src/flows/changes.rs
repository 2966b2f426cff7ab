// SPDX-License-Identifier: Apache-2.0
//! Which flows changed since they were last asked for, so that another guest can have a copy of them.
use alloc::collections::VecDeque;

use crate::prelude::*;

/// In this time each flow with packets counts as changed once, so that a copy does not time out.
const SWEEP_NS: u64 = 15_000_000_000;
/// The most flows that one step of a sweep looks at.
const SWEEP_STEP: u64 = 4096;

const BITS: u32 = u64::BITS;

/// The slots of changed flows, by the owner of the flow. A slot is in one list once, until it is taken.
#[derive(Debug, Default)]
pub struct Changes {
    slots: Vec<VecDeque<u32>>,
    /// A bit for each slot that is in a list.
    listed: Vec<u64>,
    /// Flows are being copied from the other guest: they did not change here.
    pub is_copying: bool,
    cursor: u32,
    /// When the sweep began, and the one before.
    began_ns: [u64; 2],
    stepped_ns: u64,
}

impl Changes {
    /// The flow in a slot is new or has changed.
    pub fn note(&mut self, owner: u16, slot: u32) {
        if !self.is_copying && self.mark(slot, true) {
            self.list(owner).push_back(slot);
        }
    }

    /// A slot of an owner, the oldest. It is in no list then.
    pub fn take(&mut self, owner: u16) -> Option<u32> {
        let slot = self.slots.get_mut(usize::from(owner))?.pop_front()?;
        self.mark(slot, false);
        Some(slot)
    }

    /// Puts a slot back in front.
    pub fn put_back(&mut self, owner: u16, slot: u32) {
        if self.mark(slot, true) {
            self.list(owner).push_front(slot);
        }
    }

    fn list(&mut self, owner: u16) -> &mut VecDeque<u32> {
        let owner = usize::from(owner);
        if self.slots.len() <= owner {
            self.slots.resize_with(owner + 1, VecDeque::new);
        }
        &mut self.slots[owner]
    }

    /// Notes whether a slot is in a list; false if that was known.
    fn mark(&mut self, slot: u32, is_listed: bool) -> bool {
        let (word, bit) = ((slot / BITS) as usize, 1 << (slot % BITS));
        if self.listed.len() <= word {
            self.listed.resize(word + 1, 0);
        }
        let before = self.listed[word];
        self.listed[word] = match is_listed {
            true => before | bit,
            false => before & !bit,
        };
        self.listed[word] != before
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
        changes.note(3, 7);
        changes.note(3, 800);
        changes.note(3, 7);
        assert_eq!((changes.take(0), changes.take(4)), (None, None));
        assert_eq!(changes.take(3), Some(7));
        changes.put_back(3, 7);
        changes.note(3, 7);
        changes.is_copying = true;
        changes.note(3, 9);
        assert_eq!(
            [changes.take(3), changes.take(3), changes.take(3)],
            [Some(7), Some(800), None]
        );
    }
}
