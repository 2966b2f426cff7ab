// SPDX-License-Identifier: Apache-2.0
//! Arguments and answers of the verbs about chains.
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::path::{HostState, Path};
use crate::{ChainName, MAX_ALLOWED, MAX_SEGMENT, Mac, PortName, SwitchName};

/// Most chains of a switch.
pub const MAX_CHAINS: usize = 64;
/// Most hops of a chain.
pub const MAX_HOPS: usize = 20;
/// Most port pairs of a hop.
pub const MAX_PAIRS: usize = 16;
/// Most classifiers of a chain, and most of its NAT networks.
pub const MAX_CLASSIFIERS: usize = 16;
/// Largest weight of a port pair.
pub const MAX_WEIGHT: u16 = 16;

/// Most frames that a hop may make of one.
pub const MAX_COPIES: u16 = 16;

/// A range of TCP or UDP ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl PortRange {
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// Selects IP packets; a missing field selects any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Classifier {
    /// The port that sends the packet into the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<PortName>,
    /// The port that has the packet's destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<PortName>,
    /// The address of the sending station. Like ports, MAC addresses select packets that enter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_mac: Option<Mac>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_mac: Option<Mac>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub source: Option<IpNet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub destination: Option<IpNet>,
    /// The number of the transport protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// Ports of TCP or UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ports: Option<PortRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_ports: Option<PortRange>,
    /// The host of `source_port`, where packets enter a chain with a path and leave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
    /// Addresses that `source_port` may use, for the other hosts of a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub senders: Vec<IpNet>,
    /// Addresses of the destination's port; none permits any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub receivers: Vec<IpNet>,
}

/// The treatment of packets for a hop without a live port pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnFailure {
    /// valed drops and counts them.
    #[default]
    Block,
    /// They go to the next hop.
    Bypass,
}

/// An instance of a hop: packets enter it by `ingress` and come back by `egress`. Packets of the
/// opposite direction go the other way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    pub ingress: PortName,
    pub egress: PortName,
    /// The share of flows, 1 to 16.
    #[serde(default = "one")]
    pub weight: u16,
    /// The host of both ports, for a chain with a path; else this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
}

fn one() -> u16 {
    1
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(copies: &u16) -> bool {
    *copies == 1
}

/// One step of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hop {
    pub pairs: Vec<Pair>,
    /// The hop gets the original frame; otherwise valed sends the frame to the MAC address of the
    /// hop's port.
    #[serde(default)]
    pub transparent: bool,
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Frames of the chain that may leave the hop for each one that entered it, 1 to 16.
    /// valed drops further ones.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub copies: u16,
}

/// Arguments of `chain-set`, which makes a chain or replaces it as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainSet {
    pub switch: SwitchName,
    pub chain: ChainName,
    pub segment: u32,
    pub classifiers: Vec<Classifier>,
    pub hops: Vec<Hop>,
    /// Addresses that a hop translates sources to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub nat: Vec<IpNet>,
    /// Answers take the hops in the opposite order.
    #[serde(default = "yes")]
    pub symmetric: bool,
    /// The path between the hosts of the chain; without it all hops are on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
    /// The chain was in force before valed started again. Until the other hosts of its path know it,
    /// its packets are dropped; those of a new chain bypass it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
}

fn yes() -> bool {
    true
}

impl ChainSet {
    /// Checks rules between fields; the error names the field, the value and the limit.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MAX_SEGMENT).contains(&self.segment) {
            return Err(format!(
                "segment: {} is outside 1..={MAX_SEGMENT}",
                self.segment
            ));
        }
        count("classifiers", self.classifiers.len(), 1, MAX_CLASSIFIERS)?;
        count("hops", self.hops.len(), 1, MAX_HOPS)?;
        count("nat", self.nat.len(), 0, MAX_CLASSIFIERS)?;
        for (n, hop) in self.hops.iter().enumerate() {
            hop.check().map_err(|e| format!("hops[{n}]: {e}"))?;
        }
        for (n, classifier) in self.classifiers.iter().enumerate() {
            let wrong = |e| format!("classifiers[{n}]: {e}");
            classifier.check().map_err(wrong)?;
        }
        self.check_hosts()
    }

    /// Checks that pairs and classifiers name hosts of the path, and none without a path.
    fn check_hosts(&self) -> Result<(), String> {
        let hosts = match &self.path {
            Some(path) => {
                path.check()?;
                &path.hosts[..]
            }
            None => &[],
        };
        for (n, hop) in self.hops.iter().enumerate() {
            let mut named = hop.pairs.iter().filter_map(|pair| pair.host);
            if let Some(host) = named.find(|host| !hosts.contains(host)) {
                return Err(format!("hops[{n}]: host: {host} is not in path.hosts"));
            }
        }
        for (n, classifier) in self.classifiers.iter().enumerate() {
            classifier
                .check_host(hosts)
                .map_err(|e| format!("classifiers[{n}]: {e}"))?;
        }
        Ok(())
    }
}

