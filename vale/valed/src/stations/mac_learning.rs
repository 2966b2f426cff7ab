// SPDX-License-Identifier: Apache-2.0
//! The stations behind uplinks, learned from the frames that enter there.
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHasher;
use vale_proto::Mac;

use crate::clock::Nanoseconds;

/// Stations of a switch: 48 KiB, which the allocator returns without a system call.
const STATIONS: usize = 2048;
/// Places that one station may take.
const WAYS: usize = 4;
/// The switch forgets a station behind an uplink after this silence.
const AGE: Nanoseconds = 300_000_000_000;
/// A frame that guests pass around in a circle is back within this time.
const CIRCLE: Nanoseconds = 1_000_000_000;

/// A station, or none. A reader that meets a writer finds no station.
#[derive(Default)]
struct MacEntry {
    /// The address, and the port plus 1; 0 without a station.
    station: AtomicU64,
    segment: AtomicU64,
    seen: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Station {
    /// As in [`MacEntry`].
    word: u64,
    segment: u32,
    seen: Nanoseconds,
}

impl Station {
    fn new(segment: u32, mac: Mac, port: usize, seen: Nanoseconds) -> Self {
        let word = number(mac) << 16 | (port as u64 + 1);
        Self {
            word,
            segment,
            seen,
        }
    }

    fn is(self, segment: u32, mac: Mac) -> bool {
        self.segment == segment && self.word >> 16 == number(mac)
    }

    fn port(self) -> usize {
        (self.word & 0xffff) as usize - 1
    }
}

fn number(mac: Mac) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

impl MacEntry {
    fn load(&self) -> Option<Station> {
        let word = self.station.load(Ordering::Acquire);
        if word == 0 {
            return None;
        }
        let segment = self.segment.load(Ordering::Acquire) as u32;
        let seen = self.seen.load(Ordering::Acquire);
        let is_whole = self.station.load(Ordering::Acquire) == word;
        is_whole.then_some(Station {
            word,
            segment,
            seen,
        })
    }

    fn store(&self, station: Station) {
        let old = self.load();
        let is_known =
            old.is_some_and(|old| (old.word, old.segment) == (station.word, station.segment));
        if !is_known {
            self.station.store(0, Ordering::Release);
            self.segment
                .store(station.segment.into(), Ordering::Release);
        }
        self.seen.store(station.seen, Ordering::Release);
        if !is_known {
            self.station.store(station.word, Ordering::Release);
        }
    }
}

/// The secret seed of a table's places. Tests have the same one each time.
pub fn table_seed() -> u64 {
    if cfg!(test) {
        30
    } else {
        RandomState::new().hash_one(0u8)
    }
}

/// A new station takes the place of the one that is silent for longest among four, so strangers who
/// invent addresses cost no memory. All workers of a switch share the table.
pub struct MacLearning {
    stations: Box<[MacEntry]>,
    /// The table forgets a station after this silence.
    age: Nanoseconds,
    /// Keeps strangers from choosing addresses that share their places.
    seed: u64,
}

impl Default for MacLearning {
    fn default() -> Self {
        Self {
            stations: (0..STATIONS).map(|_| MacEntry::default()).collect(),
            age: AGE,
            seed: table_seed(),
        }
    }
}

/// The stations that sent a moment ago.
pub struct SharedLearning(MacLearning);

impl Default for SharedLearning {
    fn default() -> Self {
        Self(MacLearning {
            age: CIRCLE,
            ..MacLearning::default()
        })
    }
}

impl std::ops::Deref for SharedLearning {
    type Target = MacLearning;

    fn deref(&self) -> &MacLearning {
        &self.0
    }
}

impl MacLearning {
    pub fn learn(&self, segment: u32, mac: Mac, port: usize, seen: Nanoseconds) {
        let order = |place: &MacEntry| match place.load() {
            Some(s) if s.is(segment, mac) => 0,
            Some(s) => s.seen.saturating_add(2),
            None => 1,
        };
        let start = self.start(segment, mac);
        let places = self.stations[start..start + WAYS].iter();
        if let Some(place) = places.min_by_key(|place| order(place)) {
            place.store(Station::new(segment, mac, port, seen));
        }
    }

    /// The port behind which the station was seen last. Two workers that write one place at once may
    /// mix two stations: the caller checks the segment of the port.
    pub fn find(&self, segment: u32, mac: Mac, now: Nanoseconds) -> Option<usize> {
        let start = self.start(segment, mac);
        let mut places = self.stations[start..start + WAYS]
            .iter()
            .filter_map(MacEntry::load);
        let found = places.find(|s| s.is(segment, mac))?;
        (now.saturating_sub(found.seen) <= self.age).then_some(found.port())
    }

    /// Forgets the stations behind a port that is gone.
    pub fn forget(&self, port: usize) {
        for place in &self.stations {
            if place.load().is_some_and(|s| s.port() == port) {
                place.station.store(0, Ordering::Release);
            }
        }
    }

    fn start(&self, segment: u32, mac: Mac) -> usize {
        let mut hasher = FxHasher::default();
        (self.seed, segment, mac).hash(&mut hasher);
        let mixed = hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed as usize % (STATIONS / WAYS) * WAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_station_is_found_in_its_segment_until_it_is_silent_or_its_port_is_gone() {
        let table = MacLearning::default();
        table.learn(1, A, 7, 0);
        assert_eq!(table.find(1, A, AGE), Some(7));
        assert_eq!(table.find(2, A, 0), None);
        assert_eq!(table.find(1, A, AGE + 1), None);
        table.learn(1, A, 8, 5);
        assert_eq!(table.find(1, A, 5), Some(8), "it moved");
        table.forget(8);
        assert_eq!(table.find(1, A, 5), None);
    }

    #[test]
    fn invented_addresses_take_no_more_memory() {
        let table = MacLearning::default();
        for n in 0..100_000u32 {
            let [a, b, c, d] = n.to_be_bytes();
            table.learn(1, Mac([2, 1, a, b, c, d]), 1, n.into());
        }
        assert_eq!(table.stations.len(), STATIONS);
        table.learn(1, A, 2, 100_000);
        assert_eq!(table.find(1, A, 100_000), Some(2));
    }
}
