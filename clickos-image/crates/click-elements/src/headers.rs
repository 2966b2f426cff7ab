// SPDX-License-Identifier: Apache-2.0
//! What patterns look at: the headers of one packet of IPv4 or IPv6. A field that is not there has no value.
use click_core::Packet;

use crate::ip6;
use crate::lanes::{self, WIDTH};

/// Where the bytes of a field are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// The header of IPv4.
    Ip4,
    /// That of either version.
    Either,
    /// Nine bytes in front of the protocol's number, as in the header of IPv4. In IPv6 it is behind the extension
    /// headers.
    Protocol,
    /// The transport header.
    Transport,
    /// The header of IPv6.
    Ip6,
    /// The fragment header of IPv6.
    Fragment6,
}

/// A header field by its place: a number of 1, 2 or 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Axis {
    pub start: Start,
    pub at: u16,
    pub bytes: u8,
}

impl Axis {
    pub const FRAGMENT: Self = Self::new(Start::Ip4, 6, 2);
    pub const PROTOCOL: Self = Self::new(Start::Protocol, PROTOCOL_AT, 1);
    pub const SOURCE: Self = Self::new(Start::Ip4, 12, 4);
    pub const DESTINATION: Self = Self::new(Start::Ip4, 16, 4);
    pub const SOURCE_PORT: Self = Self::new(Start::Transport, 0, 2);
    pub const DESTINATION_PORT: Self = Self::new(Start::Transport, 2, 2);
    pub const TCP_FLAGS: Self = Self::new(Start::Transport, 13, 1);
    /// Of every IPv6 packet.
    pub const NEXT_HEADER6: Self = Self::new(Start::Ip6, 6, 1);
    /// Offset and flag of a fragment.
    pub const FRAGMENT6: Self = Self::new(Start::Fragment6, 2, 2);

    const fn new(start: Start, at: u16, bytes: u8) -> Self {
        Self { start, at, bytes }
    }

    /// Bits of the field's values.
    pub const fn bits(self) -> u32 {
        self.bytes as u32 * 8
    }

    /// True if only packets of IPv6 have the field.
    pub const fn is_ip6(self) -> bool {
        matches!(self.start, Start::Ip6 | Start::Fragment6)
    }

    /// True if it is in the transport header.
    pub const fn is_transport(self) -> bool {
        matches!(self.start, Start::Transport)
    }
}

/// The headers of a packet.
#[derive(Clone, Copy)]
pub struct Headers<'a> {
    /// From the network header on; nothing if it is not whole.
    pub network: &'a [u8],
    /// Where the bytes of each [`Start`] begin, or [`NOWHERE`]. The last two are never read.
    pub starts: [u32; 8],
    /// The packet itself, for what few ask for.
    pub packet: Option<&'a Packet>,
}

/// Beyond every packet.
pub const NOWHERE: u32 = 1 << 31;
/// Bytes of an IPv4 header without options.
const SHORTEST: usize = 20;
/// Where it has the protocol's number.
const PROTOCOL_AT: u16 = 9;
/// Bits of the fragment fields of IPv4 and IPv6 that only fragments have set.
pub const FRAGMENT_BITS: u32 = 0x3fff;
pub const FRAGMENT6_BITS: u32 = 0xfff9;

impl<'a> Headers<'a> {
    /// The headers that the packet's annotations mark.
    #[inline]
    pub fn of(packet: &'a Packet) -> Self {
        let network = packet.network().unwrap_or_default();
        if network.first().is_some_and(|byte| byte >> 4 == 6) {
            return Self::of_ip6(network, Some(packet));
        }
        let whole = Some(network).filter(|n| n.len() >= SHORTEST);
        let network = whole.unwrap_or_default();
        let is_first = whole.is_some_and(|n| u16::from_be_bytes([n[6], n[7]]) & 0x1fff == 0);
        let transport = packet.transport().filter(|_| is_first);
        let behind = network.len() - transport.map_or(0, <[u8]>::len).min(network.len());
        let behind = u32::try_from(behind).expect("a packet is shorter than 2 GiB");
        Self::of_ip4(network, behind, Some(packet))
    }

    /// The headers of IPv4, of which the transport header is after that many bytes.
    #[inline]
    pub fn of_ip4(network: &'a [u8], behind: u32, packet: Option<&'a Packet>) -> Self {
        Self {
            network,
            starts: [0, 0, 0, behind, NOWHERE, NOWHERE, NOWHERE, NOWHERE],
            packet,
        }
    }

