// SPDX-License-Identifier: Apache-2.0
//! Spreads packets over the outputs by their color.
//!
//! # Synopsis
//! `PaintRR([ANNO])`: ANNO another one-byte annotation than paint.
//! # Ports
//! 1/any, push. A packet of color C leaves by output C modulo the number of outputs.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! See `NumberPacket`.
//! # Example
//! `... -> rr :: PaintRR; rr[0] -> ToDevice(0); rr[1] -> ToDevice(1);`
use click_core::value::ByteAnno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PaintRR",
    ports: "1/-",
    processing: "h/h",
    args: &[optional("ANNO")],
    build: |a| {
        let outputs = a.outputs();
        let anno = a.or("ANNO", ByteAnno(click_core::anno::PAINT))?.0;
        Some(Box::new(PaintRR { anno, outputs }))
    },
    ..Class::DEFAULT
};

struct PaintRR {
    anno: usize,
    outputs: usize,
}

impl InPlace for PaintRR {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let color = usize::from(packet.anno().u8(self.anno));
        color.checked_rem(self.outputs).unwrap_or(DROPPED)
    }
}

impl Element for PaintRR {
    in_place!(plain);
}
