// SPDX-License-Identifier: Apache-2.0
//! Several turns of a task at once, where nobody can tell that from one after the other: whatever its packets meet
//! just passes, changes, drops or stores them, and the turns that come between of other tasks meet other elements, or
//! take what was stored.
use crate::context::Context;
use crate::engine::Engine;

/// Of fewer turns that are left of a slice it is not asked whether several can be taken at once.
const FEW: usize = 4;
/// Nor where more other tasks have turns: few of one task would fit in a slice.
const MANY: usize = 16;
/// After it was asked in vain it is not asked for a while, at most for so many turns.
const LONGEST_REST: u8 = 15;

impl Context<'_> {
    /// Takes several turns at once if nobody can tell; returns how many, this one among them. Only for `run_task`: what
    /// all of them send, `each` packets a turn, is to be sent in one batch. `left` says how many packets there are.
    #[inline]
    pub fn take_turns(&mut self, each: usize, left: impl FnOnce(&Self) -> usize) -> usize {
        match self.engine.turns_may_join(self.me, each) {
            true => self.engine.take_turns(self.me, each, left(self)),
            false => 1,
        }
    }

    /// Whether no other task has a turn.
    pub fn is_alone(&self) -> bool {
        self.engine.tasks.len() == 0
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
    /// Whether a task that sends so many packets a turn may take several turns at once; what is quickly known.
    fn turns_may_join(&mut self, me: usize, each: usize) -> bool {
        if self.slots[me].rest > 0 {
            self.slots[me].rest -= 1;
            return false;
        }
        let others = self.tasks.len();
        if self.turns < FEW || others > MANY || (others > 0 && each != 1) {
            return false;
        }
        if self.known_reach(me).is_none() {
            self.find_reach(me);
        }
        let reach = self.known_reach(me);
        reach.is_some_and(|reach| reach.plain && (each == 1 || reach.fills.is_empty()))
    }

    fn take_turns(&mut self, me: usize, each: usize, left: usize) -> usize {
        let most = self.max_batch.min(left).checked_div(each);
        let (turns, others) = match self.has_buffers(me) {
            true => self.unseen_turns(me, most.unwrap_or(0)),
            false => (1, 0),
        };
        let more = turns.saturating_sub(1);
        self.rest_after(me, more == 0);
        if more > 0 {
            self.turns -= more;
            self.tasks.skip(me, more, others > 0);
            self.tell_stores(me);
        }
        1 + more
    }

    /// The more often it was asked in vain, the longer it is not asked.
    fn rest_after(&mut self, me: usize, in_vain: bool) {
        if let Some(reach) = &mut self.slots[me].reach {
            let rest = reach.rest;
            reach.rest = match in_vain {
                true => (2 * rest + 1).min(LONGEST_REST),
                false => 0,
            };
            self.slots[me].rest = rest.min(reach.rest);
        }
    }

    /// Whether each packet of so many turns finds a buffer, and another one while it is changed, as if it were alone.
    fn has_buffers(&self, task: usize) -> bool {
        let copies = self.known_reach(task).map_or(1, |reach| reach.copies);
        let free = self.pool.limit().saturating_sub(self.pool.in_use());
        free >= 2 * copies * self.max_batch.max(self.turns + 1)
    }

    /// Tells those that store what a task sends that one packet comes at a time, whatever they see.
    fn tell_stores(&mut self, me: usize) {
        let Self { slots, .. } = self;
        let reach = slots[me].reach.take();
        for (store, _) in reach.iter().flat_map(|reach| &reach.fills) {
            if let Some(store) = &mut slots[*store].element {
                store.expect_one_by_one();
            }
        }
        slots[me].reach = reach;
    }

    /// How many turns, at most `most`, a task can take before those of others that come between; and how many others
    /// those are.
    fn unseen_turns(&mut self, me: usize, most: usize) -> (usize, usize) {
        let (mut most, mut passed) = (most.min(self.room_behind(me)), 0);
        for n in 0..self.tasks.len() {
            if most < 2 {
                break;
            }
            let (pass, other) = self.tasks.turn(n);
            match self.may_pass(me, other) {
                true => passed += 1,
                false => most = most.min(self.tasks.turns_before(me, pass)),
            }
        }
        // each of them has at most one turn between two of ours, and all of these are to be in this slice
        (most.min(1 + self.turns / (1 + passed)), passed)
    }

    /// How many packets fit where a task stores its packets; none if one could stay there until the next one comes.
    fn room_behind(&self, me: usize) -> usize {
        let fills = self.known_reach(me).map_or(&[][..], |reach| &reach.fills);
        let room = |(store, taker): &(usize, Option<usize>)| {
            let comes = taker.and_then(|taker| self.tasks.pass(taker));
            let next = comes.filter(|pass| self.tasks.turns_before(me, *pass) == 1);
            let store = next.and(self.slots[*store].element.as_ref());
            store.map_or(0, |store| store.room())
        };
        fills.iter().map(room).min().unwrap_or(usize::MAX)
    }

    /// Whether a task can take its turns before those of another one that come between: that one goes on as it does
    /// for the rest of the slice, and wakes none that has no turn yet.
    fn may_pass(&mut self, me: usize, other: usize) -> bool {
        self.tasks.take_turns_about(me, other)
            && self.never_meets(me, other)
            && self.wakes_nobody(me, other)
            && self.has_buffers(other)
            && self.goes_on(other)
    }

    fn goes_on(&self, task: usize) -> bool {
        let element = self.slots[task].element.as_ref();
        element.is_some_and(|element| element.sure_turns() >= self.turns)
    }

    fn wakes_nobody(&self, me: usize, task: usize) -> bool {
        let Some(reach) = self.known_reach(task) else {
            return false;
        };
        let filled = reach.fills.iter().map(|(store, _)| store);
        let mut stores = filled.chain(&reach.takes).map(|store| &self.slots[*store]);
        stores.all(|store| {
            let mut waiting = store.readers.iter().chain(&store.writers);
            waiting.all(|task| *task == me || self.tasks.is_scheduled(*task))
        })
    }
}
