// SPDX-License-Identifier: Apache-2.0
//! Sends copies of packets of one color to output 1.
//!
//! # Synopsis
//! `PaintTee(COLOR [, ANNO])`: COLOR 0 to 255, mandatory; ANNO another one-byte annotation.
//! # Ports
//! 1/2, agnostic. All packets leave by output 0; output 1 (push) gets a copy of those with COLOR first.
//! # Handlers
//! * `color` (read, write): COLOR.
//! # Example
//! `... -> pt :: PaintTee(1) -> DecIPTTL -> ...; pt[1] -> ICMPError(10.0.0.1, redirect, host) -> ...`
use crate::paint::{self, CLASS, Color};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PaintTee",
    ports: "1/2",
    processing: "a/ah",
    build: |a| Some(Box::new(PaintTee(Color::given(a)?))),
    handlers: &[paint::color::<PaintTee>()],
    ..CLASS
};

struct PaintTee(Color);

impl PaintTee {
    /// Sends a copy of a packet that has the color.
    fn copy(&self, ctx: &mut Context<'_>, packet: &mut Packet) {
        if let Some(copy) = ctx.pool().duplicate(packet) {
            ctx.push_one(1, copy);
        }
    }
}

part!(PaintTee, 0: Color);

impl Element for PaintTee {
    /// In runs that end at each copy, so that copies keep the order of arrival where outputs meet again.
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if !batch.iter().any(|packet| self.0.is_of(packet)) {
            return ctx.push(0, batch);
        }
        let mut cursor = batch.cursor_mut();
        while let Some(mut packet) = cursor.next() {
            if self.0.is_of(&packet) {
                let mut before = ctx.batch();
                cursor.move_kept_to(&mut before);
                ctx.push(0, before);
                self.copy(ctx, &mut packet);
            }
            cursor.keep(packet);
        }
        drop(cursor);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.pull(0, max);
        for packet in batch.iter_mut().filter(|packet| self.0.is_of(packet)) {
            self.copy(ctx, packet);
        }
        batch
    }
}
