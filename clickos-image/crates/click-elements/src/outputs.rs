// SPDX-License-Identifier: Apache-2.0
//! Packets of one batch on their way to several outputs.
use crate::prelude::*;

/// Batches by output, and the outputs in order of their first packet.
pub struct Outputs {
    runs: Vec<Batch>,
    order: Vec<usize>,
    /// The outputs of a batch's packets.
    ways: Vec<usize>,
    /// True if packets of one output may overtake those of another.
    independent: bool,
}

impl Outputs {
    /// For an element with this many outputs.
    pub fn new(ports: usize) -> Self {
        Self {
            runs: (0..ports).map(|_| Batch::new()).collect(),
            order: Vec::with_capacity(ports),
            ways: Vec::new(),
            independent: false,
        }
    }

    /// Finds out whether `distribute` has to keep the order of packets for different outputs.
    pub fn look_around(&mut self, ctx: &Context<'_>) {
        self.independent = ctx.outputs_never_meet();
    }

    /// Sends each packet of a batch the way that `choose` appends for it: to an output, or `DROPPED`. Where packets of
    /// different outputs meet again, they do in the order in which they came.
    #[inline]
    pub fn distribute(
        &mut self,
        ctx: &mut Context<'_>,
        mut batch: Batch,
        choose: impl FnOnce(&mut Context<'_>, &mut Batch, &mut Vec<usize>),
    ) {
        self.ways.clear();
        choose(ctx, &mut batch, &mut self.ways);
        let Some(first) = self.ways.first().copied() else {
            return ctx.recycle(batch);
        };
        // all of them, as that needs no decisions
        let differences = self.ways.iter().fold(0, |bits, way| bits | (way ^ first));
        match (differences, self.independent) {
            // nothing is connected to `DROPPED`
            (0, _) => ctx.push(first, batch),
            (_, true) => self.split(ctx, batch),
            (_, false) => ctx.push_runs(batch, &self.ways),
        }
    }

    /// Sends packets that do not all go the same way, those of each output in one batch.
    fn split(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let Self {
            runs, order, ways, ..
        } = self;
        batch.deal(ways, runs, |port| order.push(port));
        ctx.recycle(batch);
        self.flush(ctx);
    }

    /// Appends a packet for an output; without that output it is dropped.
    #[inline(always)]
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
