// SPDX-License-Identifier: Apache-2.0
//! Slots for building domains: a few at a time, in the order of the requests.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::base::error::{Code, Error, Result};

/// See the module.
pub struct BuildSlots {
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next_ticket: u64,
    waiting: VecDeque<u64>,
    building: usize,
}

/// A slot; dropping it frees it.
pub struct BuildSlot<'a>(&'a BuildSlots);

impl BuildSlots {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits for a slot.
    pub fn enter(&self, deadline: Instant) -> Result<BuildSlot<'_>> {
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        let not_yet = |state: &mut State| {
            state.building == self.most || state.waiting.front() != Some(&ticket)
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self.changed.wait_timeout_while(state, left, not_yet);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let ahead = state.waiting.iter().position(|t| *t == ticket);
        state.waiting.retain(|t| *t != ticket);
        // The next one looks, whether this one builds or gives up.
        self.changed.notify_all();
        if waited.timed_out() {
            let message = format!(
                "domain: no build slot came free in time: {} domains are being built, {} wait before it",
                state.building,
                ahead.unwrap_or(0)
            );
            return Err(Error::new(Code::Timeout, message));
        }
        state.building += 1;
        Ok(BuildSlot(self))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BuildSlot<'_> {
    fn drop(&mut self) {
        self.0.lock().building -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    fn later() -> Instant {
        Instant::now() + LONG
    }

    #[test]
    fn one_that_gets_no_slot_leaves_the_queue() {
        let slots = BuildSlots::new(1);
        let first = slots.enter(later()).unwrap();
        let error = slots.enter(Instant::now()).err().unwrap();
        assert_eq!(error.code, Code::Timeout);
        assert!(
            error.message.contains("1 domains are being built"),
            "{error}"
        );
        drop(first);
        slots.enter(Instant::now()).unwrap();
    }

    #[test]
    fn slots_are_in_the_order_of_the_requests() {
        let slots = BuildSlots::new(1);
        let (sender, built) = channel();
        let first = slots.enter(later()).unwrap();
        std::thread::scope(|scope| {
            for n in 0..4 {
                let (slots, sender) = (&slots, sender.clone());
                scope.spawn(move || {
                    let _turn = slots.enter(later()).unwrap();
                    sender.send(n).unwrap();
                });
                while slots.lock().waiting.len() <= n {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(built.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
