// SPDX-License-Identifier: Apache-2.0
//! Sends a copy of each packet out of every output.
//!
//! # Synopsis
//! `Tee([N])`: N is the number of outputs, if it is to be checked.
//! # Ports
//! 1/any, push. Output 0 gets its copy first.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> t :: Tee -> Queue -> ToDevice(1); t[1] -> Print -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Tee",
    aliases: &["PushTee"],
    ports: "1/1-",
    processing: "h/h",
    args: &[optional("N")],
    build: |a| {
        let outputs = a.outputs();
        let n = a.or("N", outputs)?;
        if n != outputs {
            a.error("N", format!("{outputs} outputs are in use, not {n}"));
        }
        Some(Box::new(Tee { independent: false }))
    },
    ..Class::DEFAULT
};

struct Tee {
    /// The outputs may be served one after the other.
    independent: bool,
}

impl Tee {
    /// Packet by packet, so that copies keep the order of arrival where outputs meet again.
    fn one_by_one(ctx: &mut Context<'_>, mut batch: Batch) {
        let last = ctx.outputs() - 1;
        for mut packet in batch.drain_front(usize::MAX) {
            for port in 0..last {
                if let Some(copy) = ctx.pool().duplicate(&mut packet) {
                    ctx.push_one(port, copy);
                }
            }
            ctx.push_one(last, packet);
        }
        ctx.recycle(batch);
    }
}

impl Element for Tee {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.independent = ctx.outputs_are_independent() || ctx.outputs_are_unseen();
        Ok(())
    }

    fn is_plain(&self) -> bool {
        self.independent
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if !self.independent {
            return Self::one_by_one(ctx, batch);
        }
        // copies share their buffers: what is stored is not touched
        for port in 1..ctx.outputs() {
            let mut copies = ctx.batch();
            ctx.pool().duplicate_all(&mut batch, &mut copies);
            ctx.push(port, copies);
        }
        ctx.push(0, batch);
    }
}
