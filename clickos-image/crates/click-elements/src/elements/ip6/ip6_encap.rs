// SPDX-License-Identifier: Apache-2.0
//! Puts IPv6 headers in front of packets.
//!
//! # Synopsis
//! `IP6Encap(PROTO, SRC, DST [, HLIM, CLASS])`: PROTO is a number or a name; DST may be `DST_ANNO`, the destination
//! annotation, whose 16 bytes are an IPv6 address. HLIM is the hop limit (default 250), CLASS the traffic class
//! (default 0). Header and destination annotations are set.
//! # Ports
//! 1/1, agnostic. Packets too long for a header are dropped.
//! # Handlers
//! * `src`, `dst` (read, write): SRC and DST.
//! # Example
//! `... -> IP6Encap(ipip, 2001:db8::1, 2001:db8::2, HLIM 20) -> ...`
use crate::ip6::{Address, Destination, HEADER, Repr};
use crate::numbers::Protocol;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IP6Encap",
    args: &[
        mandatory("PROTO"),
        mandatory("SRC"),
        mandatory("DST"),
        keyword("HLIM"),
        keyword("CLASS"),
    ],
    handlers: &[
        read_write(
            "src",
            |me: &mut IP6Encap, _| text(me.source),
            set!(|me, source, _| me.source = source),
        ),
        read_write(
            "dst",
            |me, _| text(me.destination),
            set!(|me, to, _| me.destination = to),
        ),
    ],
    build: |a| {
        let (protocol, source) = (a.need::<Protocol>("PROTO"), a.need("SRC"));
        let (destination, hops) = (a.need("DST"), a.or("HLIM", 250u8));
        let class = a.or("CLASS", 0u8);
        Some(Box::new(IP6Encap {
            protocol: protocol?.0,
            source: source?,
            destination: destination?,
            hops: hops?,
            class: class?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct IP6Encap {
    protocol: u8,
    source: Address,
    destination: Destination,
    hops: u8,
    class: u8,
}

impl IP6Encap {
    fn encapsulate(&self, packet: &mut Packet) -> bool {
        let Ok(payload_len) = u16::try_from(packet.len()) else {
            return false;
        };
        if !packet.push(HEADER) {
            return false;
        }
        let destination = self.destination.of(packet);
        let header = Repr {
            traffic_class: self.class,
            payload_len,
            next_header: self.protocol,
            hop_limit: self.hops,
            source: self.source,
            destination,
        };
        header.emit(packet.data_mut());
        packet.set_network(0, HEADER);
        destination.put(packet);
        true
    }
}

impl InPlace for IP6Encap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(self.encapsulate(packet))
    }
}

impl Element for IP6Encap {
    in_place!(plain);
}
