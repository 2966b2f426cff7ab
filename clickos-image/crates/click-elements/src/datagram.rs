// SPDX-License-Identifier: Apache-2.0
//! UDP datagrams of an element that is itself an end of a protocol over IPv4.
use core::ops::Range;

use click_wire::{ipv4, udp};

use crate::ip_packet::encapsulate;
use crate::prelude::*;

/// An address and a port.
pub type End = (Ipv4Addr, u16);

/// The sender of a datagram to `own`, and where its payload lies in the packet; `None` for a fragment, for another
/// receiver, or with wrong lengths or sums.
pub fn payload(packet: &[u8], own: End) -> Option<(End, Range<usize>)> {
    let ip = ipv4::View::new_checked(packet).ok()?;
    let whole = ip.fragment() & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) == 0;
    let (source, destination) = (ip.source(), ip.destination());
    if !whole || ip.protocol() != ipv4::UDP || destination != own.0 {
        return None;
    }
    let header = udp::Repr::parse(ip.payload(), source, destination).ok()?;
    let length = ip
        .payload()
        .get(4..6)
        .map(|l| usize::from(u16::from_be_bytes([l[0], l[1]])))?;
    let start = ip.header_len() + udp::HEADER;
    let end = ip.header_len() + length;
    (header.destination == own.1).then_some(((source, header.source), start..end))
}

/// Makes a packet's bytes the payload of a datagram with an identification and a TTL, and sets its annotations; false if
/// it would become too long.
#[must_use]
pub fn wrap(packet: &mut Packet, from: End, to: End, (id, ttl): (u16, u8)) -> bool {
    if !packet.push(udp::HEADER) {
        return false;
    }
    let header = udp::Repr {
        source: from.1,
        destination: to.1,
    };
    header.emit(packet.data_mut(), from.0, to.0);
    let header = ipv4::Repr {
        tos: 0,
        id,
        fragment: 0,
        ttl,
        protocol: ipv4::UDP,
        source: from.0,
        destination: to.0,
        payload_len: 0,
    };
    encapsulate(packet, header)
}
