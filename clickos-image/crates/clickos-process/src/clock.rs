// SPDX-License-Identifier: Apache-2.0
//! Time since the epoch that never goes back, read without a system call.
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The guest's clock: the host's at the start, the monotonic clock since.
pub(crate) struct Clock {
    start: Instant,
    start_ns: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            start: Instant::now(),
            start_ns: nanoseconds(epoch),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.start_ns
            .saturating_add(nanoseconds(self.start.elapsed()))
    }
}

fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
