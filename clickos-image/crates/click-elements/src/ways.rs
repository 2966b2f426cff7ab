// SPDX-License-Identifier: Apache-2.0
//! Sends the packets of a batch different ways, in the order in which they came.
use crate::prelude::*;

/// The output port of a packet that is dropped.
pub const DROP: u16 = u16::MAX;

/// Sends each packet of a batch to the output that `ways` has for it.
pub fn send(ctx: &mut Context<'_>, mut batch: Batch, ways: &[u16]) {
    let Some(first) = ways.first() else {
        return ctx.recycle(batch);
    };
    if ways.iter().all(|way| way == first) {
        return leave(ctx, batch, *first);
    }
    let (mut run, mut to) = (ctx.batch(), *first);
    for (packet, way) in batch.drain_front(usize::MAX).zip(ways) {
        if *way != to && !run.is_empty() {
            let next = ctx.batch();
            leave(ctx, core::mem::replace(&mut run, next), to);
        }
        to = *way;
        run.push_back(packet);
    }
    leave(ctx, run, to);
    ctx.recycle(batch);
}

fn leave(ctx: &mut Context<'_>, batch: Batch, way: u16) {
    match way {
        DROP => ctx.recycle(batch),
        port => ctx.push(port.into(), batch),
    }
}
