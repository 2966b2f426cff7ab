// SPDX-License-Identifier: Apache-2.0
//! How often a guest may change its vif's state: each change costs a log line, requests to the
//! store and sometimes a mapping.
use std::time::{Duration, Instant};

/// Changes of one vif in a period; a start or an end takes two.
pub(super) const CHANGES: u32 = 40;
const PERIOD: Duration = Duration::from_secs(60);

/// The changes of one vif in the current period.
#[derive(Debug)]
pub(super) struct Pace {
    since: Instant,
    changes: u32,
}

impl Pace {
    pub fn new(now: Instant) -> Self {
        Self {
            since: now,
            changes: 0,
        }
    }

    /// Counts a change. False if it is one too many: the vif has to wait until [`Self::end`].
    pub fn allows(&mut self, now: Instant) -> bool {
        if now >= self.end() {
            *self = Self::new(now);
        }
        self.changes = self.changes.saturating_add(1);
        self.changes <= CHANGES
    }

    /// True while the vif has to wait.
    pub fn waits(&self, now: Instant) -> bool {
        self.changes > CHANGES && now < self.end()
    }

    /// The end of the period.
    pub fn end(&self) -> Instant {
        self.since + PERIOD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_takes_so_many_changes_and_the_next_as_many_again() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        for period in 0..3 {
            let now = start + PERIOD * period;
            for change in 0..CHANGES {
                assert!(pace.allows(now), "{period}: {change}");
            }
            assert!(!pace.waits(now));
            for _ in 0..1000 {
                assert!(!pace.allows(now));
            }
            assert!(pace.waits(now) && !pace.waits(pace.end()));
        }
    }
}
