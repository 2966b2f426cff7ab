// SPDX-License-Identifier: Apache-2.0
//! Port security: the verdicts of docs/adr/0009-port-security.md on a frame from the guest.
use std::net::IpAddr;

use vale_proto::{IpNet, Mac};

use crate::asm::{If, Label, R1, R2, R10, Size};
use crate::counter::Drop;
use crate::emit::{AT, ETHERNET, Emitter, FIRST, LATER, LOCAL, WHOLE, raw, raw16, slot};
use crate::packet::{self, ARP, ICMP, ICMPV6, IGMP, IPV4, IPV6, UDP, Unsound};
use crate::policy::Policy;

/// Answers of DHCP and DHCPv6 servers go to these ports.
const DHCP_CLIENT: u16 = 68;
const DHCP_SERVER: u16 = 67;
const DHCPV6_CLIENT: u16 = 546;
/// The messages that a host may send (vale/valed/src/policy/rogue.rs).
const ICMP_TYPES: [u8; 12] = [0, 3, 8, 10, 11, 12, 13, 14, 15, 16, 42, 43];
const IGMP_TYPES: [u8; 4] = [0x12, 0x16, 0x17, 0x22];
const ICMPV6_TYPES: [u8; 14] = [1, 2, 3, 4, 128, 129, 131, 132, 133, 135, 136, 143, 160, 161];
/// Neighbor discovery, never in fragments.
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
const ROUTER_SOLICITATION: u8 = 133;
const NEIGHBOR_SOLICITATION: u8 = 135;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;
/// Solicitations and listener reports may come before there is an address.
const UNNUMBERED: [u8; 4] = [131, 133, 135, 143];
const ARP_MESSAGE: i32 = 28;
/// Options of a neighbor message that are judged; with more it is malformed.
const MAX_OPTIONS: usize = 32;

/// An address range that goes with a MAC address.
struct Range {
    mac: Mac,
    first: Vec<u8>,
    last: Vec<u8>,
}

/// The source addresses that a vif may use.
pub struct Guard {
    macs: Vec<Mac>,
    v4: Vec<Range>,
    v6: Vec<Range>,
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

/// The first and the last address of a network.
pub fn bounds(net: IpNet) -> (Vec<u8>, Vec<u8>) {
    (octets(net.network()), octets(net.broadcast()))
}

/// The addresses that all packets have which a program judges so.
pub fn unsound(e: &Emitter) -> Unsound {
    Unsound {
        malformed: e.dropped(Drop::Malformed),
        rogue: e.dropped(Drop::Rogue),
        hidden: e.dropped(Drop::Hidden),
    }
}

impl Guard {
    /// The guard of a policy with port security. It also allows the link-local address of each MAC.
    pub fn new(policy: &Policy) -> Self {
        let mut this = Self {
            macs: policy.mac.into_iter().collect(),
            v4: Vec::new(),
            v6: Vec::new(),
        };
        for entry in &policy.allowed {
            let Some(mac) = entry.mac.or(policy.mac) else {
                continue;
            };
            this.macs.push(mac);
            let (first, last) = bounds(entry.ip);
            let family = match entry.ip {
                IpNet::V4(_) => &mut this.v4,
                IpNet::V6(_) => &mut this.v6,
            };
            family.push(Range { mac, first, last });
        }
        this.macs.sort_unstable();
        this.macs.dedup();
        this.v6.extend(this.macs.iter().map(|mac| link_local(*mac)));
        this
    }

    /// Drops a frame from a MAC address that is not the vif's.
    pub fn source(&self, e: &mut Emitter) {
        let good = e.asm.label();
        for mac in &self.macs {
            let other = e.asm.label();
            e.jump_unless_mac(slot::SOURCE, mac.0, other);
            e.asm.jump(good);
            e.asm.place(other);
        }
        e.asm.jump(e.dropped(Drop::Spoof));
        e.asm.place(good);
    }

    /// Jumps if an address goes with the frame's MAC address.
    fn jump_if_own(&self, e: &mut Emitter, ranges: &[Range], slot: i16, own: Label) {
        for range in ranges {
            let other = e.asm.label();
            if self.macs.len() > 1 {
                e.jump_unless_mac(slot::SOURCE, range.mac.0, other);
            }
            e.jump_unless_within(slot, &range.first, &range.last, other);
            e.asm.jump(own);
            e.asm.place(other);
        }
    }