    /// The headers of IPv6.
    #[cold]
    pub fn of_ip6(network: &'a [u8], packet: Option<&'a Packet>) -> Self {
        let mut starts = [NOWHERE; 8];
        let upper = ip6::Upper::of(network);
        let number = |at: usize| u32::try_from(at).expect("a packet is shorter than 2 GiB");
        if let Some(upper) = &upper {
            let protocol = number(upper.named_at).wrapping_sub(PROTOCOL_AT.into());
            let transport = upper.is_whole().then(|| number(upper.at));
            let fragment = upper.fragment_at.map(number);
            starts[Start::Ip6 as usize] = 0;
            starts[Start::Either as usize] = 0;
            starts[Start::Protocol as usize] = protocol;
            starts[Start::Transport as usize] = transport.unwrap_or(NOWHERE);
            starts[Start::Fragment6 as usize] = fragment.unwrap_or(NOWHERE);
        }
        Self {
            network: upper.map_or(&[], |_| network),
            starts,
            packet,
        }
    }

    /// The bytes that are counted from a start on; nothing if the packet lacks it.
    pub fn from(&self, start: Start) -> &'a [u8] {
        let at = self.starts[start as usize] as usize;
        self.network.get(at..).unwrap_or_default()
    }

    /// The value of a field, if it is there.
    #[inline]
    pub fn value(&self, axis: Axis) -> Option<u32> {
        Place::of(axis).value(self)
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> Option<u32> {
        self.value(Axis::PROTOCOL)
    }

    /// Whether the packet is a fragment, if it is one of IPv4 or IPv6.
    pub fn is_fragment(&self) -> Option<bool> {
        let is_set = |axis, bits| Some(self.value(axis)? & bits != 0);
        match self.value(Axis::NEXT_HEADER6) {
            None => is_set(Axis::FRAGMENT, FRAGMENT_BITS),
            Some(_) => is_set(Axis::FRAGMENT6, FRAGMENT6_BITS).or(Some(false)),
        }
    }
}

/// The bytes from the network header on, if the transport header, of a packet's first fragment, is right behind one
/// without options: then every field has its fixed place there.
#[inline]
pub fn plain(packet: &Packet) -> Option<&[u8; WIDTH]> {
    let bytes = packet.network()?.first_chunk::<WIDTH>()?;
    let is_first = u16::from_be_bytes([bytes[6], bytes[7]]) & 0x1fff == 0;
    Some(bytes).filter(|_| packet.network_len() == Some(SHORTEST) && is_first)
}

/// The value of the first bytes of a header's last three.
#[cold]
fn last_value(bytes: &[u8], bits: u32) -> Option<u32> {
    match bits {
        8 => bytes.first().map(|b| u32::from(*b)),
        16 => bytes.first_chunk().map(|b| u16::from_be_bytes(*b).into()),
        _ => None,
    }
}

/// Where a field lies, made ready for looking at it in many packets.
#[derive(Clone, Copy)]
pub struct Place {
    at: u32,
    start: u32,
    shift: u32,
}

impl Place {
    /// The place of a field.
    pub fn of(axis: Axis) -> Self {
        Self {
            at: axis.at.into(),
            start: axis.start as u32,
            shift: 32 - axis.bits(),
        }
    }

    /// Where the field lies in plain headers of IPv4, if it and what is read with it lies there.
    pub fn in_plain(self) -> Option<usize> {
        let starts = [0, 0, 0, SHORTEST as u32];
        let at = self.at + starts.get(self.start as usize)?;
        usize::try_from(at).ok().filter(|at| *at + 4 <= WIDTH)
    }

    /// The value of the field at this place in plain headers, which `in_plain` says.
    #[inline]
    pub fn plain_value(self, headers: &[u8; WIDTH], at: usize) -> u32 {
        u32::from_be_bytes(lanes::bytes(headers, at)) >> self.shift
    }

    /// The value of the field, if it is there.
    #[inline]
    pub fn value(self, headers: &Headers<'_>) -> Option<u32> {
        let start = headers.starts[(self.start & 7) as usize];
        let at = self.at.wrapping_add(start);
        let bytes = headers.network.get(at as usize..)?;
        match bytes.first_chunk() {
            Some(word) => Some(u32::from_be_bytes(*word) >> self.shift),
            None => last_value(bytes, 32 - self.shift),
        }
    }
}

/// The bits `offset..offset + len` (at most 32, inside one aligned word), if their bytes are there.
pub fn bits_at(bytes: &[u8], offset: usize, len: usize) -> Option<u32> {
    let (first, last) = (offset / 8, (offset + len - 1) / 8);
    let value = bytes
        .get(first..=last)?
        .iter()
        .fold(0u64, |v, b| (v << 8) | u64::from(*b));
    let behind = (last + 1) * 8 - (offset + len);
    u32::try_from((value >> behind) & ((1 << len) - 1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_bytes() {
        let b = [0x45, 0xb8, 0x12, 0x34];
        assert_eq!(bits_at(&b, 0, 4), Some(4));
        assert_eq!(bits_at(&b, 8, 6), Some(0x2e));
        assert_eq!(bits_at(&b, 16, 16), Some(0x1234));
        assert_eq!(bits_at(&b, 0, 32), Some(0x45b8_1234));
        assert_eq!(bits_at(&b, 24, 16), None);
    }
}
