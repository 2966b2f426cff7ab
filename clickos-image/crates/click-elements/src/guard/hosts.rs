// SPDX-License-Identifier: Apache-2.0
//! How much each host holds of what all share, so that who holds most gives way.
use crate::prelude::*;

/// Counts. A keyed hash assigns hosts to them, so few share one, and no host can choose whose.
const COUNTS: usize = 1024;
/// Bits of an address of IPv4 in front of it, as a number of 128 bits.
const MAPPED: u128 = 0xffff;

/// Counts by host.
pub struct Hosts {
    counts: Vec<u32>,
    key: u64,
}

/// The place of a host's count.
pub type Place = u16;

/// What stands for the host with an address where one host may have all addresses of a /64 of IPv6.
pub fn network(address: u128) -> u128 {
    match address >> 32 {
        MAPPED => address,
        _ => address >> 64 << 64,
    }
}

impl Default for Hosts {
    fn default() -> Self {
        Self {
            counts: vec![0; COUNTS],
            key: 0,
        }
    }
}

impl Hosts {
    /// Takes a number that senders do not know; before anything is counted.
    pub fn set_key(&mut self, key: u64) {
        self.key = key;
    }

    /// The place of a host in a zone.
    pub fn place(&self, host: u128, zone: u64) -> Place {
        let factors = [host as u64, (host >> 64) as u64, zone];
        let mixed = factors.into_iter().fold(self.key, |mixed, factor| {
            let product = u128::from(factor ^ mixed.rotate_left(32)) * u128::from(self.key | 1);
            (product ^ product >> 64) as u64
        });
        (mixed >> 24) as Place % COUNTS as Place
    }

    pub fn get(&self, place: Place) -> u32 {
        self.counts[usize::from(place)]
    }

    pub fn add(&mut self, place: Place, count: u32) {
        self.counts[usize::from(place)] += count;
    }

    pub fn remove(&mut self, place: Place, count: u32) {
        let held = &mut self.counts[usize::from(place)];
        *held = held.saturating_sub(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::ends::mapped;

    #[test]
    fn hosts_spread_over_the_counts() {
        let mut hosts = Hosts::default();
        hosts.set_key(0x9e37_79b9_7f4a_7c15);
        for n in 0..4096 {
            hosts.add(hosts.place(mapped(0x0a00_0000 + n), 0), 1);
            let host = u128::from(0x2001_0db8_0000_0000 + u64::from(n)) << 64;
            hosts.add(hosts.place(host, 0), 1);
            hosts.add(hosts.place(host, u64::from(n)), 1);
            hosts.add(hosts.place(0x2001_0db8 << 96 | u128::from(n), 0), 1);
        }
        assert!(hosts.counts.iter().all(|count| *count < 48));
        let same = [1, 2].map(|n| network(0x2001_0db8 << 96 | n));
        assert_eq!(same[0], same[1], "one network of IPv6");
        assert_ne!(network(mapped(1)), network(mapped(2)));
    }
}
