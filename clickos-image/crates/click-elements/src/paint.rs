// SPDX-License-Identifier: Apache-2.0
//! What elements that give packets a color, or look for one, have in common.
use click_core::anno::PAINT;
use click_core::value::ByteAnno;

use crate::prelude::*;

/// Such a class, but for its name, its ports and what it builds.
pub const CLASS: Class = Class {
    args: &[mandatory("COLOR"), optional("ANNO")],
    handlers: &[read_write("color")],
    ..Class::DEFAULT
};

/// A color, and where packets have theirs.
pub struct Color {
    color: u8,
    anno: usize,
}

impl Color {
    /// Reads COLOR and ANNO.
    pub fn given(a: &mut Args<'_>) -> Option<Self> {
        let (color, anno) = (a.need("COLOR"), a.or("ANNO", ByteAnno(PAINT)));
        Some(Self {
            color: color?,
            anno: anno?.0,
        })
    }

    #[inline]
    pub fn is_of(&self, packet: &Packet) -> bool {
        packet.anno().u8(self.anno) == self.color
    }

    #[inline]
    pub fn give(&self, packet: &mut Packet) {
        packet.anno_mut().set_u8(self.anno, self.color);
    }

    pub fn read(&self, handler: &str) -> Text {
        match handler {
            "color" => text(self.color),
            _ => undeclared(handler),
        }
    }

    /// Writes the color that `of` an element finds.
    pub fn write<T: Element>(
        view: &View<'_>,
        handler: &str,
        value: &str,
        of: fn(&mut T) -> &mut Self,
    ) -> Result<Change, HandlerError> {
        match handler {
            "color" => on_value(view, value, move |me: &mut T, color, _| {
                of(me).color = color
            }),
            _ => undeclared(handler),
        }
    }
}
