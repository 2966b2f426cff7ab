// SPDX-License-Identifier: Apache-2.0
//! A hop with its live port pairs, and the table that spreads flows over them.
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use vale_proto::{ChainCounters, Hop, OnFailure, PortName};

use super::Ports;
use super::flow::Flow;
use super::spread::Spread;

/// A port pair whose ports exist.
#[derive(Clone, Copy)]
struct Live {
    /// A hash of the ports' names; a port's index may belong to another one later.
    id: u64,
    ingress: usize,
    egress: usize,
}

impl Live {
    fn same(self, other: Self) -> bool {
        self.id == other.id
    }
}

/// A hop as packets meet it.
pub struct LiveHop {
    transparent: bool,
    on_failure: OnFailure,
    spread: Spread<Live>,
    live_pairs: usize,
    pub counters: ChainCounters,
}

impl LiveHop {
    pub fn new(hop: &Hop) -> Self {
        Self {
            transparent: hop.transparent,
            on_failure: hop.on_failure,
            spread: Spread::default(),
            live_pairs: 0,
            counters: ChainCounters::default(),
        }
    }

    pub fn live_pairs(&self) -> usize {
        self.live_pairs
    }

    pub fn bypasses(&self) -> bool {
        self.on_failure == OnFailure::Bypass
    }

    /// Takes over the flows of the hop that this one replaces.
    pub fn keep_flows(&mut self, old: &mut Self) {
        self.spread = std::mem::take(&mut old.spread);
    }

    /// Finds the ports and spreads the buckets over live pairs, by weight. A bucket moves only from
    /// a pair that died, or to one that came (rendezvous hashing, Thaler and Ravishankar 1998).
    pub fn resolve(&mut self, hop: &Hop, ports: &Ports, find: impl Fn(&PortName) -> Option<usize>) {
        let found = hop.pairs.iter().filter_map(|pair| {
            let (ingress, egress) = find(&pair.ingress).zip(find(&pair.egress))?;
            let mut hasher = FxHasher::default();
            (pair.ingress.as_str(), pair.egress.as_str()).hash(&mut hasher);
            let id = hasher.finish();
            Some((
                pair,
                Live {
                    id,
                    ingress,
                    egress,
                },
            ))
        });
        let found: Vec<_> = found.collect();
        let is_live = |port: usize| ports[port].as_ref().is_some_and(|port| port.is_live());
        let live = found
            .iter()
            .filter(|(_, l)| is_live(l.ingress) && is_live(l.egress));
        let live: Vec<_> = live.collect();
        let winner = |bucket: usize| {
            let rank = |(pair, _): &&&(&vale_proto::Pair, Live)| {
                (0..pair.weight)
                    .map(|n| rank(&pair.ingress, n, bucket))
                    .max()
            };
            live.iter().max_by_key(rank).map(|(_, live)| *live)
        };
        let renewed = |before: Live| {
            let found = live.iter().find(|(_, live)| live.same(before));
            found.map(|(_, live)| *live)
        };
        self.spread.renew(winner, renewed, Live::same);
        self.live_pairs = live.len();
    }

    /// The port by which a flow enters the hop, and true if the frame needs the port's MAC address.
    pub fn port(&self, flow: Flow, forward: bool) -> Option<(usize, bool)> {
        let pair = self.spread.pair(flow, Live::same)?;
        let port = if forward { pair.ingress } else { pair.egress };
        Some((port, !self.transparent))
    }
}

/// A port pair's number for a bucket; the largest one wins the bucket.
fn rank(ingress: &PortName, n: u16, bucket: usize) -> u64 {
    let mut hasher = FxHasher::default();
    (ingress.as_str(), n, bucket).hash(&mut hasher);
    let mixed = hasher.finish();
    // SplitMix64's last steps (Steele, Lea, Flood 2014): FxHasher alone mixes neighbors too little.
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
