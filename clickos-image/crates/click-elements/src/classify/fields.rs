// SPDX-License-Identifier: Apache-2.0
//! What patterns look at: the headers of one packet. A field that is not there has no value.
use click_core::Packet;

/// The headers of a packet.
#[derive(Clone, Copy)]
pub struct Headers<'a> {
    /// From the network header on.
    pub network: &'a [u8],
    /// From the transport header on.
    pub transport: &'a [u8],
    /// From the link header on.
    pub link: &'a [u8],
}

impl<'a> Headers<'a> {
    /// The headers that the packet's annotations mark.
    pub fn of(packet: &'a Packet) -> Self {
        Self {
            network: packet.network().unwrap_or_default(),
            transport: packet.transport().unwrap_or_default(),
            link: packet.mac().unwrap_or_default(),
        }
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> Option<u8> {
        self.network.get(9).copied()
    }

    /// Source address.
    pub fn source(&self) -> Option<u32> {
        u32_at(self.network, 12)
    }

    /// Destination address.
    pub fn destination(&self) -> Option<u32> {
        u32_at(self.network, 16)
    }

    /// Flags and offset of the fragment.
    pub fn fragment(&self) -> Option<u16> {
        u16_at(self.network, 6)
    }

    /// Whether there is a transport header of this very packet.
    pub fn is_first(&self) -> bool {
        self.fragment().is_some_and(|f| f & 0x1fff == 0)
    }

    /// Source port, if this is a first fragment.
    pub fn source_port(&self) -> Option<u16> {
        u16_at(self.transport, 0).filter(|_| self.is_first())
    }

    /// Destination port, if this is a first fragment.
    pub fn destination_port(&self) -> Option<u16> {
        u16_at(self.transport, 2).filter(|_| self.is_first())
    }
}

/// A big-endian number at an offset.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u16::from_be_bytes)
}

/// A big-endian number at an offset.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u32::from_be_bytes)
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
