// SPDX-License-Identifier: Apache-2.0
//! Makes short packets longer.
//!
//! # Synopsis
//! `Pad([LENGTH, ZERO])`: a packet shorter than LENGTH bytes gets bytes at its end. Without LENGTH, or if it is 0, it gets
//! back as many as its extra length annotation says it has lost. The bytes are zero; ZERO is understood.
//! # Ports
//! 1/1, agnostic. The extra length annotation of packets that leave is 0. A packet that has no room is dropped.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> Strip(14) -> EtherEncap(0x0800, vif1, 2:1:0:0:0:1) -> Pad(60) -> ToDevice(1);`
use click_core::anno::EXTRA_LENGTH;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Pad",
    args: &[optional("LENGTH"), keyword("ZERO")],
    build: |a| {
        let (length, zero) = (a.or("LENGTH", 0u32), a.or("ZERO", true));
        zero?;
        Some(Box::new(Pad {
            length: usize::try_from(length?).expect("32 bits"),
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct Pad {
    length: usize,
}

impl Pad {
    /// Bytes a packet lacks.
    fn missing(&self, packet: &Packet) -> usize {
        match self.length {
            0 => packet.anno().u32(EXTRA_LENGTH) as usize,
            length => length.saturating_sub(packet.len()),
        }
    }
}

impl InPlace for Pad {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !packet.put(self.missing(packet)) {
            return DROPPED;
        }
        packet.anno_mut().set_u32(EXTRA_LENGTH, 0);
        0
    }
}

impl Element for Pad {
    in_place!(plain);
}
