// SPDX-License-Identifier: Apache-2.0
//! When the pool of guests is to be filled, and with what; `lifecycle::fill` fills it.

mod demand;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::PoolEntry;
use crate::guest::Shape;
use demand::Demand;

/// Time without creations before cosmosd fills the pool, since filling slows creations down.
const QUIET: Duration = Duration::from_secs(1);
/// After a failure, and to see images that have come meanwhile.
pub const RETRY: Duration = Duration::from_secs(10);

/// When the pool is to be filled, and with what.
#[derive(Default)]
pub struct Pool {
    pub entries: Vec<PoolEntry>,
    /// Most memory of guests that only demand keeps, in MiB; 0 for none.
    demand_mib: u32,
    demand: Mutex<Demand>,
    creations: Mutex<Creations>,
    used: Condvar,
}

#[derive(Default)]
struct Creations {
    under_way: usize,
    last: Option<Instant>,
}

/// A creation under way.
pub struct Creating<'a>(&'a Pool);

impl Drop for Creating<'_> {
    fn drop(&mut self) {
        let mut creations = self.0.lock();
        creations.under_way -= 1;
        creations.last = Some(Instant::now());
        self.0.used.notify_all();
    }
}

impl Pool {
    pub fn new(entries: Vec<PoolEntry>, demand_mib: u32) -> Self {
        Self {
            entries,
            demand_mib,
            ..Self::default()
        }
    }

    pub fn is_wanted(&self) -> bool {
        !self.entries.is_empty() || self.demand_mib > 0
    }

    /// Notes that a guest was made which one of this shape could have become.
    pub fn note_shape(&self, shape: Shape) {
        if self.demand_mib > 0 {
            self.demand().note(shape, Instant::now());
        }
    }

    /// The guests to keep for what was created lately, within their memory.
    pub fn demanded(&self) -> Vec<(Shape, usize)> {
        self.demand().wanted(self.demand_mib, Instant::now())
    }

    fn demand(&self) -> MutexGuard<'_, Demand> {
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody creates a guest as long as the result lives.
    pub fn note_creation(&self) -> Creating<'_> {
        self.lock().under_way += 1;
        Creating(self)
    }

    /// Waits for a time of [`QUIET`] without creations.
    pub fn wait_quiet(&self) {
        let mut creations = self.lock();
        while let Some(left) = creations.until_quiet() {
            let waited = self.used.wait_timeout(creations, left);
            creations = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until somebody has created a guest, or for some time.
    pub fn wait_used(&self) {
        let waited = self.used.wait_timeout(self.lock(), RETRY);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, Creations> {
        self.creations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Creations {
    /// Least time until [`QUIET`] passed without creations.
    fn until_quiet(&self) -> Option<Duration> {
        match (self.under_way, self.last) {
            (0, None) => None,
            (0, Some(last)) => QUIET
                .checked_sub(last.elapsed())
                .filter(|left| !left.is_zero()),
            _ => Some(RETRY), // Its end wakes.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_filled_while_somebody_creates() {
        let pool = Pool::default();
        let until = || pool.lock().until_quiet();
        assert_eq!(until(), None);
        let creating = pool.note_creation();
        assert_eq!(until(), Some(RETRY));
        drop(creating);
        assert!(until().is_some_and(|left| left <= QUIET));
        pool.lock().last = Instant::now().checked_sub(QUIET);
        assert_eq!(until(), None);
    }
}
