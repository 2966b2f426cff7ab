// SPDX-License-Identifier: Apache-2.0
//! The memory of one packet: a header of two cache lines, its bytes right behind.
use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::anno::Annotations;
use crate::home::Home;

/// Two cache lines, which processors fetch as a pair.
pub const ALIGN: usize = 128;

/// Begins every buffer; `capacity` initialized bytes follow. Of what is known of the packet only that counts
/// which the flags of its `Place` name.
///
/// The line that packets on their way through a router need is the second one: so it is an odd number of lines
/// away from the data, as buffers are from each other an even one, and no store to it looks to the processor as if
/// it were one to another packet's data 4 KiB further.
#[repr(C, align(128))]
pub struct Header {
    pub rare: Rare,
    pub annotations: Annotations,
    /// The size it is kept with, or none.
    pub class: u8,
    /// From the network header to the transport header.
    pub transport: u16,
    /// Offset of the network header, counted from the first byte of the buffer.
    pub network: u32,
    pub home: NonNull<Home>,
}

/// A cache line of what is rarely needed.
#[repr(C, align(64))]
pub struct Rare {
    pub timestamp_ns: u64,
    pub mac: u32,
    pub capacity: u32,
}

/// Bytes from the header to the packet's bytes.
pub const BYTES_AT: usize = size_of::<Header>();
const _: () = assert!(BYTES_AT == ALIGN);
const _: () = assert!(core::mem::offset_of!(Header, annotations) == ALIGN / 2);

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
pub unsafe fn place(
    at: NonNull<u8>,
    capacity: usize,
    class: u8,
    home: NonNull<Home>,
) -> NonNull<Header> {
    let header = at.cast::<Header>();
    let rare = Rare {
        timestamp_ns: 0,
        mac: 0,
        capacity: u32::try_from(capacity).expect("no buffer is longer than 2 * MAX_PACKET"),
    };
    // SAFETY: the caller gives this memory to the header; layout() is aligned for it.
    unsafe {
        header.write(Header {
            rare,
            annotations: Annotations::NONE,
            class,
            transport: 0,
            network: 0,
            home,
        });
    }
    header
}

/// Memory for a single buffer, all zeros; `None` when there is none.
pub fn allocate(capacity: usize, class: u8, home: NonNull<Home>) -> Option<NonNull<Header>> {
    // SAFETY: the layout is not empty.
    let at = NonNull::new(unsafe { alloc_zeroed(layout(capacity)) })?;
    // SAFETY: just allocated with this layout, and zeroed.
    Some(unsafe { place(at, capacity, class, home) })
}

/// Gives back what `allocate` returned.
///
/// # Safety
/// `header` came from `allocate` and is not used any more.
pub unsafe fn release(header: NonNull<Header>) {
    // SAFETY: the caller says that it is alive, and that `allocate` made it with this layout.
    unsafe {
        let capacity = header.as_ref().rare.capacity as usize;
        dealloc(header.as_ptr().cast(), layout(capacity));
    }
}
