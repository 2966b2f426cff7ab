// SPDX-License-Identifier: Apache-2.0
//! The annotations IPRateMonitor sets: how much a host sends, and how much is sent to it.
use crate::prelude::*;

/// A rate annotation, four bytes with a sign.
pub struct RateAnno(usize);

/// The rate from the packet's source.
pub const FORWARD: RateAnno = RateAnno(20);
/// The rate to the packet's source.
pub const REVERSE: RateAnno = RateAnno(24);

impl RateAnno {
    /// Its value in a packet.
    pub fn of(&self, packet: &Packet) -> i64 {
        let bytes = packet.anno().u32(self.0).to_le_bytes();
        i64::from(i32::from_le_bytes(bytes))
    }

    /// Sets it in a packet, as much as there is room for.
    pub fn put(&self, packet: &mut Packet, rate: u64) {
        let value = i32::try_from(rate).unwrap_or(i32::MAX);
        let bits = u32::from_le_bytes(value.to_le_bytes());
        packet.anno_mut().set_u32(self.0, bits);
    }
}
