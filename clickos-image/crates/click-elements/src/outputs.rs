// SPDX-License-Identifier: Apache-2.0
//! Packets of one batch on their way to several outputs: each output gets them in one batch.
use crate::prelude::*;

/// Batches by output, and the outputs in order of their first packet.
pub struct Outputs {
    runs: Vec<Batch>,
    order: Vec<usize>,
}

impl Outputs {
    /// For an element with this many outputs.
    pub fn new(ports: usize) -> Self {
        Self {
            runs: (0..ports).map(|_| Batch::new()).collect(),
            order: Vec::with_capacity(ports),
        }
    }

    /// Sends each packet of a batch where `choose` says, or drops it.
    pub fn sort(
        &mut self,
        ctx: &mut Context<'_>,
        mut batch: Batch,
        mut choose: impl FnMut(&mut Context<'_>, &mut Packet) -> Option<usize>,
    ) {
        let mut first = None;
        let mut sweep = batch.sweep();
        while let Some(mut packet) = sweep.next() {
            match choose(ctx, &mut packet) {
                Some(port) if *first.get_or_insert(port) == port => sweep.keep(packet),
                Some(port) => self.put(port, packet),
                None => {}
            }
        }
        drop(sweep);
        match first {
            Some(port) => ctx.push(port, batch),
            None => ctx.recycle(batch),
        }
        self.flush(ctx);
    }

    /// Appends a packet for an output; without that output it is dropped.
    pub fn put(&mut self, port: usize, packet: Packet) {
        let Some(run) = self.runs.get_mut(port) else {
            return;
        };
        if run.is_empty() {
            self.order.push(port);
        }
        run.push_back(packet);
    }

    /// Sends everything.
    pub fn flush(&mut self, ctx: &mut Context<'_>) {
        for port in self.order.drain(..) {
            let run = core::mem::replace(&mut self.runs[port], ctx.batch());
            ctx.push(port, run);
        }
    }
}
