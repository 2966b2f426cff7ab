// SPDX-License-Identifier: Apache-2.0
//! Devices that exist so that a guest's configuration can be checked; no packet ever reaches them.
use click_core::{Batch, Device, PacketPool};

/// A device of a guest that does not run.
pub struct UnpluggedVif {
    /// Its number, which makes its address.
    pub devid: u32,
}

impl Device for UnpluggedVif {
    fn receive(&mut self, _max: usize, _pool: &mut PacketPool, _out: &mut Batch) -> usize {
        0
    }

    fn transmit(&mut self, _batch: &mut Batch, _pool: &mut PacketPool) -> usize {
        0
    }

    fn flush(&mut self) {}

    fn mac(&self) -> [u8; 6] {
        let [a, b, c, d] = self.devid.to_be_bytes();
        [2, 0, a, b, c, d]
    }

    fn mtu(&self) -> u16 {
        1500
    }
}
