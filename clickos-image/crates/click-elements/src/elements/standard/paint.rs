// SPDX-License-Identifier: Apache-2.0
//! Sets the paint annotation of packets.
//!
//! # Synopsis
//! `Paint(COLOR [, ANNO])`: COLOR 0 to 255, mandatory; ANNO another one-byte annotation.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `color` (read, write): COLOR.
//! # Example
//! `FromDevice(0) -> Paint(1) -> CheckPaint(1);`
use click_core::value::ByteAnno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Paint",
    args: &[mandatory("COLOR"), optional("ANNO")],
    handlers: &[read_write("color")],
    build: |a| {
        let (color, anno) = (
            a.need("COLOR"),
            a.or("ANNO", ByteAnno(click_core::anno::PAINT)),
        );
        Some(Box::new(Paint {
            color: color?,
            anno: anno?.0,
        }))
    },
    ..Class::DEFAULT
};

struct Paint {
    color: u8,
    anno: usize,
}

impl InPlace for Paint {
    const USE: Use = Use::Writes;

    fn way(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        packet.anno_mut().set_u8(self.anno, self.color);
        0
    }
}

impl Element for Paint {
    in_place!(plain);

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "color" => text(self.color),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "color" => on_value(view, value, |me: &mut Self, color, _| me.color = color),
            _ => undeclared(handler),
        }
    }
}
