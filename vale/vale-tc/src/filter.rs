// SPDX-License-Identifier: Apache-2.0
//! Stateful rules as of valed's `port-filter` (docs/adr/0030-port-policies.md).
//!
//! Both programs of a vif share the table of connections. Its key begins with the guest's end, so both
//! directions of a connection have one entry.
use vale_proto::{Direction, Family, IpNet, Rule};

use crate::asm::{If, Label, R1, R10, Size};
use crate::connection::{
    KEY_FAMILY, KEY_PROTOCOL, LOCAL_ADDRESS, LOCAL_PORT, REMOTE_ADDRESS, REMOTE_PORT, empty_key,
    insert, kind, lookup,
};
use crate::counter::{Drop, FIRST_RULE};
use crate::emit::{Emitter, LATER, LOCAL, PROTOCOL, raw16, slot};
use crate::guard::bounds;
use crate::packet::{DCCP, ICMP, ICMPV6, SCTP, TCP, UDP, UDP_LITE};
use crate::quote;

/// `LOCAL` of a packet without ports, which no rule can test.
const NO_NUMBER: i32 = 0x1_0000;
/// Messages of neighbor discovery, which pass each filter.
const BASIC: [u8; 8] = [130, 131, 132, 133, 134, 135, 136, 143];

/// The rules of one direction, each with the number of its counter.
pub struct Filter<'a> {
    direction: Direction,
    rules: Vec<(usize, &'a Rule)>,
}

impl<'a> Filter<'a> {
    pub fn new(direction: Direction, rules: &'a [Rule]) -> Self {
        let numbered = (FIRST_RULE..).zip(rules);
        Self {
            direction,
            rules: numbered.filter(|(_, r)| r.direction == direction).collect(),
        }
    }

    /// Judges a packet that has been read, and continues with the one that it admits.
    pub fn packet(&self, e: &mut Emitter, family: Family) {
        let (admitted, is_later, known) = (e.asm.label(), e.asm.label(), e.asm.label());
        let (matched, once) = (e.asm.label(), e.asm.label());
        e.asm.set(LOCAL, NO_NUMBER);
        e.jump_if_part(If::Equal, LATER, is_later);
        self.numbers(e);
        self.basic(e, family, admitted);
        quote::related(e, family, self.is_egress(), is_later, admitted);
        self.key(e, family);
        lookup(e, known, true);
        e.asm.place(is_later);
        self.scan(e, family, matched, once);
        e.asm.place(matched);
        e.count();
        e.jump_if_part(If::Equal, LATER, admitted);
        quote::jump_if_error(e, family, admitted);
        insert(e);
        e.asm.jump(admitted);
        e.asm.place(once);
        e.count();
        e.asm.place(known);
        e.asm.place(admitted);
    }

    fn is_egress(&self) -> bool {
        self.direction == Direction::Egress
    }

    /// Puts the ports of the packet into the body's slot, and the number that rules test into `LOCAL`.
    fn numbers(&self, e: &mut Emitter) {
        let (has_ports, is_message, done) = (e.asm.label(), e.asm.label(), e.asm.label());
        let lacking = e.dropped(Drop::Filter);
        e.asm.set(LOCAL, 0);
        e.asm.store_value(Size::Double, R10, slot::BODY, 0);
        for protocol in [TCP, UDP, DCCP, SCTP, UDP_LITE] {
            e.jump_if_protocol(If::Equal, protocol, has_ports);
        }
        for protocol in [ICMP, ICMPV6] {
            e.jump_if_protocol(If::Equal, protocol, is_message);
        }
        e.asm.jump(done);
        e.asm.place(has_ports);
        e.read_body(0, slot::BODY, 4, lacking);
        e.load_be16(LOCAL, slot::BODY + 2);
        e.asm.jump(done);
        e.asm.place(is_message);
        e.read_body(0, slot::SCRATCH, 2, lacking);
        e.load_be16(LOCAL, slot::SCRATCH);
        echo(e, done, lacking);
        e.asm.place(done);
    }

    /// Neighbor discovery and a client's DHCP, without which the guest has no address.
    fn basic(&self, e: &mut Emitter, family: Family, admitted: Label) {
        let (client, server) = match family {
            Family::Ipv4 => (68, 67),
            Family::Ipv6 => (546, 547),
        };
        let (source, destination) = match self.is_egress() {
            true => (client, server),
            false => (server, client),
        };
        let other = e.asm.label();
        e.jump_if_protocol(If::NotEqual, UDP, other);
        e.load(Size::Half, R1, slot::BODY);
        e.asm.jump_if(R1, If::NotEqual, raw16(source), other);
        e.load(Size::Half, R1, slot::BODY + 2);
        e.asm.jump_if(R1, If::Equal, raw16(destination), admitted);
        e.asm.place(other);
        if family == Family::Ipv6 {
            let other = e.asm.label();
            e.jump_if_protocol(If::NotEqual, ICMPV6, other);
            kind(e);
            for basic in BASIC {
                e.asm.jump_if(R1, If::Equal, basic.into(), admitted);
            }
            e.asm.place(other);
        }
    }

