// SPDX-License-Identifier: Apache-2.0
//! A run of packets that travel together, in arrival order.
use alloc::collections::VecDeque;
use alloc::collections::vec_deque::{Drain, IntoIter, Iter, IterMut};

use crate::packet::Packet;

/// Packets in arrival order.
#[derive(Debug, Default)]
pub struct Batch {
    packets: VecDeque<Packet>,
}

impl Batch {
    /// An empty batch; it allocates at the first packet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there is no packet.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Appends a packet.
    pub fn push_back(&mut self, packet: Packet) {
        self.packets.push_back(packet);
    }

    /// Puts a packet in front, as one that did not fit a device.
    pub fn push_front(&mut self, packet: Packet) {
        self.packets.push_front(packet);
    }

    /// Takes the oldest packet.
    pub fn pop_front(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    /// Takes the youngest packet.
    pub fn pop_back(&mut self) -> Option<Packet> {
        self.packets.pop_back()
    }

    /// The oldest packet.
    pub fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Moves all packets of `other` to the end of this batch.
    pub fn append(&mut self, other: &mut Self) {
        self.packets.append(&mut other.packets);
    }

    /// All packets, oldest first.
    pub fn iter(&self) -> Iter<'_, Packet> {
        self.packets.iter()
    }

    /// All packets, to change in place.
    pub fn iter_mut(&mut self) -> IterMut<'_, Packet> {
        self.packets.iter_mut()
    }

    /// Takes the oldest `n` packets (at most all).
    pub fn drain_front(&mut self, n: usize) -> Drain<'_, Packet> {
        let n = n.min(self.packets.len());
        self.packets.drain(..n)
    }

    /// Keeps the packets for which `keep` is true.
    pub fn retain_mut(&mut self, keep: impl FnMut(&mut Packet) -> bool) {
        self.packets.retain_mut(keep);
    }

    /// Drops all packets, keeps the memory.
    pub fn clear(&mut self) {
        self.packets.clear();
    }
}

impl IntoIterator for Batch {
    type Item = Packet;
    type IntoIter = IntoIter<Packet>;
    fn into_iter(self) -> Self::IntoIter {
        self.packets.into_iter()
    }
}

impl Extend<Packet> for Batch {
    fn extend<I: IntoIterator<Item = Packet>>(&mut self, packets: I) {
        self.packets.extend(packets);
    }
}
