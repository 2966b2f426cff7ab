// SPDX-License-Identifier: Apache-2.0
//! Bounds the log lines and requests to the Xen store that a guest or a client can cause.
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(60);

/// Counts events in periods of a minute.
#[derive(Debug)]
pub struct EventLimit {
    limit: u32,
    since: Instant,
    count: u32,
}

impl EventLimit {
    /// Allows `limit` events a minute.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        let (since, count) = (Instant::now(), 0);
        Self {
            limit,
            since,
            count,
        }
    }

    /// Counts an event. False beyond `limit`, until [`Self::end`].
    pub fn allows(&mut self, now: Instant) -> bool {
        if now >= self.end() {
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= self.limit
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
    fn each_period_allows_the_limit() {
        let mut rate = EventLimit::new(40);
        let start = rate.since;
        for period in 0..3 {
            let now = start + PERIOD * period;
            for event in 0..40 {
                assert!(rate.allows(now), "{period}: {event}");
            }
            for _ in 0..1000 {
                assert!(!rate.allows(now + PERIOD - Duration::from_millis(1)));
            }
            assert_eq!(rate.end(), now + PERIOD);
        }
    }
}
