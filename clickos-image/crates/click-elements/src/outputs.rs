// SPDX-License-Identifier: Apache-2.0
//! Packets of one batch on their way to several outputs.
use crate::prelude::*;

/// Batches by output, and the outputs in order of their first packet.
pub struct Outputs {
    runs: Vec<Batch>,
    order: Vec<usize>,
}

/// Sends each packet of a batch the way that `choose` appends for it: to an output, or `DROPPED`. Where packets of
/// different outputs meet again, they do in the order in which they came.
#[inline]
pub fn distribute(
    ctx: &mut Context<'_>,
    mut batch: Batch,
    choose: impl FnOnce(&mut Context<'_>, &mut Batch, &mut Vec<usize>),
) {
    let mut ways = ctx.take_ports();
    choose(ctx, &mut batch, &mut ways);
    ctx.push_apart(batch, &ways);
    ctx.recycle_ports(ways);
}

impl Outputs {
    /// For an element with this many outputs.
    pub fn new(ports: usize) -> Self {
        Self {
            runs: (0..ports).map(|_| Batch::new()).collect(),
            order: Vec::with_capacity(ports),
        }
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
