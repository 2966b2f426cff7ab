// SPDX-License-Identifier: Apache-2.0
//! The stations and translated flows that a chain saw last. All workers of a switch share them,
//! without a lock.
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustc_hash::FxHasher;
use vale_proto::Mac;

use super::flow::Flow;
use crate::stations::mac_learning::table_seed;

/// Numbers that have one place in a table; a cache line.
const WAYS: usize = 8;
const SETS: usize = 1 << 13;

/// A set of numbers in 512 KiB. A new number replaces an old one if its place is full.
struct Recent {
    /// Keeps senders from choosing numbers that share a place.
    seed: u64,
    words: OnceLock<Box<[AtomicU64]>>,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            seed: table_seed(),
            words: OnceLock::new(),
        }
    }
}

impl Recent {
    fn hash(&self, value: impl Hash) -> u64 {
        let mut hasher = FxHasher::default();
        (self.seed, value).hash(&mut hasher);
        // FxHasher mixes best into the upper bits.
        hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn place(words: &[AtomicU64], hash: u64) -> &[AtomicU64] {
        let set = (hash >> 40) as usize % SETS;
        &words[set * WAYS..][..WAYS]
    }

    /// 0 is no number.
    fn has(&self, hash: u64, word: u64) -> bool {
        let words = self.words.get();
        let has = |words| {
            let mut found = Self::place(words, hash).iter();
            found.any(|found| found.load(Relaxed) == word)
        };
        word != 0 && words.is_some_and(|words| has(words))
    }

    fn clear(&self) {
        let words = self.words.get().into_iter().flatten();
        words.for_each(|word| word.store(0, Relaxed));
    }

    fn note(&self, hash: u64, word: u64) {
        if self.has(hash, word) {
            return;
        }
        let new = || std::iter::repeat_with(AtomicU64::default);
        let words = self.words.get_or_init(|| new().take(SETS * WAYS).collect());
        let place = Self::place(words, hash);
        let free = place.iter().find(|found| found.load(Relaxed) == 0);
        free.unwrap_or(&place[(hash >> 32) as usize % WAYS])
            .store(word, Relaxed);
    }
}

/// The stations whose packets a chain gave to its hops. A hop that passes a packet on may leave the
/// MAC address of the packet's station in it, and no other.
#[derive(Default)]
pub struct Stations(Recent);

impl Stations {
    /// The key of the stations with an IP address.
    pub fn key(&self, address: IpAddr) -> u64 {
        self.0.hash(address)
    }

    pub fn note(&self, key: u64, mac: Mac) {
        self.0.note(key, Self::word(key, mac));
    }

    /// True if the station sent packets from this IP address into the chain.
    pub fn has(&self, key: u64, mac: Mac) -> bool {
        self.0.has(key, Self::word(key, mac))
    }

    /// The whole MAC address, and a part of the key.
    fn word(key: u64, mac: Mac) -> u64 {
        let [a, b, c, d, e, f] = mac.0;
        u64::from_be_bytes([a, b, c, d, e, f, 0, 0]) | key >> 16 & 0xffff
    }
}

/// The flows that a chain translated.
#[derive(Default)]
pub struct Translated(Recent);

impl Translated {
    /// The keys of a flow: by its addresses and ports, and by its addresses alone.
    pub fn keys(&self, flow: Flow) -> [u64; 2] {
        [self.whole(flow), self.ends(flow.source, flow.destination)]
    }

    /// Notes a flow by its keys.
    pub fn note(&self, keys: [u64; 2]) {
        keys.into_iter().for_each(|key| self.0.note(key, key));
    }

    /// True for a packet of such a flow. Fragments and errors have no ports, and go by their addresses.
    pub fn has(&self, flow: Flow) -> bool {
        let key = match (flow.ports, flow.quoted) {
            (_, Some((source, destination))) => self.ends(source, destination),
            (None, None) => self.ends(flow.source, flow.destination),
            (Some(_), None) => self.whole(flow),
        };
        self.0.has(key, key)
    }

    pub fn clear(&self) {
        self.0.clear();
    }

    fn whole(&self, flow: Flow) -> u64 {
        let ends = (flow.source, flow.destination);
        self.0.hash((ends, flow.protocol, flow.ports))
    }

    fn ends(&self, source: IpAddr, destination: IpAddr) -> u64 {
        self.0.hash((source, destination))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    fn mac(n: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, n])
    }

    fn has(stations: &Stations, address: IpAddr, mac: Mac) -> bool {
        stations.has(stations.key(address), mac)
    }

    #[test]
    fn a_station_is_its_addresses_together() {
        let stations = Stations::default();
        assert!(!has(&stations, address(1), mac(1)));
        for n in [1, 2] {
            stations.note(stations.key(address(n)), mac(n as u8));
        }
        for (ip, last, known) in [(1, 1, true), (2, 2, true), (1, 2, false), (2, 1, false)] {
            assert_eq!(has(&stations, address(ip), mac(last)), known, "{ip} {last}");
        }
        assert!(!has(&stations, address(1), Mac([0; 6])));
    }

    #[test]
    fn a_flood_of_stations_forgets_old_ones_and_no_new_ones() {
        let stations = Stations::default();
        for n in 0..200_000 {
            stations.note(stations.key(address(n)), mac(1));
            assert!(has(&stations, address(n), mac(1)), "{n}");
        }
        let left = (0..200_000).filter(|n| has(&stations, address(*n), mac(1)));
        let left = left.count();
        assert!((30_000..=SETS * WAYS).contains(&left), "{left}");
    }

    fn flow(ports: Option<(u16, u16)>) -> Flow {
        Flow {
            source: address(1),
            destination: address(2),
            protocol: 17,
            ports,
            begins: false,
            accepts: false,
            is_error: false,
            quoted: None,
            evades: false,
        }
    }

    #[test]
    fn a_translated_flow_is_its_addresses_and_ports() {
        let translated = Translated::default();
        let noted = flow(Some((5000, 53)));
        assert!(!translated.has(noted));
        translated.note(translated.keys(noted));
        assert!(translated.has(noted) && translated.has(flow(None)));
        let about = Flow {
            source: address(2),
            destination: address(9),
            protocol: 1,
            quoted: Some((address(1), address(2))),
            ..flow(None)
        };
        assert!(translated.has(about));
        let others = [
            flow(Some((5001, 53))),
            noted.reversed(),
            Flow {
                protocol: 6,
                ..noted
            },
            Flow {
                source: address(3),
                ..noted
            },
            Flow {
                destination: address(3),
                ..flow(None)
            },
            Flow {
                quoted: Some((address(3), address(2))),
                ..flow(None)
            },
        ];
        assert!(others.iter().all(|other| !translated.has(*other)));
        translated.clear();
        assert!(!translated.has(noted) && !translated.has(flow(None)));
    }
}
