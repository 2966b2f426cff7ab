// SPDX-License-Identifier: Apache-2.0
//! Whole pages of the heap, for sharing with other domains.
use crate::grants;
use crate::shared::Shared;
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};
use ring::Memory;

/// Bytes of a page.
pub const PAGE_SIZE: usize = 4096;

/// Pages that belong together, zeroed at first. If some are still granted when the value is dropped
/// the pages are lost rather than used for anything else.
#[derive(Debug)]
pub struct Pages {
    shared: Shared,
}

impl Pages {
    /// `count` pages; `None` if there is no memory for them.
    pub fn new(count: usize) -> Option<Self> {
        let layout = layout(count)?;
        // SAFETY: the layout has a size above 0 (checked in `layout`).
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // SAFETY: the pages are valid until drop, and nothing but this value knows them.
        let shared = unsafe { Shared::new(base, layout.size()) };
        Some(Self { shared })
    }

    /// How many pages there are.
    pub fn count(&self) -> usize {
        self.shared.len() / PAGE_SIZE
    }

    /// The address of page `index`.
    pub(crate) fn address(&self, index: usize) -> usize {
        assert!(index < self.count(), "page {index} of {}", self.count());
        self.shared.base().as_ptr() as usize + index * PAGE_SIZE
    }
}

impl Deref for Pages {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Memory for Pages {
    fn size(&self) -> usize {
        self.len()
    }
    fn load(&self, at: usize) -> u32 {
        self.acquire(at)
    }
    fn store(&self, at: usize, value: u32) {
        self.release(at, value);
    }
    fn load_descriptor(&self, at: usize) -> u64 {
        self.shared.read(at)
    }
    fn store_descriptor(&self, at: usize, value: u64) {
        self.shared.write(at, value);
    }
    fn read(&self, at: usize, into: &mut [u8]) {
        self.copy_out(at, into);
    }
    fn write(&self, at: usize, from: &[u8]) {
        self.copy_in(at, from);
    }
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if grants::any_granted(self) {
            return;
        }
        let layout = layout(self.count()).expect("`new` made the same layout");
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.shared.base().as_ptr(), layout) }
    }
}

fn layout(count: usize) -> Option<Layout> {
    let bytes = count.checked_mul(PAGE_SIZE).filter(|bytes| *bytes > 0)?;
    Layout::from_size_align(bytes, PAGE_SIZE).ok()
}
