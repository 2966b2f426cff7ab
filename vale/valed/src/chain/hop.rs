// SPDX-License-Identifier: Apache-2.0
//! A hop with its live port pairs, and the table that spreads flows over them.
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use vale_proto::{ChainCounters, Hop, OnFailure, PortName};

use super::Ports;
use super::flow::Flow;

/// Buckets of flows.
const BUCKETS: usize = 256;

/// A port pair whose ports exist.
#[derive(Clone, Copy)]
struct Live {
    ingress: usize,
    egress: usize,
}

/// A hop as packets meet it.
pub struct LiveHop {
    transparent: bool,
    on_failure: OnFailure,
    /// The live pair of each bucket; empty without live pairs.
    buckets: Vec<Live>,
    live_pairs: usize,
    pub counters: ChainCounters,
}

impl LiveHop {
    pub fn new(hop: &Hop) -> Self {
        Self {
            transparent: hop.transparent,
            on_failure: hop.on_failure,
            buckets: Vec::new(),
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

    /// Finds the ports and spreads the buckets over live pairs, by weight. A bucket moves only from
    /// a pair that died, or to one that came (rendezvous hashing, Thaler and Ravishankar 1998).
    pub fn resolve(&mut self, hop: &Hop, ports: &Ports, find: impl Fn(&PortName) -> Option<usize>) {
        let found = hop.pairs.iter().filter_map(|pair| {
            let (ingress, egress) = find(&pair.ingress).zip(find(&pair.egress))?;
            Some((pair, Live { ingress, egress }))
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
        self.buckets = (0..BUCKETS).filter_map(winner).collect();
        self.live_pairs = live.len();
    }

    /// The port by which a flow enters the hop, and true if the frame needs the port's MAC address.
    pub fn port(&self, flow: Flow, forward: bool) -> Option<(usize, bool)> {
        let pair = self.buckets.get(flow.bucket())?;
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
