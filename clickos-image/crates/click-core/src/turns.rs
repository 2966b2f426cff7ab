// SPDX-License-Identifier: Apache-2.0
//! Several turns of a task at once, where nobody can tell that from one after the other: the task is the only one
//! that has a turn, and whatever its packets meet just passes, changes or drops them.
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::context::Context;
use crate::engine::Engine;

impl Context<'_> {
    /// Takes several turns at once if nobody can tell; returns how many, this one among them. Only for `run_task`: what
    /// all of them send, `each` packets a turn, is to be sent in one batch. `left` says how many packets there are.
    #[inline]
    pub fn take_turns(&mut self, each: usize, left: impl FnOnce(&Self) -> usize) -> usize {
        match self.engine.tasks.len() {
            0 => self.engine.take_turns(self.me, each, left(self)),
            _ => 1,
        }
    }

    /// How many packets can be pulled at an input without anybody being told: those that an element right before it
    /// stores, if it has room, so that nobody waits for that.
    pub fn stored_before(&self, port: usize) -> usize {
        let slots = &self.engine.slots;
        let before = slots[self.me].inputs.get(port).copied().flatten();
        let before = before.map(|edge| &slots[edge.element]);
        let stored = before.filter(|slot| slot.writable);
        let stored = stored.and_then(|slot| slot.element.as_ref()?.stored());
        stored.unwrap_or(0)
    }
}

impl Engine {
    fn take_turns(&mut self, me: usize, each: usize, left: usize) -> usize {
        // so that a packet finds a buffer, and another one while it is changed, as if it were alone
        let room = self.pool.limit().saturating_sub(self.pool.in_use()) / 2;
        let most = self.max_batch.min(left).min(room).checked_div(each);
        let more = most.unwrap_or(0).saturating_sub(1).min(self.turns);
        if more == 0 || !self.sends_unseen(me) {
            return 1;
        }
        self.turns -= more;
        self.tasks.skip(me, more);
        1 + more
    }

    /// Whether nobody can tell packets that an element sends one by one from those that it sends in batches. Handlers
    /// may change that.
    fn sends_unseen(&mut self, me: usize) -> bool {
        if let Some((_, unseen)) = self.slots[me].unseen.filter(|(at, _)| *at == self.writes) {
            return unseen;
        }
        let unseen = self.meets_only_plain(me);
        self.slots[me].unseen = Some((self.writes, unseen));
        unseen
    }

    fn meets_only_plain(&self, me: usize) -> bool {
        let mut outputs = self.slots[me].outputs.iter();
        let reached = outputs.try_fold(BTreeSet::new(), |mut reached, edge| {
            reached.append(&mut self.pushed_to((*edge)?.into()));
            Some(reached)
        });
        reached.is_some_and(|reached| {
            reached.iter().all(|element| self.is_plain(*element)) && !self.has_loop(&reached)
        })
    }

    /// Whether an element is plain; one that runs just now might come to itself again.
    fn is_plain(&self, element: usize) -> bool {
        let element = self.slots[element].element.as_ref();
        element.is_some_and(|element| element.is_plain())
    }

    /// Whether packets can come to one of these elements twice; they go to no others.
    fn has_loop(&self, elements: &BTreeSet<usize>) -> bool {
        let mut entries: BTreeMap<usize, usize> = elements.iter().map(|e| (*e, 0)).collect();
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
