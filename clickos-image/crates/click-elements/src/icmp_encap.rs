// SPDX-License-Identifier: Apache-2.0
//! Elements that put ICMP and IP headers in front of packets.
use click_wire::{icmp, ipv4};

use crate::ip_packet::encapsulate;
use crate::prelude::*;

/// Bytes of a timestamp message's header; the others have eight.
const TIMESTAMP: usize = 20;
const TTL: u8 = 255;

/// Puts the headers of one kind of message in front of packets.
pub struct Encap {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub kind: u8,
    pub code: u8,
    pub identifier: u16,
    /// Identification and sequence number of the next packet, never 0.
    next: u16,
}

impl Encap {
    /// Reads SRC, DST and IDENTIFIER.
    pub fn build(a: &mut Args<'_>, kind: u8, code: u8) -> Built {
        let (source, destination) = (a.need("SRC"), a.need("DST"));
        let identifier = a.or("IDENTIFIER", 0u16);
        Some(Box::new(Self {
            source: source?,
            destination: destination?,
            kind,
            code,
            identifier: identifier?,
            next: 1,
        }))
    }

    fn encapsulate(&mut self, packet: &mut Packet) -> bool {
        let numbered = matches!(self.kind, 0 | 8 | 13..=16);
        let length = if matches!(self.kind, 13 | 14) {
            TIMESTAMP
        } else {
            icmp::HEADER
        };
        if !packet.push(length) {
            return false;
        }
        packet.data_mut()[..length].fill(0);
        let numbers = u32::from(self.identifier) << 16 | u32::from(self.next);
        let message = icmp::Repr {
            kind: self.kind,
            code: self.code,
            rest: if numbered { numbers } else { 0 },
        };
        message.emit(packet.data_mut());
        let header = ipv4::Repr {
            tos: 0,
            id: self.next,
            fragment: 0,
            ttl: TTL,
            protocol: ipv4::ICMP,
            source: self.source,
            destination: self.destination,
            payload_len: 0,
        };
        self.next = self.next.checked_add(1).unwrap_or(1);
        encapsulate(packet, header)
    }
}

impl InPlace for Encap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(self.encapsulate(packet))
    }
}

/// Handlers of such elements.
pub const HANDLERS: [Handler<Encap>; 2] = [
    read_write(
        "src",
        |me, _| text(me.source),
        set!(|me, source, _| me.source = source),
    ),
    read_write(
        "dst",
        |me, _| text(me.destination),
        set!(|me, to, _| me.destination = to),
    ),
];

impl Element for Encap {
    in_place!(plain);
}
