// SPDX-License-Identifier: Apache-2.0
//! Bounds what a guest can make valed do by itself: log lines, requests to the Xen store.
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(60);

/// Counts events in periods of a minute.
#[derive(Debug)]
pub struct Pace {
    most: u32,
    since: Instant,
    count: u32,
}

impl Pace {
    /// Allows `most` events a minute.
    pub fn new(most: u32) -> Self {
        let (since, count) = (Instant::now(), 0);
        Self { most, since, count }
    }

    /// Counts an event. False beyond `most`, until [`Self::end`].
    pub fn allows(&mut self, now: Instant) -> bool {
        if now >= self.end() {
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= self.most
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
    fn each_period_allows_as_many_events() {
        let mut pace = Pace::new(40);
        let start = pace.since;
        for period in 0..3 {
            let now = start + PERIOD * period;
            for event in 0..40 {
                assert!(pace.allows(now), "{period}: {event}");
            }
            for _ in 0..1000 {
                assert!(!pace.allows(now + PERIOD - Duration::from_millis(1)));
            }
            assert_eq!(pace.end(), now + PERIOD);
        }
    }
}
