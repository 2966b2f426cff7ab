// SPDX-License-Identifier: Apache-2.0
//! Packets that move between the threads of one program without a copy.
//!
//! A pool that [migrates](PacketPool::migrating) has buffers that belong to the thread that holds them. A packet
//! leaves as an [`InTransit`] and becomes a packet of the thread that receives it, which puts the buffer into its own
//! free list later. A thread with more free buffers than it needs gives them to the depot, and one without takes them
//! from there. As the blocks of such buffers have no owner, their memory is in use until the program ends.
use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use crate::arena::{Arena, OWN, release_large};
use crate::batch::Batch;
use crate::depot::{self, CLASSES, MOST};
use crate::packet::Packet;
use crate::pool::PacketPool;

/// A packet on its way to another thread. Dropped, it puts its buffer into the depot.
///
/// No other packet has its buffer, which migrates. It counts as in use at the thread that sent it (see [`Underway`]).
#[repr(align(32))]
pub struct InTransit(ManuallyDrop<Packet>);

// SAFETY: nothing else refers to the buffer (see the type), so the holder of the value alone accesses it. The
// beginning of its block is only read by then, but for the number that belongs to this buffer.
unsafe impl Send for InTransit {}

const _: () = assert!(size_of::<Option<InTransit>>() == size_of::<Packet>());

impl Drop for InTransit {
    fn drop(&mut self) {
        let (header, arena_ref) = (self.0.header, self.0.arena_ref());
        match arena_ref.list() {
            class @ 0..CLASSES => depot::give(core::iter::once(header), class),
            // SAFETY: a migrating buffer without a list was made by `make_large`; this is the end of its packet.
            _ => unsafe { release_large(header) },
        }
    }
}

/// Packets that a thread sent. They count for the limit of its pools until they have arrived, so packets on their way
/// between threads are not without a limit.
#[derive(Debug, Default)]
pub struct Underway {
    count: usize,
    /// It belongs to the thread.
    thread: PhantomData<*const ()>,
}

impl Underway {
    /// True if all have arrived, as far as is known.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// No more than the last `n` of them have not arrived; true if others have now.
    pub fn settle(&mut self, n: usize) -> bool {
        let arrived = self.count.saturating_sub(n);
        if arrived == 0 {
            return false;
        }
        self.count = n;
        let own = OWN.get().expect("it lives while this thread has packets");
        // SAFETY: they were counted when they were sent, and this thread's arena lives as long.
        unsafe { Arena::end_way(own, arrived) };
        true
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.settle(0);
    }
}

impl PacketPool {
    /// A pool whose packets can move to the pools of other threads, of at most `limit` packets at a time. All such pools
    /// of a thread have their buffers in common, and packets of one count for the limits of all.
    pub fn migrating(limit: usize) -> Self {
        if let Some(arena) = OWN.get() {
            // SAFETY: the arena is this thread's and alive until it leaves `OWN`; the reference ends with this statement.
            unsafe { &mut *arena.as_ptr() }.share();
            return Self::at(arena, limit);
        }
        let pool = Self::new(limit);
        // SAFETY: opened just now, and not known to anyone else.
        unsafe { &mut *pool.arena.as_ptr() }.let_migrate(MOST.min(limit));
        OWN.set(Some(pool.arena));
        pool
    }

    /// Hands the oldest `n` packets (at most all) of a batch to `send`. A packet whose buffer is shared, or does not
    /// migrate, leaves as a copy; returns how many found no buffer for it and were dropped. The others are `underway`.
    ///
    /// # Panics
    /// The pool does not migrate.
    pub fn send(
        &mut self,
        batch: &mut Batch,
        n: usize,
        underway: &mut Underway,
        mut send: impl FnMut(InTransit),
    ) -> usize {
        assert!(OWN.get() == Some(self.arena), "a pool of one thread");
        let n = n.min(batch.len());
        Packet::uniqueify_all(&mut batch.packets_mut()[..n]);
        let mut sent = 0;
        for packet in batch.drain_front(n) {
            let packet = match packet.arena_ref().migrates() {
                true => Some(packet),
                false => self.copy(&packet),
            };
            if let Some(packet) = packet {
                send(InTransit(ManuallyDrop::new(packet)));
                sent += 1;
            }
        }
        underway.count += sent;
        // SAFETY: the arena lives as long as the pool; the reference ends with this statement.
        unsafe { &mut *self.arena.as_ptr() }.left(sent);
        n - sent
    }

    /// How many more packets may be on their way to other threads: all of them together as many as the pool may have.
    pub fn may_leave(&self) -> usize {
        self.limit.saturating_sub(self.underway())
    }

    /// How many more packets may come from other threads.
    pub fn may_arrive(&self) -> usize {
        let here = self.in_use() - self.underway();
        self.limit.saturating_sub(here)
    }

    fn underway(&self) -> usize {
        // SAFETY: the arena lives as long as the pool, and no other reference to it is held.
        unsafe { self.arena.as_ref() }.underway()
    }

    /// Appends the packets that `next` gives, at most `most`, and no more than the pool may have; returns how many.
    ///
    /// Those that are on their way to other threads do not count: two threads would else wait for each other, each with
    /// all of its packets on their way to the other one.
    ///
    /// # Panics
    /// The pool does not migrate.
    pub fn receive(
        &mut self,
        most: usize,
        into: &mut Batch,
        next: impl FnMut() -> Option<InTransit>,
    ) -> usize {
        self.receive_all(most.min(self.may_arrive()), into, next)
    }

    /// The same, also if the pool then has more packets than it may have.
    ///
    /// # Panics
    /// The pool does not migrate.
    pub fn receive_all(
        &mut self,
        most: usize,
        into: &mut Batch,
        mut next: impl FnMut() -> Option<InTransit>,
    ) -> usize {
        assert!(OWN.get() == Some(self.arena), "a pool of one thread");
        let (arena, before) = (self.arena, into.len());
        into.extend(core::iter::from_fn(&mut next).take(most).map(|packet| {
            // SAFETY: the arena lives as long as the pool; the reference ends with this statement.
            unsafe { &mut *arena.as_ptr() }.arrived();
            let mut packet = ManuallyDrop::new(packet);
            // SAFETY: the value is not used any more, nor dropped.
            unsafe { ManuallyDrop::take(&mut packet.0) }
        }));
        into.len() - before
    }
}
