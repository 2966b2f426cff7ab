// SPDX-License-Identifier: Apache-2.0
//! IPv6 (RFC 8200) and neighbor discovery (RFC 4861), as far as elements need them.
use core::net::Ipv6Addr;

use click_core::Surroundings;
use click_core::text::unquote;
use click_wire::{checksum, ether};

use crate::prelude::*;

pub const ETHERTYPE: u16 = 0x86dd;
/// Bytes of a header without extensions.
pub const HEADER: usize = 40;
const ICMP6: u8 = 58;
/// No router has passed a packet with this.
pub const HOP_LIMIT: u8 = 255;

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(pub Ipv6Addr);

impl FromArg for Address {
    fn from_arg(text: &str, _: Surroundings<'_>) -> Result<Self, String> {
        let expected = |_| format!("expected an IPv6 address, got \"{}\"", text.escape_debug());
        text.parse().map(Self).map_err(expected)
    }
}

impl core::fmt::Display for Address {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl Address {
    /// The destination annotation.
    pub fn of(packet: &Packet) -> Self {
        let bytes = packet.anno().bytes().first_chunk::<16>();
        Self(Ipv6Addr::from(*bytes.expect("16 of 48 bytes")))
    }

    /// Sets the destination annotation.
    pub fn put(self, packet: &mut Packet) {
        for (offset, byte) in self.0.octets().into_iter().enumerate() {
            packet.anno_mut().set_u8(offset, byte);
        }
    }

    fn at(bytes: &[u8]) -> Option<Self> {
        let octets = bytes.first_chunk::<16>()?;
        Some(Self(Ipv6Addr::from(*octets)))
    }
}

/// An address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix6 {
    network: u128,
    pub length: u8,
}

impl FromArg for Prefix6 {
    fn from_arg(text: &str, at: Surroundings<'_>) -> Result<Self, String> {
        let (address, length) = text.split_once('/').unwrap_or((text, "128"));
        let length = length.parse().ok().filter(|l| *l <= 128);
        let expected = || format!("expected an IPv6 prefix, got \"{}\"", text.escape_debug());
        let length = length.ok_or_else(expected)?;
        let Address(address) = Address::from_arg(address, at)?;
        let network = u128::from(address) & mask(length);
        Ok(Self { network, length })
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

impl Prefix6 {
    pub fn contains(&self, address: Address) -> bool {
        u128::from(address.0) & mask(self.length) == self.network
    }
}

/// Where packets that get a header go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    Fixed(Address),
    /// To the destination annotation.
    Annotation,
}

impl FromArg for Destination {
    fn from_arg(text: &str, at: Surroundings<'_>) -> Result<Self, String> {
        match unquote(text).as_str() {
            "DST_ANNO" => Ok(Self::Annotation),
            _ => Address::from_arg(text, at).map(Self::Fixed),
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

/// Writes a header in front of `bytes[HEADER..]`.
pub fn emit(bytes: &mut [u8], protocol: u8, source: Address, destination: Address) {
    let payload = u16::try_from(bytes.len() - HEADER).expect("checked by the caller");
    bytes[..4].copy_from_slice(&[0x60, 0, 0, 0]);
    bytes[4..6].copy_from_slice(&payload.to_be_bytes());
    bytes[6..8].copy_from_slice(&[protocol, HOP_LIMIT]);
    bytes[8..24].copy_from_slice(&source.0.octets());
    bytes[24..HEADER].copy_from_slice(&destination.0.octets());
}

/// The checksum of what follows the header in `bytes`, its own field included.
pub fn transport_checksum(bytes: &[u8]) -> u16 {
    let (header, payload) = bytes.split_at(HEADER);
    let addresses = checksum::add(0, &header[8..]);
    let rest = u64::from(header[6]) + payload.len() as u64;
    checksum::finish(checksum::add(addresses + rest, payload))
}

/// A message of neighbor discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbor {
    pub kind: u8,
    pub flags: u8,
    pub source: Address,
    pub destination: Address,
    /// The address that it is about.
    pub target: Address,
    /// The link-layer address in its option, if it has one.
    pub link: Option<[u8; 6]>,
}

pub const SOLICITATION: u8 = 135;
pub const ADVERTISEMENT: u8 = 136;
/// From a router, and asked for.
pub const ROUTER_SOLICITED: u8 = 0xc0;
/// Type, code, checksum, flags, target.
const FIXED: usize = 24;
/// With the option for one Ethernet address.
const MESSAGE: usize = FIXED + 8;
/// Bytes of a frame with such a message.
pub const FRAME: usize = ether::HEADER + HEADER + MESSAGE;

impl Neighbor {
    /// The message in a frame; `None` if it is none, was routed, or its checksum is wrong.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let header = ether::Repr::parse(frame).ok()?;
        let packet = frame
            .get(ether::HEADER..)
            .filter(|_| header.ethertype == ETHERTYPE)?;
        let length = u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]);
        let packet = packet.get(..HEADER + usize::from(length))?;
        let message = packet.get(HEADER..).filter(|m| m.len() >= FIXED)?;
        let valid = packet[0] >> 4 == 6 && packet[6..8] == [ICMP6, HOP_LIMIT] && message[1] == 0;
        if !valid || transport_checksum(packet) != 0 {
            return None;
        }
        Some(Self {
            kind: message[0],
            flags: message[4],
            source: Address::at(&packet[8..])?,
            destination: Address::at(&packet[24..])?,
            target: Address::at(&message[8..])?,
            link: link_option(&message[FIXED..], message[0]),
        })
    }

