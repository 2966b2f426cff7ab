// SPDX-License-Identifier: Apache-2.0
//! Sends a copy of each packet out of every port but its own.
//!
//! # Synopsis
//! `Hub`
//! # Ports
//! any/same number, push. A packet of input N leaves by every output except N.
//! # Handlers
//! None of its own.
//! # Example
//! `h :: Hub; FromDevice(0) -> [0] h [0] -> ToDevice(0); FromDevice(1) -> [1] h [1] -> ToDevice(1);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Hub",
    ports: "-/=",
    processing: "h/h",
    flow: "#/[^#]",
    build: |_| Some(Box::new(Hub)),
    ..Class::DEFAULT
};

struct Hub;

impl Element for Hub {
    /// Packet by packet, so that copies keep the order of arrival where outputs meet again.
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        let others = || (0..ctx.outputs()).filter(|output| *output != port);
        let Some(last) = others().next_back() else {
            ctx.recycle(batch);
            return;
        };
        for mut packet in batch.drain_front(usize::MAX) {
            for output in (0..last).filter(|output| *output != port) {
                if let Some(copy) = ctx.pool().duplicate(&mut packet) {
                    ctx.push_one(output, copy);
                }
            }
            ctx.push_one(last, packet);
        }
        ctx.recycle(batch);
    }
}
