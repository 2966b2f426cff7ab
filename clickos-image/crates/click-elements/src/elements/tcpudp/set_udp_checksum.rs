// SPDX-License-Identifier: Apache-2.0
//! Computes the checksum of UDP packets.
//!
//! # Synopsis
//! `SetUDPChecksum()`: over as many bytes as the UDP header says. The element takes the
//! payload for UDP.
//! # Ports
//! 1/1-2, agnostic. The header annotation must be set. Output 1 (push) gets fragments and packets too short for their
//! length; they are dropped if it is not connected, the first with a message.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! At the end of a source route the checksum covers the destination (RFC 1122, 4.1.3.5). Writes a
//! checksum of 0 as 65,535 (RFC 768). It reports once that a packet is too short.
//! # Example
//! `CheckIPHeader -> StoreIPAddress(10.0.0.1, src) -> SetUDPChecksum -> ...`
use click_wire::{checksum, ipv4, udp};

use crate::ip_packet::{header, pseudo};
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

/// Fills in the checksum; `None` if the datagram is incomplete.
fn fill(packet: &mut Packet) -> Option<()> {
    let ip = header(packet)?;
    if ip.fragment() & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET) != 0 {
        return None;
    }
    let bytes = packet.transport().filter(|b| b.len() >= udp::HEADER)?;
    let length = u16::from_be_bytes([bytes[4], bytes[5]]);
    let fits = usize::from(length) <= bytes.len();
    let pseudo = pseudo(packet, length).filter(|_| fits)?;
    let bytes = packet.transport_mut()?;
    bytes[6..udp::HEADER].fill(0);
    let sum = checksum::add(pseudo, bytes.get(..length.into())?);
    // 0 would mean that there is no checksum
    let sum = match checksum::finish(sum) {
        0 => 0xffff,
        sum => sum,
    };
    bytes[6..udp::HEADER].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

impl InPlace for SetUDPChecksum {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if fill(packet).is_some() {
            return 0;
        }
        if ctx.outputs() == 1 && !self.complained {
            self.complained = true;
            let line = format!("{} :: SetUDPChecksum: fragment or short packet", ctx.name());
            ctx.print(&line);
        }
        1
    }
}

impl Element for SetUDPChecksum {
    in_place!();
}
