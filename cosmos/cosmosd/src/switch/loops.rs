// SPDX-License-Identifier: Apache-2.0
//! Tells subscribers where the switch cut frames that went in a circle.
use std::collections::BTreeMap;
use std::sync::Arc;

use control_socket::EventHub;
use serde_json::{Value, json};
use vale_proto::{ChainInfo, PortInfo};

/// The frames that each chain and each port had cut at the last look.
pub struct Loops {
    events: Arc<EventHub>,
    known: BTreeMap<String, u64>,
}

impl Loops {
    /// The first look tells what was cut before.
    pub fn new(events: Arc<EventHub>) -> Self {
        let known = BTreeMap::new();
        Self { events, known }
    }

    /// Publishes an event for each chain and each port that had frames cut since the last look.
    pub fn look(&mut self, chains: &[ChainInfo], ports: &[PortInfo]) {
        for event in self.grown(chains, ports) {
            self.events.publish("loop", event);
        }
    }

    fn grown(&mut self, chains: &[ChainInfo], ports: &[PortInfo]) -> Vec<Value> {
        let of_chain = |chain: &ChainInfo| {
            let (switch, name) = (&chain.set.switch, &chain.set.chain);
            let hops = chain.hop_counters.iter().enumerate();
            let hops = hops.filter(|(_, hop)| hop.looped > 0);
            let hops: Vec<_> = hops.map(|(n, _)| n).collect();
            let event = json!({"switch": switch, "chain": name, "hops": hops});
            (
                format!("{switch}:chain {name}"),
                chain.counters.looped,
                event,
            )
        };
        let of_port = |port: &PortInfo| {
            let (switch, name) = (&port.switch, &port.port);
            let event = json!({"switch": switch, "port": name});
            (
                format!("{switch}:{name}"),
                port.counters.dropped_loop,
                event,
            )
        };
        let (chains, ports) = (chains.iter().map(of_chain), ports.iter().map(of_port));
        let before = std::mem::take(&mut self.known);
        let mut grown = Vec::new();
        for (place, count, mut event) in chains.chain(ports).filter(|(_, count, _)| *count > 0) {
            // The switch counts from 0 again after it ended.
            let last = before.get(&place).filter(|last| **last <= count);
            let frames = count - last.copied().unwrap_or(0);
            if frames > 0 {
                event["frames"] = frames.into();
                grown.push(event);
            }
            self.known.insert(place, count);
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(looped: [u64; 2]) -> ChainInfo {
        let counters =
            |looped: u64| json!({"packets": 9, "bytes": 9, "dropped": 0, "looped": looped});
        let pairs = json!([{"ingress": "a", "egress": "b"}]);
        serde_json::from_value(json!({
            "switch": "vale0", "chain": "web", "segment": 1, "classifiers": [{}],
            "hops": [{"pairs": pairs}, {"pairs": pairs}],
            "counters": counters(looped[0] + looped[1]),
            "hop_counters": looped.map(counters), "live_pairs": [1, 1]}))
        .unwrap()
    }

    fn port(looped: u64) -> PortInfo {
        serde_json::from_value(json!({
            "switch": "vale0", "port": "web", "kind": "process", "segment": 1, "mac": null,
            "link_up": true, "counters": {"dropped_loop": looped}}))
        .unwrap()
    }

    #[test]
    fn each_growth_is_one_event() {
        let mut loops = Loops::new(Arc::default());
        let at_chain =
            |frames: u64| json!({"switch": "vale0", "chain": "web", "hops": [1], "frames": frames});
        let at_port = |frames: u64| json!({"switch": "vale0", "port": "web", "frames": frames});
        for (chains, ports, expected) in [
            (vec![chain([0, 0])], vec![port(0)], vec![]),
            (
                vec![chain([0, 5])],
                vec![port(3)],
                vec![at_chain(5), at_port(3)],
            ),
            (vec![chain([0, 5])], vec![port(3)], vec![]),
            (vec![chain([0, 7])], vec![port(3)], vec![at_chain(2)]),
            // The switch started again.
            (vec![], vec![port(1)], vec![at_port(1)]),
            (vec![chain([0, 1])], vec![], vec![at_chain(1)]),
        ] {
            assert_eq!(loops.grown(&chains, &ports), expected);
            assert!(loops.known.len() <= 2);
        }
    }
}
