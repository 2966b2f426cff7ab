// SPDX-License-Identifier: Apache-2.0
//! Packets of one batch on their way to several outputs: each output gets them in one batch.
use crate::prelude::*;

/// Batches by output, and the outputs in order of their first packet.
pub struct Outputs {
    runs: Vec<Batch>,
    order: Vec<usize>,
    /// Of the packets of a batch.
    ways: Vec<usize>,
}

impl Outputs {
    /// For an element with this many outputs.
    pub fn new(ports: usize) -> Self {
        Self {
            runs: (0..ports).map(|_| Batch::new()).collect(),
            order: Vec::with_capacity(ports),
            ways: Vec::new(),
        }
    }

    /// Sends each packet of a batch where `choose` says: an output, or `DROPPED`.
    #[inline]
    pub fn sort(
        &mut self,
        ctx: &mut Context<'_>,
        mut batch: Batch,
        mut choose: impl FnMut(&mut Context<'_>, &mut Packet) -> usize,
    ) {
        self.ways.clear();
        let ways = batch.iter_mut().map(|packet| choose(ctx, packet));
        self.ways.extend(ways);
        match self.ways.split_first() {
            Some((first, rest)) if rest.iter().any(|way| way != first) => self.split(ctx, batch),
            // nothing is connected to `DROPPED`
            Some((first, _)) => ctx.push(*first, batch),
            None => ctx.recycle(batch),
        }
    }

    /// Sends packets that do not all go the same way.
    fn split(&mut self, ctx: &mut Context<'_>, mut batch: Batch) {
        let mut ways = core::mem::take(&mut self.ways);
        for (packet, way) in batch.drain_front(usize::MAX).zip(ways.drain(..)) {
            self.put(way, packet);
        }
        self.ways = ways;
        ctx.recycle(batch);
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
