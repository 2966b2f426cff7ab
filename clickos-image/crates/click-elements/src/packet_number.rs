// SPDX-License-Identifier: Apache-2.0
//! Numbers of 64 bits in packets, by which elements recognize a packet.
use crate::prelude::*;

/// Bytes of a number.
pub const SIZE: usize = 8;
/// The usual place: after headers of IP and TCP.
const OFFSET: u16 = 40;

/// The place and the form of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketNumber {
    pub offset: usize,
    /// The highest byte comes first, instead of the lowest.
    pub net_order: bool,
}

impl PacketNumber {
    /// Reads OFFSET and NET_ORDER.
    pub fn arguments(a: &mut Args<'_>) -> Option<Self> {
        let (place, net_order) = (Self::offset(a), a.or("NET_ORDER", false));
        Some(Self {
            net_order: net_order?,
            ..place?
        })
    }

    /// Reads OFFSET alone.
    pub fn offset(a: &mut Args<'_>) -> Option<Self> {
        Some(Self {
            offset: usize::from(a.or("OFFSET", OFFSET)?),
            net_order: false,
        })
    }

    /// The number of a packet, unless it is too short for one.
    pub fn of(self, packet: &Packet) -> Option<u64> {
        let bytes = *packet.data().get(self.offset..)?.first_chunk::<SIZE>()?;
        Some(match self.net_order {
            true => u64::from_be_bytes(bytes),
            false => u64::from_le_bytes(bytes),
        })
    }

    /// Writes a number; false if it has no room.
    pub fn put(self, packet: &mut Packet, number: u64) -> bool {
        let missing = (self.offset + SIZE).saturating_sub(packet.len());
        if missing > 0 && !packet.put(missing) {
            return false;
        }
        let bytes = match self.net_order {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        packet.data_mut()[self.offset..][..SIZE].copy_from_slice(&bytes);
        true
    }
}

/// The element that writes consecutive numbers.
pub struct NumberPacket {
    place: PacketNumber,
    count: u64,
}

impl NumberPacket {
    pub fn new(place: PacketNumber) -> Self {
        Self { place, count: 0 }
    }

    /// Packets numbered.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The form of its numbers.
    pub fn net_order(&self) -> bool {
        self.place.net_order
    }
}

impl InPlace for NumberPacket {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let numbered = self.place.put(packet, self.count);
        self.count += u64::from(numbered);
        kept_if(numbered)
    }
}

impl Element for NumberPacket {
    in_place!(plain);

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.count = old.count;
        }
    }
}
