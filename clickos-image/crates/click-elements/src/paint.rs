// SPDX-License-Identifier: Apache-2.0
//! What elements that give packets a color, or look for one, have in common.
use click_core::anno::PAINT;
use click_core::value::ByteAnno;

use crate::prelude::*;

/// Such a class, but for its name, its ports, its handler and `build`.
pub const CLASS: Class = Class {
    args: &[mandatory("COLOR"), optional("ANNO")],
    ..Class::DEFAULT
};

/// A color, and where packets have theirs.
pub struct Color {
    color: u8,
    anno: usize,
}

/// The handler `color`.
pub const fn color<T: Part<Color>>() -> Handler<T> {
    read_write(
        "color",
        |me, _| text(me.part().color),
        set!(|me, color, _| me.part_mut().color = color),
    )
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
}
