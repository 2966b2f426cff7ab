// SPDX-License-Identifier: Apache-2.0
//! Which public address and port each inside address and port has, whatever the other side is (RFC 4787, REQ-1).
use alloc::collections::BTreeMap;
use core::ops::Range;

use click_core::memory::{RESERVE, has_room};

use super::id::FlowId;
use crate::prelude::*;

/// Bytes that the ends of a flow take at most, with the tree's share.
const FLOW_BYTES: usize = 512;

/// An address and a port.
pub type Endpoint = (Ipv4Addr, u16);

/// The side on which an endpoint is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Inside,
    Public,
}

type Key = (Side, u16, Endpoint);

/// The endpoint on the other side, and the number of flows between the two.
type Bound = (Endpoint, u32);

/// The endpoints of the flows of some maps.
#[derive(Default)]
pub struct Endpoints {
    maps: Range<u16>,
    bound: BTreeMap<Key, Bound>,
}

/// The endpoints that a flow's rewrite binds, first the inside one: of its source, of its destination.
fn pairs(ids: &[FlowId; 2]) -> impl Iterator<Item = (Endpoint, Endpoint)> {
    let [old, new] = [ids[0], ids[1].reverse()];
    let source = ((old.source, old.sport), (new.source, new.sport));
    let destination = (
        (new.destination, new.dport),
        (old.destination, old.dport),
    );
    [source, destination]
        .into_iter()
        .filter(|(inside, public)| inside != public)
}

/// Both directions of a pair.
fn directions(
    map: u16,
    (inside, public): (Endpoint, Endpoint),
) -> [(Key, Endpoint); 2] {
    [
        ((Side::Inside, map, inside), public),
        ((Side::Public, map, public), inside),
    ]
}

impl Endpoints {
    /// From now on, flows of these maps count.
    pub fn track(&mut self, maps: Range<u16>) {
        self.maps = maps;
    }

    /// True if the memory takes a further flow of a map.
    pub fn has_room(&self, map: u16) -> bool {
        !self.maps.contains(&map) || has_room(RESERVE + FLOW_BYTES)
    }

    /// A flow was opened.
    pub fn add(&mut self, map: u16, ids: &[FlowId; 2]) {
        if !self.maps.contains(&map) {
            return;
        }
        for (key, other) in pairs(ids).flat_map(|pair| directions(map, pair)) {
            let bound = self.bound.entry(key).or_insert((other, 0));
            // Flows of a merge may differ: the first pair stays.
            bound.1 += u32::from(bound.0 == other);
        }
    }

    /// A flow ended.
    pub fn remove(&mut self, map: u16, ids: &[FlowId; 2]) {
        if !self.maps.contains(&map) {
            return;
        }
        for (key, other) in pairs(ids).flat_map(|pair| directions(map, pair)) {
            let Some(bound) = self.bound.get_mut(&key).filter(|b| b.0 == other) else {
                continue;
            };
            bound.1 -= 1;
            if bound.1 == 0 {
                self.bound.remove(&key);
            }
        }
    }

    fn other(&self, key: &Key) -> Option<Endpoint> {
        self.bound.get(key).map(|bound| bound.0)
    }

    /// The public endpoint of an inside one.
    pub fn public_of(&self, map: u16, inside: Endpoint) -> Option<Endpoint> {
        self.other(&(Side::Inside, map, inside))
    }

    /// The inside endpoint of a public one.
    pub fn inside_of(&self, map: u16, public: Endpoint) -> Option<Endpoint> {
        self.other(&(Side::Public, map, public))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: Endpoint = (Ipv4Addr::new(10, 0, 0, 1), 5);
    const PUBLIC: Endpoint = (Ipv4Addr::new(203, 0, 113, 1), 6);

    fn ids(remote: u8) -> [FlowId; 2] {
        let old = FlowId {
            source: INSIDE.0,
            sport: INSIDE.1,
            destination: Ipv4Addr::new(192, 0, 2, remote),
            dport: 80,
        };
        let new = FlowId {
            source: PUBLIC.0,
            sport: PUBLIC.1,
            ..old
        };
        [old, new.reverse()]
    }

    #[test]
    fn a_pair_lasts_as_long_as_its_last_flow() {
        let mut endpoints = Endpoints::default();
        endpoints.track(1..3);
        endpoints.add(0, &ids(1));
        assert_eq!(endpoints.public_of(0, INSIDE), None);
        endpoints.add(1, &ids(1));
        endpoints.add(1, &ids(2));
        for remote in [1, 2] {
            assert_eq!(endpoints.public_of(1, INSIDE), Some(PUBLIC));
            assert_eq!(endpoints.inside_of(1, PUBLIC), Some(INSIDE));
            endpoints.remove(1, &ids(remote));
        }
        assert_eq!(endpoints.public_of(1, INSIDE), None);
        assert!(endpoints.bound.is_empty());
    }
}
