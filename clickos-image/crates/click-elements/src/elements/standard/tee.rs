// SPDX-License-Identifier: Apache-2.0
//! Sends a copy of each packet out of every output.
//!
//! # Synopsis
//! `Tee([N])`: N is the number of outputs, if it is to be checked.
//! # Ports
//! 1/any, push. Output 0 gets its copy first; the last output gets the packet itself.
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
        Some(Box::new(Tee))
    },
    ..Class::DEFAULT
};

struct Tee;

impl Element for Tee {
    /// Packet by packet, so that copies keep the order of arrival where outputs meet again.
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        let last = ctx.outputs() - 1;
        for packet in batch.drain_front(usize::MAX) {
            for port in 0..last {
                if let Some(copy) = ctx.pool().duplicate(&packet) {
                    ctx.push_one(port, copy);
                }
            }
            ctx.push_one(last, packet);
        }
        ctx.recycle(batch);
    }
}
