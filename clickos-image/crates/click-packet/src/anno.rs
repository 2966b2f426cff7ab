// SPDX-License-Identifier: Apache-2.0
//! The 48 annotation bytes of a packet; offsets are Click's (click/packet_anno.hh).
use crate::data_span::ANNOTATIONS;
use crate::packet::Packet;

/// Destination IPv4 or IPv6 address.
pub const DST_IP: usize = 0;
/// Paint color, one byte.
pub const PAINT: usize = 16;
/// Pointer of an ICMP parameter problem, one byte.
pub const ICMP_PARAMPROB: usize = 17;
/// True if a later FixIPSrc is to set the source address, one byte.
pub const FIX_IP_SRC: usize = 19;
/// Aggregate number, four bytes.
pub const AGGREGATE: usize = 20;
/// VLAN tag control information, two bytes.
pub const VLAN_TCI: usize = 20;
/// Bytes that were cut off, four bytes.
pub const EXTRA_LENGTH: usize = 28;
/// Bytes of a destination IPv4 address.
pub(crate) const DST_IP_SIZE: usize = 4;
/// Bytes of annotations of a packet.
pub const SIZE: usize = 48;

/// The kind of link-level destination of a packet that came in.
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

impl PacketType {
    /// The stored kind. A hostile writer's other bits mean `Host`.
    #[inline]
    pub(crate) fn from_bits(bits: u8) -> Self {
        match bits {
            1 => Self::Broadcast,
            2 => Self::Multicast,
            3 => Self::OtherHost,
            4 => Self::Outgoing,
            5 => Self::Loopback,
            _ => Self::Host,
        }
    }
}

/// A packet as its annotations. The first ones, `DST_IP_SIZE` bytes, travel with the pointer to it; the others lie in
/// its buffer.
#[repr(transparent)]
pub struct Annotations(Packet);

impl Packet {
    /// Annotations, as Click's 48 bytes.
    #[inline]
    pub fn anno(&self) -> &Annotations {
        // SAFETY: it is a packet and nothing else.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// Annotations, to change.
    #[inline]
    pub fn anno_mut(&mut self) -> &mut Annotations {
        // SAFETY: it is a packet and nothing else.
        unsafe { &mut *core::ptr::from_mut(self).cast() }
    }
}

impl Annotations {
    #[inline]
    fn get<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        if offset >= DST_IP_SIZE {
            return self.0.annotations().get(offset..)?.first_chunk().copied();
        }
        self.bytes().get(offset..)?.first_chunk().copied()
    }

    /// The byte at `offset`; 0 beyond the end.
    #[inline]
    pub fn u8(&self, offset: usize) -> u8 {
        self.get(offset).map_or(0, u8::from_le_bytes)
    }

    /// The 16 bits at `offset`, in the byte order of Click's hosts (little-endian); 0 beyond the end.
    #[inline]
    pub fn u16(&self, offset: usize) -> u16 {
        self.get(offset).map_or(0, u16::from_le_bytes)
    }

    /// The 32 bits at `offset`, little-endian; 0 beyond the end.
    #[inline]
    pub fn u32(&self, offset: usize) -> u32 {
        self.get(offset).map_or(0, u32::from_le_bytes)
    }

    /// The destination address annotation.
    #[inline]
    pub fn dst_ip(&self) -> [u8; DST_IP_SIZE] {
        self.0.dst_ip
    }

    /// The destination address annotation of an IPv6 packet.
    #[inline]
    pub fn dst_ip6(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.0.annotations()[..16]);
        bytes[..DST_IP_SIZE].copy_from_slice(&self.0.dst_ip);
        bytes
    }

    /// Sets the destination address annotation of an IPv6 packet.
    #[inline]
    pub fn set_dst_ip6(&mut self, address: [u8; 16]) {
        self.0.dst_ip.copy_from_slice(&address[..DST_IP_SIZE]);
        self.0.annotations_mut()[DST_IP_SIZE..16].copy_from_slice(&address[DST_IP_SIZE..]);
    }

    /// For whom the packet came in.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        self.0.packet_type()
    }

    /// All bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; SIZE] {
        let mut bytes = *self.0.annotations();
        bytes[..DST_IP_SIZE].copy_from_slice(&self.0.dst_ip);
        bytes
    }

    #[inline]
    fn set<const N: usize>(&mut self, offset: usize, value: [u8; N]) {
        if offset > SIZE - N {
            return;
        }
        if offset >= DST_IP_SIZE {
            self.0.annotations_mut()[offset..offset + N].copy_from_slice(&value);
            return;
        }
        let mut bytes = self.0.anno().bytes();
        bytes[offset..offset + N].copy_from_slice(&value);
        self.0.dst_ip.copy_from_slice(&bytes[..DST_IP_SIZE]);
        if offset + N > DST_IP_SIZE {
            *self.0.annotations_mut() = bytes;
        }
    }

    /// Sets the byte at `offset`; nothing beyond the end.
    #[inline]
    pub fn set_u8(&mut self, offset: usize, value: u8) {
        self.set(offset, value.to_le_bytes());
    }

    /// Sets the 16 bits at `offset`; nothing beyond the end.
    #[inline]
    pub fn set_u16(&mut self, offset: usize, value: u16) {
        self.set(offset, value.to_le_bytes());
    }

    /// Sets the 32 bits at `offset`; nothing beyond the end.
    #[inline]
    pub fn set_u32(&mut self, offset: usize, value: u32) {
        self.set(offset, value.to_le_bytes());
    }

    /// Sets the destination address annotation.
    #[inline]
    pub fn set_dst_ip(&mut self, address: [u8; DST_IP_SIZE]) {
        self.0.dst_ip = address;
    }

    /// Takes over all of another packet.
    pub fn copy_from(&mut self, from: &Self) {
        self.0.dst_ip = from.0.dst_ip;
        if !from.0.span.has(ANNOTATIONS) {
            return self.0.span.clear(ANNOTATIONS);
        }
        *self.0.annotations_mut() = *from.0.annotations();
        self.0.set_packet_type(from.0.packet_type());
    }

    /// Sets for whom the packet came in.
    #[inline]
    pub fn set_packet_type(&mut self, packet_type: PacketType) {
        self.0.set_packet_type(packet_type);
    }
}