    /// Writes the key of the packet's connection.
    fn key(&self, e: &mut Emitter, family: Family) {
        let (source, destination, words) = match family {
            Family::Ipv4 => (slot::HEADER + 12, slot::HEADER + 16, 1),
            Family::Ipv6 => (slot::HEADER + 8, slot::HEADER + 24, 4),
        };
        let ends = [(source, slot::BODY), (destination, slot::BODY + 2)];
        let [local, remote] = match self.is_egress() {
            true => ends,
            false => [ends[1], ends[0]],
        };
        empty_key(e);
        for ((address, port), (to, to_port)) in [
            (local, (LOCAL_ADDRESS, LOCAL_PORT)),
            (remote, (REMOTE_ADDRESS, REMOTE_PORT)),
        ] {
            for word in 0..words {
                e.load(Size::Word, R1, address + 4 * word);
                e.store(Size::Word, to + 4 * word, R1);
            }
            e.load(Size::Half, R1, port);
            e.store(Size::Half, to_port, R1);
        }
        e.store(Size::Byte, KEY_PROTOCOL, PROTOCOL);
        let family = if family == Family::Ipv4 { 4 } else { 6 };
        e.asm.store_value(Size::Byte, R10, KEY_FAMILY, family);
    }

    /// Looks for the first rule that permits the packet; R1 is then its counter. Rules that begin
    /// connections come first.
    fn scan(&self, e: &mut Emitter, family: Family, matched: Label, once: Label) {
        let remote = match (family, self.is_egress()) {
            (Family::Ipv4, true) => slot::HEADER + 16,
            (Family::Ipv4, false) => slot::HEADER + 12,
            (Family::Ipv6, true) => slot::HEADER + 24,
            (Family::Ipv6, false) => slot::HEADER + 8,
        };
        for (is_stateless, to) in [(false, matched), (true, once)] {
            let rules = self.rules.iter().filter(|(_, r)| concerns(r, family));
            for (counter, rule) in rules.filter(|(_, r)| r.stateless == is_stateless) {
                let next = e.asm.label();
                test(e, rule, remote, next);
                e.asm.set(R1, *counter as i32);
                e.asm.jump(to);
                e.asm.place(next);
            }
        }
        e.asm.jump(e.dropped(Drop::Filter));
    }
}

/// True if packets of a family can match.
fn concerns(rule: &Rule, family: Family) -> bool {
    let of_remote = match rule.remote {
        Some(IpNet::V4(_)) => family == Family::Ipv4,
        Some(IpNet::V6(_)) => family == Family::Ipv6,
        None => true,
    };
    of_remote && rule.family.is_none_or(|f| f == family)
}

/// Jumps unless the rule permits the packet.
fn test(e: &mut Emitter, rule: &Rule, remote: i16, next: Label) {
    if let Some(protocol) = rule.protocol {
        e.jump_if_protocol(If::NotEqual, protocol, next);
    }
    if rule.ports.is_some() {
        let (good, (first, last)) = (e.asm.label(), vale_proto::numbers(rule));
        e.asm.jump_if(LOCAL, If::Equal, NO_NUMBER, good);
        e.asm.jump_if(LOCAL, If::Less, first.into(), next);
        e.asm.jump_if(LOCAL, If::Greater, last.into(), next);
        e.asm.place(good);
    }
    if let Some(net) = rule.remote {
        let (first, last) = bounds(net);
        e.jump_unless_within(remote, &first, &last, next);
    }
}

/// The identifier of an echo stands for both ports.
fn echo(e: &mut Emitter, done: Label, lacking: Label) {
    let (of_v6, is_echo) = (e.asm.label(), e.asm.label());
    kind(e);
    e.jump_if_protocol(If::NotEqual, ICMP, of_v6);
    e.asm.jump_if(R1, If::Equal, 0, is_echo);
    e.asm.jump_if(R1, If::Equal, 8, is_echo);
    e.asm.jump(done);
    e.asm.place(of_v6);
    e.asm.jump_if(R1, If::Equal, 128, is_echo);
    e.asm.jump_if(R1, If::NotEqual, 129, done);
    e.asm.place(is_echo);
    e.read_body(4, slot::BODY, 2, lacking);
    e.load(Size::Half, R1, slot::BODY);
    e.store(Size::Half, slot::BODY + 2, R1);
}
