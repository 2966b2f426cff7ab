// SPDX-License-Identifier: Apache-2.0
//! Swaps sender and receiver of IPv6 packets.
//!
//! # Synopsis
//! `IP6Mirror()`: swaps the addresses and, for TCP and UDP after a header without extensions, the ports.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! None of its own.
//! # Example
//! `... -> CheckIP6Header -> IP6Mirror -> ...`
use click_wire::{ipv4, udp};

use crate::ip6::{NEXT_HEADER_AT, header_mut};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IP6Mirror",
    build: |_| Some(Box::new(IP6Mirror)),
    ..Class::DEFAULT
};

struct IP6Mirror;

impl InPlace for IP6Mirror {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(header) = header_mut(packet) else {
            return DROPPED;
        };
        // no checksum changes: sums do not know the order of what they add
        header[8..].rotate_left(16);
        let has_ports = [ipv4::TCP, ipv4::UDP].contains(&header[NEXT_HEADER_AT]);
        let bytes = packet.transport_mut();
        if let Some(bytes) = bytes.filter(|b| has_ports && b.len() >= udp::HEADER) {
            bytes[..4].rotate_left(2);
        }
        0
    }
}

impl Element for IP6Mirror {
    in_place!(plain);
}
