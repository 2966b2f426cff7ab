// SPDX-License-Identifier: Apache-2.0
//! Time since the epoch that never goes back, read without a hypercall.
use xen_sys::clock::{boot_ns, system_ns};

/// The guest's clock. A host that sets its clock back, or another host after a restore, makes it
/// stand still for so long.
#[derive(Debug, Default)]
pub struct Clock {
    last_ns: u64,
}

impl Clock {
    /// Nanoseconds since the epoch.
    pub fn now_ns(&mut self) -> u64 {
        self.last_ns = self.last_ns.max(boot_ns().saturating_add(system_ns()));
        self.last_ns
    }
}

/// The time of [`crate::wait`] that is so many nanoseconds from now.
pub fn deadline_ns(timeout_ns: u64) -> u64 {
    system_ns().saturating_add(timeout_ns)
}
