// SPDX-License-Identifier: Apache-2.0
//! Turns IPv6 packets into IPv4 packets.
//!
//! # Synopsis
//! `ProtocolTranslator64()`: addresses must be `::ffff:1.2.3.4` or `::1.2.3.4`, not 0. ICMPv6 messages become ICMP
//! messages, with the header of a packet they quote. Hop limit and traffic class are kept; checksums are computed again.
//! # Ports
//! 1/1, agnostic. Takes packets that begin with their header. Dropped: other addresses, headers with extensions, wrong
//! headers, ICMPv6 messages that have no counterpart. The header annotation is set.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Keeps type of service and time to live and leaves out options. Also translates the packet that
//! an error quotes, and reports the MTU. Drops fragments and packets without a counterpart.
//! # Example
//! `... -> CheckIP6Header -> ProtocolTranslator64 -> GetIPAddress(16) -> rt;`
use crate::ip6::translate::{Version, translate};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ProtocolTranslator64",
    build: |_| Some(Box::new(ProtocolTranslator64)),
    ..Class::DEFAULT
};

struct ProtocolTranslator64;

impl InPlace for ProtocolTranslator64 {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(translate(packet, Version::Four))
    }
}

impl Element for ProtocolTranslator64 {
    in_place!(plain);
}
