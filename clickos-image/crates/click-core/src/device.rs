// SPDX-License-Identifier: Apache-2.0
//! What a router sends to and receives from.
use alloc::vec::Vec;

use crate::{Batch, PacketPool};

/// A network device: one vif of a guest, or a test's.
pub trait Device {
    /// Appends up to `max` received packets to `out`; returns how many.
    fn receive(&mut self, max: usize, pool: &mut PacketPool, out: &mut Batch) -> usize;
    /// Sends from the front of `batch`, leaves what does not fit; returns how many were sent.
    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> usize;
    /// Called once after a burst of transmits: at most one notification.
    fn flush(&mut self);
    /// The hardware address.
    fn mac(&self) -> [u8; 6];
    /// Largest network packet in bytes, without the Ethernet header.
    fn mtu(&self) -> u16;
    /// The device's counters, by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A device whose wire is two queues in memory: what a test puts in, and what the router sent.
#[cfg(any(test, feature = "test-device"))]
#[derive(Debug, Default)]
pub struct MemoryDevice {
    /// Frames the router will receive.
    pub input: alloc::collections::VecDeque<alloc::vec::Vec<u8>>,
    /// Frames the router sent.
    pub output: alloc::vec::Vec<alloc::vec::Vec<u8>>,
    /// How many more frames fit; the ring of a real device fills up too.
    pub room: usize,
    /// How often `flush` was called.
    pub flushes: usize,
    /// The hardware address.
    pub mac: [u8; 6],
}

#[cfg(any(test, feature = "test-device"))]
impl MemoryDevice {
    /// A device with this address and room for everything.
    pub fn new(mac: [u8; 6]) -> Self {
        Self {
            mac,
            room: usize::MAX,
            ..Self::default()
        }
    }
}

#[cfg(any(test, feature = "test-device"))]
impl Device for MemoryDevice {
    fn receive(&mut self, max: usize, pool: &mut PacketPool, out: &mut Batch) -> usize {
        let mut received = 0;
        while received < max && !self.input.is_empty() {
            let Some(packet) = pool.packet_from(&self.input[0]) else {
                break;
            };
            self.input.pop_front();
            out.push_back(packet);
            received += 1;
        }
        received
    }

    fn transmit(&mut self, batch: &mut Batch, _pool: &mut PacketPool) -> usize {
        let n = batch.len().min(self.room);
        self.output
            .extend(batch.drain_front(n).map(|p| p.data().to_vec()));
        self.room -= n;
        n
    }

    fn flush(&mut self) {
        self.flushes += 1;
    }

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        1500
    }
}
