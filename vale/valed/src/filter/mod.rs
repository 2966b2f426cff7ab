// SPDX-License-Identifier: Apache-2.0
//! Stateful rules of a port, for security groups (docs/adr/0030-port-policies.md).
mod connections;
mod key;
mod scan;

use std::net::IpAddr;

use vale_proto::{Direction, Family, FilterInfo, Rule};

use crate::token_bucket::Nanoseconds;
use connections::Connections;
pub use key::{FilterKey, FlowKey};
use key::{ICMP, ICMPV6, TCP, UDP};
use scan::Scan;

/// The rules of a port and the connections that they admitted.
pub struct Filter {
    ingress: Vec<Rule>,
    egress: Vec<Rule>,
    ingress_scan: Scan,
    egress_scan: Scan,
    connections: Connections,
}

/// The reason of a filter's verdict.
pub enum Why<'a> {
    /// ARP, neighbor discovery or a client's DHCP.
    Basic,
    Connection,
    Rule(usize, &'a Rule),
    NoRule,
    NotIp,
}

impl Filter {
    pub fn new(rules: &[Rule]) -> Self {
        let of = |direction| {
            let wanted = rules.iter().filter(|r| r.direction == direction);
            wanted.cloned().collect()
        };
        let (ingress, egress): (Vec<_>, Vec<_>) = (of(Direction::Ingress), of(Direction::Egress));
        Self {
            ingress_scan: Scan::new(&ingress),
            egress_scan: Scan::new(&egress),
            ingress,
            egress,
            connections: Connections::default(),
        }
    }

    pub fn info(&self) -> FilterInfo {
        FilterInfo {
            ingress_rules: self.ingress.len(),
            egress_rules: self.egress.len(),
            connections: self.connections.len(),
        }
    }

    /// True if both permit the same packets, apart from connections.
    pub fn has_rules_of(&self, other: &Self) -> bool {
        self.ingress == other.ingress && self.egress == other.egress
    }

    /// True if a rule permits the packet, or if it belongs to a connection that a rule permitted.
    pub fn admits(&mut self, seen: FilterKey, direction: Direction, now: Nanoseconds) -> bool {
        let key = match seen {
            FilterKey::Arp => return true,
            FilterKey::Other => return false,
            FilterKey::Packet(key) => key,
        };
        if key.is_basic(direction == Direction::Egress) {
            return true;
        }
        if key.later {
            return self.permits(&key, direction);
        }
        let connection = key.connection();
        if self.connections.renew(connection, now) {
            return true;
        }
        let permitted = self.permits(&key, direction);
        if permitted {
            self.connections.insert(connection, key.protocol, now);
        }
        permitted
    }

    fn permits(&self, key: &FlowKey, direction: Direction) -> bool {
        match direction {
            Direction::Ingress => self.ingress_scan.permits(key, key.source),
            Direction::Egress => self.egress_scan.permits(key, key.destination),
        }
    }

    /// The verdict of [`Self::admits`] and its reason. No connection changes.
    pub fn explain(&self, seen: FilterKey, direction: Direction, now: Nanoseconds) -> Why<'_> {
        let key = match seen {
            FilterKey::Arp => return Why::Basic,
            FilterKey::Other => return Why::NotIp,
            FilterKey::Packet(key) => key,
        };
        if key.is_basic(direction == Direction::Egress) {
            return Why::Basic;
        }
        if !key.later && self.connections.knows(key.connection(), now) {
            return Why::Connection;
        }
        let (rules, remote) = match direction {
            Direction::Ingress => (&self.ingress, key.source),
            Direction::Egress => (&self.egress, key.destination),
        };
        let mut numbered = (1..).zip(rules);
        let found = numbered.find(|(_, rule)| matches(rule, &key, remote));
        found.map_or(Why::NoRule, |(number, rule)| Why::Rule(number, rule))
    }
}

/// True if a rule permits a packet, as [`Scan`] does for many rules. A later fragment has no ports and matches any. It is of no use without the first one, which has
/// them.
fn matches(rule: &Rule, key: &FlowKey, remote: IpAddr) -> bool {
    let number = match key.protocol {
        TCP | UDP => Some(key.ports.1),
        ICMP | ICMPV6 => Some(key.icmp.into()),
        _ => None,
    };
    let family = match remote {
        IpAddr::V4(_) => Family::Ipv4,
        IpAddr::V6(_) => Family::Ipv6,
    };
    let in_range = |range: vale_proto::PortRange| number.is_some_and(|n| range.contains(n));
    rule.protocol.is_none_or(|p| p == key.protocol)
        && rule.family.is_none_or(|f| f == family)
        && rule.ports.is_none_or(|range| key.later || in_range(range))
        && rule.remote.is_none_or(|net| net.contains(&remote))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
