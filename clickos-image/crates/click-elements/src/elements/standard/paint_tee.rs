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
use click_core::value::ByteAnno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PaintTee",
    ports: "1/2",
    processing: "a/ah",
    args: &[mandatory("COLOR"), optional("ANNO")],
    handlers: &[read_write("color")],
    build: |a| {
        let (color, anno) = (
            a.need("COLOR"),
            a.or("ANNO", ByteAnno(click_core::anno::PAINT)),
        );
        Some(Box::new(PaintTee {
            color: color?,
            anno: anno?.0,
        }))
    },
    ..Class::DEFAULT
};

struct PaintTee {
    color: u8,
    anno: usize,
}

impl PaintTee {
    /// Whether a packet has the color.
    fn copies(&self, packet: &Packet) -> bool {
        packet.anno().u8(self.anno) == self.color
    }

    /// Sends a copy of a packet that has it.
    fn copy(&self, ctx: &mut Context<'_>, packet: &mut Packet) {
        if let Some(copy) = ctx.pool().duplicate(packet) {
            ctx.push_one(1, copy);
        }
    }
}

impl Element for PaintTee {
    /// In runs that end at each copy, so that copies keep the order of arrival where outputs meet again.
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if !batch.iter().any(|packet| self.copies(packet)) {
            return ctx.push(0, batch);
        }
        let mut sweep = batch.sweep();
        while let Some(mut packet) = sweep.next() {
            if self.copies(&packet) {
                let mut before = ctx.batch();
                sweep.give_kept(&mut before);
                ctx.push(0, before);
                self.copy(ctx, &mut packet);
            }
            sweep.keep(packet);
        }
        drop(sweep);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.pull(0, max);
        for packet in batch.iter_mut().filter(|packet| self.copies(packet)) {
            self.copy(ctx, packet);
        }
        batch
    }

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
