// SPDX-License-Identifier: Apache-2.0
//! The 48 annotation bytes of a packet; offsets are Click's (click/packet_anno.hh).

/// Destination IPv4 or IPv6 address.
pub const DST_IP: usize = 0;
/// Paint colour, one byte.
pub const PAINT: usize = 16;
/// Pointer of an ICMP parameter problem, one byte.
pub const ICMP_PARAMPROB: usize = 17;
/// Whether a later FixIPSrc is to set the source address, one byte.
pub const FIX_IP_SRC: usize = 19;
/// Aggregate number, four bytes.
pub const AGGREGATE: usize = 20;
/// VLAN tag control information, two bytes.
pub const VLAN_TCI: usize = 20;
/// Bytes that were cut off, four bytes.
pub const EXTRA_LENGTH: usize = 28;
/// Bytes of annotations of a packet.
pub const SIZE: usize = 48;

/// What kind of link-level destination a packet came in for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// To this host.
    #[default]
    Host,
    /// To everyone.
    Broadcast,
    /// To a group.
    Multicast,
    /// To somebody else.
    OtherHost,
    /// Sent by this host.
    Outgoing,
    /// From this host to itself.
    Loopback,
}

/// Annotations of one packet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Annotations {
    bytes: [u8; SIZE],
    /// For whom the packet came in.
    pub packet_type: PacketType,
}

impl Annotations {
    /// What a fresh packet has: zeros.
    pub const NONE: Self = Self {
        bytes: [0; SIZE],
        packet_type: PacketType::Host,
    };

    /// The byte at `offset`; 0 beyond the end.
    #[inline]
    pub fn u8(&self, offset: usize) -> u8 {
        self.bytes.get(offset).copied().unwrap_or(0)
    }

    /// Sets the byte at `offset`; nothing beyond the end.
    #[inline]
    pub fn set_u8(&mut self, offset: usize, value: u8) {
        if let Some(b) = self.bytes.get_mut(offset) {
            *b = value;
        }
    }

    /// The 16 bits at `offset`, in the byte order of Click's hosts (little-endian); 0 beyond the end.
    #[inline]
    pub fn u16(&self, offset: usize) -> u16 {
        let b = self.bytes.get(offset..).and_then(|b| b.first_chunk());
        b.map_or(0, |b| u16::from_le_bytes(*b))
    }

    /// Sets the 16 bits at `offset`; nothing beyond the end.
    #[inline]
    pub fn set_u16(&mut self, offset: usize, value: u16) {
        if let Some(b) = self.bytes.get_mut(offset..offset + 2) {
            b.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// The 32 bits at `offset`, little-endian; 0 beyond the end.
    #[inline]
    pub fn u32(&self, offset: usize) -> u32 {
        let b = self.bytes.get(offset..).and_then(|b| b.first_chunk());
        b.map_or(0, |b| u32::from_le_bytes(*b))
    }

    /// Sets the 32 bits at `offset`; nothing beyond the end.
    #[inline]
    pub fn set_u32(&mut self, offset: usize, value: u32) {
        if let Some(b) = self.bytes.get_mut(offset..offset + 4) {
            b.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// The destination address annotation.
    #[inline]
    pub fn dst_ip(&self) -> [u8; 4] {
        [self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]]
    }

    /// Sets the destination address annotation.
    #[inline]
    pub fn set_dst_ip(&mut self, address: [u8; 4]) {
        self.bytes[DST_IP..DST_IP + 4].copy_from_slice(&address);
    }

    /// All bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8; SIZE] {
        &self.bytes
    }
}