    /// Writes the frame, of `FRAME` bytes.
    pub fn emit(&self, from: [u8; 6], to: [u8; 6], frame: &mut [u8]) {
        let header = ether::Repr {
            destination: to,
            source: from,
            ethertype: ETHERTYPE,
        };
        header.emit(frame);
        let packet = &mut frame[ether::HEADER..];
        packet[HEADER..].fill(0);
        emit(packet, ICMP6, self.source, self.destination);
        let message = &mut packet[HEADER..];
        (message[0], message[4]) = (self.kind, self.flags);
        message[8..FIXED].copy_from_slice(&self.target.0.octets());
        message[FIXED..FIXED + 2].copy_from_slice(&[option_of(self.kind), 1]);
        message[FIXED + 2..].copy_from_slice(&self.link.unwrap_or_default());
        let sum = transport_checksum(packet);
        packet[HEADER + 2..HEADER + 4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The option that says a link-layer address: the sender's in questions, the target's in answers.
fn option_of(kind: u8) -> u8 {
    if kind == SOLICITATION { 1 } else { 2 }
}

/// The link-layer address among options.
fn link_option(mut options: &[u8], kind: u8) -> Option<[u8; 6]> {
    while let [option, units, ..] = *options {
        let length = usize::from(units) * 8;
        let whole = options.get(..length).filter(|_| length > 0)?;
        if option == option_of(kind) {
            return whole[2..].first_chunk().copied();
        }
        options = &options[length..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Neighbor {
        Neighbor {
            kind: SOLICITATION,
            flags: 0,
            source: Address("fe80::1".parse().unwrap()),
            destination: Address("ff02::1:ff00:2".parse().unwrap()),
            target: Address("fe80::2".parse().unwrap()),
            link: Some([2, 0, 0, 0, 0, 1]),
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_that_was_changed() {
        let mut frame = [0; FRAME];
        message().emit([2, 0, 0, 0, 0, 1], [0x33; 6], &mut frame);
        assert_eq!(Neighbor::parse(&frame), Some(message()));
        for at in ether::HEADER + 6..FRAME {
            let mut changed = frame;
            changed[at] ^= 0x40;
            assert_eq!(Neighbor::parse(&changed), None, "byte {at}");
        }
        for length in 0..FRAME {
            assert_eq!(Neighbor::parse(&frame[..length]), None);
        }
    }

    #[test]
    fn options_that_lie_end_the_search() {
        let link = [2, 1, 1, 2, 3, 4, 5, 6];
        assert_eq!(link_option(&link, ADVERTISEMENT), Some([1, 2, 3, 4, 5, 6]));
        assert_eq!(link_option(&link, SOLICITATION), None);
        assert_eq!(link_option(&[9, 0, 2, 1], ADVERTISEMENT), None);
        assert_eq!(link_option(&[2, 9, 0, 0], ADVERTISEMENT), None);
    }
}
