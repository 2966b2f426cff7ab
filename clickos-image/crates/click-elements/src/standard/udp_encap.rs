// SPDX-License-Identifier: Apache-2.0
//! Elements that put UDP and IP headers in front of packets.
use click_wire::{ipv4, udp};

use crate::ip_packet::{Destination, encapsulate};
use crate::numbers::UdpPort;
use crate::prelude::*;

/// Handlers of such elements.
pub const HANDLERS: [Handler<UDPIPEncap>; 4] = [
    read_write(
        "src",
        |me, _| text(me.source),
        set!(|me, source, _| me.source = source),
    ),
    read_write(
        "sport",
        |me, _| text(me.ports.source),
        set!(|me, UdpPort(port), _| me.ports.source = port),
    ),
    read_write(
        "dst",
        |me, _| text(me.destination),
        set!(|me, to, _| me.destination = to),
    ),
    read_write(
        "dport",
        |me, _| text(me.ports.destination),
        set!(|me, UdpPort(port), _| me.ports.destination = port),
    ),
];

/// Builds one; after `interval` packets, unless it is 0, both ports are counted up.
pub fn build(a: &mut Args<'_>, interval: u32) -> Built {
    let (source, sport) = (a.need("SRC"), a.need::<UdpPort>("SPORT"));
    let (destination, dport) = (a.need("DST"), a.need::<UdpPort>("DPORT"));
    let checksum = a.or("CHECKSUM", true);
    Some(Box::new(UDPIPEncap {
        source: source?,
        destination: destination?,
        ports: udp::Repr {
            source: sport?.0,
            destination: dport?.0,
        },
        checksum: checksum?,
        id: 0,
        interval,
        count: 0,
    }))
}

pub struct UDPIPEncap {
    source: Ipv4Addr,
    destination: Destination,
    ports: udp::Repr,
    checksum: bool,
    id: u16,
    interval: u32,
    /// Packets since the ports were counted up.
    count: u32,
}

/// The longest payload that leaves room for both headers.
const MAX: usize = 65_535 - ipv4::HEADER - udp::HEADER;
const TTL: u8 = 250;

impl UDPIPEncap {
    fn count_up(&mut self) {
        if self.interval == 0 {
            return;
        }
        self.count += 1;
        if self.count == self.interval {
            self.count = 0;
            self.ports.source = self.ports.source.wrapping_add(1);
            self.ports.destination = self.ports.destination.wrapping_add(1);
        }
    }

    fn encapsulate(&mut self, packet: &mut Packet) -> bool {
        let destination = self.destination.of(packet);
        if packet.len() > MAX || !packet.push(udp::HEADER) {
            return false;
        }
        self.ports.emit(packet.data_mut(), self.source, destination);
        if !self.checksum {
            packet.data_mut()[6..udp::HEADER].fill(0);
        }
        let header = ipv4::Repr {
            tos: 0,
            id: self.id,
            fragment: 0,
            ttl: TTL,
            protocol: ipv4::UDP,
            source: self.source,
            destination,
            payload_len: 0,
        };
        self.id = self.id.wrapping_add(1);
        self.count_up();
        encapsulate(packet, header)
    }
}

impl InPlace for UDPIPEncap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(self.encapsulate(packet))
    }
}

impl Element for UDPIPEncap {
    in_place!(plain);

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.id = old.id;
        }
    }
}
