// SPDX-License-Identifier: Apache-2.0
//! Sets a one-byte annotation of packets; `Paint(VALUE, ANNO)` does the same.
//!
//! # Synopsis
//! `SetAnnoByte(ANNO, VALUE)`: ANNO an annotation's name or offset, VALUE 0 to 255; both mandatory.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `anno` (read): the offset. `value` (read, write): VALUE.
//! # Example
//! `FromDevice(0) -> SetAnnoByte(PAINT, 3) -> PaintSwitch;`
use click_core::value::ByteAnno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetAnnoByte",
    args: &[mandatory("ANNO"), mandatory("VALUE")],
    handlers: &[
        read("anno", |me: &mut SetAnnoByte, _| text(me.anno)),
        read_write(
            "value",
            |me, _| text(me.value),
            set!(|me, value, _| me.value = value),
        ),
    ],
    build: |a| {
        let (anno, value) = (a.need::<ByteAnno>("ANNO"), a.need("VALUE"));
        Some(Box::new(SetAnnoByte {
            anno: anno?.0,
            value: value?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct SetAnnoByte {
    anno: usize,
    value: u8,
}

impl InPlace for SetAnnoByte {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        packet.anno_mut().set_u8(self.anno, self.value);
        0
    }
}

impl Element for SetAnnoByte {
    in_place!(plain);
}
