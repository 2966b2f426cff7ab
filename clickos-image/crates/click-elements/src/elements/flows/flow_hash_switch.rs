// SPDX-License-Identifier: Apache-2.0
//! Chooses a packet's output by its flow.
//!
//! # Synopsis
//! `FlowHashSwitch()`: a flow's packets of both directions leave by the same output, and flows spread over all outputs.
//! Addresses make a flow, and the ports of TCP, UDP and SCTP. Fragments have their addresses only, as have other
//! protocols. An ICMP error belongs to the flow of the packet that it quotes.
//!
//! The IP header is the marked one, or else the one behind an Ethernet header (the marked one, or the start of the
//! packet) and up to two VLAN tags. What is no IP
//! leaves by output 0.
//! # Ports
//! 1/1 or more, push.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> h :: FlowHashSwitch; h[0] -> ToDevice(1); h[1] -> ToDevice(2);`
use click_wire::{ether, icmp, ipv4};

use crate::ip6::{self, Upper};
use crate::outputs::distribute;
use crate::prelude::*;
use crate::rewrite::kind::header_len;

pub static ELEMENT: Class = Class {
    name: "FlowHashSwitch",
    ports: "1/1-",
    processing: "h/h",
    build: |_| Some(Box::new(FlowHashSwitch)),
    ..Class::DEFAULT
};

struct FlowHashSwitch;

/// Types of the tags that an Ethernet frame may have: IEEE 802.1Q, 802.1ad.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
const MAX_TAGS: usize = 2;
/// Protocols whose first four bytes are two ports.
const WITH_PORTS: [u8; 3] = [ipv4::TCP, ipv4::UDP, 132];
/// Types of ICMPv6 below this are errors (RFC 4443).
const FIRST_QUERY6: u8 = 128;

/// The parts of a flow that one direction sends from, and the other one to.
struct Flow {
    addresses: [u64; 2],
    ports: [u16; 2],
}