impl Hop {
    fn check(&self) -> Result<(), String> {
        count("pairs", self.pairs.len(), 1, MAX_PAIRS)?;
        if !(1..=MAX_COPIES).contains(&self.copies) {
            return Err(format!(
                "copies: {} is outside 1..={MAX_COPIES}",
                self.copies
            ));
        }
        let mut weights = self.pairs.iter().map(|p| p.weight);
        match weights.find(|w| !(1..=MAX_WEIGHT).contains(w)) {
            Some(weight) => Err(format!("weight: {weight} is outside 1..={MAX_WEIGHT}")),
            None => Ok(()),
        }
    }
}

impl Classifier {
    /// A path needs one host where packets enter and leave, and addresses that all hosts know.
    fn check_host(&self, hosts: &[IpAddr]) -> Result<(), String> {
        match self.host {
            Some(host) if !hosts.contains(&host) => {
                return Err(format!("host: {host} is not in path.hosts"));
            }
            None if !hosts.is_empty() => {
                return Err("host: is missing; a chain with a path needs it".to_owned());
            }
            _ => (),
        }
        if !hosts.is_empty() && self.source_port.is_none() {
            return Err("source_port: is missing; a chain with a path needs it".to_owned());
        }
        if !hosts.is_empty() && self.senders.is_empty() {
            return Err("senders: is missing; a chain with a path needs it".to_owned());
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        count("senders", self.senders.len(), 0, MAX_ALLOWED)?;
        count("receivers", self.receivers.len(), 0, MAX_ALLOWED)?;
        let ranges = [
            ("source_ports", self.source_ports),
            ("destination_ports", self.destination_ports),
        ];
        for (field, range) in ranges {
            let Some(range) = range else { continue };
            if range.first > range.last {
                return Err(format!("{field}: {} is above {}", range.first, range.last));
            }
            if !matches!(self.protocol, Some(6 | 17)) {
                return Err(format!("{field}: needs protocol 6 (TCP) or 17 (UDP)"));
            }
        }
        match (self.source, self.destination) {
            (Some(IpNet::V4(_)), Some(IpNet::V6(_))) | (Some(IpNet::V6(_)), Some(IpNet::V4(_))) => {
                Err("source and destination: one is IPv4, the other IPv6".to_owned())
            }
            _ => Ok(()),
        }
    }
}

fn count(field: &str, found: usize, least: usize, most: usize) -> Result<(), String> {
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => Err(format!(
            "{field}: {found} entries are outside {least}..={most}"
        )),
    }
}

/// Arguments of `chain-remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainId {
    pub switch: SwitchName,
    pub chain: ChainName,
}

/// Arguments of `chain-list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainList {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchName>,
}

/// Answer of `chain-list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chains {
    pub chains: Vec<ChainInfo>,
}

/// Packets of a chain, or to a hop, since `chain-set` made them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainCounters {
    pub packets: u64,
    pub bytes: u64,
    /// Packets that a hop without a live port pair blocked.
    pub dropped: u64,
    /// Frames of hops that valed dropped: they would enter a hop again, or a hop sent more than it may.
    #[serde(default)]
    pub looped: u64,
}

