// SPDX-License-Identifier: Apache-2.0
//! Stateful rules of a port, for security groups (docs/adr/0030-port-policies.md).
mod connections;
mod scan;

use std::net::IpAddr;

use vale_proto::{Direction, Family, FilterInfo, Rule};

use crate::clock::Nanoseconds;
use crate::frame::key::{FilterKey, FlowKey, ICMP, ICMPV6};
use connections::Connections;
use scan::Scan;

/// The rules of a port and the connections that they admitted.
pub struct Filter {
    ingress: Side,
    egress: Side,
    connections: Connections,
}

/// The rules of one direction.
struct Side {
    rules: Vec<Rule>,
    /// Rules whose packets begin a connection.
    stateful: Scan,
    stateless: Scan,
}

/// The verdict of the rules.
enum Permit {
    Connection,
    Once,
    No,
}

/// The reason of a filter's verdict.
pub enum Why<'a> {
    /// ARP, neighbor discovery or a client's DHCP.
    Basic,
    Connection,
    /// An ICMP error about a packet of a connection.
    Related,
    Rule(usize, &'a Rule),
    NoRule,
    NotIp,
}

impl Side {
    fn new(rules: &[Rule], direction: Direction) -> Self {
        let wanted = rules.iter().filter(|r| r.direction == direction);
        let rules: Vec<_> = wanted.cloned().collect();
        Self {
            stateful: Scan::new(rules.iter().filter(|r| !r.stateless)),
            stateless: Scan::new(rules.iter().filter(|r| r.stateless)),
            rules,
        }
    }

    fn judge(&self, key: &FlowKey, remote: IpAddr) -> Permit {
        match self.stateful.permits(key, remote) {
            true => Permit::Connection,
            false if self.stateless.permits(key, remote) => Permit::Once,
            false => Permit::No,
        }
    }
}

impl Filter {
    pub fn new(rules: &[Rule]) -> Self {
        Self {
            ingress: Side::new(rules, Direction::Ingress),
            egress: Side::new(rules, Direction::Egress),
            connections: Connections::default(),
        }
    }

    pub fn info(&self) -> FilterInfo {
        FilterInfo {
            ingress_rules: self.ingress.rules.len(),
            egress_rules: self.egress.rules.len(),
            connections: self.connections.len(),
        }
    }

    /// True if both permit the same packets, apart from connections.
    pub fn has_rules_of(&self, other: &Self) -> bool {
        self.ingress.rules == other.ingress.rules && self.egress.rules == other.egress.rules
    }

    /// True if a rule permits the packet, or if it belongs to a connection that a rule permitted.
    pub fn admits(&mut self, seen: &FilterKey, direction: Direction, now: Nanoseconds) -> bool {
        let key = match seen {
            FilterKey::Arp => return true,
            FilterKey::Other => return false,
            FilterKey::Packet(key) => key,
        };
        if key.is_basic(direction == Direction::Egress) {
            return true;
        }
        let begins_none = key.later || key.is_error();
        let known = match key.quote {
            _ if key.later => false,
            Some(_) => self.connections.has(key.connection(), now),
            None if key.is_error() => false,
            None => self.connections.renew(key.connection(), now),
        };
        if known {
            return true;
        }
        match self.judge(key, direction) {
            Permit::Connection if begins_none => true,
            Permit::Connection => {
                self.connections.insert(key.connection(), key.protocol, now);
                true
            }
            Permit::Once => true,
            Permit::No => false,
        }
    }

    fn judge(&self, key: &FlowKey, direction: Direction) -> Permit {
        let (side, remote) = self.side(key, direction);
        side.judge(key, remote)
    }

    /// The rules of a direction, and the address of the other end.
    fn side(&self, key: &FlowKey, direction: Direction) -> (&Side, IpAddr) {
        match direction {
            Direction::Ingress => (&self.ingress, key.source),
            Direction::Egress => (&self.egress, key.destination),
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
        let names_one = !key.later && key.is_error() == key.quote.is_some();
        if names_one && self.connections.knows(key.connection(), now) {
            return match key.quote {
                Some(_) => Why::Related,
                None => Why::Connection,
            };
        }
        let (side, remote) = self.side(&key, direction);
        let mut numbered = (1..).zip(&side.rules);
        let found = numbered.find(|(_, rule)| matches(rule, &key, remote));
        found.map_or(Why::NoRule, |(number, rule)| Why::Rule(number, rule))
    }
}

/// True if a rule permits a packet, as [`Scan`] does for many rules. A later fragment has no ports and
/// matches any. It is of no use without the first one, which has them.
fn matches(rule: &Rule, key: &FlowKey, remote: IpAddr) -> bool {
    let family = match remote {
        IpAddr::V4(_) => Family::Ipv4,
        IpAddr::V6(_) => Family::Ipv6,
    };
    let is_icmp = matches!(key.protocol, ICMP | ICMPV6);
    let number = match is_icmp {
        true => key.icmp.into(),
        false => key.ports.1,
    };
    let has_number = is_icmp || vale_proto::has_ports(key.protocol);
    rule.protocol.is_none_or(|p| p == key.protocol)
        && rule.family.is_none_or(|f| f == family)
        && rule
            .ports
            .is_none_or(|range| key.later || has_number && range.contains(number))
        && rule.code.is_none_or(|code| key.later || code == key.code)
        && rule.remote.is_none_or(|net| net.contains(&remote))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
