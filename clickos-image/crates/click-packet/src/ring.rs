// SPDX-License-Identifier: Apache-2.0
//! Packets that wait, the oldest first, in a ring that grows no larger than it has to: what comes in goes where
//! something has just left.
use alloc::boxed::Box;
use core::mem::MaybeUninit;
use core::{ptr, slice};

use crate::batch::Batch;
use crate::copy::copy_packets;
use crate::packet::Packet;

/// Slots at first.
const FIRST: usize = 64;

/// A queue of packets.
#[derive(Default)]
pub struct Ring {
    slots: Box<[MaybeUninit<Packet>]>,
    /// Where the oldest is; `len` slots from there on, past the end from the first one on, hold packets.
    head: usize,
    len: usize,
}

impl Ring {
    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no packet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot of the n-th packet, or after the last one; `n` is at most the number of slots.
    #[inline]
    fn slot(&self, n: usize) -> usize {
        let at = self.head + n;
        at.checked_sub(self.slots.len()).unwrap_or(at)
    }

    /// Makes room for `n` more packets: twice as many slots, but no more than `most` if that is enough.
    #[cold]
    fn grow(&mut self, n: usize, most: usize) {
        let needed = self.len + n;
        let slots = (2 * self.slots.len()).max(FIRST).min(most).max(needed);
        let mut larger = Box::new_uninit_slice(slots);
        let first = self.len.min(self.slots.len() - self.head);
        for (to, from) in [
            (0, self.head..self.head + first),
            (first, 0..self.len - first),
        ] {
            let from = &self.slots[from];
            // SAFETY: as long and in other memory; slots hold packets as they are, and the old ones do not any more.
            unsafe {
                ptr::copy_nonoverlapping(from.as_ptr(), larger[to..].as_mut_ptr(), from.len())
            };
        }
        (self.slots, self.head) = (larger, 0);
    }

    /// Stores the oldest `n` packets (at most all) of a batch at the end; the ring gets no larger than `most` slots
    /// if they are enough.
    #[inline]
    pub fn append_front(&mut self, batch: &mut Batch, n: usize, most: usize) {
        let n = n.min(batch.len());
        if self.slots.len() - self.len < n {
            self.grow(n, most);
        }
        let at = self.slot(self.len);
        let first = n.min(self.slots.len() - at);
        batch.move_front_to(&mut self.slots[at..at + first]);
        if first < n {
            batch.move_front_to(&mut self.slots[..n - first]);
        }
        self.len += n;
    }

    /// Moves the oldest `n` packets (at most all) to the end of a batch.
    #[inline]
    pub fn take_front(&mut self, n: usize, batch: &mut Batch) {
        let n = n.min(self.len);
        let first = n.min(self.slots.len() - self.head);
        // SAFETY: these slots hold packets, and none from here on.
        unsafe {
            batch.extend_from(&self.slots[self.head..self.head + first]);
            if first < n {
                batch.extend_from(&self.slots[..n - first]);
            }
        }
        self.head = self.slot(n);
        self.len -= n;
    }

    /// Asks the processor to fetch the beginning of the oldest packet.
    #[inline]
    pub fn prefetch_first(&self) {
        if self.len > 0 {
            // SAFETY: `head` is the slot of the oldest packet, since `len` is not 0.
            unsafe { self.slots[self.head].assume_init_ref() }.prefetch();
        }
    }

    /// Asks the processor to fetch the beginnings of the oldest `n` packets (at most all), for who takes them next.
    #[inline]
    pub fn prefetch(&self, n: usize) {
        let n = n.min(self.len);
        let first = n.min(self.slots.len() - self.head);
        let (back, front) = (&self.slots[..n - first], &self.slots[self.head..]);
        for slot in front[..first].iter().chain(back) {
            // SAFETY: these slots hold packets.
            unsafe { slot.assume_init_ref() }.prefetch();
        }
    }

    /// Stores a packet in front.
    pub fn push_front(&mut self, packet: Packet) {
        if self.slots.len() == self.len {
            self.grow(1, usize::MAX);
        }
        self.head = self.head.checked_sub(1).unwrap_or(self.slots.len() - 1);
        self.slots[self.head].write(packet);
        self.len += 1;
    }

    /// How many of the oldest packets, at most `most`, together have at most `bytes` bytes, and how many they have.
    pub fn fitting(&self, most: usize, bytes: usize) -> (usize, usize) {
        let (mut count, mut sum) = (0, 0);
        while count < most.min(self.len) {
            // SAFETY: `count` is less than `len`, so this slot holds a packet.
            let len = unsafe { self.slots[self.slot(count)].assume_init_ref() }.len();
            if sum + len > bytes {
                break;
            }
            (count, sum) = (count + 1, sum + len);
        }
        (count, sum)
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Packet> {
        self.len = self.len.checked_sub(1)?;
        let at = self.head;
        self.head = if at + 1 < self.slots.len() { at + 1 } else { 0 };
        // SAFETY: `head` is the slot of the oldest packet, since `len` was not 0. The slot holds none from here on,
        // because `head` and `len` leave it out.
        Some(unsafe { self.slots[at].assume_init_read() })
    }

    /// Takes the youngest packet.
    pub fn pop_back(&mut self) -> Option<Packet> {
        self.len = self.len.checked_sub(1)?;
        let at = self.slot(self.len);
        // SAFETY: the last slot held a packet, and none from here on.
        Some(unsafe { self.slots[at].assume_init_read() })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut batch = Batch::new();
        while !self.is_empty() {
            self.take_front(FIRST, &mut batch);
            batch.clear();
        }
    }
}

impl Batch {
    /// Moves as many of the oldest packets as there are slots; the batch has as many.
    #[inline]
    fn move_front_to(&mut self, slots: &mut [MaybeUninit<Packet>]) {
        let n = slots.len();
        assert!(n <= self.len(), "a batch of {} gives {n}", self.len());
        let (head, tail) = self.range();
        if n > 0 {
            // SAFETY: n slots from the head on hold packets, and do not any more.
            unsafe {
                copy_packets(self.slot(head), slots.as_mut_ptr().cast(), n);
                self.set_range_or_reset(head + n, tail);
            }
        }
    }

    /// Appends the packets of slots.
    ///
    /// # Safety
    /// All of them hold packets, and do not from then on.
    #[inline]
    unsafe fn extend_from(&mut self, slots: &[MaybeUninit<Packet>]) {
        // SAFETY: as the caller says.
        unsafe { self.extend_copied(slice::from_raw_parts(slots.as_ptr().cast(), slots.len())) };
    }
}
