// SPDX-License-Identifier: Apache-2.0
//! Packets of one batch on their way to several outputs: each output gets them in one batch.
use crate::prelude::*;

/// Batches by output, and the outputs in order of their first packet.
pub struct Outputs {
    runs: Vec<Batch>,
    order: Vec<usize>,
    /// Where the packets of the batch that is being sorted go.
    chosen: Vec<Option<usize>>,
}

impl Outputs {
    /// For an element with this many outputs.
    pub fn new(ports: usize) -> Self {
        Self {
            runs: (0..ports).map(|_| Batch::new()).collect(),
            order: Vec::with_capacity(ports),
            chosen: Vec::new(),
        }
    }

    /// Sends each packet of a batch where `choose` says, or drops it.
    pub fn sort(
        &mut self,
        ctx: &mut Context<'_>,
        mut batch: Batch,
        mut choose: impl FnMut(&mut Context<'_>, &mut Packet) -> Option<usize>,
    ) {
        self.chosen.clear();
        self.chosen
            .extend(batch.iter_mut().map(|packet| choose(ctx, packet)));
        match self.chosen.as_slice() {
            [Some(port), rest @ ..] if rest.iter().all(|p| *p == Some(*port)) => {
                ctx.push(*port, batch);
            }
            _ => {
                for (place, packet) in batch.drain_front(usize::MAX).enumerate() {
                    if let Some(port) = self.chosen[place] {
                        self.put(port, packet);
                    }
                }
                self.flush(ctx);
                ctx.recycle(batch);
            }
        }
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
