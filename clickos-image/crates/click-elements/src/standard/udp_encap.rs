// SPDX-License-Identifier: Apache-2.0
//! Elements that put UDP and IP headers in front of packets.
use click_core::class::Handler;
use click_wire::{ipv4, udp};

use crate::ip_packet::{Destination, encapsulate};
use crate::numbers::UdpPort;
use crate::prelude::*;

/// Handlers of such elements.
pub const HANDLERS: &[Handler] = &[
    read_write("src"),
    read_write("sport"),
    read_write("dst"),
    read_write("dport"),
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

struct UDPIPEncap {
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
const MOST: usize = 65_535 - ipv4::HEADER - udp::HEADER;
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
        if packet.len() > MOST || !packet.push(udp::HEADER) {
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

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "src" => text(self.source),
            "sport" => text(self.ports.source),
            "dst" => text(self.destination),
            "dport" => text(self.ports.destination),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "src" => on_value(view, value, |me: &mut Self, source, _| me.source = source),
            "dst" => on_value(view, value, |me: &mut Self, to, _| me.destination = to),
            "sport" => on_value(view, value, |me: &mut Self, port: UdpPort, _| {
                me.ports.source = port.0;
            }),
            "dport" => on_value(view, value, |me: &mut Self, port: UdpPort, _| {
                me.ports.destination = port.0;
            }),
            _ => undeclared(handler),
        }
    }
}
