// SPDX-License-Identifier: Apache-2.0
//! The allocator of a program whose threads have one limit of memory.
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;

use crate::claims;

/// An allocator of several threads. An allocation that fails while another thread asks for room, and so has taken it for
/// a moment, waits for that thread and is tried once more.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedHeap<A>(pub A);

#[cold]
fn again(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    match claims::wait() {
        true => allocate(),
        false => null_mut(),
    }
}

fn patiently(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let at = allocate();
    if at.is_null() { again(allocate) } else { at }
}

// SAFETY: all blocks are the inner allocator's, which upholds the contract; a call that failed has changed nothing.
unsafe impl<A: GlobalAlloc> GlobalAlloc for SharedHeap<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        patiently(|| unsafe { self.0.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        patiently(|| unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller says; a block whose growth failed is as it was.
        patiently(|| unsafe { self.0.realloc(block, layout, size) })
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::alloc::System;
    use std::sync::mpsc::channel;
    use std::thread::{scope, yield_now};

    use super::*;

    static TAKEN: AtomicBool = AtomicBool::new(false);
    static FAILED: AtomicBool = AtomicBool::new(false);

    /// Has memory unless it is taken.
    struct Short;

    // SAFETY: all blocks are the system's.
    unsafe impl GlobalAlloc for Short {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if TAKEN.load(Ordering::SeqCst) {
                FAILED.store(true, Ordering::SeqCst);
                return null_mut();
            }
            // SAFETY: as the caller says.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: as the caller says.
            unsafe { System.dealloc(block, layout) }
        }
    }

    #[test]
    fn an_allocation_waits_while_another_thread_has_all_memory_for_a_moment() {
        claims::share_among(2);
        let (asking, asks) = channel();
        scope(|threads| {
            threads.spawn(move || {
                claims::ask(1, 1, |_| {
                    TAKEN.store(true, Ordering::SeqCst);
                    asking.send(()).unwrap();
                    while !FAILED.load(Ordering::SeqCst) {
                        yield_now();
                    }
                    TAKEN.store(false, Ordering::SeqCst);
                    true
                })
            });
            asks.recv().unwrap();
            let (heap, layout) = (SharedHeap(Short), Layout::new::<[u64; 100]>());
            // SAFETY: the layout is not empty, and the block is freed with it.
            unsafe {
                let block = heap.alloc(layout);
                assert!(!block.is_null());
                heap.dealloc(block, layout);
            }
        });
    }
}
