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
use crate::paint::{self, CLASS, Color};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Paint",
    build: |a| Some(Box::new(Paint(Color::given(a)?))),
    handlers: &[paint::color::<Paint>()],
    live: true,
    ..CLASS
};

struct Paint(Color);

impl InPlace for Paint {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        self.0.give(packet);
        0
    }
}

part!(Paint, 0: Color);

impl Element for Paint {
    in_place!(plain);
}
