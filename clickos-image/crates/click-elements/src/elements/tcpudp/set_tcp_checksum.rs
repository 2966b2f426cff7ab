// SPDX-License-Identifier: Apache-2.0
//! Computes the checksum of TCP packets.
//!
//! # Synopsis
//! `SetTCPChecksum([FIXOFF])`: with FIXOFF (default false) a data offset that is too small or beyond the packet is
//! corrected first.
//! # Ports
//! 1/1, agnostic. The header annotation must be set. Packets whose lengths are wrong are dropped
//! with a message. The checksum covers the protocol the header names.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! At the end of a source route the checksum covers the destination (RFC 1122, 4.1.3.5).
//! # Example
//! `CheckIPHeader -> StoreIPAddress(10.0.0.1, src) -> SetTCPChecksum -> ...`
use click_wire::{checksum, ipv4, tcp};

use crate::ip_packet::{header, pseudo};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetTCPChecksum",
    args: &[optional("FIXOFF")],
    build: |a| {
        Some(Box::new(SetTCPChecksum {
            fix_offset: a.or("FIXOFF", false)?,
        }))
    },
    ..Class::DEFAULT
};

struct SetTCPChecksum {
    fix_offset: bool,
}

impl SetTCPChecksum {
    /// Fills in the checksum; `None` if the lengths are wrong.
    fn fill(&self, packet: &mut Packet) -> Option<()> {
        let ip = header(packet)?;
        let length = ip.total_len().checked_sub(ip.header_len())?;
        let is_fragment = ip.fragment() & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET) != 0;
        let pseudo = pseudo(packet, u16::try_from(length).ok()?)?;
        let bytes = packet.transport_mut()?.get_mut(..length)?;
        if length < tcp::HEADER {
            return None;
        }
        if self.fix_offset {
            let words = match usize::from(bytes[12] >> 4) {
                words if words * 4 < tcp::HEADER => tcp::HEADER / 4,
                words if words * 4 > length && !is_fragment => length / 4,
                words => words,
            };
            bytes[12] = bytes[12] & 15 | u8::try_from(words << 4).expect("at most 15 words");
        }
        bytes[16..18].fill(0);
        let sum = checksum::finish(checksum::add(pseudo, bytes));
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        Some(())
    }
}

impl InPlace for SetTCPChecksum {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if self.fill(packet).is_some() {
            return 0;
        }
        ctx.print("SetTCPChecksum: bad lengths");
        DROPPED
    }
}

impl Element for SetTCPChecksum {
    in_place!();
}