    /// Judges an ARP message, and lets it pass (RFC 826, RFC 5227).
    pub fn arp(&self, e: &mut Emitter) {
        let (wrong, spoof) = (e.dropped(Drop::Type), e.dropped(Drop::Spoof));
        let (is_arp, pass) = (e.asm.label(), e.pass());
        e.read_at(
            ETHERNET,
            slot::SCRATCH,
            ARP_MESSAGE,
            e.dropped(Drop::Malformed),
        );
        e.load(Size::Word, R1, slot::SCRATCH);
        e.asm
            .jump_if_word(R1, If::NotEqual, raw([0, 1, 8, 0]), wrong);
        e.load(Size::Half, R1, slot::SCRATCH + 4);
        e.asm.jump_if(R1, If::NotEqual, raw([6, 4]) as i32, wrong);
        e.load(Size::Half, R1, slot::SCRATCH + 6);
        e.asm.jump_if(R1, If::Equal, raw16(1), is_arp);
        e.asm.jump_if(R1, If::NotEqual, raw16(2), wrong);
        e.asm.place(is_arp);
        jump_unless_source(e, slot::SCRATCH + 8, spoof);
        e.read_at(ETHERNET + 14, slot::HEADER, 4, spoof);
        self.jump_if_own(e, &self.v4, slot::HEADER, pass);
        e.load(Size::Half, R1, slot::SCRATCH + 6);
        e.asm.jump_if(R1, If::NotEqual, raw16(1), spoof);
        e.load(Size::Word, R1, slot::HEADER);
        e.asm.jump_if_word(R1, If::NotEqual, 0, spoof);
        e.read_at(ETHERNET + 24, slot::HEADER, 4, spoof);
        self.jump_if_own(e, &self.v4, slot::HEADER, pass);
        e.asm.jump(spoof);
    }

    /// Reads and judges an IPv4 packet.
    pub fn ipv4(&self, e: &mut Emitter) {
        packet::ipv4(e, unsound(e));
        let owned = e.asm.label();
        self.jump_if_own(e, &self.v4, slot::HEADER + 12, owned);
        only_asks_dhcp(e);
        e.asm.place(owned);
        role_v4(e);
    }

    /// Reads and judges an IPv6 packet.
    pub fn ipv6(&self, e: &mut Emitter) {
        packet::ipv6(e, unsound(e));
        e.asm.store_value(Size::Double, R10, slot::UNSPECIFIED, 0);
        let owned = e.asm.label();
        self.jump_if_own(e, &self.v6, slot::HEADER + 8, owned);
        only_unnumbered(e);
        e.asm.place(owned);
        self.role_v6(e);
    }

    fn role_v6(&self, e: &mut Emitter) {
        let (done, other) = (e.asm.label(), e.asm.label());
        e.jump_if_part(If::Equal, LATER, done);
        e.jump_if_protocol(If::NotEqual, UDP, other);
        not_to(e, DHCPV6_CLIENT);
        e.asm.jump(done);
        e.asm.place(other);
        e.jump_if_protocol(If::NotEqual, ICMPV6, done);
        e.read_body(0, slot::BODY, 1, e.dropped(Drop::Malformed));
        self.message(e);
        e.asm.place(done);
    }

    /// A message of ICMPv6, whose type is in the body's slot.
    fn message(&self, e: &mut Emitter) {
        let (is_whole, done) = (e.asm.label(), e.asm.label());
        e.jump_if_part(If::NotEqual, FIRST, is_whole);
        e.load(Size::Byte, R1, slot::BODY);
        for kind in DISCOVERY {
            e.asm
                .jump_if(R1, If::Equal, kind.into(), e.dropped(Drop::Hidden));
        }
        e.asm.place(is_whole);
        one_of(e, &ICMPV6_TYPES);
        e.jump_if_part(If::NotEqual, WHOLE, done);
        self.discovery(e, done);
        e.asm.place(done);
    }

