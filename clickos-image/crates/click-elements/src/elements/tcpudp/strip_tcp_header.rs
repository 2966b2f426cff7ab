// SPDX-License-Identifier: Apache-2.0
//! Removes the transport header from the front of packets.
//!
//! # Synopsis
//! `StripTCPHeader()`: removes everything in front of the data of TCP, UDP or ICMP. StripTransportHeader and
//! StripUDPHeader are other names for it.
//! # Ports
//! 1/1, agnostic. The header annotation must be set. Packets without it, later fragments, and packets without a whole
//! header of these three protocols pass unchanged.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! See `NumberPacket`.
//! # Example
//! `CheckIPHeader -> StripIPHeader -> StripTCPHeader -> Print(data) -> UnstripIPHeader -> ...`
use click_wire::{icmp, ipv4, tcp, udp};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StripTCPHeader",
    aliases: &["StripTransportHeader", "StripUDPHeader"],
    build: |_| Some(Box::new(StripTCPHeader)),
    ..Class::DEFAULT
};

struct StripTCPHeader;

/// The byte of a TCP header whose upper half is the header's length in words.
const TCP_LENGTH: usize = 12;

/// Where the data after the transport header begin, with IP and transport header at these offsets.
fn data_begin(data: &[u8], network: usize, transport: usize) -> Option<usize> {
    let ip = ipv4::View::new_checked(data.get(network..)?).ok()?;
    let rest = data.get(transport..)?;
    let (least, length) = match ip.protocol() {
        ipv4::TCP => (tcp::HEADER, usize::from(rest.get(TCP_LENGTH)? >> 4) * 4),
        ipv4::UDP => (udp::HEADER, udp::HEADER),
        ipv4::ICMP => (icmp::HEADER, icmp::HEADER),
        _ => return None,
    };
    let whole = ip.is_first() && length >= least && length <= rest.len();
    whole.then_some(transport + length)
}

/// Removes what is in front of the data; nothing if that is not known. A stripped IP header is looked at
/// where it was.
fn strip(packet: &mut Packet) -> Option<()> {
    let (network, transport) = (packet.network_offset()?, packet.transport_offset()?);
    let stripped = network.min(0).unsigned_abs();
    if !packet.push(stripped) {
        return None;
    }
    let behind = |offset: isize| offset.checked_add_unsigned(stripped)?.try_into().ok();
    let offsets = behind(network).zip(behind(transport));
    let begin =
        offsets.and_then(|(network, transport)| data_begin(packet.data(), network, transport));
    packet.pull(begin.unwrap_or(stripped).max(stripped));
    Some(())
}

impl InPlace for StripTCPHeader {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        // without a header it passes as it is
        let _ = strip(packet);
        0
    }
}

impl Element for StripTCPHeader {
    in_place!(plain);
}
