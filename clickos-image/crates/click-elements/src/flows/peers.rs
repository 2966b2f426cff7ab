// SPDX-License-Identifier: Apache-2.0
//! Which addresses the inside has flows with, by its public addresses and ports: they may send to these from any port
//! (RFC 4787, section 5: address-dependent filtering).
use super::chunks::Chunks;
use super::endpoints::Endpoint;
use super::id::FlowId;
use super::index::{At, Index};
use super::keys::Keys;
use crate::prelude::*;

/// An address that a public endpoint has flows with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub map: u16,
    pub public: Endpoint,
    pub remote: Ipv4Addr,
}

const NO_PEER: (Peer, u32) = (
    Peer {
        map: 0,
        public: (Ipv4Addr::UNSPECIFIED, 0),
        remote: Ipv4Addr::UNSPECIFIED,
    },
    0,
);

/// The addresses, and how many flows each is in.
pub struct Peers {
    peers: Chunks<(Peer, u32)>,
    /// Slots that were used once, and those of them that are free.
    used: u32,
    free: Vec<u32>,
    index: Index,
}

fn hash(keys: Keys, peer: &Peer) -> u64 {
    let (destination, dport) = peer.public;
    let id = FlowId {
        source: peer.remote,
        destination,
        dport,
        ..FlowId::NONE
    };
    keys.hash(&id, peer.map)
}

impl Peers {
    /// None yet.
    pub fn new() -> Self {
        Self {
            peers: Chunks::new(),
            used: 0,
            free: Vec::new(),
            index: Index::new(),
        }
    }

    fn find(&self, keys: Keys, peer: &Peer) -> Option<u32> {
        let is = |at: At| self.peers[at.slot()].0 == *peer;
        self.index.find(hash(keys, peer), is).map(At::slot)
    }

    /// True if there is a flow with the address.
    pub fn has(&self, keys: Keys, peer: &Peer) -> bool {
        self.find(keys, peer).is_some()
    }

    /// A flow is opened. If the memory takes no more, the address may not send from other ports.
    pub fn add(&mut self, keys: Keys, peer: Peer) {
        if let Some(slot) = self.find(keys, &peer) {
            self.peers[slot].1 += 1;
            return;
        }
        let Some(slot) = self.take_slot() else {
            return;
        };
        self.peers[slot] = (peer, 1);
        let hash_of = |at: At| hash(keys, &self.peers[at.slot()].0);
        let at = At::new(slot, false);
        self.index.insert(hash_of(at), at, &hash_of);
    }

    fn take_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        self.peers.reach(self.used, &NO_PEER)?;
        self.used += 1;
        Some(self.used - 1)
    }

    /// A flow ended.
    pub fn remove(&mut self, keys: Keys, peer: &Peer) {
        let Some(slot) = self.find(keys, peer) else {
            return;
        };
        self.peers[slot].1 -= 1;
        if self.peers[slot].1 == 0 {
            let hash_of = |at: At| hash(keys, &self.peers[at.slot()].0);
            let at = At::new(slot, false);
            self.index.remove(hash_of(at), at, &hash_of);
            self.free.push(slot);
        }
    }
}
