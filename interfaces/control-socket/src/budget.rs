// SPDX-License-Identifier: Apache-2.0
//! The bytes that all connections together may hold.
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Each uid has a share of its own, so that no role can starve another.
pub(crate) struct Budget {
    share: usize,
    used: Mutex<BTreeMap<u32, usize>>,
    freed: Condvar,
}

/// Bytes taken from a budget; dropping it gives them back.
pub(crate) struct Charge {
    budget: Arc<Budget>,
    uid: u32,
    bytes: usize,
}

impl Budget {
    /// `share`: bytes of one uid.
    pub fn new(share: usize) -> Arc<Self> {
        Arc::new(Self {
            share,
            used: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    /// Takes bytes of the uid's share; waits at most `timeout` until they are free.
    pub fn take(self: &Arc<Self>, uid: u32, bytes: usize, timeout: Duration) -> Option<Charge> {
        let is_short = |used: &mut BTreeMap<u32, usize>| {
            used.get(&uid).copied().unwrap_or(0) + bytes > self.share
        };
        let (mut used, waited) = self
            .freed
            .wait_timeout_while(self.lock(), timeout, is_short)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        *used.entry(uid).or_default() += bytes;
        Some(Charge {
            budget: Arc::clone(self),
            uid,
            bytes,
        })
    }

    fn give_back(&self, uid: u32, bytes: usize) {
        let mut used = self.lock();
        if let Some(own) = used.get_mut(&uid) {
            *own -= bytes;
            if *own == 0 {
                used.remove(&uid);
            }
        }
        self.freed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Charge {
    /// Gives back all but `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.bytes -= surplus;
        self.budget.give_back(self.uid, surplus);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.uid, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn each_uid_has_its_share() {
        let budget = Budget::new(10);
        let mut first = budget.take(1, 6, NOW).unwrap();
        assert!(budget.take(1, 5, NOW).is_none());
        let other = budget.take(2, 10, NOW).unwrap();
        first.shrink(5);
        let second = budget.take(1, 5, NOW).unwrap();
        assert!(budget.take(1, 1, NOW).is_none());
        drop((first, second, other));
        assert!(budget.lock().is_empty());
    }

    #[test]
    fn a_waiter_goes_on_when_bytes_are_given_back() {
        let budget = Budget::new(10);
        let held = budget.take(1, 10, NOW).unwrap();
        let waiting = Arc::clone(&budget);
        let waiter = std::thread::spawn(move || {
            let charge = waiting.take(1, 10, Duration::from_secs(60));
            charge.is_some()
        });
        drop(held);
        assert!(waiter.join().unwrap());
    }
}
