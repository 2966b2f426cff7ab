// SPDX-License-Identifier: Apache-2.0
//! Elements that look at packets where they lie in their batch: as long as all go the same way, none is moved.
use click_core::{Batch, Context, DROPPED, Element, Packet};

/// The output port of a packet that is dropped unless it is kept.
#[inline]
pub fn kept_if(kept: bool) -> usize {
    if kept { 0 } else { DROPPED }
}

/// Lets another packet go on in a packet's place; without one it is dropped.
pub fn replace(by: Option<Packet>, packet: &mut Packet) -> usize {
    let kept = by.is_some();
    if let Some(by) = by {
        *packet = by;
    }
    kept_if(kept)
}

/// The work of an element on the bytes of packets, after the whole batch is prepared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Not much, or some other element did before.
    Little,
    /// It is often the first that reads them.
    Reads,
    /// It changes them, writes in front of them, or sets annotations.
    Writes,
}

/// An element that says of each packet, pushed or pulled, where it goes. Its `impl Element` has `in_place!();`, or
/// `in_place!(plain);` if it is plain (`Element::is_plain`): a test looks what `way` does with the context then.
pub trait InPlace: Element {
    /// The work on their bytes.
    const USE: Use = Use::Little;

    /// The output of a packet, or `DROPPED`. It must not push other packets itself.
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize;
}

/// `push` and `pull` of an element that is `InPlace`.
macro_rules! in_place {
    (plain) => {
        in_place!();

        fn is_plain(&self) -> bool {
            true
        }
    };
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

/// How many packets of a batch go the same way, which way that is, and the way of the first one that goes another way.
/// It is two words, so that it comes back in registers.
struct Run {
    len: usize,
    way: u32,
    next: u32,
}

/// A way as a `Run` has it; no element has that many outputs.
#[inline]
fn short(way: usize) -> u32 {
    way as u32
}

/// The way that was made `short`.
#[inline]
fn long(way: u32) -> usize {
    if way == short(DROPPED) {
        DROPPED
    } else {
        way as usize
    }
}

/// Looks at packets until one goes another way than those before.
fn first_run<T: InPlace>(me: &mut T, ctx: &mut Context<'_>, batch: &mut Batch) -> Run {
    match T::USE {
        Use::Little => {}
        Use::Reads => batch.prefetch(),
        Use::Writes => batch.uniqueify(),
    }
    let (all, mut next) = (batch.len(), 0);
    let mut packets = batch.iter_mut();
    // most packets of most elements leave by output 0, and what is known takes no comparison
    let other = packets.position(|packet| {
        next = me.output_port(ctx, packet);
        next != 0
    });
    if other == Some(0) {
        return other_run(
            &mut |ctx, packet| me.output_port(ctx, packet),
            ctx,
            packets,
            next,
        );
    }
    Run {
        len: other.unwrap_or(all),
        way: 0,
        next: short(next),
    }
}

/// The same if the first packet, which was looked at, does not leave by output 0.
#[inline(never)]
fn other_run(
    choose: Way<'_>,
    ctx: &mut Context<'_>,
    mut packets: core::slice::IterMut<'_, Packet>,
    way: usize,
) -> Run {
    let (others, mut next) = (packets.len(), way);
    let other = packets.position(|packet| {
        next = choose(ctx, packet);
        next != way
    });
    Run {
        len: 1 + other.unwrap_or(others),
        way: short(way),
        next: short(next),
    }
}

/// An element's `way`, for code that stands once for all classes, since it runs seldom.
type Way<'a> = &'a mut dyn FnMut(&mut Context<'_>, &mut Packet) -> usize;

/// `Element::push` of such an element.
#[inline]
pub fn push_in_place<T: InPlace>(me: &mut T, ctx: &mut Context<'_>, mut batch: Batch) {
    let run = first_run(me, ctx, &mut batch);
    if run.len == batch.len() {
        // nothing is connected to `DROPPED`
        ctx.push(run.way as usize, batch);
    } else {
        push_runs(
            &mut |ctx, packet| me.output_port(ctx, packet),
            ctx,
            batch,
            &run,
        );
    }
}

/// Sends the runs of a batch one after the other; the first one and its port are known.
#[inline(never)]
fn push_runs(choose: Way<'_>, ctx: &mut Context<'_>, mut batch: Batch, first: &Run) {
    let mut ports = ctx.take_ports();
    ports.resize(first.len, long(first.way));
    ports.push(long(first.next));
    let rest = batch.iter_mut().skip(ports.len());
    ports.extend(rest.map(|packet| choose(ctx, packet)));
    ctx.push_runs(batch, &ports);
    ctx.recycle_ports(ports);
}

/// `Element::pull` of such an element: what goes out of output 0 is returned.
#[inline]
pub fn pull_in_place<T: InPlace>(me: &mut T, ctx: &mut Context<'_>, max: usize) -> Batch {
    let mut batch = ctx.pull(0, max);
    let run = first_run(me, ctx, &mut batch);
    if run.len < batch.len() || run.way != 0 {
        pull_runs(
            &mut |ctx, packet| me.output_port(ctx, packet),
            ctx,
            &mut batch,
            &run,
        );
    }
    batch
}

/// Sends away what does not go out of output 0.
#[inline(never)]
fn pull_runs(choose: Way<'_>, ctx: &mut Context<'_>, batch: &mut Batch, first: &Run) {
    let mut known = (first.len < batch.len()).then_some(long(first.next));
    let mut cursor = batch.cursor_mut();
    let mut left = first.len;
    while let Some(mut packet) = cursor.next() {
        let way = if left > 0 {
            left -= 1;
            long(first.way)
        } else {
            known.take().unwrap_or_else(|| choose(ctx, &mut packet))
        };
        match way {
            0 => cursor.keep(packet),
            DROPPED => {}
            port => ctx.push_one(port, packet),
        }
    }
}
