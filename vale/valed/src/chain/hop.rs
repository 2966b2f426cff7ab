// SPDX-License-Identifier: Apache-2.0
//! A hop with its live port pairs, and the table that spreads flows over them.
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHasher;
use vale_proto::{ChainCounters, Hop, OnFailure, Pair, PortName};

use super::Ports;
use super::balance::Balance;
use super::flow::Flow;
use super::flows::{BUCKETS, Flows, SLOTS, bucket_of};
use super::route::Route;

/// A live port pair: of this host, or of another one.
#[derive(Clone, Copy)]
pub enum Live {
    Ports { ingress: usize, egress: usize },
    Host(IpAddr),
}

/// The place at which a flow enters a hop.
#[derive(Clone, Copy)]
pub enum Entry {
    /// A port, and true if the frame needs the port's MAC address.
    Port(usize, bool),
    /// Another host.
    Host(IpAddr),
}

/// A hop as packets meet it.
pub struct LiveHop {
    pub transparent: bool,
    on_failure: OnFailure,
    /// Frames that may leave the hop for each one that entered.
    pub copies: u64,
    /// The worker that has this part of the hop.
    pub worker: usize,
    /// The frames of the hop at all workers.
    pub balance: Arc<Balance>,
    /// The flows that all workers know.
    flows: Arc<Flows>,
    /// The live pair of each slot.
    slots: [Option<Live>; SLOTS],
    /// The slot that wins each bucket; empty without live pairs.
    buckets: Vec<u8>,
    /// The live pair of this host for each bucket; empty without one.
    local: Vec<Live>,
    live_pairs: usize,
    /// Bit n: pair n is live at this host.
    pub live_bits: u16,
    pub counters: ChainCounters,
}

impl LiveHop {
    pub fn new(hop: &Hop, flows: Arc<Flows>, balance: Arc<Balance>, worker: usize) -> Self {
        Self {
            transparent: hop.transparent,
            on_failure: hop.on_failure,
            copies: hop.copies.into(),
            worker,
            balance,
            flows,
            slots: [None; SLOTS],
            buckets: Vec::new(),
            local: Vec::new(),
            live_pairs: 0,
            live_bits: 0,
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
        self.flows = std::mem::take(&mut old.flows);
    }

    /// Finds the ports and spreads the buckets over live pairs, by weight. A bucket moves only from
    /// a pair that died, or to one that came (rendezvous hashing, Thaler and Ravishankar 1998).
    pub fn resolve(
        &mut self,
        n: usize,
        hop: &Hop,
        route: Option<&Route>,
        ports: &Ports,
        find: impl Fn(&PortName) -> Option<usize>,
    ) {
        let is_live = |port: usize| ports[port].as_ref().is_some_and(|port| port.face.is_live());
        let here = |pair: &Pair| {
            let (ingress, egress) = find(&pair.ingress).zip(find(&pair.egress))?;
            (is_live(ingress) && is_live(egress)).then_some(Live::Ports { ingress, egress })
        };
        let place = |(number, pair): (usize, &Pair)| match (route, pair.host) {
            (Some(route), Some(host)) if host != route.local() => {
                route.is_live(host, n, number).then_some(Live::Host(host))
            }
            _ => here(pair),
        };
        let pairs = hop.pairs.iter().enumerate();
        let live = pairs.filter_map(|each| Some((each.0, each.1, place(each)?)));
        let live: Vec<_> = live.collect();
        let is_here = |live: &Live| matches!(live, Live::Ports { .. });
        let local: Vec<_> = live.iter().copied().filter(|l| is_here(&l.2)).collect();
        let bit = |bits, each: &(usize, &Pair, Live)| bits | 1 << each.0;
        self.live_bits = local.iter().fold(0, bit);
        self.local = spread(&local).into_iter().map(|n| local[n].2).collect();
        self.spread(&live);
        self.live_pairs = live.len();
    }

    /// Gives slots to the live pairs, and buckets to slots.
    fn spread(&mut self, live: &[(usize, &Pair, Live)]) {
        let winners = spread(live);
        let pairs: Vec<_> = live.iter().map(|each| each.1).collect();
        let slots = self.flows.renew(&pairs, &winners, self.flows.now_s());
        self.slots = [None; SLOTS];
        for (slot, each) in slots.iter().zip(live) {
            self.slots[usize::from(*slot)] = Some(each.2);
        }
        self.buckets = winners.into_iter().map(|n| slots[n]).collect();
    }

    /// The place at which a flow enters the hop.
    pub fn entry(&self, flow: Flow, key: u64, forward: bool) -> Option<Entry> {
        let live = self.learn(flow, key)?;
        Some(self.enter(live, forward))
    }

    /// The pair of a flow with this key.
    pub fn learn(&self, flow: Flow, key: u64) -> Option<Live> {
        let wanted = *self.buckets.get(bucket_of(key))?;
        let slot = self.flows.slot(flow, key, wanted);
        // For a moment another worker can know other pairs.
        self.slots[usize::from(slot)].or(self.slots[usize::from(wanted)])
    }

    /// The same at this host, for a packet that another host sent to the hop. The two hosts may know
    /// other live pairs for a moment. No packet goes around between them.
    pub fn arrival(&self, flow: Flow, key: u64, forward: bool) -> Option<Entry> {
        let wanted = self.entry(flow, key, forward);
        wanted
            .filter(|entry| matches!(entry, Entry::Port(..)))
            .or_else(|| {
                let live = self.local.get(bucket_of(key))?;
                Some(self.enter(*live, forward))
            })
    }

    fn enter(&self, live: Live, forward: bool) -> Entry {
        match live {
            Live::Host(host) => Entry::Host(host),
            Live::Ports { ingress, egress } => {
                let port = if forward { ingress } else { egress };
                Entry::Port(port, !self.transparent)
            }
        }
    }
}

/// The live pair that wins each bucket, by its place in the list.
fn spread(live: &[(usize, &Pair, Live)]) -> Vec<usize> {
    let winner = |bucket: usize| {
        let best = |n: &usize| {
            let pair = live[*n].1;
            (0..pair.weight).map(|n| rank(pair, n, bucket)).max()
        };
        (0..live.len()).max_by_key(best)
    };
    (0..BUCKETS).filter_map(winner).collect()
}

/// A port pair's number for a bucket; the largest one wins the bucket.
fn rank(pair: &Pair, n: u16, bucket: usize) -> u64 {
    let mut hasher = FxHasher::default();
    (pair.ingress.as_str(), n, bucket).hash(&mut hasher);
    if let Some(host) = pair.host {
        host.hash(&mut hasher);
    }
    let mixed = hasher.finish();
    // SplitMix64's last steps (Steele, Lea, Flood 2014): FxHasher alone mixes neighbors too little.
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
