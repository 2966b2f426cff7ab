// SPDX-License-Identifier: Apache-2.0
//! The stage of chains: counts the steps of a burst's frames, and cuts those that go in a circle.
use super::{Steered, Vector, count, each};
use crate::chain::Next;
use crate::clock::Nanoseconds;
use crate::port::Counter;
use crate::switch::{Scratch, Switch};

/// The frames with one step, or one of them.
#[derive(Clone, Copy)]
struct Run {
    set: u64,
    steered: Steered,
    /// Index of the receiver.
    to: usize,
}

impl Switch {
    #[inline(never)]
    pub(super) fn steer_burst(&mut self, source: usize, scratch: &mut Scratch) {
        let Scratch { vector, now, .. } = scratch;
        let mut left = vector.forwarded;
        while left != 0 {
            let n = left.trailing_zeros() as usize;
            let set = left & vector.run(n);
            left &= !set;
            if let Some(steered) = vector.steps[vector.first(n)] {
                let to = vector.routes[n].to.into();
                let run = Run { set, steered, to };
                vector.forwarded &= !self.steer(source, run, vector, *now);
            }
        }
    }

    /// The stages of [`Switch::take_step`] before the delivery. Returns the frames that it dropped.
    fn steer(&mut self, source: usize, run: Run, vector: &Vector, now: Nanoseconds) -> u64 {
        match self.check_run(source, run, now) {
            Some(Ok(())) => self.take_run(source, run, vector),
            Some(Err(dropped)) => self.drop_run(source, run, dropped),
            None => each(run.set).fold(0, |cut, n| {
                let one = Run { set: 1 << n, ..run };
                cut | self.steer_one(source, one, vector, now)
            }),
        }
    }

    fn steer_one(&mut self, source: usize, one: Run, vector: &Vector, now: Nanoseconds) -> u64 {
        let Steered { step, ethernet } = one.steered;
        match self.check_step(step, source, &ethernet, 1, now) {
            Ok(()) => self.take_run(source, one, vector),
            Err(dropped) => self.drop_run(source, one, dropped),
        }
    }

    /// The check of the steps of frames that a hop sent. None if the frames need one each.
    fn check_run(&self, source: usize, run: Run, now: Nanoseconds) -> Option<Result<(), Counter>> {
        let Steered { step, ethernet } = run.steered;
        if step.enters {
            return Some(Ok(()));
        }
        if step.next == Next::Exit && self.goes_back(step, source, &ethernet, now) {
            return Some(Err(|c| &mut c.dropped_spoof));
        }
        self.chains
            .all_leave(step, count(run.set))
            .then_some(Ok(()))
    }

    fn take_run(&mut self, source: usize, run: Run, vector: &Vector) -> u64 {
        let (Steered { step, ethernet }, frames) = (run.steered, count(run.set));
        let bytes = each(run.set).map(|n| vector.len(n) as u64).sum();
        self.chains.count_all(step, frames, bytes);
        self.chains.note(step, ethernet.source);
        match step.next == Next::Exit && self.chains.is_inside(step, run.to) {
            true => {
                let dropped = self.cut_step(step, source, Some(run.to), frames as usize);
                self.drop_run(source, run, dropped)
            }
            false => 0,
        }
    }

    fn drop_run(&mut self, source: usize, run: Run, dropped: Counter) -> u64 {
        if let Some(port) = &mut self.ports[source] {
            *dropped(&mut port.counters) += count(run.set);
        }
        run.set
    }
}
