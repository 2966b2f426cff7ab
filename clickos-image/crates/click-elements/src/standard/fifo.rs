// SPDX-License-Identifier: Apache-2.0
//! What the queue classes share: a bounded store that says when it is empty or full.
use crate::prelude::*;
use click_core::class::Arg;
use click_core::{Ring, Storage};

/// The packet that a full queue drops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The one that came; the pusher is notified that there is no room, and may rest.
    TellAndDropNew,
    /// The same; and the puller is notified immediately when the last packet leaves.
    QuickAndDropNew,
    /// The one that came.
    DropNew,
    /// The one that waited longest.
    DropOldest,
    /// At input 0 the one that came; at input 1, which is last in, first out, the youngest stored.
    Mixed,
}

impl Full {
    /// True if the queue signals room to pushers.
    fn is_told(self) -> bool {
        matches!(self, Self::TellAndDropNew | Self::QuickAndDropNew)
    }

    fn class(self) -> &'static str {
        match self {
            Self::TellAndDropNew => "Queue",
            Self::QuickAndDropNew => "QuickNoteQueue",
            Self::DropNew => "SimpleQueue",
            Self::DropOldest => "FrontDropQueue",
            Self::Mixed => "MixedQueue",
        }
    }
}

/// Default capacity in packets.
const CAPACITY: usize = 1000;

pub const ARGS: &[Arg] = &[optional("CAPACITY")];

/// Handlers of queues.
pub const HANDLERS: [Handler<Queue>; 6] = [
    read("length", |me, _| text(me.stored.len())),
    read("highwater_length", |me, _| text(me.highwater)),
    read_write(
        "capacity",
        |me, _| text(me.capacity),
        set!(|me, capacity, ctx| {
            me.resize(capacity);
            me.signal_state(ctx);
        }),
    ),
    read("drops", |me, _| text(me.drops)),
    command(
        "reset_counts",
        run!(|me, _| (me.drops, me.highwater) = (0, me.stored.len())),
    ),
    command(
        "reset",
        run!(|me, ctx| {
            let mut stored = ctx.batch();
            me.stored.take_front(usize::MAX, &mut stored);
            me.signal_state(ctx);
            ctx.push(1, stored);
        }),
    ),
];

/// A queue class but for its name, input count and `build`.
pub const CLASS: Class = Class {
    ports: "1/1-2",
    processing: "h/lh",
    args: ARGS,
    handlers: &HANDLERS,
    quiet: true,
    ..Class::DEFAULT
};

pub fn build(args: &mut Args<'_>, full: Full) -> Built {
    Some(Box::new(Queue {
        capacity: args.or("CAPACITY", CAPACITY)?,
        full,
        stored: Ring::default(),
        drops: 0,
        highwater: 0,
        most: usize::MAX,
    }))
}

pub struct Queue {
    capacity: usize,
    full: Full,
    stored: Ring,
    drops: u64,
    highwater: usize,
    /// Before the next pull it counts as no longer than this.
    most: usize,
}

impl Queue {
    /// Counts what had no room; the first time with a message.
    #[cold]
    fn count_drops(&mut self, ctx: &mut Context<'_>, packets: usize) {
        if self.drops == 0 && self.capacity > 0 {
            let line = format!("{} :: {}: overflow", ctx.name(), self.full.class());
            ctx.print(&line);
        }
        self.drops += packets as u64;
    }

    /// Stores packets of the queue before this one.
    fn take_all(&mut self, ctx: &mut Context<'_>, stored: Batch) {
        let rest = self.append(stored);
        self.drops += rest.len() as u64;
        ctx.recycle(rest);
        self.signal_state(ctx);
    }

    #[inline]
    fn signal_state(&self, ctx: &mut Context<'_>) {
        ctx.set_readable(!self.stored.is_empty());
        self.tell_room(ctx);
    }

    #[inline]
    fn tell_room(&self, ctx: &mut Context<'_>) {
        let room = self.stored.len() < self.capacity;
        ctx.set_writable(room || !self.full.is_told());
    }

