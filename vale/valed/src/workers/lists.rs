// SPDX-License-Identifier: Apache-2.0
//! Answers from the sums of all workers.
use std::collections::BTreeMap;

use vale_proto::{
    ChainCounters, ChainInfo, Counters, MirrorInfo, OffloadInfo, PortId, PortInfo, SegmentLimit,
    SwitchName,
};

use super::Handle;
use crate::forwarder::Load;

impl Handle {
    /// The ports of one switch, or of all.
    pub fn ports(&self, switch: Option<&SwitchName>) -> Option<Vec<PortInfo>> {
        let _port_map = self.lock();
        let name = switch.cloned();
        let parts = self.each(move |_, f| (f.list(name.as_ref()), f.remote_counters()))?;
        let mut counts: BTreeMap<_, Counters> = BTreeMap::new();
        let mut ports = Vec::new();
        for (part, remote) in parts {
            ports.extend(part);
            for (PortId { switch, port }, counters) in remote {
                *counts.entry((switch, port)).or_default() += counters;
            }
        }
        ports.sort_by_key(|(place, _)| *place);
        let with_counts = |(_, mut info): (_, PortInfo)| {
            let key = (info.switch.clone(), info.port.clone());
            info.counters += counts.get(&key).copied().unwrap_or_default();
            info
        };
        Some(ports.into_iter().map(with_counts).collect())
    }

    /// The ports of a switch by their workers.
    pub fn placed(&self) -> Vec<(PortId, usize)> {
        let port_map = self.lock();
        let all = port_map.workers.iter();
        let placed = all.map(|((switch, port), worker)| {
            let (switch, port) = (switch.clone(), port.clone());
            (PortId { switch, port }, *worker)
        });
        placed.collect()
    }

    /// The work of each worker.
    pub fn loads(&self) -> Option<Vec<Load>> {
        self.each(|_, f| f.load())
    }

    /// The chains of one switch, or of all.
    pub fn chains(&self, switch: Option<&SwitchName>) -> Option<Vec<ChainInfo>> {
        let _port_map = self.lock();
        let name = switch.cloned();
        let parts = self.each(move |_, f| f.chains(name.as_ref()))?;
        Some(summed(parts, |sum, part| {
            add(&mut sum.counters, part.counters);
            // A definition of a path comes in force at some workers a moment later than at others.
            for (hop, counters) in part.set.hops.iter().zip(part.hop_counters) {
                let same = sum.set.hops.iter().position(|other| other == hop);
                if let Some(n) = same {
                    add(&mut sum.hop_counters[n], counters);
                }
            }
        }))
    }

    /// The mirrors of one switch, or of all.
    pub fn mirrors(&self, switch: Option<&SwitchName>) -> Option<Vec<MirrorInfo>> {
        let _port_map = self.lock();
        let name = switch.cloned();
        let parts = self.each(move |_, f| f.mirrors(name.as_ref()))?;
        Some(summed(parts, |sum, part| {
            let (sum, part) = (&mut sum.counters, part.counters);
            sum.packets += part.packets;
            sum.bytes += part.bytes;
            sum.over_rate += part.over_rate;
            sum.dropped += part.dropped;
        }))
    }

    /// The tables of offload rules, of one switch, or of all.
    pub fn tables(&self, switch: Option<&SwitchName>) -> Option<Vec<OffloadInfo>> {
        let _port_map = self.lock();
        let name = switch.cloned();
        let parts = self.each(move |_, f| f.tables(name.as_ref()))?;
        let mut tables = parts.concat();
        tables.sort_by(|a, b| (&a.switch, &a.port, a.owner).cmp(&(&b.switch, &b.port, b.owner)));
        Some(tables)
    }

    /// The limits of the segments of one switch, or of all.
    pub fn segments(&self, switch: Option<&SwitchName>) -> Option<Vec<SegmentLimit>> {
        let _port_map = self.lock();
        let name = switch.cloned();
        self.at(0, move |f| f.segment_limits(name.as_ref()))
    }
}

/// All workers list the same things in one order.
fn summed<T>(parts: Vec<Vec<T>>, mut add: impl FnMut(&mut T, T)) -> Vec<T> {
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_default();
    for part in parts {
        let pairs = sums.iter_mut().zip(part);
        pairs.for_each(|(sum, part)| add(sum, part));
    }
    sums
}

fn add(sum: &mut ChainCounters, part: ChainCounters) {
    sum.packets += part.packets;
    sum.bytes += part.bytes;
    sum.dropped += part.dropped;
    sum.looped += part.looped;
}
