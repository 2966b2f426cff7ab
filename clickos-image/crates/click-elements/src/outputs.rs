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
        let mut packets = batch.iter_mut();
        let Some(first) = packets.next() else {
            return ctx.recycle(batch);
        };
        let most = choose(ctx, first);
        for (alike, packet) in (1..).zip(packets) {
            let next = choose(ctx, packet);
            if next != most {
                self.take_out(ctx, &mut batch, (most, alike), next, choose);
                break;
            }
        }
        match most {
            Some(port) => ctx.push(port, batch),
            None => ctx.recycle(batch),
        }
        self.flush(ctx);
    }

    /// Leaves in a batch what goes where the first packets go, of which so many were looked at; of the one behind
    /// them it is known where it goes.
    fn take_out(
        &mut self,
        ctx: &mut Context<'_>,
        batch: &mut Batch,
        (most, alike): (Option<usize>, usize),
        next: Option<usize>,
        mut choose: impl FnMut(&mut Context<'_>, &mut Packet) -> Option<usize>,
    ) {
        let mut known = Some(next);
        let mut sweep = batch.sweep();
        sweep.skip(alike, true);
        while let Some(mut packet) = sweep.next() {
            match known.take().unwrap_or_else(|| choose(ctx, &mut packet)) {
                port if port == most => sweep.keep(packet),
                Some(port) => self.put(port, packet),
                None => {}
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
