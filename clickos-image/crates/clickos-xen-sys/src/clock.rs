// SPDX-License-Identifier: Apache-2.0
//! Time, read from the shared page and the time stamp counter without a hypercall.
//!
//! `struct vcpu_time_info` and the wall clock of `xen.h`: Xen makes a version odd while it writes.
use crate::abi::shared_info as at;
use crate::cpu;
use crate::shared::Shared;
use crate::state::shared_info;

/// Xen's description of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    counter: u64,
    system_ns: u64,
    multiplier: u32,
    shift: i8,
}

impl Scale {
    fn read(page: &Shared) -> Self {
        consistent(page, at::TIME, || Self {
            counter: page.read(at::TIME + 8),
            system_ns: page.read(at::TIME + 16),
            multiplier: page.read(at::TIME + 24),
            shift: page.read::<u8>(at::TIME + 28) as i8,
        })
    }

    fn system_ns(&self, counter: u64) -> u64 {
        let delta = counter.saturating_sub(self.counter);
        let delta = match self.shift {
            shift @ 0..64 => delta << shift,
            shift => delta
                .checked_shr(u32::from(shift.unsigned_abs()))
                .unwrap_or(0),
        };
        let scaled = (u128::from(delta) * u128::from(self.multiplier)) >> 32;
        self.system_ns.saturating_add(scaled as u64)
    }
}

/// Reads until the version says that Xen did not write meanwhile.
fn consistent<T>(page: &Shared, version_at: usize, read: impl Fn() -> T) -> T {
    loop {
        let before: u32 = page.acquire(version_at);
        let value = read();
        core::sync::atomic::fence(core::sync::atomic::Ordering::Acquire);
        if before & 1 == 0 && page.read::<u32>(version_at) == before {
            return value;
        }
    }
}

/// Nanoseconds since the host's boot.
pub fn system_ns() -> u64 {
    let page = shared_info();
    loop {
        let scale = Scale::read(&page);
        let now = scale.system_ns(cpu::counter());
        if Scale::read(&page) == scale {
            return now;
        }
    }
}

/// Nanoseconds between the epoch and the host's boot.
pub fn boot_ns() -> u64 {
    let page = shared_info();
    consistent(&page, at::WALL_VERSION, || {
        let low: u32 = page.read(at::WALL_SECONDS);
        let high: u32 = page.read(at::WALL_SECONDS_HIGH);
        let seconds = u64::from(high) << 32 | u64::from(low);
        let nanoseconds: u32 = page.read(at::WALL_NANOSECONDS);
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(u64::from(nanoseconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_scaled() {
        let scale = Scale {
            counter: 1000,
            system_ns: 5_000_000_000,
            multiplier: 1 << 31,
            shift: -1,
        };
        assert_eq!(scale.system_ns(5000), 5_000_001_000); // 4000 / 2 / 2
        assert_eq!(scale.system_ns(999), 5_000_000_000);
        let quick = Scale { shift: 1, ..scale };
        assert_eq!(quick.system_ns(5000), 5_000_004_000);
        let wild = Scale {
            shift: -128,
            ..scale
        };
        assert_eq!(wild.system_ns(u64::MAX), 5_000_000_000);
    }
}
