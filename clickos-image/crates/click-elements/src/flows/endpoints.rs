// SPDX-License-Identifier: Apache-2.0
//! Which public address and port each inside address and port has, whatever the other side is (RFC 4787, REQ-1).
use core::ops::Range;

use super::chunks::Chunks;
use super::id::FlowId;
use super::index::{At, Index};
use super::keys::Keys;
use super::peers::{Peer, Peers};
use crate::prelude::*;

/// An address and a port.
pub type Endpoint = (Ipv4Addr, u16);

/// An inside and a public endpoint that belong together while flows need them.
#[derive(Clone, Copy)]
struct Pair {
    map: u16,
    inside: Endpoint,
    public: Endpoint,
    flows: u32,
}

const NO_PAIR: Pair = Pair {
    map: 0,
    inside: (Ipv4Addr::UNSPECIFIED, 0),
    public: (Ipv4Addr::UNSPECIFIED, 0),
    flows: 0,
};

/// The endpoints of the flows of some maps.
pub struct Endpoints {
    maps: Range<u16>,
    keys: Keys,
    pairs: Chunks<Pair>,
    /// Slots that were used once, and those of them that are free.
    used: u32,
    free: Vec<u32>,
    index: Index,
    /// The addresses that the public ones have flows with, if someone asks for them.
    peers: Option<Peers>,
}

/// The endpoints that a flow's rewrite binds, first the inside one: of its source, of its destination.
fn pairs(ids: &[FlowId; 2]) -> [Option<(Endpoint, Endpoint)>; 2] {
    let [old, new] = [ids[0], ids[1].reverse()];
    let source = ((old.source, old.sport), (new.source, new.sport));
    let destination = ((new.destination, new.dport), (old.destination, old.dport));
    [source, destination].map(|pair| Some(pair).filter(|(inside, public)| inside != public))
}

fn hash(keys: Keys, map: u16, is_public: bool, (ip, port): Endpoint) -> u64 {
    let id = match is_public {
        false => FlowId {
            source: ip,
            sport: port,
            ..FlowId::NONE
        },
        true => FlowId {
            destination: ip,
            dport: port,
            ..FlowId::NONE
        },
    };
    keys.hash(&id, map)
}

impl Pair {
    fn end(&self, is_public: bool) -> Endpoint {
        match is_public {
            true => self.public,
            false => self.inside,
        }
    }
}

impl Endpoints {
    /// None yet of flows of these maps; `keys` should be random.
    pub fn new(keys: Keys, maps: Range<u16>) -> Self {
        Self {
            maps,
            keys,
            pairs: Chunks::new(),
            used: 0,
            free: Vec::new(),
            index: Index::new(),
            peers: None,
        }
    }

    /// The same maps with other keys, while there are no flows.
    pub fn rekeyed(&self, keys: Keys) -> Self {
        Self {
            peers: self.peers.as_ref().map(|_| Peers::new()),
            ..Self::new(keys, self.maps.clone())
        }
    }

    /// From now on, addresses of the other side are known; those of flows that are open are added. False if they were
    /// known already.
    pub fn track_peers(&mut self) -> bool {
        let is_new = self.peers.is_none();
        self.peers.get_or_insert_with(Peers::new);
        is_new
    }

    /// True if the inside has flows of a public endpoint with an address.
    pub fn has_peer(&self, map: u16, public: Endpoint, remote: Ipv4Addr) -> bool {
        let peer = Peer {
            map,
            public,
            remote,
        };
        self.peers
            .as_ref()
            .is_some_and(|peers| peers.has(self.keys, &peer))
    }

    /// Notes the addresses of a flow that begins or ends.
    pub fn count_peers(&mut self, map: u16, ids: &[FlowId; 2], begins: bool) {
        let Some(peers) = self.peers.as_mut().filter(|_| self.maps.contains(&map)) else {
            return;
        };
        let remotes = [ids[1].source, ids[0].source];
        for (pair, remote) in pairs(ids).into_iter().zip(remotes) {
            let Some((_, public)) = pair else {
                continue;
            };
            let peer = Peer {
                map,
                public,
                remote,
            };
            match begins {
                true => peers.add(self.keys, peer),
                false => peers.remove(self.keys, &peer),
            }
        }
    }

    fn find(&self, map: u16, is_public: bool, end: Endpoint) -> Option<u32> {
        let is = |at: At| {
            let pair = &self.pairs[at.slot()];
            at.is_reply() == is_public && pair.map == map && pair.end(is_public) == end
        };
        let found = self.index.find(hash(self.keys, map, is_public, end), is);
        found.map(At::slot)
    }

    /// Adds both directions of a pair to the index, or removes them.
    fn reindex(&mut self, slot: u32, adds: bool) {
        for is_public in [false, true] {
            let hash_of = |at: At| {
                let pair = &self.pairs[at.slot()];
                hash(self.keys, pair.map, at.is_reply(), pair.end(at.is_reply()))
            };
            let at = At::new(slot, is_public);
            match adds {
                true => self.index.insert(hash_of(at), at, &hash_of),
                false => self.index.remove(hash_of(at), at, &hash_of),
            }
        }
    }

