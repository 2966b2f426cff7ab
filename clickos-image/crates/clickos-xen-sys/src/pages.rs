// SPDX-License-Identifier: Apache-2.0
//! Whole pages of the heap, for sharing with other domains.
use crate::grants;
use crate::shared::Shared;
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::rc::Rc;
use click_packet::Region;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};
use ring::Memory;
use ring::layout::Layout as RingLayout;

/// Bytes of a page.
pub const PAGE_SIZE: usize = 4096;

/// Pages that belong together, zeroed at first.
#[derive(Debug)]
pub struct Pages {
    /// The bytes that this side reaches: all, or none.
    shared: Shared,
    area: Rc<Area>,
}

/// Memory of the heap. While a page is granted, no other code may use it: then the drop loses the memory.
#[derive(Debug)]
struct Area {
    base: NonNull<u8>,
    layout: Layout,
}

impl Area {
    fn new(bytes: usize, align: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes, align).ok()?;
        if bytes == 0 {
            return None;
        }
        // SAFETY: the layout has a size above 0.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { base, layout })
    }

    fn pages(&self) -> usize {
        self.layout.size() / PAGE_SIZE
    }

    /// The address of page `index`.
    fn address(&self, index: usize) -> usize {
        assert!(index < self.pages(), "page {index} of {}", self.pages());
        self.base.as_ptr() as usize + index * PAGE_SIZE
    }

    fn is_granted(&self) -> bool {
        let first = self.base.as_ptr() as usize;
        grants::any_granted(first..first + self.layout.size())
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if self.is_granted() {
            return;
        }
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

impl Pages {
    /// `count` pages; `None` if there is no memory for them.
    pub fn new(count: usize) -> Option<Self> {
        let area = Area::new(count.checked_mul(PAGE_SIZE)?, PAGE_SIZE)?;
        // SAFETY: the pages are valid until drop, and nothing but this value knows them.
        let shared = unsafe { Shared::new(area.base, area.layout.size()) };
        let area = Rc::new(area);
        Some(Self { shared, area })
    }

    /// Blocks of a network device's packets. The pages are for grants: this side reaches their bytes by
    /// the packets of the region only.
    pub fn blocks(count: usize) -> Option<(Self, Region)> {
        let area = Area::new(count.checked_mul(Region::BLOCK)?, Region::BLOCK)?;
        // SAFETY: nothing is reached through a range of no bytes.
        let shared = unsafe { Shared::new(area.base, 0) };
        let (first, area) = (area.base, Rc::new(area));
        let owner = Box::new(Rc::clone(&area));
        // SAFETY: aligned and zeroed blocks, which live as long as their owner. `shared` reaches none.
        let region = unsafe { Region::new(first, count, RingLayout::color, owner) };
        Some((Self { shared, area }, region))
    }

    /// How many pages there are.
    pub fn count(&self) -> usize {
        self.area.pages()
    }

    /// The address of page `index`.
    pub(crate) fn address(&self, index: usize) -> usize {
        self.area.address(index)
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
