// SPDX-License-Identifier: Apache-2.0
//! Turns IPv4 packets into IPv6 packets.
//!
//! # Synopsis
//! `ProtocolTranslator46()`: address 1.2.3.4 becomes `::ffff:1.2.3.4`. ICMP messages become ICMPv6 messages, with the
//! header of a packet they quote. Time to live and type of service are kept; checksums are computed again; IP options go.
//! # Ports
//! 1/1, agnostic. Takes packets that begin with their header. Dropped: fragments, wrong headers, ICMP messages that have no
//! counterpart. The header annotation is set.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Keeps type of service and time to live and leaves out options. Also translates the packet that
//! an error quotes, and reports the MTU. Drops fragments and packets without a counterpart.
//! # Example
//! `... -> CheckIPHeader -> ProtocolTranslator46 -> GetIP6Address(24) -> rt6;`
use crate::ip6::translate::{Version, translate};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ProtocolTranslator46",
    build: |_| Some(Box::new(ProtocolTranslator46)),
    ..Class::DEFAULT
};

struct ProtocolTranslator46;

impl InPlace for ProtocolTranslator46 {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(translate(packet, Version::Six))
    }
}

impl Element for ProtocolTranslator46 {
    in_place!(plain);
}
