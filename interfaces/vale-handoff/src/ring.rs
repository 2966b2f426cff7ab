// SPDX-License-Identifier: Apache-2.0
//! The two ends of a ring.
use std::marker::PhantomData;
use std::sync::Arc;

use crate::slots::{Index, Memory, Slots};

/// Makes a ring of `slots` messages, a power of two.
///
/// # Panics
/// `slots` is no power of two.
pub fn ring<T: Default + Send>(slots: usize) -> (Sender<T>, Receiver<T>) {
    ring_in(Arc::new(Slots::new(slots)))
}

/// Makes a ring in fresh memory.
///
/// # Panics
/// Another ring uses the memory.
pub fn ring_in<T, M: Memory<T>>(mut memory: Arc<M>) -> (Sender<T, M>, Receiver<T, M>) {
    assert!(
        Arc::get_mut(&mut memory).is_some(),
        "memory of another ring"
    );
    let sender = Sender {
        memory: Arc::clone(&memory),
        next: 0,
        published: 0,
        taken: 0,
        messages: PhantomData,
    };
    let receiver = Receiver {
        memory,
        next: 0,
        taken: 0,
        published: 0,
        messages: PhantomData,
    };
    (sender, receiver)
}

/// Fills slots.
pub struct Sender<T, M: Memory<T> = Slots<T>> {
    memory: Arc<M>,
    /// The next slot to fill.
    next: usize,
    /// `next` when it was last published.
    published: usize,
    /// The receiver's index as last read.
    taken: usize,
    messages: PhantomData<fn(T)>,
}

impl<T, M: Memory<T>> Sender<T, M> {
    /// True if the ring has room for a message.
    pub fn has_room(&mut self) -> bool {
        let slots = self.memory.slots();
        if self.next.wrapping_sub(self.taken) == slots {
            self.taken = self.memory.load(Index::Taken);
        }
        self.next.wrapping_sub(self.taken) < slots
    }

    /// The number of messages whose slots have not come back.
    pub fn unreturned(&mut self) -> usize {
        self.taken = self.memory.load(Index::Taken);
        self.next.wrapping_sub(self.taken)
    }

    /// Lets `fill` write the next message over an older one. False if the ring is full.
    pub fn push(&mut self, fill: impl FnOnce(&mut T)) -> bool {
        if !self.has_room() {
            return false;
        }
        let at = self.next & (self.memory.slots() - 1);
        // SAFETY: the receiver accesses slots before `published` only, and has given this one back.
        // `taken` is its index, loaded with acquire ordering. Only this sender fills.
        unsafe { self.memory.slot(at, fill) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Shows the receiver what was pushed. True if that is anything: see [`crate::NeedWakeup::is_due`].
    pub fn publish(&mut self) -> bool {
        if self.next == self.published {
            return false;
        }
        self.published = self.next;
        self.memory.store(Index::Published, self.next);
        true
    }
}

/// Takes messages.
pub struct Receiver<T, M: Memory<T> = Slots<T>> {
    memory: Arc<M>,
    /// The next message to take.
    next: usize,
    /// `next` when its slots were last given back.
    taken: usize,
    /// The sender's index as last read.
    published: usize,
    messages: PhantomData<fn() -> T>,
}

impl<T, M: Memory<T>> Receiver<T, M> {
    /// The number of messages that wait.
    pub fn waiting(&mut self) -> usize {
        self.published = self.memory.load(Index::Published);
        self.published.wrapping_sub(self.next)
    }

    /// The number of messages that were waiting when the sender's index was last read, without those taken since.
    pub fn known(&self) -> usize {
        self.published.wrapping_sub(self.next)
    }

    /// Lets `take` use the next message. None if the ring is empty.
    pub fn pop<R>(&mut self, take: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.next == self.published && self.waiting() == 0 {
            return None;
        }
        let at = self.next & (self.memory.slots() - 1);
        // SAFETY: the sender has published the slot: `published` is its index, loaded with acquire
        // ordering. It fills the slot again only after `release`.
        let taken = unsafe { self.memory.slot(at, take) };
        self.next = self.next.wrapping_add(1);
        Some(taken)
    }

    /// Gives the slots of the taken messages back.
    pub fn release(&mut self) {
        if self.next != self.taken {
            self.taken = self.next;
            self.memory.store(Index::Taken, self.next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_takes_no_more_until_slots_come_back() {
        let (mut sender, mut receiver) = ring::<u32>(4);
        for round in 0..10u32 {
            let taken = (0..9).filter(|n| sender.push(|slot| *slot = round * 10 + n));
            assert_eq!(taken.count(), 4);
            assert_eq!(receiver.waiting(), 0, "nothing is published");
            assert!(sender.publish() && !sender.publish());
            let popped: Vec<_> = std::iter::from_fn(|| receiver.pop(|slot| *slot)).collect();
            assert_eq!(popped, (0..4).map(|n| round * 10 + n).collect::<Vec<_>>());
            assert!(!sender.has_room() && sender.unreturned() == 4);
            receiver.release();
            assert_eq!(sender.unreturned(), 0);
        }
    }

    #[test]
    fn messages_cross_threads_in_order() {
        // A busy machine takes milliseconds for each time that the ring is full or empty.
        const COUNT: u64 = 20_000;
        let (mut sender, mut receiver) = ring::<Vec<u64>>(64);
        let sending = std::thread::spawn(move || {
            for n in 0..COUNT {
                while !sender.push(|slot| {
                    slot.clear();
                    slot.extend([n, !n]);
                }) {
                    sender.publish();
                    std::thread::yield_now();
                }
                if n % 7 == 0 {
                    sender.publish();
                }
            }
            sender.publish();
        });
        let mut expected = 0;
        while expected < COUNT {
            let popped = receiver.pop(|slot| assert_eq!(*slot, [expected, !expected]));
            match popped {
                Some(()) => expected += 1,
                None => {
                    receiver.release();
                    std::thread::yield_now();
                }
            }
        }
        sending.join().unwrap();
    }
}
