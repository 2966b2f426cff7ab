// SPDX-License-Identifier: Apache-2.0
//! Counts what a program allocates. A test that uses it is a program of its own, with
//! `#[global_allocator] static ALLOCATOR: Counting = Counting;`, since others would be counted, too.
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is allocated. A block that grows counts twice while it is copied, as it does with
/// an allocator that cannot grow in place.
pub struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(in_use, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `at` is from `alloc` above, that is from the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Bytes in use.
#[must_use]
pub fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// Most bytes in use beyond those of now while `run` runs, and what it returns.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = in_use();
    PEAK.store(before, Ordering::Relaxed);
    let result = run();
    (PEAK.load(Ordering::Relaxed) - before, result)
}
