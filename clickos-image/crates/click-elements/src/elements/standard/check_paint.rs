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
use crate::paint::{self, CLASS, Color};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckPaint",
    ports: "1/1-2",
    processing: "a/ah",
    build: |a| Some(Box::new(CheckPaint(Color::given(a)?))),
    handlers: &[paint::color::<CheckPaint>()],
    ..CLASS
};

struct CheckPaint(Color);

impl InPlace for CheckPaint {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        usize::from(!self.0.is_of(packet))
    }
}

part!(CheckPaint, 0: Color);

impl Element for CheckPaint {
    in_place!(plain);
}
