// SPDX-License-Identifier: Apache-2.0
//! Swaps sender and receiver of IP packets.
//!
//! # Synopsis
//! `IPMirror([DST_ANNO])`: swaps the addresses and, for TCP and UDP, the ports; for TCP also sequence and acknowledgement
//! number. The destination annotation is set unless DST_ANNO is false.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! If a TCP packet is cut before the end of its port numbers, they are not exchanged. Packets
//! without a marked IP header are dropped.
//! # Example
//! `... -> CheckIPHeader -> IPMirror -> ...`
use click_wire::ipv4;

use crate::ip_packet::header_mut;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPMirror",
    args: &[optional("DST_ANNO")],
    build: |a| {
        Some(Box::new(IPMirror {
            annotate: a.or("DST_ANNO", true)?,
        }))
    },
    ..Class::DEFAULT
};

struct IPMirror {
    annotate: bool,
}

impl InPlace for IPMirror {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(mut header) = header_mut(packet) else {
            return DROPPED;
        };
        // no checksum changes: sums do not know the order of what they add
        let (source, destination) = (header.source(), header.destination());
        header.set_source(destination);
        header.set_destination(source);
        let protocol = header.protocol();
        let has_ports = header.is_first() && [ipv4::TCP, ipv4::UDP].contains(&protocol);
        if self.annotate {
            packet.anno_mut().set_dst_ip(source.octets());
        }
        let bytes = packet.transport_mut().filter(|b| has_ports && b.len() >= 8);
        if let Some(bytes) = bytes {
            bytes[..4].rotate_left(2);
            let numbers = bytes.get_mut(4..12).filter(|_| protocol == ipv4::TCP);
            if let Some(numbers) = numbers {
                numbers.rotate_left(4);
            }
        }
        0
    }
}

impl Element for IPMirror {
    in_place!(plain);
}
