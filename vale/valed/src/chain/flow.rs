// SPDX-License-Identifier: Apache-2.0
//! The addresses and ports of an IP packet, as classifiers and hops see them.
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use rustc_hash::FxHasher;
use vale_proto::{Classifier, IpNet};

use crate::frame::headers::{ETHERNET, Ethernet, IPV4, IPV6, be16, octets};
use crate::frame::packet::{self, FragmentPart};

pub const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// The byte of TCP's flags, and two of them (RFC 9293, 3.1).
const FLAGS: usize = 13;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// The number of the VLAN in a tag; 0 is a tag of priority only (IEEE 802.1Q, 6.9).
const VLAN: u16 = 0xfff;

/// A packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    /// Ports of TCP or UDP; `None` in fragments, which have them only once.
    pub ports: Option<(u16, u16)>,
    /// The packet begins a TCP connection.
    pub begins: bool,
    /// The packet is the answer to such a packet.
    pub accepts: bool,
    /// The packet is an ICMP error.
    pub is_error: bool,
    /// Source and destination of the IPv4 packet that an ICMP error is about.
    pub quoted: Option<(IpAddr, IpAddr)>,
    /// The frame is to a group, or has a tag of no VLAN. No hop gets such a frame, and receivers take its
    /// packet.
    pub evades: bool,
}

impl Flow {
    /// None if the frame is of a VLAN, or is no valid IP packet to one station. The frame itself may go to
    /// many, see [`Self::evades`].
    pub fn parse(ethernet: &Ethernet, frame: &[u8]) -> Option<Self> {
        let tags = frame.get(ETHERNET..ethernet.payload)?.chunks(4);
        let is_vlan = |tag: &[u8]| be16(tag, 0).is_none_or(|tag| tag & VLAN != 0);
        let is_tagged = ethernet.payload != ETHERNET;
        (!tags.into_iter().any(is_vlan)).then_some(())?;
        let bytes = &frame[ethernet.payload..];
        let (source, destination, packet): (IpAddr, IpAddr, _) = match ethernet.kind {
            IPV4 => {
                let address = |at| octets::<4>(bytes, at).map(IpAddr::from);
                (address(12)?, address(16)?, packet::ipv4(bytes).ok()?)
            }
            IPV6 => {
                let address = |at| octets::<16>(bytes, at).map(IpAddr::from);
                (address(8)?, address(24)?, packet::ipv6(bytes).ok()?)
            }
            _ => return None,
        };
        let is_group = match destination {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_multicast(),
        };
        let goes_to_many = ethernet.destination.is_multicast();
        (!goes_to_many || !is_group).then_some(())?;
        let has_ports = packet.part == FragmentPart::Whole && matches!(packet.protocol, TCP | UDP);
        let ports = be16(packet.body, 0).zip(be16(packet.body, 2));
        let flags = packet.body.get(FLAGS).copied().unwrap_or(0);
        let is_tcp = has_ports && packet.protocol == TCP;
        Some(Self {
            begins: is_tcp && flags & (SYN | ACK) == SYN,
            accepts: is_tcp && flags & (SYN | ACK) == SYN | ACK,
            is_error: is_error(&packet),
            quoted: quoted(&packet),
            evades: goes_to_many || is_tagged,
            source,
            destination,
            protocol: packet.protocol,
            ports: ports.filter(|_| has_ports),
        })
    }

    /// The flow of an answer.
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            ports: self
                .ports
                .map(|(source, destination)| (destination, source)),
            ..self
        }
    }

    /// A number of the flow, the same for both directions. Its upper byte names the flow's bucket.
    pub fn key(self) -> u64 {
        let ends = (self.source, self.ports.map(|p| p.0));
        let others = (self.destination, self.ports.map(|p| p.1));
        mixed((ends.min(others), ends.max(others), self.protocol))
    }

    /// The same, with a bucket that the address of one end alone names.
    pub fn key_by(self, end: IpAddr) -> u64 {
        const BUCKET: u64 = 0xff << 56;
        mixed(end) & BUCKET | self.key() & !BUCKET
    }

    /// True if a classifier selects the packet by its addresses, protocol and ports. A fragment has
    /// no ports, and matches any: otherwise it would pass by the chain.
    pub fn matches(self, classifier: &Classifier) -> bool {
        contains(classifier.source, self.source)
            && self.matches_except_source(classifier)
            && classifier
                .source_ports
                .is_none_or(|range| self.ports.is_none_or(|(source, _)| range.contains(source)))
    }

    /// The same without the source, which a hop translated.
    pub fn matches_except_source(self, classifier: &Classifier) -> bool {
        contains(classifier.destination, self.destination)
            && classifier.protocol.is_none_or(|p| p == self.protocol)
            && classifier.destination_ports.is_none_or(|range| {
                self.ports
                    .is_none_or(|(_, destination)| range.contains(destination))
            })
    }
}

/// True for the error messages of ICMP (RFC 792) and ICMPv6 (RFC 4443).
fn is_error(packet: &packet::Packet<'_>) -> bool {
    let kind = packet.body.first();
    match packet.protocol {
        ICMP => matches!(kind, Some(3 | 4 | 5 | 11 | 12)),
        ICMPV6 => kind.is_some_and(|kind| *kind < 128),
        _ => false,
    }
}

/// The addresses of the packet that an ICMP error has in its body (RFC 792).
fn quoted(packet: &packet::Packet<'_>) -> Option<(IpAddr, IpAddr)> {
    let address = |at: usize| octets::<4>(packet.body, 8 + at).map(IpAddr::from);
    (packet.protocol == ICMP && is_error(packet)).then_some(())?;
    address(12).zip(address(16))
}

fn mixed(value: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    // FxHasher mixes best into the upper bits.
    hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn contains(network: Option<IpNet>, address: IpAddr) -> bool {
    network.is_none_or(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_answer_has_the_ends_exchanged_and_the_same_key(a: [u8; 4], b: [u8; 4], ports in prop::option::of(any::<(u16, u16)>()), protocol: u8) {
            let flow = |source: [u8; 4], destination: [u8; 4], ports| Flow {
                source: source.into(),
                destination: destination.into(),
                protocol,
                ports,
                begins: false,
                accepts: false,
                is_error: false,
                quoted: None,
                evades: false,
            };
            let there = flow(a, b, ports);
            let back = flow(b, a, ports.map(|(x, y)| (y, x)));
            prop_assert_eq!(there.reversed(), back);
            prop_assert_eq!(there.key(), back.key());
        }
    }
}
