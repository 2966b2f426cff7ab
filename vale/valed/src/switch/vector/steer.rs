// SPDX-License-Identifier: Apache-2.0
//! The stage of chains: counts the steps of a burst's frames, and cuts those that go in a circle.
use std::ops::Range;

use super::{Fate, Route, Steered};
use crate::chain::Next;
use crate::clock::Nanoseconds;
use crate::port::Counter;
use crate::switch::{Scratch, Switch};

impl Switch {
    #[inline(never)]
    pub(super) fn steer_burst(&mut self, source: usize, run: Range<usize>, scratch: &mut Scratch) {
        let Scratch { vector, now, .. } = scratch;
        for n in run {
            let (Fate::To(route), Some(steered)) = (vector.fates[n], vector.steps[n]) else {
                continue;
            };
            if let Err(dropped) = self.take_steered(source, steered, route, *now) {
                self.drop_frame(source, dropped);
                vector.fates[n] = Fate::Gone;
            }
        }
    }

    /// The stages of [`Switch::take_step`] before the delivery.
    fn take_steered(
        &mut self,
        source: usize,
        steered: Steered,
        route: Route,
        now: Nanoseconds,
    ) -> Result<(), Counter> {
        let Steered { step, ethernet } = steered;
        if !step.enters {
            self.check_step(step, source, &ethernet, 1, now)?;
        }
        self.chains.count(step, route.len.into(), 1);
        self.chains.note(step, ethernet.source);
        let to = route.to.into();
        match step.next == Next::Exit && self.chains.is_inside(step, to) {
            true => Err(self.cut_step(step, source, Some(to), 1)),
            false => Ok(()),
        }
    }
}
