// SPDX-License-Identifier: Apache-2.0
//! Memory of the guest in memory, which both sides reach by raw pointers.
use click_packet::Region;
use ring::Mapping;
use ring::layout::{Layout as RingLayout, PAGE};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;

/// Zeroed pages, aligned as blocks.
pub struct Area {
    base: NonNull<u8>,
    layout: Layout,
    memory: Mapping,
}

impl Area {
    pub fn new(pages: usize) -> Self {
        let layout = Layout::from_size_align(pages * PAGE, Region::BLOCK).unwrap();
        assert!(pages > 0);
        // SAFETY: the layout has a size above 0.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        // SAFETY: aligned, and freed with the mapping. No reference to it is made.
        let memory = unsafe { Mapping::from_raw(base, layout.size()) };
        Self {
            base,
            layout,
            memory,
        }
    }

    /// The whole area.
    pub fn memory(&self) -> &Mapping {
        &self.memory
    }
}

/// Pages that the guest uses; those that the peer has mapped live on without them.
pub struct Live {
    pages: usize,
    all: Rc<Cell<usize>>,
}

impl Live {
    pub fn new(pages: usize, all: &Rc<Cell<usize>>) -> Rc<Self> {
        all.set(all.get() + pages);
        let all = Rc::clone(all);
        Rc::new(Self { pages, all })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.all.set(self.all.get() - self.pages);
    }
}

/// The region in an area of whole blocks.
pub fn region(area: &Rc<Area>, live: &Rc<Live>) -> Region {
    let owner = Box::new((Rc::clone(area), Rc::clone(live)));
    let first = area.base;
    let blocks = area.layout.size() / Region::BLOCK;
    // SAFETY: aligned and zeroed, until the owner is dropped. Besides the packets only the peer's views
    // reach it, which take the place of another domain.
    unsafe { Region::new(first, blocks, RingLayout::color, owner) }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
