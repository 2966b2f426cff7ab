// SPDX-License-Identifier: Apache-2.0
//! Time since the epoch that never goes back and never stands still, read without a hypercall.
//!
//! `docs/adr/0024-time.md` says what it does across a save, a pause and a host that sets its clock.
use xen_sys::clock::{boot_ns, system_ns};

/// A clock that is ahead of the host's loses a 1024th of the time that passes.
const SLEW_SHIFT: u32 = 10;

/// The guest's clock: the host's wall clock. When the host's goes back, the guest's continues, a
/// little slower, until the host's has caught up.
#[derive(Debug, Default)]
pub struct Clock {
    /// The last reading.
    shown_ns: u64,
    /// Nanoseconds since the host's boot at that moment.
    system_ns: u64,
}

impl Clock {
    /// Nanoseconds since the epoch.
    pub fn now_ns(&mut self) -> u64 {
        self.at(boot_ns(), system_ns())
    }

    /// To be called after a restore: the host, which may be another one, counts from its own boot.
    pub fn rebase(&mut self) {
        self.system_ns = system_ns();
    }

    fn at(&mut self, boot_ns: u64, system_ns: u64) -> u64 {
        let passed = system_ns.saturating_sub(self.system_ns);
        let slowed = self
            .shown_ns
            .saturating_add(passed - (passed >> SLEW_SHIFT));
        self.system_ns = system_ns;
        self.shown_ns = slowed.max(boot_ns.saturating_add(system_ns));
        self.shown_ns
    }
}

/// The time of [`crate::wait`] that is `ns` nanoseconds from now.
pub fn deadline_ns(timeout_ns: u64) -> u64 {
    system_ns().saturating_add(timeout_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const BOOT: u64 = 1_700_000_000 * SECOND;

    #[test]
    fn it_shows_the_hosts_clock() {
        let mut clock = Clock::default();
        assert_eq!(clock.at(BOOT, SECOND), BOOT + SECOND);
        assert_eq!(clock.at(BOOT, 5 * SECOND), BOOT + 5 * SECOND);
        assert_eq!(clock.at(BOOT + SECOND, 5 * SECOND), BOOT + 6 * SECOND);
    }

    #[test]
    fn a_host_that_sets_its_clock_back_does_not_stop_it() {
        let mut clock = Clock::default();
        let before = clock.at(BOOT, SECOND);
        let hour_ago = BOOT - 3600 * SECOND;
        let after = clock.at(hour_ago, SECOND + 1024);
        assert_eq!(after, before + 1023);
        for second in 2..12 {
            clock.at(hour_ago, second * SECOND + 1024);
        }
        let passed = clock.shown_ns - after;
        assert!((9_990_000_000..=10 * SECOND).contains(&passed), "{passed}");
    }

    #[test]
    fn it_meets_the_hosts_clock_again() {
        let mut clock = Clock::default();
        clock.at(BOOT, SECOND);
        let back = BOOT - 1_000_000;
        assert!(clock.at(back, 2 * SECOND) > back + 2 * SECOND);
        assert_eq!(clock.at(back, 4 * SECOND), back + 4 * SECOND);
    }

    #[test]
    fn a_domain_without_a_wall_clock_has_time() {
        let mut clock = Clock::default();
        let before = clock.at(BOOT, SECOND);
        assert_eq!(clock.at(0, SECOND + 1024), before + 1023);
    }

    #[test]
    fn another_host_counts_from_its_own_boot() {
        let mut clock = Clock::default();
        let shown = clock.at(BOOT, SECOND);
        let year = 365 * 24 * 3600 * SECOND;
        clock.system_ns = year; // As `rebase` does on the new host.
        let boot = BOOT - year - 5 * SECOND;
        assert_eq!(clock.at(boot, year + 1024), shown + 1023);
    }
}