/// A chain as `chain-list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainInfo {
    #[serde(flatten)]
    pub set: ChainSet,
    /// Packets that entered the chain, of both directions.
    pub counters: ChainCounters,
    /// Packets to each hop's ports at this host, of both directions.
    pub hop_counters: Vec<ChainCounters>,
    /// Live port pairs of each hop.
    pub live_pairs: Vec<usize>,
    /// The other hosts of the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostState>,
    /// A newer definition is in force when all its hosts have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_changing: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn with(change: Value) -> Result<(), String> {
        let mut args = json!({"switch": "vale0", "chain": "web", "segment": 5,
            "classifiers": [{"source_port": "a"}],
            "hops": [{"pairs": [{"ingress": "in", "egress": "out"}]}]});
        for (key, value) in change.as_object().unwrap() {
            args[key] = value.clone();
        }
        let set: ChainSet = control_socket::typed(&args.to_string())?;
        set.check()
    }

    #[test]
    fn a_path_needs_hosts_everywhere() {
        let path = |change: Value| {
            let mut path = json!({"number": 7, "local": "192.0.2.1",
                "hosts": ["192.0.2.1", "192.0.2.2"]});
            for (key, value) in change.as_object().unwrap() {
                path[key] = value.clone();
            }
            path
        };
        let classifier = |change: Value| {
            let mut classifier = json!({"source_port": "a", "host": "192.0.2.1",
                "senders": ["10.0.0.1/32"]});
            for (key, value) in change.as_object().unwrap() {
                classifier[key] = value.clone();
            }
            json!([classifier])
        };
        let none = || classifier(json!({}));
        let check =
            |p: Value, classifiers: Value| with(json!({"path": p, "classifiers": classifiers}));
        assert_eq!(check(path(json!({})), none()), Ok(()));
        for (p, classifiers, field) in [
            (json!({"number": 0}), none(), "path.number: 0"),
            (json!({"number": 1 << 23}), none(), "path.number: 8388608"),
            (
                json!({"local": "192.0.2.3"}),
                none(),
                "path.local: 192.0.2.3",
            ),
            (json!({"hosts": ["192.0.2.1"]}), none(), "path.hosts: 1"),
            (
                json!({"hosts": vec!["192.0.2.1"; 2]}),
                none(),
                "path.hosts: 192.0.2.1",
            ),
            (
                json!({"hosts": ["192.0.2.1", "::1"]}),
                none(),
                "path.hosts: ::1",
            ),
            (
                json!({"hosts": ["192.0.2.1", "0.0.0.0"]}),
                none(),
                "path.hosts: 0.0.0.0",
            ),
            (
                json!({"hosts": vec!["192.0.2.1"; 17]}),
                none(),
                "path.hosts: more than 16",
            ),
            (
                json!({}),
                classifier(json!({"host": "192.0.2.9"})),
                "host: 192.0.2.9",
            ),
            (
                json!({}),
                classifier(json!({"host": null})),
                "host: is missing",
            ),
            (
                json!({}),
                classifier(json!({"senders": []})),
                "senders: is missing",
            ),
            (
                json!({}),
                classifier(json!({"source_port": null})),
                "source_port: is missing",
            ),
        ] {
            let error = check(path(p.clone()), classifiers).unwrap_err();
            assert!(error.contains(field), "{p}: {error}");
        }
    }

    #[test]
    fn each_wrong_field_is_named() {
        assert_eq!(with(json!({})), Ok(()));
        let pair = json!({"ingress": "a", "egress": "b"});
        let heavy = json!([{"pairs": [{"ingress": "a", "egress": "b", "weight": 17}]}]);
        let many = json!([{"pairs": [{"ingress": "a", "egress": "b"}], "copies": 17}]);
        for (change, field) in [
            (json!({"segment": 0}), "segment"),
            (json!({"chain": "A b"}), "chain"),
            (json!({"classifiers": []}), "classifiers: 0"),
            (
                json!({"classifiers": vec![json!({}); 17]}),
                "classifiers: 17",
            ),
            (json!({"hops": []}), "hops: 0"),
            (
                json!({"hops": vec![json!({"pairs": [pair]}); 21]}),
                "hops: 21",
            ),
            (
                json!({"hops": [{"pairs": vec![pair.clone(); 17]}]}),
                "hops[0]: pairs: 17",
            ),
            (json!({"hops": heavy}), "hops[0]: weight: 17"),
            (json!({"hops": many}), "hops[0]: copies: 17"),
            (
                json!({"hops": [{"pairs": [pair], "on_failure": "wait"}]}),
                "wait",
            ),
            (json!({"nat": vec!["10.0.0.0/8"; 17]}), "nat: 17"),
            (
                json!({"classifiers": [{"source_ports": {"first": 2, "last": 1}}]}),
                "2 is above 1",
            ),
            (
                json!({"classifiers": [{"source_ports": {"first": 1, "last": 2}}]}),
                "needs protocol",
            ),
            (
                json!({"classifiers": [{"source": "10.0.0.0/8", "destination": "::/0"}]}),
                "IPv6",
            ),
            (json!({"hop": []}), "hop"),
            (
                json!({"hops": [{"pairs": [{"ingress": "a", "egress": "b", "host": "192.0.2.1"}]}]}),
                "hops[0]: host: 192.0.2.1",
            ),
            (
                json!({"classifiers": [{"host": "192.0.2.1"}]}),
                "classifiers[0]: host: 192.0.2.1",
            ),
            (
                json!({"classifiers": [{"senders": vec!["10.0.0.0/8"; 257]}]}),
                "senders: 257",
            ),
        ] {
            let error = with(change.clone()).unwrap_err();
            assert!(error.contains(field), "{change}: {error}");
        }
    }
}
