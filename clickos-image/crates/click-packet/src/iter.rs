// SPDX-License-Identifier: Apache-2.0
//! Packets taken out of a batch one by one, and put into it so.
use crate::batch::Batch;
use crate::packet::Packet;

impl Batch {
    /// Takes the oldest `n` packets (at most all); those not taken from the iterator are dropped.
    #[inline]
    pub fn drain_front(&mut self, n: usize) -> Drain<'_> {
        Drain {
            left: n.min(self.len()),
            batch: self,
        }
    }
}

/// The oldest packets of a batch, taken one by one.
pub struct Drain<'a> {
    batch: &'a mut Batch,
    left: usize,
}

impl Iterator for Drain<'_> {
    type Item = Packet;

    #[inline]
    fn next(&mut self) -> Option<Packet> {
        self.left = self.left.checked_sub(1)?;
        self.batch.pop_front()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl Drop for Drain<'_> {
    #[inline]
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

/// The packets of a batch that is used up.
pub struct IntoIter(Batch);

impl Iterator for IntoIter {
    type Item = Packet;

    #[inline]
    fn next(&mut self) -> Option<Packet> {
        self.0.pop_front()
    }
}

impl IntoIterator for Batch {
    type Item = Packet;
    type IntoIter = IntoIter;
    fn into_iter(self) -> IntoIter {
        IntoIter(self)
    }
}

/// Appends packets and says so at its end, so that the batch need not be looked at for each.
struct Appender<'a> {
    batch: &'a mut Batch,
    tail: usize,
    capacity: usize,
}

impl<'a> Appender<'a> {
    #[inline]
    fn new(batch: &'a mut Batch) -> Self {
        let (tail, capacity) = (batch.range().1, batch.capacity());
        Self {
            batch,
            tail,
            capacity,
        }
    }

    #[inline]
    fn push(&mut self, packet: Packet) {
        if self.tail == self.capacity {
            self.commit();
            self.batch.make_room(0, 1);
            (self.tail, self.capacity) = (self.batch.range().1, self.batch.capacity());
        }
        // SAFETY: there is a free slot at the tail.
        unsafe { self.batch.slot(self.tail).write(packet) };
        self.tail += 1;
    }

    #[inline]
    fn commit(&mut self) {
        let (head, tail) = self.batch.range();
        if self.tail > tail {
            // SAFETY: packets were written to the slots from the old tail on, so there is memory.
            unsafe { self.batch.set_range(head, self.tail) };
        }
    }
}

impl Drop for Appender<'_> {
    #[inline]
    fn drop(&mut self) {
        self.commit();
    }
}

impl Extend<Packet> for Batch {
    #[inline]
    fn extend<I: IntoIterator<Item = Packet>>(&mut self, packets: I) {
        let mut appender = Appender::new(self);
        packets.into_iter().for_each(|packet| appender.push(packet));
    }
}
