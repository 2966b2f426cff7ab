// SPDX-License-Identifier: Apache-2.0
//! Checks IPv6 headers.
//!
//! # Synopsis
//! `CheckIP6Header([BADADDRS, OFFSET, ROUTED])`: the header begins at byte OFFSET (default 0). Version, length and source address
//! must be right; no host sends from one of BADADDRS, nor from `ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff`. Bytes behind
//! the packet are cut off, and the header annotation is set. With ROUTED (default false) packets are wrong that no
//! router may forward: those of or to ::1, fe80::/10 and ff00::/8, those of :: (RFC 4291, sections 2.5 and 2.7), and those
//! whose packet type annotation is broadcast or multicast.
//! # Ports
//! 1/1-2, agnostic. Wrong packets leave by output 1 (push), or are dropped if it is not connected; the first one gets a
//! message.
//! # Handlers
//! * `drops` (read): how many were wrong.
//! # Example
//! `... -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> routes;`
use core::net::Ipv6Addr;

use click_core::anno::PacketType;
use click_core::text::split_words;

use crate::ip6::{Address, HEADER, View as Header};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckIP6Header",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[optional("BADADDRS"), optional("OFFSET"), keyword("ROUTED")],
    handlers: &[read("drops", |me: &mut CheckIP6Header, _| text(me.drops))],
    build: |a| {
        let (words, offset) = (a.or("BADADDRS", String::new()), a.or("OFFSET", 0usize));
        let routed = a.or("ROUTED", false);
        let words = split_words(&words?);
        let bad = words.iter().filter_map(|word| a.parse("BADADDRS", word));
        let bad = bad.chain([Address(NOBODY.into())]).collect();
        Some(Box::new(CheckIP6Header {
            bad,
            offset: offset?,
            routed: routed?,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

const NOBODY: [u8; 16] = [0xff; 16];

struct CheckIP6Header {
    bad: Vec<Address>,
    offset: usize,
    routed: bool,
    drops: u64,
}

/// True if no router forwards packets of or to an address: the loopback, of one link, or of a group.
fn is_local(address: Ipv6Addr) -> bool {
    address.is_loopback() || address.is_unicast_link_local() || address.is_multicast()
}

/// True if a router may forward a packet.
fn is_routed(packet: &Packet, header: &Header<'_>) -> bool {
    let (Address(source), Address(destination)) = (header.source(), header.destination());
    let kind = packet.anno().packet_type();
    let is_for_all = matches!(kind, PacketType::Broadcast | PacketType::Multicast);
    !is_for_all && !source.is_unspecified() && !is_local(source) && !is_local(destination)
}

impl CheckIP6Header {
    /// How many bytes follow the packet, if it is right.
    fn surplus(&self, packet: &Packet) -> Option<usize> {
        let bytes = packet.data().get(self.offset..)?;
        let header = Header::of(bytes).filter(|h| h.version() == 6)?;
        let surplus = bytes.len().checked_sub(HEADER + header.payload_len())?;
        let is_good = !self.bad.contains(&header.source());
        (is_good && (!self.routed || is_routed(packet, &header))).then_some(surplus)
    }
}

impl InPlace for CheckIP6Header {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if let Some(surplus) = self.surplus(packet) {
            packet.take(surplus);
            packet.set_network(self.offset, HEADER);
            return 0;
        }
        if self.drops == 0 {
            ctx.print("IP6 header check failed");
        }
        self.drops += 1;
        1
    }
}

impl Element for CheckIP6Header {
    in_place!();

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}
