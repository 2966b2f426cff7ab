// SPDX-License-Identifier: Apache-2.0
//! A packet on its way to another thread: a copy, since buffers belong to one thread.
use click_core::anno::{self, PacketType};
use click_core::{Packet, PacketPool};

/// Bytes before the data that are copied with it, for elements that give back what was stripped.
const BEFORE: usize = 64;

/// The copy. Its memory is used again for the next one.
#[derive(Default)]
pub struct Slot {
    /// What was stripped, and the data.
    bytes: Vec<u8>,
    before: usize,
    headroom: usize,
    timestamp_ns: u64,
    mac: Option<isize>,
    network: Option<(isize, usize)>,
    annotations: Option<Box<[u8; anno::SIZE]>>,
    annotated: bool,
    packet_type: PacketType,
}

impl Slot {
    /// Copies a packet here.
    pub fn fill(&mut self, packet: &Packet) {
        let (mac, network) = (packet.mac_offset(), packet.network_offset());
        let stripped = |at: Option<isize>| at.filter(|at| *at < 0).map_or(0, isize::unsigned_abs);
        self.before = BEFORE.max(stripped(mac)).max(stripped(network));
        self.before = self.before.min(packet.headroom());
        self.headroom = packet.headroom();
        self.bytes.clear();
        self.bytes.extend_from_slice(packet.data_from(self.before));
        self.timestamp_ns = packet.timestamp_ns();
        self.mac = mac;
        self.network = network.zip(packet.network_len());
        let annotations = packet.anno().bytes();
        self.annotated = annotations != [0; anno::SIZE];
        if self.annotated {
            **self
                .annotations
                .get_or_insert_with(|| Box::new(annotations)) = annotations;
        }
        self.packet_type = packet.anno().packet_type();
    }

    /// Copies the packet out; `None` if the pool has no buffer.
    pub fn take(&mut self, pool: &mut PacketPool) -> Option<Packet> {
        let mut packet = pool.alloc_with(self.headroom - self.before, self.bytes.len())?;
        packet.data_mut().copy_from_slice(&self.bytes);
        let from_start = |at: isize| at.checked_add_unsigned(self.before);
        if let Some((at, len)) = self.network {
            if let Some(at) = from_start(at).and_then(|at| usize::try_from(at).ok()) {
                packet.set_network(at, len);
            }
        }
        if let Some(at) = self.mac.and_then(from_start) {
            packet.set_mac_offset(at);
        }
        packet.pull(self.before);
        packet.set_timestamp_ns(self.timestamp_ns);
        if let (true, Some(annotations)) = (self.annotated, &self.annotations) {
            packet.anno_mut().set_bytes(annotations);
        }
        if self.packet_type != PacketType::Host {
            packet.anno_mut().set_packet_type(self.packet_type);
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_arrives_as_it_was() {
        let (mut here, mut there) = (PacketPool::new(4), PacketPool::new(1));
        let mut packet = here.packet_from(&[7; 100]).unwrap();
        packet.set_mac_offset(0);
        packet.set_network(14, 20);
        packet.pull(34);
        packet.set_timestamp_ns(5);
        packet.anno_mut().set_u32(anno::AGGREGATE, 9);
        packet.anno_mut().set_dst_ip([1, 2, 3, 4]);
        packet.anno_mut().set_packet_type(PacketType::Multicast);
        let mut slot = Slot::default();
        slot.fill(&here.packet_from(&[1; 300]).unwrap());
        slot.fill(&packet);
        let mut copy = slot.take(&mut there).unwrap();
        assert!(slot.take(&mut there).is_none());
        assert_eq!(copy.data(), packet.data());
        assert_eq!(copy.headroom(), packet.headroom());
        assert_eq!(
            (copy.mac(), copy.network()),
            (packet.mac(), packet.network())
        );
        assert_eq!(copy.transport_offset(), Some(0));
        assert_eq!(copy.anno().bytes(), packet.anno().bytes());
        assert_eq!(copy.anno().packet_type(), PacketType::Multicast);
        assert_eq!(copy.timestamp_ns(), 5);
        assert!(copy.push(34) && copy.data() == [7; 100]);
    }
}
