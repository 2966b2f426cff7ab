// SPDX-License-Identifier: Apache-2.0
//! Keeps Ethernet frames that are for a host.
//!
//! # Synopsis
//! `HostEtherFilter(ETHER [, DROP_OWN, DROP_OTHER, OFFSET])`: ETHER is the host's address. Frames to others are filtered out
//! unless DROP_OTHER is false (default true), frames from ETHER if DROP_OWN (default false). Frames to groups and everyone
//! are kept. The packet type annotation is set. The header is OFFSET bytes (default 0) after the start.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets what is filtered out, and what has no header; it is dropped if that is not
//! connected.
//! # Handlers
//! * `ether` (read, write): ETHER.
//! # Differences from Click
//! Checks that there is a whole header.
//! # Example
//! `FromDevice(0) -> HostEtherFilter(vif0) -> ...`
use click_core::anno::PacketType;
use click_wire::ether;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "HostEtherFilter",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        mandatory("ETHER"),
        optional("DROP_OWN"),
        optional("DROP_OTHER"),
        keyword("OFFSET"),
    ],
    handlers: &[read_write(
        "ether",
        |me: &mut HostEtherFilter, _| text(me.address),
        set!(|me, mac, _| me.address = mac),
    )],
    build: |a| {
        let (address, own) = (a.need("ETHER"), a.or("DROP_OWN", false));
        let (other, offset) = (a.or("DROP_OTHER", true), a.or("OFFSET", 0usize));
        Some(Box::new(HostEtherFilter {
            address: address?,
            drop_own: own?,
            drop_other: other?,
            offset: offset?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct HostEtherFilter {
    address: EtherAddr,
    drop_own: bool,
    drop_other: bool,
    offset: usize,
}

impl InPlace for HostEtherFilter {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let bytes = packet.data().get(self.offset..).unwrap_or_default();
        let Ok(header) = ether::Repr::parse(bytes) else {
            return 1;
        };
        if self.drop_own && header.source == self.address.0 {
            return 1;
        }
        let kind = match header.destination {
            to if to == self.address.0 => PacketType::Host,
            ether::BROADCAST => PacketType::Broadcast,
            to if ether::is_group(to) => PacketType::Multicast,
            _ => PacketType::OtherHost,
        };
        packet.anno_mut().set_packet_type(kind);
        let filtered = kind == PacketType::OtherHost && self.drop_other;
        usize::from(filtered)
    }
}

impl Element for HostEtherFilter {
    in_place!(plain);
}
