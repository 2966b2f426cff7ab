// SPDX-License-Identifier: Apache-2.0
//! Overwrites the payload of IP packets with zeros.
//!
//! # Synopsis
//! `EraseIPPayload()`: what is after the TCP or UDP header, and the checksum there. ICMP packets stay as they are.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it, and those of other
//! protocols, are dropped. It overwrites a whole fragment that does not begin with the header.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Overwrites a fragment completely if it does not begin with the header.
//! # Example
//! `FromDump(in.pcap) -> Strip(14) -> CheckIPHeader -> EraseIPPayload -> ToDump(out.pcap, ENCAP IP);`
use click_wire::{ipv4, tcp, udp};

use crate::ip_packet::header;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "EraseIPPayload",
    build: |_| Some(Box::new(EraseIPPayload)),
    ..Class::DEFAULT
};

struct EraseIPPayload;

impl InPlace for EraseIPPayload {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some((protocol, first)) = header(packet).map(|h| (h.protocol(), h.is_first())) else {
            return DROPPED;
        };
        let bytes = packet.transport_mut().unwrap_or_default();
        let (kept, checksum) = match protocol {
            _ if protocol == ipv4::ICMP => return 0,
            ipv4::TCP => {
                let words = bytes.get(12).map_or(0, |b| usize::from(b >> 4));
                ((words * 4).max(tcp::HEADER), 16..18)
            }
            ipv4::UDP => (udp::HEADER, 6..8),
            _ => return DROPPED,
        };
        let kept = if first { kept } else { 0 };
        bytes.get_mut(kept..).unwrap_or_default().fill(0);
        bytes.get_mut(checksum).unwrap_or_default().fill(0);
        0
    }
}

impl Element for EraseIPPayload {
    in_place!(plain);
}
