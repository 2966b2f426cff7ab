// SPDX-License-Identifier: Apache-2.0
//! The memory of one packet: a header of two cache lines, its bytes right behind.
use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::anno::Annotations;
use crate::home::Home;

/// Two cache lines, which processors fetch as a pair.
pub const ALIGN: usize = 128;

/// No such header offset.
pub const NONE: u32 = u32::MAX;

/// What is known of a packet. Offsets count from the first byte of the buffer.
#[derive(Clone, Copy)]
pub struct Meta {
    pub start: u32,
    pub end: u32,
    /// Where the data began when it began earliest: bytes from here on may be headers that were stripped.
    pub first: u32,
    pub mac: u32,
    pub network: u32,
    pub transport: u32,
    pub timestamp_ns: u64,
    /// Whether annotations were set; if not, `Header::annotations` is what an earlier packet left.
    pub annotated: bool,
}

impl Meta {
    /// What is known of a fresh packet.
    #[inline]
    pub fn fresh(start: u32, end: u32) -> Self {
        Self {
            start,
            end,
            first: start,
            mac: NONE,
            network: NONE,
            transport: NONE,
            timestamp_ns: 0,
            annotated: false,
        }
    }

    /// The same in a buffer where everything lies `by` bytes further.
    pub fn shifted(self, by: u32) -> Self {
        let move_offset = |at| if at == NONE { NONE } else { at + by };
        Self {
            start: self.start + by,
            end: self.end + by,
            first: self.first + by,
            mac: move_offset(self.mac),
            network: move_offset(self.network),
            transport: move_offset(self.transport),
            ..self
        }
    }
}

/// Begins every buffer; `capacity` initialized bytes follow.
#[repr(C, align(128))]
pub struct Header {
    pub home: NonNull<Home>,
    pub capacity: u32,
    /// Invariant: `meta.start <= meta.end <= capacity`.
    pub meta: Meta,
    /// In the second cache line, which packets without annotations never touch.
    pub annotations: SecondLine,
}

#[repr(align(64))]
pub struct SecondLine(pub Annotations);

/// Bytes from the header to the packet's bytes.
pub const BYTES_AT: usize = size_of::<Header>();
const _: () = assert!(BYTES_AT == ALIGN);

/// The memory of a buffer with room for `capacity` bytes.
pub fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(BYTES_AT + capacity, ALIGN)
        .expect("no buffer is longer than 2 * MAX_PACKET")
        .pad_to_align()
}

/// Makes a header at `at`.
///
/// # Safety
/// `layout(capacity)` bytes at `at` are allocated, zeroed or initialized, and used by nobody else.
pub unsafe fn place(at: NonNull<u8>, capacity: usize, home: NonNull<Home>) -> NonNull<Header> {
    let header = at.cast::<Header>();
    let capacity = u32::try_from(capacity).expect("no buffer is longer than 2 * MAX_PACKET");
    let meta = Meta::fresh(0, 0);
    // SAFETY: the caller gives this memory to the header; layout() is aligned for it.
    unsafe {
        header.write(Header {
            home,
            capacity,
            meta,
            annotations: SecondLine(Annotations::NONE),
        });
    }
    header
}

/// Memory for a single buffer, all zeros; `None` when there is none.
pub fn allocate(capacity: usize, home: NonNull<Home>) -> Option<NonNull<Header>> {
    // SAFETY: the layout is not empty.
    let at = NonNull::new(unsafe { alloc_zeroed(layout(capacity)) })?;
    // SAFETY: just allocated with this layout, and zeroed.
    Some(unsafe { place(at, capacity, home) })
}

/// Gives back what `allocate` returned.
///
/// # Safety
/// `header` came from `allocate` and is not used any more.
pub unsafe fn release(header: NonNull<Header>) {
    // SAFETY: the caller says that it is alive, and that `allocate` made it with this layout.
    unsafe {
        let capacity = header.as_ref().capacity as usize;
        dealloc(header.as_ptr().cast(), layout(capacity));
    }
}
