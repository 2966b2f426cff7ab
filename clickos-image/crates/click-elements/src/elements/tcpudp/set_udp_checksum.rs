// SPDX-License-Identifier: Apache-2.0
//! Computes the checksum of UDP packets.
//!
//! # Synopsis
//! `SetUDPChecksum()`: over as many bytes as the UDP header says.
//! # Ports
//! 1/1-2, agnostic. The header annotation must be set. Output 1 (push) gets fragments and packets too short for their
//! length; they are dropped if it is not connected, the first with a message.
//! # Handlers
//! None of its own.
//! # Example
//! `CheckIPHeader -> StoreIPAddress(10.0.0.1, src) -> SetUDPChecksum -> ...`
use click_wire::{ipv4, udp};

use crate::ip_packet::header;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetUDPChecksum",
    ports: "1/1-2",
    processing: "a/ah",
    build: |_| Some(Box::new(SetUDPChecksum { complained: false })),
    ..Class::DEFAULT
};

struct SetUDPChecksum {
    complained: bool,
}

/// Whether the datagram was whole and got its checksum.
fn fill(packet: &mut Packet) -> Option<()> {
    let ip = header(packet)?;
    if ip.fragment() & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET) != 0 {
        return None;
    }
    let (source, destination) = (ip.source(), ip.destination());
    let bytes = packet.transport_mut().filter(|b| b.len() >= udp::HEADER)?;
    let length = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
    let datagram = bytes.get_mut(..length).filter(|d| d.len() >= udp::HEADER)?;
    let ports = udp::Repr {
        source: u16::from_be_bytes([datagram[0], datagram[1]]),
        destination: u16::from_be_bytes([datagram[2], datagram[3]]),
    };
    ports.emit(datagram, source, destination);
    Some(())
}

impl Element for SetUDPChecksum {
    fn process(&mut self, ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        if fill(&mut packet).is_some() {
            return Out::Port(0, packet);
        }
        if ctx.outputs() == 1 && !self.complained {
            self.complained = true;
            let line = format!("{} :: SetUDPChecksum: fragment or short packet", ctx.name());
            ctx.print(&line);
        }
        Out::Port(1, packet)
    }
}