impl Flow {
    /// The same for both directions.
    fn hash(&self) -> u64 {
        let ends = [0, 1].map(|n| {
            let end = self.addresses[n] ^ u64::from(self.ports[n]).rotate_left(48);
            (end ^ end >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let both = ends[0].wrapping_add(ends[1]);
        (both ^ both >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

/// An address of any length in one word.
fn folded(address: &[u8]) -> u64 {
    let words = address.chunks_exact(4).map(|word| {
        let word = word
            .first_chunk()
            .map_or(0, |word| u32::from_be_bytes(*word));
        u64::from(word)
    });
    words.fold(0, |all, word| all.rotate_left(23).wrapping_mul(5) ^ word)
}

/// The IP packet of an Ethernet frame.
fn in_frame(frame: &[u8]) -> Option<&[u8]> {
    let mut at = ether::HEADER - 2;
    for _ in 0..MAX_TAGS {
        if TAGS.contains(&be16(frame, at)?) {
            at += 4;
        }
    }
    let is_ip = [ether::IPV4, ip6::ETHERTYPE].contains(&be16(frame, at)?);
    frame.get(at + 2..).filter(|_| is_ip)
}

/// The flow of an IP packet; errors quote packets `quotes` deep.
fn flow(packet: &[u8], quotes: usize) -> Option<Flow> {
    match packet.first()? >> 4 {
        4 => flow4(packet, quotes),
        6 => flow6(packet, quotes),
        _ => None,
    }
}

fn ports(protocol: u8, upper: &[u8]) -> [u16; 2] {
    let both = be16(upper, 0).zip(be16(upper, 2));
    let both = both.filter(|_| WITH_PORTS.contains(&protocol));
    both.map_or([0; 2], |(from, to)| [from, to])
}

/// The flow of the packet that an ICMP error quotes.
fn quoted(upper: &[u8], quotes: usize) -> Option<Flow> {
    let left = quotes.checked_sub(1)?;
    flow(upper.get(icmp::HEADER..)?, left)
}

fn flow4(packet: &[u8], quotes: usize) -> Option<Flow> {
    let upper = packet.get(header_len(packet)?..)?;
    let is_part = be16(packet, 6)? & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) != 0;
    let protocol = if is_part { 0 } else { packet[9] };
    let is_error =
        protocol == ipv4::ICMP && upper.first().is_some_and(|kind| icmp::is_error(*kind));
    let outer = || {
        Some(Flow {
            addresses: [folded(packet.get(12..16)?), folded(packet.get(16..20)?)],
            ports: ports(protocol, upper),
        })
    };
    let inner = is_error.then(|| quoted(upper, quotes)).flatten();
    inner.or_else(outer)
}

fn flow6(packet: &[u8], quotes: usize) -> Option<Flow> {
    let found = Upper::of(packet)?;
    let upper = packet.get(found.at..).unwrap_or_default();
    let is_known = found.is_whole() && found.fragment_at.is_none();
    let protocol = if is_known { packet[found.named_at] } else { 0 };
    let is_error = protocol == ip6::ICMP6 && upper.first().is_some_and(|kind| *kind < FIRST_QUERY6);
    let outer = || {
        Some(Flow {
            addresses: [folded(packet.get(8..24)?), folded(packet.get(24..40)?)],
            ports: ports(protocol, upper),
        })
    };
    let inner = is_error.then(|| quoted(upper, quotes)).flatten();
    inner.or_else(outer)
}

/// The hash of a packet's flow; 0 without one.
fn hash(packet: &Packet) -> u64 {
    let marked = packet.network().and_then(|packet| flow(packet, 1));
    let frame = || packet.mac().unwrap_or(packet.data());
    let found = marked.or_else(|| flow(in_frame(frame())?, 1));
    found.map_or(0, |flow| flow.hash())
}

impl Element for FlowHashSwitch {
    fn is_plain(&self) -> bool {
        true
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        batch.prefetch();
        let outputs = ctx.outputs() as u64;
        distribute(ctx, batch, |_, batch, ways| {
            // a hash has 32 bits: its upper part decides, which is cheaper than a division
            let way = |packet: &Packet| ((hash(packet) * outputs) >> 32) as usize;
            ways.extend(batch.iter().map(way));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, from: [u8; 2], ports: [u16; 2], fragment: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet.extend([10, 0, 0, from[0], 10, 0, 0, from[1]]);
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend([0, 8, 0, 0]);
        packet
    }

    fn v6(protocol: u8, from: [u8; 2], ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, protocol, 64];
        packet.extend(from.iter().flat_map(|end| [*end; 16]));
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend([0, 8, 0, 0]);
        packet
    }

    fn of(packet: &[u8]) -> u64 {
        flow(packet, 1).unwrap().hash()
    }

    #[test]
    fn both_directions_are_one_flow_and_others_differ() {
        for protocol in [6, 17, 132] {
            for port in 0..200 {
                let there = v4(protocol, [1, 2], [port, 80], 0x4000);
                assert_eq!(of(&there), of(&v4(protocol, [2, 1], [80, port], 0x4000)));
                let there6 = v6(protocol, [1, 2], [port, 80]);
                assert_eq!(of(&there6), of(&v6(protocol, [2, 1], [80, port])));
                assert_ne!(of(&there), of(&v4(protocol, [1, 2], [port + 1, 80], 0)));
                assert_ne!(of(&there6), of(&v6(protocol, [1, 2], [port + 1, 80])));
            }
        }
        assert_ne!(of(&v4(1, [1, 2], [0; 2], 0)), of(&v4(1, [1, 3], [0; 2], 0)));
    }

    #[test]
    fn fragments_and_protocols_without_ports_have_addresses_only() {
        let first = v4(17, [1, 2], [7, 8], ipv4::MORE_FRAGMENTS);
        assert_eq!(of(&first), of(&v4(17, [1, 2], [1, 1], 3)));
        assert_eq!(
            of(&v4(1, [1, 2], [1, 2], 0)),
            of(&v4(47, [2, 1], [3, 4], 0))
        );
        let mut part = v6(44, [1, 2], [0; 2]);
        part[40] = 17;
        let mut other = part.clone();
        other[43] = 8;
        assert_eq!(of(&part), of(&other));
    }

    #[test]
    fn an_error_belongs_to_the_quoted_flow() {
        let quoted = v4(6, [1, 2], [7, 80], 0);
        let error = [&v4(1, [9, 1], [0x0301, 0], 0)[..28], &quoted].concat();
        assert_eq!(of(&error), of(&quoted));
        let quoted6 = v6(6, [1, 2], [7, 80]);
        let error6 = [&v6(58, [9, 1], [0x0100, 0])[..48], &quoted6].concat();
        assert_eq!(of(&error6), of(&quoted6));
        for end in 0..error.len().max(error6.len()) {
            flow(&error[..end.min(error.len())], 1);
            flow(&error6[..end.min(error6.len())], 1);
        }
    }

    #[test]
    fn frames_have_up_to_two_tags() {
        let packet = v4(6, [1, 2], [7, 80], 0);
        for tags in [
            &[][..],
            &[0x81, 0, 0, 5],
            &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6],
        ] {
            let frame = [&[2; 12][..], tags, &[8, 0], &packet].concat();
            assert_eq!(in_frame(&frame), Some(&packet[..]));
        }
        assert_eq!(in_frame(&[&[2; 12][..], &[8, 6], &packet].concat()), None);
        assert_eq!(in_frame(&[2; 13]), None);
    }

    #[test]
    fn neighboring_flows_reach_all_outputs() {
        for outputs in 2..=8u64 {
            let mut counts = vec![0u64; 8];
            for port in 40_000..41_024 {
                let hash = of(&v4(6, [1, 2], [port, 80], 0));
                counts[((hash * outputs) >> 32) as usize] += 1;
            }
            let least = 1024 / outputs * 3 / 4;
            let used = &counts[..outputs as usize];
            assert!(used.iter().all(|count| *count > least), "{counts:?}");
        }
    }
}
