// SPDX-License-Identifier: Apache-2.0
//! Cuts off the payload of IP packets.
//!
//! # Synopsis
//! `TruncateIPPayload([LENGTH, TRANSPORT, EXTRA_LENGTH])`: keeps the IP header, unless TRANSPORT is false the TCP, UDP or
//! ICMP header, and LENGTH bytes (default 0) more. Unless EXTRA_LENGTH is false the number of bytes cut off is added to
//! the extra length annotation. Lengths and checksums in the packet are not changed.
//! # Ports
//! 1/1, agnostic. A packet without a marked IP header keeps its first LENGTH bytes.
//! # Handlers
//! None of its own.
//! # Example
//! `... -> CheckIPHeader -> TruncateIPPayload -> ToDump(headers.pcap);`
use click_core::anno;
use click_wire::{icmp, ipv4, tcp, udp};

use crate::ip_packet::header;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "TruncateIPPayload",
    args: &[
        optional("LENGTH"),
        optional("TRANSPORT"),
        keyword("EXTRA_LENGTH"),
    ],
    build: |a| {
        let (length, transport) = (a.or("LENGTH", 0u16), a.or("TRANSPORT", true));
        let extra = a.or("EXTRA_LENGTH", true);
        Some(Box::new(TruncateIPPayload {
            length: length?.into(),
            transport: transport?,
            extra_length: extra?,
        }))
    },
    ..Class::DEFAULT
};

struct TruncateIPPayload {
    length: usize,
    transport: bool,
    extra_length: bool,
}

/// Bytes of the transport header.
fn transport_len(packet: &Packet, protocol: u8) -> usize {
    let bytes = packet.transport().unwrap_or_default();
    let timestamp = |b: &&u8| matches!(b, 13 | 14);
    match protocol {
        ipv4::TCP => bytes
            .get(12)
            .map_or(0, |b| usize::from(b >> 4) * 4)
            .max(tcp::HEADER),
        ipv4::UDP => udp::HEADER,
        ipv4::ICMP if bytes.len() < icmp::HEADER => 0,
        ipv4::ICMP if bytes.first().filter(timestamp).is_some() => icmp::HEADER + 12,
        ipv4::ICMP => icmp::HEADER,
        _ => 0,
    }
}

impl TruncateIPPayload {
    /// How many bytes are to be kept after the network header, and how many there are.
    fn kept(&self, packet: &Packet) -> (usize, usize) {
        let Some(network) = packet.network() else {
            return (self.length, packet.len());
        };
        let kept = match header(packet) {
            Some(h) if h.header_len() >= ipv4::HEADER && self.transport => {
                h.header_len() + transport_len(packet, h.protocol())
            }
            Some(h) => h.header_len().max(ipv4::HEADER),
            None => ipv4::HEADER,
        };
        (kept + self.length, network.len())
    }
}

impl InPlace for TruncateIPPayload {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let (kept, length) = self.kept(packet);
        let cut = length.saturating_sub(kept).min(packet.len());
        packet.take(cut);
        if self.extra_length {
            let before = packet.anno().u32(anno::EXTRA_LENGTH);
            let cut = u32::try_from(cut).unwrap_or(u32::MAX);
            let total = before.saturating_add(cut);
            packet.anno_mut().set_u32(anno::EXTRA_LENGTH, total);
        }
        0
    }
}

impl Element for TruncateIPPayload {
    in_place!(plain);
}
