// SPDX-License-Identifier: Apache-2.0
//! Task batching: several runs of a task at once, with the same result as one after the other.
//! Elements on the packets' path only pass, change, drop or store them. Runs of other tasks in
//! between meet other elements, or take stored packets.
use crate::engine::Engine;
use crate::engine::context::Context;

/// Skip batching when fewer task runs than this remain in the slice.
const FEW: usize = 4;
/// Do not batch when more tasks than this are queued: few runs of each fit in a slice.
const MANY: usize = 16;
/// Most task runs between two tries, after tries that failed.
const MAX_BACKOFF: u8 = 15;

impl Context<'_> {
    /// Takes several task runs at once where the result is the same; returns their number, this run
    /// included. Only `run_task` calls it, and sends the packets of all runs, `each` a run, in one
    /// batch. `left` returns the number of packets there are.
    #[inline]
    pub fn batch_runs(&mut self, each: usize, left: impl FnOnce(&Self) -> usize) -> usize {
        match self.engine.may_batch_runs(self.me, each) {
            true => self.engine.batch_runs(self.me, each, left(self)),
            false => 1,
        }
    }

    /// True if no other task is scheduled.
    pub fn is_alone(&self) -> bool {
        self.engine.tasks.len() == 0
    }

    /// Packets that a pull at an input takes without waking a task: those in a store right before
    /// it that has room.
    pub fn stored_before(&self, port: usize) -> usize {
        let slots = &self.engine.slots;
        let before = slots[self.me].inputs.get(port).copied().flatten();
        let before = before.map(|edge| &slots[edge.element]);
        let stored = before.filter(|slot| slot.writable);
        let storage = stored.and_then(|slot| slot.element.as_ref()?.storage());
        storage.map_or(0, |storage| storage.stored())
    }
}

impl Engine {
    /// True if a task that sends `each` packets a run may batch its runs, by the tests that cost
    /// little.
    fn may_batch_runs(&mut self, me: usize, each: usize) -> bool {
        if self.slots[me].backoff > 0 {
            self.slots[me].backoff -= 1;
            return false;
        }
        let others = self.tasks.len();
        if self.runs_left < FEW || others > MANY || (others > 0 && each != 1) {
            return false;
        }
        if self.known_reachability(me).is_none() {
            self.find_reachability(me);
        }
        let reach = self.known_reachability(me);
        reach.is_some_and(|reach| reach.plain && (each == 1 || reach.fills.is_empty()))
    }

    fn batch_runs(&mut self, me: usize, each: usize, left: usize) -> usize {
        let most = self.max_batch.min(left).checked_div(each);
        let (turns, others) = match self.has_buffers(me) {
            true => self.invisible_runs(me, most.unwrap_or(0)),
            false => (1, 0),
        };
        let more = turns.saturating_sub(1);
        self.back_off(me, more == 0);
        if more > 0 {
            self.runs_left -= more;
            self.tasks.skip(me, more, others > 0);
            self.tell_stores(me);
        }
        1 + more
    }

    /// Each try that fails doubles the pause before the next one.
    fn back_off(&mut self, me: usize, has_failed: bool) {
        if let Some(reach) = &mut self.slots[me].reach {
            let backoff = reach.backoff;
            reach.backoff = match has_failed {
                true => (2 * backoff + 1).min(MAX_BACKOFF),
                false => 0,
            };
            self.slots[me].backoff = backoff.min(reach.backoff);
        }
    }

    /// True if each packet of all runs finds a buffer, and a second one while an element changes
    /// it.
    fn has_buffers(&self, task: usize) -> bool {
        let copies = self
            .known_reachability(task)
            .map_or(1, |reach| reach.copies);
        let free = self.pool.limit().saturating_sub(self.pool.in_use());
        free >= 2 * copies * self.max_batch.max(self.runs_left + 1)
    }

    /// Tells the stores of a task's packets that the batch stands for single packets.
    fn tell_stores(&mut self, me: usize) {
        let Self { slots, .. } = self;
        let reach = slots[me].reach.take();
        for (store, _) in reach.iter().flat_map(|reach| &reach.fills) {
            let element = slots[*store].element.as_mut();
            if let Some(storage) = element.and_then(|element| element.storage_mut()) {
                storage.expect_one_by_one();
            }
        }
        slots[me].reach = reach;
    }

    /// Runs, at most `most`, that a task can take before the runs of other tasks in between; and
    /// the number of these tasks.
    fn invisible_runs(&mut self, me: usize, most: usize) -> (usize, usize) {
        let (mut most, mut passed) = (most.min(self.room_behind(me)), 0);
        for n in 0..self.tasks.len() {
            if most < 2 {
                break;
            }
            let (pass, other) = self.tasks.queued(n);
            match self.may_pass(me, other) {
                true => passed += 1,
                false => most = most.min(self.tasks.runs_before(me, pass)),
            }
        }
        // each other task has at most one run between two of ours, and all of them must fit in this
        // slice
        (most.min(1 + self.runs_left / (1 + passed)), passed)
    }

    /// Packets that fit into the stores of a task; 0 if a packet could stay there until the next
    /// one comes.
    fn room_behind(&self, me: usize) -> usize {
        let fills = self
            .known_reachability(me)
            .map_or(&[][..], |reach| &reach.fills);
        let room = |(store, taker): &(usize, Option<usize>)| {
            let comes = taker.and_then(|taker| self.tasks.pass(taker));
            let next = comes.filter(|pass| self.tasks.runs_before(me, *pass) == 1);
            let store = next.and(self.slots[*store].element.as_ref());
            let storage = store.and_then(|store| store.storage());
            storage.map_or(0, |storage| storage.room())
        };
        fills.iter().map(room).min().unwrap_or(usize::MAX)
    }

    /// True if a task can take its runs before those of another task in between. The other task
    /// continues unchanged for the rest of the slice and wakes no unscheduled task.
    fn may_pass(&mut self, me: usize, other: usize) -> bool {
        self.tasks.alternates_with(me, other)
            && self.never_meets(me, other)
            && self.wakes_no_task(me, other)
            && self.has_buffers(other)
            && self.goes_on(other)
    }

    fn goes_on(&self, task: usize) -> bool {
        let element = self.slots[task].element.as_ref();
        element.is_some_and(|element| element.steady_runs() >= self.runs_left)
    }

    fn wakes_no_task(&self, me: usize, task: usize) -> bool {
        let Some(reach) = self.known_reachability(task) else {
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