    /// The body of neighbor discovery has addresses too (RFC 4861, 4.1 to 4.4).
    fn discovery(&self, e: &mut Emitter, done: Label) {
        let malformed = e.dropped(Drop::Malformed);
        let (router, neighbor, target) = (e.asm.label(), e.asm.label(), e.asm.label());
        let options = e.asm.label();
        e.load(Size::Byte, R1, slot::BODY);
        e.asm
            .jump_if(R1, If::Equal, ROUTER_SOLICITATION.into(), router);
        e.asm
            .jump_if(R1, If::Equal, NEIGHBOR_SOLICITATION.into(), neighbor);
        e.asm
            .jump_if(R1, If::Equal, NEIGHBOR_ADVERTISEMENT.into(), target);
        e.asm.jump(done);
        e.asm.place(router);
        e.need(8, malformed);
        e.asm.copy(LOCAL, AT);
        e.asm.add(LOCAL, 8);
        e.asm.jump(options);
        let no_claim = e.asm.label();
        e.asm.place(neighbor);
        e.load(Size::Double, R1, slot::UNSPECIFIED);
        e.asm.jump_if(R1, If::Equal, 0, no_claim);
        e.asm.place(target);
        self.target(e, no_claim);
        e.asm.place(no_claim);
        e.need(24, malformed);
        e.asm.copy(LOCAL, AT);
        e.asm.add(LOCAL, 24);
        e.asm.place(options);
        link_layer_options(e, done);
    }

