// SPDX-License-Identifier: Apache-2.0
//! Elements that look at packets where they lie in their batch: as long as all go the same way, none is moved.
use click_core::{Batch, Context, Element, Packet};

/// The way of a packet that is dropped.
pub const DROPPED: usize = usize::MAX;

/// What an element does with the bytes of packets, for which a batch is made ready as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Not much, or some other element did before.
    Little,
    /// It is often the first that reads them.
    Reads,
    /// It changes them, writes in front of them, or sets annotations.
    Writes,
}

/// An element that says of each packet, pushed or pulled, where it goes. Its `impl Element` has `in_place!();`.
pub trait InPlace: Element {
    /// What it does with their bytes.
    const USE: Use = Use::Little;

    /// The output of a packet, or `DROPPED`. It must not push other packets itself.
    fn way(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize;
}

/// `push` and `pull` of an element that is `InPlace`.
macro_rules! in_place {
    () => {
        fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
            $crate::prelude::push_in_place(self, ctx, batch);
        }

        fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
            $crate::prelude::pull_in_place(self, ctx, max)
        }
    };
}
pub(crate) use in_place;

/// Packets that go the same way, and the first one that does not.
struct Run {
    len: usize,
    way: usize,
    next: usize,
}

/// Looks at packets until one goes another way than those before.
#[inline]
fn first_run<T: InPlace>(
    me: &mut T,
    ctx: &mut Context<'_>,
    batch: &mut Batch,
) -> Result<usize, Run> {
    match T::USE {
        Use::Little => {}
        Use::Reads => batch.prefetch(),
        Use::Writes => batch.own(),
    }
    let (mut len, mut way) = (0, DROPPED);
    for packet in batch.iter_mut() {
        let next = me.way(ctx, packet);
        if next != way && len > 0 {
            return Err(Run { len, way, next });
        }
        (len, way) = (len + 1, next);
    }
    Ok(way)
}

fn leave(ctx: &mut Context<'_>, way: usize, batch: Batch) {
    match way {
        DROPPED => ctx.recycle(batch),
        port => ctx.push(port, batch),
    }
}

/// `Element::push` of such an element.
#[inline]
pub fn push_in_place<T: InPlace>(me: &mut T, ctx: &mut Context<'_>, mut batch: Batch) {
    match first_run(me, ctx, &mut batch) {
        Ok(way) => leave(ctx, way, batch),
        Err(run) => push_runs(me, ctx, batch, &run),
    }
}

/// Sends the runs of a batch one after the other; of the first one it is known where it goes.
fn push_runs<T: InPlace>(me: &mut T, ctx: &mut Context<'_>, mut batch: Batch, first: &Run) {
    let (mut to, mut known) = (first.way, Some(first.next));
    let mut sweep = batch.sweep();
    sweep.skip(first.len, first.way != DROPPED);
    while let Some(mut packet) = sweep.next() {
        let way = known.take().unwrap_or_else(|| me.way(ctx, &mut packet));
        if way == DROPPED {
            continue;
        }
        if way != to && sweep.kept() > 0 {
            let mut run = ctx.batch();
            sweep.give_kept(&mut run);
            ctx.push(to, run);
        }
        to = way;
        sweep.keep(packet);
    }
    drop(sweep);
    leave(ctx, to, batch);
}

/// `Element::pull` of such an element: what goes out of output 0 is returned.
#[inline]
pub fn pull_in_place<T: InPlace>(me: &mut T, ctx: &mut Context<'_>, max: usize) -> Batch {
    let mut batch = ctx.pull(0, max);
    match first_run(me, ctx, &mut batch) {
        Ok(0) => {}
        Ok(way) => {
            let rest = ctx.batch();
            leave(ctx, way, core::mem::replace(&mut batch, rest));
        }
        Err(run) => pull_runs(me, ctx, &mut batch, &run),
    }
    batch
}

/// Sends away what does not go out of output 0.
fn pull_runs<T: InPlace>(me: &mut T, ctx: &mut Context<'_>, batch: &mut Batch, first: &Run) {
    let mut sweep = batch.sweep();
    let (mut left, mut known) = (first.len, Some(first.next));
    while let Some(mut packet) = sweep.next() {
        let way = if left > 0 {
            left -= 1;
            first.way
        } else {
            known.take().unwrap_or_else(|| me.way(ctx, &mut packet))
        };
        match way {
            0 => sweep.keep(packet),
            DROPPED => {}
            port => ctx.push_one(port, packet),
        }
    }
}
