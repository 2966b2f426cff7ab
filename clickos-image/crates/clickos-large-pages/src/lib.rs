// SPDX-License-Identifier: Apache-2.0
//! An allocator that puts large blocks into large pages.
//!
//! A router with many packets in its queues touches more pages than the
//! processor remembers the places of; with pages of 2 MiB it does not.
//! This is an unsafe island: it only passes on what [`System`] does.
use core::ffi::c_void;
use std::alloc::{GlobalAlloc, Layout, System};

use rustix::mm::{Advice, madvise};

/// Bytes of a large page.
const PAGE: usize = 2 << 20;
/// Blocks from this size on are worth one.
const MIN: usize = PAGE / 2;

/// The system's allocator, and large pages for large blocks.
pub struct LargePages;

/// The layout that the allocator requests from the system, the same one for the same block every
/// time.
fn placed(layout: Layout) -> Layout {
    if layout.size() < MIN {
        return layout;
    }
    layout
        .align_to(PAGE)
        .map_or(layout, |aligned| aligned.pad_to_align())
}

// SAFETY: blocks come from System and go back to it with the layout they came with, which is a
// function of the caller's layout alone, no smaller and no less aligned.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let placed = placed(layout);
        // SAFETY: the caller's layout is not empty, so this one is not.
        let block = unsafe { System.alloc(placed) };
        if placed.size() >= PAGE && !block.is_null() {
            // a kernel without large pages says no, and the block is as good as any
            // SAFETY: the block is ours and whole pages; advice does not change its content.
            let _ =
                unsafe { madvise(block.cast::<c_void>(), placed.size(), Advice::LinuxHugepage) };
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < MIN {
            // SAFETY: as the caller says.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: as the caller says.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: just allocated with this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `alloc` got the block with this very layout.
        unsafe { System.dealloc(block, placed(layout)) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size() < MIN && size < MIN {
            // SAFETY: as the caller says; small blocks are the system's as they are.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller says that the size does not overflow with this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: a size the caller may ask for; both blocks have room for what is copied, and are two.
        unsafe {
            let new = self.alloc(new_layout);
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: LargePages = LargePages;

    #[test]
    fn blocks_keep_their_content_while_they_grow_and_shrink() {
        let mut bytes: Vec<u8> = Vec::new();
        for n in 0..5 * PAGE {
            bytes.push((n % 251) as u8);
        }
        bytes.truncate(MIN / 2);
        bytes.shrink_to_fit();
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(n, b)| usize::from(*b) == n % 251)
        );
    }

    #[test]
    fn large_blocks_are_zeroed_and_aligned() {
        for size in [MIN - 1, MIN, PAGE, PAGE + 1] {
            let mut block = vec![0u8; size];
            assert!(block.iter().all(|b| *b == 0));
            block.fill(0xff);
            if size >= MIN {
                assert_eq!(block.as_ptr().addr() % PAGE, 0);
            }
        }
    }
}
