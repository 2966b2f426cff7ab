// SPDX-License-Identifier: Apache-2.0
//! ARP entries in the order of their age, and the packets that wait for an answer. Bounded in both.
use alloc::collections::{BTreeMap, BTreeSet};

use click_wire::ether;

use crate::prelude::*;

/// Queries for one address are at least this far apart.
pub const QUERY_INTERVAL_NS: u64 = 100_000_000;

/// What is known of an address.
#[derive(Default)]
pub struct Entry {
    pub mac: Option<[u8; 6]>,
    /// When it was last confirmed, or first asked for.
    pub live_ns: u64,
    pub queried_ns: Option<u64>,
    pub waiting: Batch,
}

/// What a table may hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// How long an entry is good; 0 is forever.
    pub timeout_ns: u64,
    /// Packets that wait.
    pub packets: usize,
    /// Packets that wait for one address.
    pub packets_per_entry: usize,
    /// Entries.
    pub entries: usize,
}

/// Entries in the order of their age, and the packets that wait.
#[derive(Default)]
pub struct Table {
    pub by_ip: BTreeMap<Ipv4Addr, Entry>,
    by_age: BTreeSet<(u64, Ipv4Addr)>,
    pub waiting: usize,
    bounds: Bounds,
    pub drops: u64,
}

impl Table {
    /// An empty table.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Takes over everything `old` holds.
    pub fn take_from(&mut self, old: &mut Self) {
        let bounds = self.bounds;
        *self = Self {
            bounds,
            ..core::mem::take(old)
        };
    }

    pub fn known(&self, ip: Ipv4Addr, now: u64) -> Option<[u8; 6]> {
        let entry = self.by_ip.get(&ip)?;
        let fresh = self.bounds.timeout_ns == 0
            || now.saturating_sub(entry.live_ns) < self.bounds.timeout_ns;
        entry.mac.filter(|_| fresh)
    }

    pub fn remove(&mut self, ip: Ipv4Addr) {
        if let Some(entry) = self.by_ip.remove(&ip) {
            self.by_age.remove(&(entry.live_ns, ip));
            self.waiting -= entry.waiting.len();
            self.drops += entry.waiting.len() as u64;
        }
    }

    /// The entry of an address; when the table is full the oldest one makes room.
    pub fn ensure(&mut self, ip: Ipv4Addr, now: u64) -> &mut Entry {
        if !self.by_ip.contains_key(&ip) {
            while self.by_ip.len() >= self.bounds.entries.max(1) {
                let Some((_, oldest)) = self.by_age.first().copied() else {
                    break;
                };
                self.remove(oldest);
            }
            self.by_age.insert((now, ip));
        }
        self.by_ip.entry(ip).or_insert_with(|| Entry {
            live_ns: now,
            ..Entry::default()
        })
    }

    /// Notes the address of a host; returns the packets that waited for it.
    pub fn insert(&mut self, ip: Ipv4Addr, mac: [u8; 6], now: u64) -> Batch {
        let entry = self.ensure(ip, now);
        let before = core::mem::replace(&mut entry.live_ns, now);
        (entry.mac, entry.queried_ns) = (Some(mac), None);
        let ready = core::mem::take(&mut entry.waiting);
        self.by_age.remove(&(before, ip));
        self.by_age.insert((now, ip));
        self.waiting -= ready.len();
        ready
    }

    /// Lets a packet wait for an address. A full table drops what waited longest.
    pub fn wait(&mut self, ip: Ipv4Addr, packet: Packet, now: u64) {
        if self
            .by_ip
            .get(&ip)
            .is_some_and(|e| e.waiting.len() >= self.bounds.packets_per_entry)
        {
            self.drops += 1;
            return;
        }
        while self.waiting >= self.bounds.packets {
            let oldest = self
                .by_age
                .iter()
                .map(|(_, ip)| *ip)
                .find(|ip| !self.by_ip[ip].waiting.is_empty());
            let Some(entry) = oldest.and_then(|ip| self.by_ip.get_mut(&ip)) else {
                break;
            };
            entry.waiting.pop_front();
            self.waiting -= 1;
            self.drops += 1;
        }
        self.ensure(ip, now).waiting.push_back(packet);
        self.waiting += 1;
    }

    /// Whether it is time to ask for an address (again); if so, that is noted.
    pub fn may_query(&mut self, ip: Ipv4Addr, now: u64) -> bool {
        let entry = self.ensure(ip, now);
        let due = entry
            .queried_ns
            .is_none_or(|at| now.saturating_sub(at) >= QUERY_INTERVAL_NS);
        if due {
            entry.queried_ns = Some(now);
        }
        due
    }

    pub fn text(&self, now: u64) -> String {
        let line = |(live, ip): &(u64, Ipv4Addr)| {
            let known = u8::from(self.known(*ip, now).is_some());
            let mac = EtherAddr(self.by_ip[ip].mac.unwrap_or(ether::BROADCAST));
            let age_ms = now.saturating_sub(*live) / 1_000_000;
            format!(
                "{ip} {known} {mac} {}.{:03}\n",
                age_ms / 1000,
                age_ms % 1000
            )
        };
        self.by_age.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use click_core::PacketPool;

    fn table(entries: usize, packets: usize) -> Table {
        Table::new(Bounds {
            timeout_ns: 100,
            packets,
            packets_per_entry: 2,
            entries,
        })
    }

    fn ip(n: u32) -> Ipv4Addr {
        Ipv4Addr::from(n)
    }

    #[test]
    fn the_oldest_entry_makes_room() {
        let mut t = table(3, 9);
        for n in 1..=4 {
            t.insert(ip(n), [1; 6], u64::from(n));
        }
        assert_eq!(t.by_ip.len(), 3);
        assert_eq!((t.known(ip(1), 5), t.known(ip(4), 5)), (None, Some([1; 6])));
        assert_eq!(t.known(ip(4), 104), None, "entries expire");
        assert_eq!(t.by_age.len(), 3);
    }

    #[test]
    fn waiting_packets_are_bounded_and_come_out_in_order() {
        let (mut t, mut pool) = (table(9, 3), PacketPool::new(100));
        for n in 1..=5u8 {
            let packet = pool.packet_from(&[n]).unwrap();
            t.wait(ip(u32::from(n % 2) + 1), packet, 1);
        }
        assert_eq!(
            (
                t.waiting,
                t.by_ip.values().map(|e| e.waiting.len()).sum::<usize>()
            ),
            (3, 3)
        );
        assert_eq!(t.drops, 2);
        let ready: Vec<u8> = t
            .insert(ip(2), [2; 6], 2)
            .into_iter()
            .map(|p| p.data()[0])
            .collect();
        assert!(ready.is_sorted());
        t.remove(ip(1));
        assert_eq!((t.waiting, pool.in_use()), (0, 0));
    }

    #[test]
    fn queries_are_limited() {
        let mut t = table(9, 9);
        assert!(t.may_query(ip(1), 5));
        assert!(!t.may_query(ip(1), 5 + QUERY_INTERVAL_NS - 1));
        assert!(t.may_query(ip(1), 5 + QUERY_INTERVAL_NS));
    }
}
