// SPDX-License-Identifier: Apache-2.0
//! Stateful rules of a port, for security groups (docs/adr/0030-port-policies.md).
mod connections;
mod key;

use std::net::IpAddr;

use vale_proto::{Direction, Family, Rule};

use crate::limit::Nanoseconds;
use connections::Connections;
use key::{ICMP, ICMPV6, TCP, UDP};
pub use key::{Key, Seen};

/// The rules of a port and the connections that they admitted.
pub struct Filter {
    ingress: Vec<Rule>,
    egress: Vec<Rule>,
    connections: Connections,
}

impl Filter {
    pub fn new(rules: &[Rule]) -> Self {
        let of = |direction| {
            let wanted = rules.iter().filter(|r| r.direction == direction);
            wanted.cloned().collect()
        };
        Self {
            ingress: of(Direction::Ingress),
            egress: of(Direction::Egress),
            connections: Connections::default(),
        }
    }

    /// True if a rule permits the packet, or if it belongs to a connection that a rule permitted.
    pub fn admits(&mut self, seen: Seen, direction: Direction, now: Nanoseconds) -> bool {
        let key = match seen {
            Seen::Arp => return true,
            Seen::Other => return false,
            Seen::Packet(key) => key,
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

    fn permits(&self, key: &Key, direction: Direction) -> bool {
        let (rules, remote) = match direction {
            Direction::Ingress => (&self.ingress, key.source),
            Direction::Egress => (&self.egress, key.destination),
        };
        rules.iter().any(|rule| matches(rule, key, remote))
    }
}

/// A later fragment has no ports and matches any. It is of no use without the first one, which has
/// them.
fn matches(rule: &Rule, key: &Key, remote: IpAddr) -> bool {
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
