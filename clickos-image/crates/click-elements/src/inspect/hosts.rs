// SPDX-License-Identifier: Apache-2.0
//! How much each host holds of what all share, so that who holds most gives way.
use super::segment::Origin;
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

    /// The place of a host. One host may have all addresses of a /64 of IPv6.
    pub fn place(&self, address: u128, origin: Origin) -> Place {
        let host = match address >> 32 {
            MAPPED => address as u64 & 0xffff_ffff,
            _ => (address >> 64) as u64,
        };
        let zone = u64::from(origin.zone) << 1 | origin.input as u64 & 1;
        let factors = [host ^ self.key, zone ^ self.key.rotate_left(32)];
        let [first, second] = factors.map(|factor| u128::from(factor) * u128::from(self.key | 1));
        let mixed = (first ^ first >> 64) as u64 ^ (second >> 17 ^ second >> 81) as u64;
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

/// What the flows of a VLAN hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    pub flows: u32,
    pub bytes: usize,
}

/// What each VLAN holds of what all share: its senders may forge any number of hosts.
#[derive(Default)]
pub struct Vlans(Vec<Held>);

impl Vlans {
    pub fn get(&self, vlan: u16) -> Held {
        let held = self.0.get(usize::from(vlan));
        held.copied().unwrap_or_default()
    }

    pub fn get_mut(&mut self, vlan: u16) -> &mut Held {
        let place = usize::from(vlan);
        if place >= self.0.len() {
            self.0.resize(place + 1, Held::default());
        }
        &mut self.0[place]
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
        let origin = Origin {
            input: 0,
            zone: 0,
            vlan: 0,
        };
        for n in 0..4096 {
            hosts.add(hosts.place(mapped(0x0a00_0000 + n), origin), 1);
            let network = u128::from(0x2001_0db8_0000_0000 + u64::from(n)) << 64;
            hosts.add(hosts.place(network, origin), 1);
        }
        assert!(hosts.counts.iter().all(|count| *count < 32));
        let same = [1, 2].map(|n| hosts.place(0x2001_0db8 << 96 | n, origin));
        assert_eq!(same[0], same[1], "one network of IPv6");
    }
}
