// SPDX-License-Identifier: Apache-2.0
//! Puts IP headers in front of packets that go to the other end of a tunnel.
//!
//! # Synopsis
//! `IPsecEncap(PROTO)`: PROTO is a number or a name. The destination is the destination annotation, which is the gateway
//! of the route; the source is left to a later `FixIPSrc`. TTL is 250, identifications count up from 0.
//! # Ports
//! 1/1, agnostic. Packets too long for a header are dropped.
//! # Handlers
//! None of its own.
//! # Example
//! `rt[1] -> IPsecESPEncap -> IPsecAuthHMACSHA1(0) -> IPsecAES(1) -> IPsecEncap(50) -> FixIPSrc(10.0.0.1) -> ...`
use click_core::anno;
use click_wire::ipv4;

use crate::ip_packet::{Destination, encapsulate};
use crate::numbers::Protocol;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPsecEncap",
    args: &[mandatory("PROTO")],
    build: |a| {
        let protocol: Protocol = a.need("PROTO")?;
        Some(Box::new(IPsecEncap {
            protocol: protocol.0,
            id: 0,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct IPsecEncap {
    protocol: u8,
    id: u16,
}

impl InPlace for IPsecEncap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let header = ipv4::Repr {
            tos: 0,
            id: self.id,
            fragment: 0,
            ttl: 250,
            protocol: self.protocol,
            source: Ipv4Addr::UNSPECIFIED,
            destination: Destination::Annotation.of(packet),
            payload_len: 0,
        };
        if !encapsulate(packet, header) {
            return DROPPED;
        }
        self.id = self.id.wrapping_add(1);
        packet.anno_mut().set_u8(anno::FIX_IP_SRC, 1);
        0
    }
}

impl Element for IPsecEncap {
    in_place!(plain);

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.id = old.id;
        }
    }
}
