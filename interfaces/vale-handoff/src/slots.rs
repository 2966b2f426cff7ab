// SPDX-License-Identifier: Apache-2.0
//! The memory that sender and receiver share.
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An index of a ring. It only grows; its lower bits name the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Messages published so far. The sender writes it.
    Published,
    /// Messages taken so far. The receiver writes it.
    Taken,
}

/// Memory of a ring. The tests have a model that runs under loom.
pub trait Memory<T> {
    /// The number of slots, a power of two.
    fn slots(&self) -> usize;
    /// Reads an index with acquire ordering.
    fn load(&self, index: Index) -> usize;
    /// Writes an index with release ordering.
    fn store(&self, index: Index, value: usize);
    /// Runs `work` on a slot.
    ///
    /// # Safety
    /// No other thread accesses the slot until the call returns.
    unsafe fn slot<R>(&self, at: usize, work: impl FnOnce(&mut T) -> R) -> R;
}

/// An index on cache lines of its own. Processors prefetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicUsize);

/// Slots in memory of this process.
pub struct Slots<T> {
    published: Line,
    taken: Line,
    slots: Box<[UnsafeCell<T>]>,
}

// SAFETY: `Memory::slot` is the only access to the cells, and its caller promises that no two
// threads use one slot at once. A slot's value moves between threads, so `T` has to be `Send`.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T: Default> Slots<T> {
    /// # Panics
    /// `slots` is no power of two.
    pub fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "{slots} slots");
        Self {
            published: Line::default(),
            taken: Line::default(),
            slots: (0..slots).map(|_| UnsafeCell::default()).collect(),
        }
    }
}

impl<T> Slots<T> {
    fn line(&self, index: Index) -> &AtomicUsize {
        match index {
            Index::Published => &self.published.0,
            Index::Taken => &self.taken.0,
        }
    }
}

impl<T> Memory<T> for Slots<T> {
    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn load(&self, index: Index) -> usize {
        self.line(index).load(Ordering::Acquire)
    }

    fn store(&self, index: Index, value: usize) {
        self.line(index).store(value, Ordering::Release);
    }

    unsafe fn slot<R>(&self, at: usize, work: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the caller promises that no other thread accesses the slot, so the reference is
        // the only one while it lives.
        work(unsafe { &mut *self.slots[at].get() })
    }
}
