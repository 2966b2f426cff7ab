// SPDX-License-Identifier: Apache-2.0
//! When an element announces its own addresses, so that neighbors replace an old Ethernet address.
use core::net::Ipv4Addr;

use click_core::value::Prefix;

use crate::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;
/// Announcements at the start, and the time between them (RFC 5227, section 1.1; RFC 4861, section 10).
const FIRST_ROUNDS: u8 = 3;
const FIRST_INTERVAL_NS: u64 = 2 * SECOND_NS;
/// Time between later announcements: a guest on a process host does not notice that it was resumed.
const INTERVAL_NS: u64 = 60 * SECOND_NS;
/// Addresses that one call announces, and all of them.
const MAX_AT_ONCE: u32 = 64;
const MAX: u32 = 1024;
const PAUSE_NS: u64 = SECOND_NS / 100;

/// The times of announcements.
#[derive(Clone, Copy, Default)]
pub struct Schedule {
    rounds: u8,
    due_ns: u64,
}

impl Schedule {
    /// True if a round is due.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.due_ns <= now_ns
    }

    /// When the next round is due.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Begins again, as at the start.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// A round ended.
    pub fn end_round(&mut self, now_ns: u64) {
        self.rounds = self.rounds.saturating_add(1);
        let pause_ns = match self.rounds < FIRST_ROUNDS {
            true => FIRST_INTERVAL_NS,
            false => INTERVAL_NS,
        };
        self.due_ns = now_ns.saturating_add(pause_ns);
    }
}

/// IPv4 addresses that are announced, at most 1,024.
#[derive(Default)]
pub struct Addresses {
    prefixes: Vec<Prefix>,
    schedule: Schedule,
    /// Addresses of this round that were announced.
    done: u32,
}

impl Addresses {
    /// The addresses of some networks.
    pub fn new(prefixes: Vec<Prefix>) -> Self {
        Self {
            prefixes,
            ..Self::default()
        }
    }

    /// Begins again, as at the start.
    pub fn restart(&mut self) {
        self.schedule.restart();
        self.done = 0;
    }

    /// Continues where `old` is, if that announces the same addresses.
    pub fn take_from(&mut self, old: &Self) {
        if self.prefixes == old.prefixes {
            (self.schedule, self.done) = (old.schedule, old.done);
        }
    }

    /// When there is something to announce; `None` if there never is.
    pub fn due_ns(&self) -> Option<u64> {
        (!self.prefixes.is_empty()).then(|| self.schedule.due_ns())
    }

    fn all(&self) -> impl Iterator<Item = Ipv4Addr> {
        let of = |prefix: &Prefix| {
            let (address, mask) = (u32::from(prefix.address), u32::from(prefix.mask));
            let first = address & mask;
            (first..=first | !mask).map(Ipv4Addr::from)
        };
        self.prefixes.iter().flat_map(of).take(MAX as usize)
    }

    /// The addresses to announce now.
    pub fn due(&mut self, now_ns: u64) -> Vec<Ipv4Addr> {
        if self.prefixes.is_empty() || !self.schedule.is_due(now_ns) {
            return Vec::new();
        }
        let left = self.all().skip(self.done as usize);
        let now: Vec<Ipv4Addr> = left.take(MAX_AT_ONCE as usize).collect();
        self.done += MAX_AT_ONCE;
        if now.len() < MAX_AT_ONCE as usize {
            self.done = 0;
            self.schedule.end_round(now_ns);
        } else {
            self.schedule.due_ns = now_ns.saturating_add(PAUSE_NS);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_network_is_announced_in_parts() {
        let prefix = Prefix {
            address: Ipv4Addr::new(203, 0, 113, 0),
            mask: Ipv4Addr::new(255, 255, 255, 128),
        };
        let mut addresses = Addresses::new(vec![prefix]);
        let mut seen = Vec::new();
        let mut now_ns = 5;
        for _ in 0..3 {
            seen.extend(addresses.due(now_ns));
            now_ns = addresses.due_ns().unwrap();
        }
        assert_eq!(seen.len(), 128);
        assert_eq!(seen[127], Ipv4Addr::new(203, 0, 113, 127));
        assert_eq!(now_ns, 5 + 2 * PAUSE_NS + FIRST_INTERVAL_NS);
    }

    #[test]
    fn three_rounds_are_soon_and_later_ones_each_minute() {
        let mut schedule = Schedule::default();
        let mut due = Vec::new();
        for _ in 0..5 {
            due.push(schedule.due_ns() / SECOND_NS);
            schedule.end_round(schedule.due_ns());
        }
        assert_eq!(due, [0, 2, 4, 64, 124]);
    }
}
