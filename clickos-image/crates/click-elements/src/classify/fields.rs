// SPDX-License-Identifier: Apache-2.0
//! What patterns look at: the headers of one packet. A field that is not there has no value.
use click_core::Packet;

use super::lanes::{self, WIDTH};

/// A header field by its place: a number of 1, 2 or 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Axis {
    pub transport: bool,
    pub at: u16,
    pub bytes: u8,
}

impl Axis {
    pub const FRAGMENT: Self = Self::new(false, 6, 2);
    pub const PROTOCOL: Self = Self::new(false, 9, 1);
    pub const SOURCE: Self = Self::new(false, 12, 4);
    pub const DESTINATION: Self = Self::new(false, 16, 4);
    pub const SOURCE_PORT: Self = Self::new(true, 0, 2);
    pub const DESTINATION_PORT: Self = Self::new(true, 2, 2);
    pub const TCP_FLAGS: Self = Self::new(true, 13, 1);

    const fn new(transport: bool, at: u16, bytes: u8) -> Self {
        Self {
            transport,
            at,
            bytes,
        }
    }

    /// Bits of the field's values.
    pub const fn bits(self) -> u32 {
        self.bytes as u32 * 8
    }
}

/// The headers of a packet.
#[derive(Clone, Copy)]
pub struct Headers<'a> {
    /// From the network header on; nothing if it is not whole.
    pub network: &'a [u8],
    /// Bytes in front of the transport header; all there are in later fragments.
    pub behind: u32,
    /// The packet itself, for what few ask for.
    pub packet: Option<&'a Packet>,
}

/// Bytes of an IPv4 header without options.
const SHORTEST: usize = 20;

impl<'a> Headers<'a> {
    /// The headers that the packet's annotations mark.
    #[inline]
    pub fn of(packet: &'a Packet) -> Self {
        let whole = packet.network().filter(|n| n.len() >= SHORTEST);
        let network = whole.unwrap_or_default();
        let is_first = whole.is_some_and(|n| u16::from_be_bytes([n[6], n[7]]) & 0x1fff == 0);
        let transport = packet.transport().filter(|_| is_first);
        let behind = network.len() - transport.map_or(0, <[u8]>::len).min(network.len());
        Self {
            network,
            behind: u32::try_from(behind).expect("a packet is shorter than 4 GiB"),
            packet: Some(packet),
        }
    }

    /// From the transport header on; nothing in later fragments.
    pub fn transport(&self) -> &'a [u8] {
        self.network.get(self.behind as usize..).unwrap_or_default()
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
    /// All bits if that counts from the transport header on.
    transport: u32,
    shift: u32,
}

impl Place {
    /// The place of a field.
    pub fn of(axis: Axis) -> Self {
        Self {
            at: axis.at.into(),
            transport: if axis.transport { u32::MAX } else { 0 },
            shift: 32 - axis.bits(),
        }
    }

    /// Where the field lies in plain headers, if it and what is read with it lies there.
    pub fn in_plain(self) -> Option<usize> {
        let at = self.at + (SHORTEST as u32 & self.transport);
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
        let at = self.at + (headers.behind & self.transport);
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