    /// The sender speaks for the target of the message, so it must have that address.
    fn target(&self, e: &mut Emitter, own: Label) {
        e.need(24, e.dropped(Drop::Malformed));
        e.read(AT, 8, slot::TARGET, 16, e.dropped(Drop::Malformed));
        self.jump_if_own(e, &self.v6, slot::TARGET, own);
        e.asm.jump(e.dropped(Drop::Spoof));
    }
}

/// Frames that no bridge forwards, and sources that no host has.
pub fn link(e: &mut Emitter) {
    let (control, good) = (e.dropped(Drop::LinkControl), e.asm.label());
    e.load(Size::Byte, R1, slot::SOURCE);
    e.asm.and(R1, 1);
    e.asm
        .jump_if(R1, If::NotEqual, 0, e.dropped(Drop::Malformed));
    e.jump_if_kind(If::Equal, 0x8808, control);
    e.jump_if_kind(If::Equal, 0x8809, control);
    e.load(Size::Word, R1, slot::ETHERNET);
    e.asm
        .jump_if_word(R1, If::NotEqual, raw([1, 0x80, 0xc2, 0]), good);
    e.load(Size::Byte, R1, slot::ETHERNET + 4);
    e.asm.jump_if(R1, If::NotEqual, 0, good);
    e.load(Size::Byte, R1, slot::ETHERNET + 5);
    e.asm.jump_if(R1, If::Less, 16, control);
    e.asm.place(good);
}

/// Jumps to the code of the frame's type. Any other type is dropped for `reason`.
pub fn by_kind(e: &mut Emitter, ipv4: Label, arp: Label, ipv6: Label, reason: Drop) {
    e.jump_if_kind(If::Equal, IPV4, ipv4);
    e.jump_if_kind(If::Equal, ARP, arp);
    e.jump_if_kind(If::Equal, IPV6, ipv6);
    e.asm.jump(e.dropped(reason));
}

/// Jumps if six bytes of the stack are not the frame's source.
fn jump_unless_source(e: &mut Emitter, slot: i16, to: Label) {
    for n in [0, 2, 4] {
        e.load(Size::Half, R1, slot + n);
        e.load(Size::Half, R2, slot::SOURCE + n);
        e.asm.jump_if_reg(R1, If::NotEqual, R2, to);
    }
}

/// A packet from an address that is not the vif's must be a DHCP request of one that has none.
fn only_asks_dhcp(e: &mut Emitter) {
    let spoof = e.dropped(Drop::Spoof);
    e.load(Size::Word, R1, slot::HEADER + 12);
    e.asm.jump_if_word(R1, If::NotEqual, 0, spoof);
    e.jump_if_part(If::NotEqual, WHOLE, spoof);
    e.jump_if_protocol(If::NotEqual, UDP, spoof);
    e.read_body(0, slot::BODY, 8, spoof);
    e.load(Size::Half, R1, slot::BODY);
    e.asm.jump_if(R1, If::NotEqual, raw16(DHCP_CLIENT), spoof);
    e.load(Size::Half, R1, slot::BODY + 2);
    e.asm.jump_if(R1, If::NotEqual, raw16(DHCP_SERVER), spoof);
}

/// As [`only_asks_dhcp`], for the messages of IPv6 that need no address.
fn only_unnumbered(e: &mut Emitter) {
    let (spoof, good) = (e.dropped(Drop::Spoof), e.asm.label());
    for half in [0, 8] {
        e.load(Size::Double, R1, slot::HEADER + 8 + half);
        e.asm.jump_if(R1, If::NotEqual, 0, spoof);
    }
    e.jump_if_part(If::NotEqual, WHOLE, spoof);
    e.jump_if_protocol(If::NotEqual, ICMPV6, spoof);
    e.read_body(0, slot::BODY, 1, spoof);
    e.load(Size::Byte, R1, slot::BODY);
    for kind in UNNUMBERED {
        e.asm.jump_if(R1, If::Equal, kind.into(), good);
    }
    e.asm.jump(spoof);
    e.asm.place(good);
    e.asm.store_value(Size::Double, R10, slot::UNSPECIFIED, 1);
}

fn role_v4(e: &mut Emitter) {
    let done = e.asm.label();
    e.jump_if_part(If::Equal, LATER, done);
    let other = e.asm.label();
    e.jump_if_protocol(If::NotEqual, UDP, other);
    not_to(e, DHCP_CLIENT);
    e.asm.jump(done);
    e.asm.place(other);
    for (protocol, kinds) in [(ICMP, &ICMP_TYPES[..]), (IGMP, &IGMP_TYPES[..])] {
        let other = e.asm.label();
        e.jump_if_protocol(If::NotEqual, protocol, other);
        e.read_body(0, slot::BODY, 1, e.dropped(Drop::Malformed));
        one_of(e, kinds);
        e.asm.jump(done);
        e.asm.place(other);
    }
    e.asm.place(done);
}

fn not_to(e: &mut Emitter, port: u16) {
    e.read_body(0, slot::BODY, 8, e.dropped(Drop::Malformed));
    e.load(Size::Half, R1, slot::BODY + 2);
    e.asm
        .jump_if(R1, If::Equal, raw16(port), e.dropped(Drop::Rogue));
}

/// Drops a message whose type is not among these.
fn one_of(e: &mut Emitter, kinds: &[u8]) {
    let good = e.asm.label();
    e.load(Size::Byte, R1, slot::BODY);
    for kind in kinds {
        e.asm.jump_if(R1, If::Equal, i32::from(*kind), good);
    }
    e.asm.jump(e.dropped(Drop::Rogue));
    e.asm.place(good);
}

/// Options from `LOCAL` on are (type, length in 8 octets, body); 1 and 2 hold a link-layer address.
fn link_layer_options(e: &mut Emitter, done: Label) {
    let (malformed, spoof) = (e.dropped(Drop::Malformed), e.dropped(Drop::Spoof));
    for _ in 0..MAX_OPTIONS {
        let (has_address, next) = (e.asm.label(), e.asm.label());
        e.asm.copy(R1, LOCAL);
        e.asm.add(R1, 2);
        e.load(Size::Double, R2, slot::END);
        e.asm.jump_if_reg(R1, If::Greater, R2, done);
        e.read(LOCAL, 0, slot::SCRATCH, 2, malformed);
        e.load(Size::Byte, R1, slot::SCRATCH + 1);
        e.asm.jump_if(R1, If::Equal, 0, malformed);
        e.asm.shift_left(R1, 3);
        e.asm.add_reg(R1, LOCAL);
        e.load(Size::Double, R2, slot::END);
        e.asm.jump_if_reg(R1, If::Greater, R2, malformed);
        e.store(Size::Double, slot::NOW, R1);
        e.load(Size::Byte, R1, slot::SCRATCH);
        e.asm.jump_if(R1, If::Equal, 1, has_address);
        e.asm.jump_if(R1, If::NotEqual, 2, next);
        e.asm.place(has_address);
        e.read(LOCAL, 2, slot::SCRATCH, 6, malformed);
        jump_unless_source(e, slot::SCRATCH, spoof);
        e.asm.place(next);
        e.load(Size::Double, LOCAL, slot::NOW);
    }
    e.asm.jump(malformed);
}

/// The address that a host gives itself by its MAC address (RFC 4291, appendix A).
fn link_local(mac: Mac) -> Range {
    let [a, b, c, d, e, f] = mac.0;
    let mut address = vec![0xfe, 0x80, 0, 0, 0, 0, 0, 0];
    address.extend([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Range {
        mac,
        first: address.clone(),
        last: address,
    }
}
