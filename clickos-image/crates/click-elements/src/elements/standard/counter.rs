// SPDX-License-Identifier: Apache-2.0
//! Counts packets and bytes and measures their rates.
//!
//! # Synopsis
//! `Counter`
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `count`, `byte_count` (read): packets and bytes since the last reset.
//! * `rate`, `byte_rate`, `bit_rate` (read): a second, averaged over about two seconds.
//! * `reset`, `reset_counts` (write): set everything to 0.
//! # Example
//! `FromDevice(0) -> in :: Counter -> Discard;`
use crate::prelude::*;
use crate::standard::average::{Average, decimal};

pub static ELEMENT: Class = Class {
    name: "Counter",
    handlers: &[
        read("count"),
        read("byte_count"),
        read("rate"),
        read("byte_rate"),
        read("bit_rate"),
        write("reset"),
        write("reset_counts"),
    ],
    build: |_| Some(Box::new(Counter::default())),
    ..Class::DEFAULT
};

#[derive(Default)]
struct Counter {
    count: u64,
    bytes: u64,
    packet_rate: Average,
    byte_rate: Average,
}

impl Counter {
    fn note(&mut self, now_ns: u64, batch: &Batch) {
        let bytes: u64 = batch.iter().map(|p| p.len() as u64).sum();
        self.count += batch.len() as u64;
        self.bytes += bytes;
        self.packet_rate.add(now_ns, batch.len() as u64);
        self.byte_rate.add(now_ns, bytes);
    }
}

impl Element for Counter {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.note(ctx.now_ns(), &batch);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let batch = ctx.pull(0, max);
        self.note(ctx.now_ns(), &batch);
        batch
    }

    fn read(&self, view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "count" => text(self.count),
            "byte_count" => text(self.bytes),
            "rate" => decimal(self.packet_rate.milli_at(view.now_ns)),
            "byte_rate" => decimal(self.byte_rate.milli_at(view.now_ns)),
            "bit_rate" => decimal(self.byte_rate.milli_at(view.now_ns).saturating_mul(8)),
            _ => undeclared(handler),
        }
    }

    fn write(&self, _view: &View<'_>, handler: &str, _value: &str) -> Result<Change, HandlerError> {
        match handler {
            "reset" | "reset_counts" => on_write(|me: &mut Self, _| *me = Self::default()),
            _ => undeclared(handler),
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            *self = core::mem::take(old);
        }
    }
}
