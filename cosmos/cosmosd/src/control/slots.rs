// SPDX-License-Identifier: Apache-2.0
//! How much may be under way with one router at a time.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use crate::base::error::{Code, Error, Result};

/// Requests a guest answers at a time; more would wait in the guest anyway.
const REQUESTS: usize = 16;

/// The kinds of work that take a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Install,
    Request,
}

impl Kind {
    fn capacity(self) -> usize {
        match self {
            Self::Install => 1,
            Self::Request => REQUESTS,
        }
    }
}

/// Places, by router and kind.
#[derive(Default)]
pub struct Slots {
    taken: Mutex<HashMap<(u8, Kind), usize>>,
    freed: Condvar,
}

/// A place; dropping it frees it.
pub struct Slot<'a> {
    slots: &'a Slots,
    key: (u8, Kind),
}

impl Slots {
    /// Waits for a place.
    pub fn enter(&self, rid: u8, kind: Kind, deadline: Instant) -> Result<Slot<'_>> {
        let key = (rid, kind);
        let left = deadline.saturating_duration_since(Instant::now());
        let full = |taken: &mut HashMap<_, usize>| {
            taken
                .get(&key)
                .is_some_and(|count| *count >= kind.capacity())
        };
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, waited) = self
            .freed
            .wait_timeout_while(taken, left, full)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            let message = format!(
                "router {rid}: busy with {} earlier requests",
                kind.capacity()
            );
            return Err(Error::new(Code::Timeout, message));
        }
        *taken.entry(key).or_default() += 1;
        Ok(Slot { slots: self, key })
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut taken = self
            .slots
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
        }
        drop(taken);
        self.slots.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_place_is_waited_for_and_freed() {
        let slots = Slots::default();
        let enter = |ms| slots.enter(0, Kind::Install, Instant::now() + Duration::from_millis(ms));
        let first = enter(0).unwrap();
        assert_eq!(enter(10).err().unwrap().code, Code::Timeout);
        slots.enter(1, Kind::Install, Instant::now()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Time to wait; a place that is free before counts, too.
                std::thread::sleep(Duration::from_millis(20));
                drop(first);
            });
            enter(60_000).unwrap();
        });
    }
}
