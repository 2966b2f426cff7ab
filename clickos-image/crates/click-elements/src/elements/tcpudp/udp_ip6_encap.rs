// SPDX-License-Identifier: Apache-2.0
//! Puts UDP and IPv6 headers in front of packets.
//!
//! # Synopsis
//! `UDPIP6Encap(SRC, SPORT, DST, DPORT)`: all mandatory; ports are numbers or names; DST may be `DST_ANNO`, the destination
//! annotation, whose 16 bytes are an IPv6 address. The hop limit is 255. Header and destination annotations are set.
//! # Ports
//! 1/1, agnostic. Packets too long for the headers are dropped.
//! # Handlers
//! * `src`, `sport`, `dst`, `dport` (read, write): the arguments.
//! # Example
//! `RatedSource -> UDPIP6Encap(2001:db8::1, 1234, 2001:db8::2, 5678) -> EtherEncap(0x86dd, vif0, 2:0:0:0:0:1) -> ToDevice(0);`
use click_wire::{ipv4, udp};

use crate::ip6::{self, Address, Destination, HEADER};
use crate::numbers::UdpPort;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "UDPIP6Encap",
    args: &[
        mandatory("SRC"),
        mandatory("SPORT"),
        mandatory("DST"),
        mandatory("DPORT"),
    ],
    handlers: &[
        read_write(
            "src",
            |me: &mut UDPIP6Encap, _| text(me.source),
            set!(|me, source, _| me.source = source),
        ),
        read_write(
            "sport",
            |me, _| text(me.sport),
            set!(|me, port: UdpPort, _| me.sport = port.0),
        ),
        read_write(
            "dst",
            |me, _| text(me.destination),
            set!(|me, to, _| me.destination = to),
        ),
        read_write(
            "dport",
            |me, _| text(me.dport),
            set!(|me, port: UdpPort, _| me.dport = port.0),
        ),
    ],
    build: |a| {
        let (source, sport) = (a.need("SRC"), a.need::<UdpPort>("SPORT"));
        let (destination, dport) = (a.need("DST"), a.need::<UdpPort>("DPORT"));
        Some(Box::new(UDPIP6Encap {
            source: source?,
            destination: destination?,
            sport: sport?.0,
            dport: dport?.0,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct UDPIP6Encap {
    source: Address,
    destination: Destination,
    sport: u16,
    dport: u16,
}

impl UDPIP6Encap {
    fn encapsulate(&self, packet: &mut Packet) -> bool {
        let Ok(length) = u16::try_from(packet.len() + udp::HEADER) else {
            return false;
        };
        let destination = self.destination.of(packet);
        if !packet.push(HEADER + udp::HEADER) {
            return false;
        }
        let bytes = packet.data_mut();
        ip6::emit(bytes, ipv4::UDP, self.source, destination);
        for (at, value) in [(0, self.sport), (2, self.dport), (4, length), (6, 0)] {
            bytes[HEADER + at..HEADER + at + 2].copy_from_slice(&value.to_be_bytes());
        }
        ip6::fill_checksum(bytes, 6);
        packet.set_network(0, HEADER);
        destination.put(packet);
        true
    }
}

impl InPlace for UDPIP6Encap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(self.encapsulate(packet))
    }
}

impl Element for UDPIP6Encap {
    in_place!(plain);
}
