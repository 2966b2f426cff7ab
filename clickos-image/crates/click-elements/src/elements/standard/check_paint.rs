// SPDX-License-Identifier: Apache-2.0
//! Lets packets of one color pass.
//!
//! # Synopsis
//! `CheckPaint(COLOR [, ANNO])`: COLOR 0 to 255, mandatory; ANNO another one-byte annotation.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets the other packets; they are dropped if it is not connected.
//! # Handlers
//! * `color` (read, write): COLOR.
//! # Example
//! `... -> cp :: CheckPaint(1) -> Discard; cp[1] -> ...`
use click_core::value::ByteAnno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckPaint",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[mandatory("COLOR"), optional("ANNO")],
    handlers: &[read_write("color")],
    build: |a| {
        let (color, anno) = (
            a.need("COLOR"),
            a.or("ANNO", ByteAnno(click_core::anno::PAINT)),
        );
        Some(Box::new(CheckPaint {
            color: color?,
            anno: anno?.0,
        }))
    },
    ..Class::DEFAULT
};

struct CheckPaint {
    color: u8,
    anno: usize,
}

impl InPlace for CheckPaint {
    fn way(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let other = packet.anno().u8(self.anno) != self.color;
        usize::from(other)
    }
}

impl Element for CheckPaint {
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
