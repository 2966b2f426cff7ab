// SPDX-License-Identifier: Apache-2.0
//! Moves packets in memory so that their data begins at a multiple of a number of bytes, plus an offset.
//!
//! # Synopsis
//! `Align(MODULUS, OFFSET)`: MODULUS 2, 4 or 8, OFFSET less than that; both mandatory.
//! No element here needs it; it is for configurations that have it.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> Strip(14) -> Align(4, 0) -> CheckIPHeader -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Align",
    args: &[mandatory("MODULUS"), mandatory("OFFSET")],
    build: |a| {
        let (modulus, offset) = (a.need("MODULUS"), a.need("OFFSET"));
        let (modulus, offset) = (modulus?, offset?);
        if ![2, 4, 8].contains(&modulus) {
            a.error("MODULUS", format!("expected 2, 4 or 8, got {modulus}"));
        } else if offset >= modulus {
            a.error("OFFSET", format!("{offset} is not less than {modulus}"));
        }
        Some(Box::new(Align { modulus, offset }))
    },
    ..Class::DEFAULT
};

struct Align {
    modulus: usize,
    offset: usize,
}

impl Align {
    /// How far the data has to move up.
    fn distance(&self, packet: &Packet) -> usize {
        let address = packet.data().as_ptr().addr() % self.modulus;
        (self.offset + self.modulus - address) % self.modulus
    }

    /// Moves the data; false if the packet would become too long.
    fn align(&self, packet: &mut Packet) -> bool {
        // making room may move the packet to other memory
        if self.distance(packet) == 0 {
            return true;
        }
        if !packet.put(self.modulus) {
            return false;
        }
        packet.take(self.modulus);
        let distance = self.distance(packet);
        let (mac, network) = (packet.mac_offset(), packet.network_offset());
        let transport = packet.transport_offset();
        let length = packet.len();
        if distance == 0 || !packet.put(distance) {
            return distance == 0;
        }
        packet.data_mut().copy_within(..length, distance);
        packet.pull(distance);
        if let Some(mac) = mac {
            packet.set_mac_offset(mac);
        }
        let header = |o: Option<isize>| o.and_then(|o| usize::try_from(o).ok());
        match (header(network), header(transport)) {
            (Some(begin), Some(end)) => packet.set_network(begin, end.saturating_sub(begin)),
            // it was stripped, and the bytes in front of the data did not move
            _ => packet.clear_network(),
        }
        true
    }
}

impl InPlace for Align {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(self.align(packet))
    }
}

impl Element for Align {
    in_place!(plain);
}

#[cfg(test)]
mod tests {
    use super::*;
    use click_core::PacketPool;

    #[test]
    fn every_offset_of_every_modulus_is_met() {
        let mut pool = PacketPool::new(1);
        for modulus in [2, 4, 8] {
            for offset in 0..modulus {
                for start in 0..8 {
                    let mut packet = pool
                        .packet_from(b"01234567-data")
                        .expect("the pool is free");
                    packet.set_network(9, 2);
                    packet.pull(start);
                    let element = Align { modulus, offset };
                    assert!(element.align(&mut packet));
                    assert_eq!(packet.data().as_ptr().addr() % modulus, offset);
                    assert_eq!(packet.data(), &b"01234567-data"[start..]);
                    assert_eq!(packet.network(), Some(&b"data"[..]));
                    assert_eq!(packet.transport(), Some(&b"ta"[..]));
                }
            }
        }
    }
}
