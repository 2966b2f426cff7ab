// SPDX-License-Identifier: Apache-2.0
//! The allocator of a program whose threads have one limit of memory.
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;
use std::alloc::System;

use crate::claims;

/// The system's allocator. An allocation that fails while another thread asks for room, and so has taken it for a moment,
/// waits for that thread and is tried once more.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedHeap;

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

// SAFETY: all blocks are the system's, which upholds the contract; a call that failed has changed nothing.
unsafe impl GlobalAlloc for SharedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        patiently(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        patiently(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller says; a block whose growth failed is as it was.
        patiently(|| unsafe { System.realloc(block, layout, size) })
    }
}
