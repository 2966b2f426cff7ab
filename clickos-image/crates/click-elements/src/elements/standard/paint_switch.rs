// SPDX-License-Identifier: Apache-2.0
//! Sends packets to the output their color names.
//!
//! # Synopsis
//! `PaintSwitch([ANNO])`: ANNO another one-byte annotation than paint.
//! # Ports
//! 1/any, push. A packet of color N leaves by output N; it is dropped if that is not there.
//! Color 255 means a copy to every output.
//! # Handlers
//! None of its own.
//! # Example
//! `... -> ps :: PaintSwitch; ps[0] -> ToDevice(0); ps[1] -> ToDevice(1);`
use click_core::value::ByteAnno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PaintSwitch",
    ports: "1/-",
    processing: "h/h",
    args: &[optional("ANNO")],
    build: |a| {
        let anno = a.or("ANNO", ByteAnno(click_core::anno::PAINT))?.0;
        Some(Box::new(PaintSwitch { anno }))
    },
    ..Class::DEFAULT
};

/// The color that means all outputs.
const EVERYWHERE: u8 = 0xff;

struct PaintSwitch {
    anno: usize,
}

impl Element for PaintSwitch {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        for mut packet in batch.drain_front(usize::MAX) {
            let color = packet.anno().u8(self.anno);
            let (copies, last) = match color {
                EVERYWHERE => (
                    ctx.outputs().saturating_sub(1),
                    ctx.outputs().saturating_sub(1),
                ),
                _ => (0, usize::from(color)),
            };
            for port in 0..copies {
                if let Some(copy) = ctx.pool().duplicate(&mut packet) {
                    ctx.push_one(port, copy);
                }
            }
            ctx.push_one(last, packet);
        }
        ctx.recycle(batch);
    }
}
