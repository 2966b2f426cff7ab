// SPDX-License-Identifier: Apache-2.0
//! The heap: all memory of the domain that the image and the tables leave.
use alloc::alloc::{Layout, alloc, dealloc};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use talc::locking::AssumeUnlockable;
use talc::{ErrOnOom, Talc, Talck};

/// A guest has one processor and takes no interrupts; an exception that allocates while it is
/// reported ends the guest in any case. So no lock is needed.
#[cfg_attr(feature = "boot", global_allocator)]
static HEAP: Talck<AssumeUnlockable, ErrOnOom> = Talc::new(ErrOnOom).lock();

/// Memory kept for last words: their reason may be that there is none left.
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
const RESERVE_LAYOUT: Layout = match Layout::from_size_align(16 << 10, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("16 is a power of two"),
};

/// The heap's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub size: usize,
    pub used: usize,
    /// Bytes ever allocated, freed ones too: grows with work.
    pub allocated_in_all: u64,
}

/// The heap's memory at the moment.
pub fn usage() -> Usage {
    let counters = *HEAP.lock().get_counters();
    Usage {
        size: counters.claimed_bytes,
        used: counters.claimed_bytes - counters.available_bytes,
        allocated_in_all: counters.total_allocated_bytes,
    }
}

/// Gives memory to the heap.
///
/// # Safety
/// The range must be mapped, be unused, and stay the heap's for ever.
pub(crate) unsafe fn add(start: usize, end: usize) {
    if end.saturating_sub(start) > crate::PAGE_SIZE {
        let span = talc::Span::new(start as *mut u8, end as *mut u8);
        // SAFETY: the caller's promise. A range that is too small is refused, which loses it.
        let _ = unsafe { HEAP.lock().claim(span) };
    }
}

/// Sets memory aside for last words.
pub(crate) fn keep_reserve() {
    // SAFETY: the layout's size is not 0.
    RESERVE.store(unsafe { alloc(RESERVE_LAYOUT) }, Relaxed);
}

/// Makes what was set aside free again.
pub fn use_reserve() {
    let reserve = RESERVE.swap(null_mut(), Relaxed);
    if !reserve.is_null() {
        // SAFETY: allocated in `keep_reserve` with this layout, and taken out above.
        unsafe { dealloc(reserve, RESERVE_LAYOUT) };
    }
}
