// SPDX-License-Identifier: Apache-2.0
//! IP headers of packets: finding the marked one, changing it, putting one in front.
use click_core::ArgContext;
use click_core::text::unquote;
use click_wire::ipv4::{self, View as Header};
use click_wire::{checksum, icmp, tcp, udp};

use crate::ip_options::source_route::SourceRoute;
use crate::prelude::*;

/// The marked IP header, if there are bytes for one. Its length fields may lie.
pub fn header(packet: &Packet) -> Option<Header<&[u8]>> {
    let bytes = packet.network().filter(|b| b.len() >= ipv4::HEADER)?;
    Some(Header::new_unchecked(bytes))
}

/// The address that counts in the checksums of TCP and UDP: where the packet goes in the end.
pub fn final_destination(packet: &Packet) -> Option<Ipv4Addr> {
    let header = header(packet)?;
    let routed = match header.header_len() {
        ipv4::HEADER => None,
        length => SourceRoute::end(packet.network()?.get(..length)?),
    };
    Some(routed.unwrap_or(header.destination()))
}

/// The running sum of the pseudo header in front of `length` bytes of payload.
pub fn pseudo(packet: &Packet, length: u16) -> Option<u64> {
    let (header, destination) = (header(packet)?, final_destination(packet)?);
    let (source, protocol) = (header.source(), header.protocol());
    Some(checksum::pseudo(source, destination, protocol, length))
}

/// Like [`header`], to change.
pub fn header_mut(packet: &mut Packet) -> Option<Header<&mut [u8]>> {
    let bytes = packet.network_mut().filter(|b| b.len() >= ipv4::HEADER)?;
    Some(Header::new_unchecked(bytes))
}

/// Where packets that get a header go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To this address.
    Fixed(Ipv4Addr),
    /// To the destination annotation.
    Annotation,
}

impl FromArg for Destination {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match unquote(text).as_str() {
            "DST_ANNO" => Ok(Self::Annotation),
            _ => Ipv4Addr::from_arg(text, at).map(Self::Fixed),
        }
    }
}

impl core::fmt::Display for Destination {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Fixed(address) => address.fmt(f),
            Self::Annotation => f.write_str("DST_ANNO"),
        }
    }
}

impl Destination {
    /// The address for `packet`.
    pub fn of(self, packet: &Packet) -> Ipv4Addr {
        match self {
            Self::Fixed(address) => address,
            Self::Annotation => packet.anno().dst_ip().into(),
        }
    }
}

/// Puts an IP header in front of the data, whose length it sets in `repr`, and sets header and destination
/// annotations; false if the packet would become too long.
#[must_use]
pub fn encapsulate(packet: &mut Packet, mut repr: ipv4::Repr) -> bool {
    let Ok(payload_len) = u16::try_from(packet.len()) else {
        return false;
    };
    let fits = payload_len <= u16::MAX - 20;
    if !fits || !packet.push(ipv4::HEADER) {
        return false;
    }
    repr.payload_len = payload_len;
    repr.emit(packet.data_mut());
    packet.set_network(0, ipv4::HEADER);
    packet.anno_mut().set_dst_ip(repr.destination.octets());
    true
}

/// Puts an ICMP header in front of the data; false if the packet would become too long.
#[must_use]
pub fn encapsulate_icmp(packet: &mut Packet, repr: icmp::Repr) -> bool {
    let room = packet.push(icmp::HEADER);
    if room {
        repr.emit(packet.data_mut());
    }
    room
}

/// An address of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Destination,
}

/// Changes an address of the marked header; the checksums of header, TCP and UDP follow.
pub fn set_address(packet: &mut Packet, side: Side, address: Ipv4Addr) -> bool {
    let Some(mut header) = header_mut(packet) else {
        return false;
    };
    let old = match side {
        Side::Source => header.source(),
        Side::Destination => header.destination(),
    };
    match side {
        Side::Source => header.set_source(address),
        Side::Destination => header.set_destination(address),
    }
    let (protocol, first) = (header.protocol(), header.is_first());
    if first {
        fix_transport_checksum(packet, protocol, |sum| {
            checksum::update_u32(sum, old.into(), address.into())
        });
    }
    true
}

/// Updates the checksum of the transport header, where there is one that addresses or ports count in.
pub fn fix_transport_checksum(packet: &mut Packet, protocol: u8, update: impl FnOnce(u16) -> u16) {
    let (at, length) = match protocol {
        ipv4::TCP => (16, tcp::HEADER),
        ipv4::UDP => (6, udp::HEADER),
        _ => return,
    };
    let Some(bytes) = packet.transport_mut().filter(|b| b.len() >= length) else {
        return;
    };
    let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    if protocol == ipv4::UDP && old == 0 {
        return;
    }
    let new = match update(old) {
        // 0 would mean that there is no checksum
        0 if protocol == ipv4::UDP => 0xffff,
        sum => sum,
    };
    bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
}