    /// A flow is opened. `None` if the memory does not take its endpoints.
    #[must_use]
    pub fn add(&mut self, map: u16, ids: &[FlowId; 2]) -> Option<()> {
        if !self.maps.contains(&map) {
            return Some(());
        }
        let [source, destination] = pairs(ids);
        if let Some(pair) = source {
            self.add_pair(map, pair)?;
        }
        let added = destination.map_or(Some(()), |pair| self.add_pair(map, pair));
        if let (None, Some(pair)) = (added, source) {
            self.remove_pair(map, pair);
        }
        added
    }

    fn add_pair(&mut self, map: u16, (inside, public): (Endpoint, Endpoint)) -> Option<()> {
        if let Some(slot) = self.find(map, false, inside) {
            // Flows of a merge may differ: the first pair stays.
            let pair = &mut self.pairs[slot];
            pair.flows += u32::from(pair.public == public);
            return Some(());
        }
        let slot = self.take_slot()?;
        self.pairs[slot] = Pair {
            map,
            inside,
            public,
            flows: 1,
        };
        self.reindex(slot, true);
        Some(())
    }

    fn take_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        self.pairs.reach(self.used, &NO_PAIR)?;
        self.used += 1;
        Some(self.used - 1)
    }

    /// A flow ended.
    pub fn remove(&mut self, map: u16, ids: &[FlowId; 2]) {
        if self.maps.contains(&map) {
            for pair in pairs(ids).into_iter().flatten() {
                self.remove_pair(map, pair);
            }
        }
    }

    fn remove_pair(&mut self, map: u16, (inside, public): (Endpoint, Endpoint)) {
        let found = self.find(map, false, inside);
        let Some(slot) = found.filter(|slot| self.pairs[*slot].public == public) else {
            return;
        };
        self.pairs[slot].flows -= 1;
        if self.pairs[slot].flows == 0 {
            self.reindex(slot, false);
            self.free.push(slot);
        }
    }

    /// The public endpoint of an inside one.
    pub fn public_of(&self, map: u16, inside: Endpoint) -> Option<Endpoint> {
        self.find(map, false, inside)
            .map(|slot| self.pairs[slot].public)
    }

    /// The inside endpoint of a public one.
    pub fn inside_of(&self, map: u16, public: Endpoint) -> Option<Endpoint> {
        self.find(map, true, public)
            .map(|slot| self.pairs[slot].inside)
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
    fn addresses_of_the_other_side_are_known_while_they_have_flows() {
        let mut endpoints = Endpoints::new(Keys([1, 2, 3, 4]), 1..3);
        assert!(endpoints.track_peers() && !endpoints.track_peers());
        let mut endpoints = endpoints.rekeyed(Keys([5, 6, 7, 8]));
        let remote = |n| ids(n)[0].destination;
        for (n, begins, has) in [
            (1, true, [true, false]),
            (2, true, [true, true]),
            (1, true, [true, true]),
            (1, false, [true, true]),
            (1, false, [false, true]),
            (1, false, [false, true]),
            (2, false, [false, false]),
        ] {
            endpoints.count_peers(1, &ids(n), begins);
            endpoints.count_peers(0, &ids(n), begins);
            let found = [1, 2].map(|n| endpoints.has_peer(1, PUBLIC, remote(n)));
            assert_eq!(found, has);
            assert!(!endpoints.has_peer(1, (PUBLIC.0, 7), remote(1)));
            assert!(!endpoints.has_peer(2, PUBLIC, remote(2)));
        }
        // a flow that the other side has opened
        let [old, new] = ids(3);
        endpoints.count_peers(1, &[new, old], true);
        assert!(endpoints.has_peer(1, PUBLIC, remote(3)));
    }

    #[test]
    fn a_pair_lasts_as_long_as_its_last_flow() {
        let mut endpoints = Endpoints::new(Keys([1, 2, 3, 4]), 1..3);
        endpoints.add(0, &ids(1)).unwrap();
        assert_eq!(endpoints.public_of(0, INSIDE), None);
        endpoints.add(1, &ids(1)).unwrap();
        endpoints.add(1, &ids(2)).unwrap();
        assert!(!endpoints.has_peer(1, PUBLIC, ids(1)[0].destination));
        for remote in [1, 2] {
            assert_eq!(endpoints.public_of(1, INSIDE), Some(PUBLIC));
            assert_eq!(endpoints.inside_of(1, PUBLIC), Some(INSIDE));
            endpoints.remove(1, &ids(remote));
        }
        assert_eq!(endpoints.public_of(1, INSIDE), None);
        assert_eq!(endpoints.inside_of(1, PUBLIC), None);
        assert_eq!(endpoints.free.len(), 1);
    }
}
