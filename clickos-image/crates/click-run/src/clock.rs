// SPDX-License-Identifier: Apache-2.0
//! The time a router runs in: the machine's, or one that passes only while there is nothing to do.
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where simulated time begins.
const SIMULATED_START_NS: u64 = 1_000_000_000 * 1_000_000_000;
/// How long to wait when no timer says anything else.
const LONGEST_WAIT_NS: u64 = 100_000_000;
/// How long to wait while somebody may ask something.
const WATCHED_WAIT_NS: u64 = 2_000_000;

/// A clock.
pub enum Clock {
    /// The machine's.
    Real,
    /// A simulated one, at this many nanoseconds since the epoch.
    Simulated(u64),
}

impl Clock {
    /// The machine's clock, or a simulated one.
    pub fn new(simulated: bool) -> Self {
        if simulated {
            Self::Simulated(SIMULATED_START_NS)
        } else {
            Self::Real
        }
    }

    /// Nanoseconds since the epoch.
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::Simulated(now) => *now,
            Self::Real => {
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
            }
        }
    }

    /// Waits until a timer expires, or `watched` a little while; returns false if there is none and never will be.
    pub fn wait(&mut self, until_ns: Option<u64>, watched: bool) -> bool {
        match (self, until_ns) {
            (Self::Simulated(_), None) => false,
            (Self::Simulated(now), Some(until)) => {
                *now = until.max(*now);
                true
            }
            (clock @ Self::Real, until) => {
                let now = clock.now_ns();
                let wait = until
                    .map_or(LONGEST_WAIT_NS, |u| u.saturating_sub(now))
                    .min(if watched {
                        WATCHED_WAIT_NS
                    } else {
                        LONGEST_WAIT_NS
                    });
                sleep(Duration::from_nanos(wait));
                true
            }
        }
    }
}