    /// Notifies neighbors what there is after a pull, which may have been without result.
    #[inline]
    fn pulled(&mut self, ctx: &mut Context<'_>, in_vain: bool) {
        self.most = usize::MAX;
        let quick = self.full == Full::QuickAndDropNew && self.stored.is_empty();
        if quick || in_vain {
            ctx.set_readable(false);
        }
        self.tell_room(ctx);
    }

    /// Stores at the end; gives back what has no room.
    fn append(&mut self, mut batch: Batch) -> Batch {
        if self.full == Full::DropOldest {
            self.stored
                .append_front(&mut batch, usize::MAX, self.capacity);
            self.trim_front(&mut batch);
            return batch;
        }
        let room = self.capacity.saturating_sub(self.stored.len());
        self.stored.append_front(&mut batch, room, self.capacity);
        batch
    }

    /// Takes the oldest packets until the others fit.
    fn trim_front(&mut self, into: &mut Batch) {
        let excess = self.stored.len().saturating_sub(self.capacity);
        self.stored.take_front(excess, into);
    }

    /// Stores in front, one by one; gives back the youngest of what has no room.
    fn prepend(&mut self, ctx: &mut Context<'_>, mut batch: Batch) -> Batch {
        let mut rest = ctx.batch();
        for packet in batch.drain_front(usize::MAX) {
            if self.stored.len() >= self.capacity {
                rest.extend(self.stored.pop_back());
            }
            if self.capacity == 0 {
                rest.push_back(packet);
            } else {
                self.stored.push_front(packet);
            }
        }
        ctx.recycle(batch);
        rest
    }

    /// Sets the capacity; what has no room any more is dropped, as Click does without counting it.
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        if self.full == Full::DropOldest {
            self.trim_front(&mut Batch::new());
        }
        while self.stored.len() > capacity {
            self.stored.pop_back();
        }
    }
}

impl Storage for Queue {
    fn stored(&self) -> usize {
        self.stored.len()
    }

    fn room(&self) -> usize {
        match self.full {
            Full::Mixed => 0,
            _ => (self.capacity.saturating_sub(1)).saturating_sub(self.stored.len()),
        }
    }

    fn expect_one_by_one(&mut self) {
        self.most = self.stored.len() + 1;
    }

    fn pull_one(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let packet = self.stored.pop_front();
        self.stored.prefetch_first();
        self.pulled(ctx, packet.is_none());
        packet
    }

    fn pull_fitting(
        &mut self,
        ctx: &mut Context<'_>,
        most: usize,
        bytes: usize,
        into: &mut Batch,
    ) -> usize {
        let (count, bytes) = self.stored.fitting(most, bytes);
        if count > 0 {
            self.stored.take_front(count, into);
            self.stored.prefetch(count);
            self.pulled(ctx, false);
        }
        bytes
    }
}

impl Element for Queue {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        let rest = if port == 0 {
            self.append(batch)
        } else {
            self.prepend(ctx, batch)
        };
        self.highwater = self.highwater.max(self.stored.len().min(self.most));
        if !rest.is_empty() {
            self.count_drops(ctx, rest.len());
        }
        self.signal_state(ctx);
        ctx.push(1, rest);
    }

    /// As in Click, only a pull without result reports that there is nothing, unless the queue is a quick one: who pulls soon
    /// again is not put to sleep.
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        self.stored.take_front(max, &mut batch);
        self.stored.prefetch(batch.len());
        self.pulled(ctx, batch.is_empty());
        batch
    }

    fn storage(&self) -> Option<&dyn Storage> {
        Some(self)
    }

    fn storage_mut(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }

    /// Packets and counts move over; what does not fit the new capacity is dropped.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            // it was between threads
            let stored = ctx.take_stored(old);
            return self.take_all(ctx, stored);
        };
        if ctx.is_reconfigured() {
            let capacity = self.capacity;
            core::mem::swap(self, old);
            self.resize(capacity);
            return self.signal_state(ctx);
        }
        (self.drops, self.highwater) = (old.drops, old.highwater.min(self.capacity));
        let mut stored = ctx.batch();
        old.stored.take_front(usize::MAX, &mut stored);
        self.take_all(ctx, stored);
    }
}
