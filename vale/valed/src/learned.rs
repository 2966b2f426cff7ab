// SPDX-License-Identifier: Apache-2.0
//! The stations behind uplinks, learned from the frames that enter there.
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use rustc_hash::FxHasher;
use vale_proto::Mac;

use crate::limit::Nanoseconds;

/// Stations of a switch: 64 KiB, which the allocator returns without a system call.
const STATIONS: usize = 2048;
/// Places that one station may take.
const WAYS: usize = 4;
/// The switch forgets a station after this silence.
const AGE: Nanoseconds = 300_000_000_000;

#[derive(Clone, Copy)]
struct Station {
    segment: u32,
    mac: Mac,
    port: usize,
    seen: Nanoseconds,
}

/// A new station takes the place of the one that is silent for longest among four, so strangers who
/// invent addresses cost no memory.
pub struct Learned {
    stations: Box<[Option<Station>]>,
    /// Keeps strangers from choosing addresses that share their places.
    seed: u64,
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            stations: vec![None; STATIONS].into(),
            seed: RandomState::new().hash_one(0u8),
        }
    }
}

impl Learned {
    pub fn learn(&mut self, segment: u32, mac: Mac, port: usize, seen: Nanoseconds) {
        let order = |place: &Option<Station>| match place {
            Some(s) if s.segment == segment && s.mac == mac => 0,
            Some(s) => s.seen.saturating_add(2),
            None => 1,
        };
        let start = self.start(segment, mac);
        let places = self.stations[start..start + WAYS].iter_mut();
        if let Some(place) = places.min_by_key(|place| order(place)) {
            *place = Some(Station {
                segment,
                mac,
                port,
                seen,
            });
        }
    }

    /// The port behind which the station was seen last.
    pub fn find(&self, segment: u32, mac: Mac, now: Nanoseconds) -> Option<usize> {
        let start = self.start(segment, mac);
        let mut places = self.stations[start..start + WAYS].iter().flatten();
        let found = places.find(|s| s.segment == segment && s.mac == mac)?;
        (now.saturating_sub(found.seen) <= AGE).then_some(found.port)
    }

    /// Forgets the stations behind a port that is gone.
    pub fn forget(&mut self, port: usize) {
        for place in &mut self.stations {
            if place.is_some_and(|s| s.port == port) {
                *place = None;
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
        let mut table = Learned::default();
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
        let mut table = Learned::default();
        for n in 0..100_000u32 {
            let [a, b, c, d] = n.to_be_bytes();
            table.learn(1, Mac([2, 1, a, b, c, d]), 1, n.into());
        }
        assert_eq!(table.stations.len(), STATIONS);
        table.learn(1, A, 2, 100_000);
        assert_eq!(table.find(1, A, 100_000), Some(2));
    }
}
