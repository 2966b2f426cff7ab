// SPDX-License-Identifier: Apache-2.0
//! A router's clock. It is the machine's, or runs faster or slower, or passes only while the router
//! is idle.
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Where simulated time begins, in seconds.
const SIMULATED_START_S: f64 = 1_000_000_000.0;
/// How long to wait when no timer says anything else.
const LONGEST_WAIT_NS: u64 = 100_000_000;

/// A clock. Time warped by F passes F times as fast as the machine's.
pub struct Clock {
    warp: Cell<f64>,
    /// The machine's time and the router's when the warp was set.
    since: Cell<(u64, u64)>,
    /// Time jumps to the next timer.
    simulated: Cell<bool>,
}

/// The machine's time in nanoseconds since the epoch.
fn machine_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates"
)]
fn seconds(s: f64) -> u64 {
    (s * 1e9) as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the conversion saturates, and a factor of 1 is exact"
)]
fn scale(ns: u64, factor: f64) -> u64 {
    if factor == 1.0 {
        ns
    } else {
        (ns as f64 * factor) as u64
    }
}

impl Clock {
    /// The machine's clock, or a simulated one that begins at this second.
    pub fn new(simulated_s: Option<f64>) -> Self {
        let now = machine_ns();
        let start = simulated_s.map_or(now, seconds);
        Self {
            warp: Cell::new(1.0),
            since: Cell::new((now, start)),
            simulated: Cell::new(simulated_s.is_some()),
        }
    }

    /// The default start of simulated time.
    pub fn usual_start_s() -> f64 {
        SIMULATED_START_S
    }

    /// Nanoseconds since the epoch.
    pub fn now_ns(&self) -> u64 {
        let (machine, own) = self.since.get();
        if self.simulated.get() {
            return own;
        }
        let passed = machine_ns().saturating_sub(machine);
        own.saturating_add(scale(passed, self.warp.get()))
    }

    /// How fast time passes; 0 when it is simulated.
    pub fn warp(&self) -> f64 {
        if self.simulated.get() {
            0.0
        } else {
            self.warp.get()
        }
    }

    /// Sets the speed of time from now on, as a factor; 0 simulates time.
    pub fn set_warp(&self, warp: f64) {
        self.since.set((machine_ns(), self.now_ns()));
        self.simulated.set(warp == 0.0);
        if warp > 0.0 {
            self.warp.set(warp);
        }
    }

    /// Waits a little while, or until a timer expires or one of `files` is ready. Returns false if
    /// no timer is set and no file can become ready.
    pub fn wait(&self, until_ns: Option<u64>, files: &[BorrowedFd<'_>]) -> bool {
        match (self.simulated.get(), until_ns) {
            (true, None) if files.is_empty() => return false,
            (true, Some(until)) => {
                let (machine, own) = self.since.get();
                self.since.set((machine, until.max(own)));
                return true;
            }
            _ => {}
        }
        let left = until_ns.map_or(LONGEST_WAIT_NS, |u| u.saturating_sub(self.now_ns()));
        let left = scale(left, 1.0 / self.warp.get()).min(LONGEST_WAIT_NS);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::try_from(left).unwrap_or(0),
        };
        let mut files: Vec<PollFd<'_>> = files
            .iter()
            .map(|f| PollFd::from_borrowed_fd(*f, PollFlags::IN))
            .collect();
        // a signal ends the wait, and that is all there is to do about it
        let _ = poll(&mut files, Some(&timeout));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_jumps_to_timers() {
        let clock = Clock::new(Some(5.0));
        assert_eq!(clock.now_ns(), 5_000_000_000);
        assert!(clock.wait(Some(7_000_000_000), &[]));
        assert_eq!(clock.now_ns(), 7_000_000_000);
        assert!(!clock.wait(None, &[]));
        assert_eq!(clock.warp().to_string(), "0");
    }

    #[test]
    fn time_does_not_jump_when_its_speed_changes() {
        let clock = Clock::new(None);
        let before = clock.now_ns();
        clock.set_warp(1000.0);
        assert!(clock.now_ns() >= before && clock.warp() > 999.0);
        clock.set_warp(0.0);
        let frozen = clock.now_ns();
        assert_eq!(clock.now_ns(), frozen);
        clock.set_warp(1.0);
        assert!(clock.now_ns() >= frozen);
    }
}
