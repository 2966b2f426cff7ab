// SPDX-License-Identifier: Apache-2.0
//! A cursor through a batch: each packet is taken out, and put back if it stays.
use core::ptr;

use crate::batch::Batch;
use crate::packet::Packet;

/// A pass through a batch. Packets that it does not take out stay.
///
/// Slots `head..kept` hold packets that were kept, `next..tail` those that were not looked at, and
/// those between hold none. The batch itself is empty until the cursor is dropped, by a panic too.
pub struct BatchCursor<'a> {
    batch: &'a mut Batch,
    head: usize,
    kept: usize,
    next: usize,
    tail: usize,
}

impl Batch {
    /// Begins a pass through all packets.
    #[inline]
    pub fn cursor_mut(&mut self) -> BatchCursor<'_> {
        let (head, tail) = self.range();
        if head < tail {
            // SAFETY: a batch with packets has memory; the packets are the cursor's until its end.
            unsafe { self.set_range(0, 0) };
        }
        BatchCursor {
            batch: self,
            head,
            kept: head,
            next: head,
            tail,
        }
    }
}

impl BatchCursor<'_> {
    /// Takes the next packet out.
    #[expect(
        clippy::should_implement_trait,
        reason = "it lends nothing out, but `keep` needs it between two calls"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<Packet> {
        if self.next == self.tail {
            return None;
        }
        // SAFETY: slots from `next` to `tail` hold packets; this one does not any more.
        let packet = unsafe { self.batch.slot(self.next).read() };
        self.next += 1;
        Some(packet)
    }

    /// Passes `n` packets (at most all), which are kept or dropped, most quickly at its beginning.
    pub fn skip(&mut self, n: usize, keep: bool) {
        let n = n.min(self.tail - self.next);
        if keep && self.kept == self.next {
            self.kept += n;
            self.next += n;
            return;
        }
        for _ in 0..n {
            if let (Some(packet), true) = (self.next(), keep) {
                self.keep(packet);
            }
        }
    }

    /// Puts a packet back, after those that were kept before.
    ///
    /// # Panics
    /// More packets are kept than were taken out.
    #[inline]
    pub fn keep(&mut self, packet: Packet) {
        assert!(self.kept < self.next, "only what was taken out is kept");
        // SAFETY: slots from `kept` to `next` hold no packet.
        unsafe { self.batch.slot(self.kept).write(packet) };
        self.kept += 1;
    }

    /// How many packets are kept now.
    #[inline]
    pub fn kept(&self) -> usize {
        self.kept - self.head
    }

    /// Moves the packets that are kept now to the end of another batch.
    #[inline]
    pub fn move_kept_to(&mut self, to: &mut Batch) {
        let count = self.kept();
        to.reserve(count);
        let (head, tail) = to.range();
        // SAFETY: slots from `head` to `kept` hold packets and those after the other's tail do not;
        // then the other way round.
        unsafe {
            if count > 0 {
                ptr::copy_nonoverlapping(self.batch.slot(self.head), to.slot(tail), count);
                to.set_range(head, tail + count);
            }
        }
        self.kept = self.head;
    }
}

impl Drop for BatchCursor<'_> {
    #[inline]
    fn drop(&mut self) {
        let left = self.tail - self.next;
        if self.tail == self.head {
            return;
        }
        // SAFETY: the batch has memory since it has slots; what was not looked at moves behind what was kept.
        unsafe {
            if left > 0 && self.kept < self.next {
                ptr::copy(self.batch.slot(self.next), self.batch.slot(self.kept), left);
            }
            self.batch.set_range(self.head, self.kept + left);
        }
    }
}
