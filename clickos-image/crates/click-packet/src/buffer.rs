// SPDX-License-Identifier: Apache-2.0
//! The memory of packets: blocks of buffers, in each a line of metadata of the packet, its bytes right behind.
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::anno;
use crate::arena::ArenaRef;

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Bytes of a block; its address is a multiple of them, so that a buffer leads to its block without a look at itself.
pub const BLOCK: usize = 32 << 10;
/// No two buffers of a block begin within the same piece of this size in bytes.
const PIECE: usize = 512;
const PIECES: usize = BLOCK / PIECE;

/// Begins every block.
#[repr(C, align(64))]
pub struct Block {
    /// Where its buffers belong.
    pub arena_ref: ArenaRef,
    /// Bytes of each of its buffers.
    pub capacity: u32,
    /// How many packets besides one have the buffer that begins in a piece. They lie close together: a thread that copies
    /// or drops stored packets touches no line of the packets themselves.
    extra_refs: [u32; PIECES],
}

/// Begins every buffer; `capacity` initialized bytes follow. Of annotations and link header only that counts which
/// a packet's `DataSpan` says is here. All bits are allowed: in a device's region another domain can write them.
#[repr(C, align(64))]
pub struct Header {
    /// All but the destination address.
    pub annotations: [u8; anno::SIZE],
    pub packet_type: u8,
    /// Offset of the link header, counted from the first byte of the buffer.
    pub mac: u32,
}

/// Bytes from the header to the packet's bytes.
pub const DATA_OFFSET: usize = size_of::<Header>();
const _: () = assert!(DATA_OFFSET == LINE);

/// Bytes from the beginning of a block to its first buffer.
pub const FIRST: usize = size_of::<Block>();

/// Bytes of a buffer with room for `capacity`.
pub const fn size(capacity: usize) -> usize {
    (DATA_OFFSET + capacity).next_multiple_of(LINE)
}

/// The memory of `bytes`, which blocks begin in.
pub fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, BLOCK).expect("no buffer is longer than 2 * MAX_PACKET")
}

/// The block a buffer lies in.
#[inline]
pub fn block_of(buffer: NonNull<Header>) -> NonNull<Block> {
    let at = buffer.as_ptr().map_addr(|addr| addr & !(BLOCK - 1));
    // SAFETY: no block lies at address 0, so no buffer lies below `BLOCK`.
    unsafe { NonNull::new_unchecked(at.cast()) }
}

/// Bytes of a buffer.
#[inline]
pub fn capacity(buffer: NonNull<Header>) -> u32 {
    // SAFETY: the block is alive as long as its buffer, and never changes it.
    unsafe { (*block_of(buffer).as_ptr()).capacity }
}

/// The number of packets that have a buffer, besides one.
#[inline]
pub fn extra_refs(buffer: NonNull<Header>) -> *mut u32 {
    let piece = buffer.addr().get() / PIECE % PIECES;
    // SAFETY: the block is alive as long as its buffer; the place is within it.
    unsafe { (&raw mut (*block_of(buffer).as_ptr()).extra_refs[piece]).cast() }
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; LINE],
}

/// Copies the lines that hold a packet's bytes between two offsets to another buffer: whole ones, since for those few
/// lengths have to be told from others.
///
/// # Safety
/// `from <= to`; both buffers are alive, as large, and have room for `to` bytes; the other one is not in use.
#[inline]
pub unsafe fn copy_lines(buffer: NonNull<Header>, other: NonNull<Header>, from: u32, to: u32) {
    let (first, end) = (from as usize / LINE, (to as usize).div_ceil(LINE));
    // SAFETY: the first line is the header, and a buffer ends with a line.
    unsafe {
        let buffer = buffer.cast::<Line>().add(1 + first);
        let other = other.cast::<Line>().add(1 + first);
        match end - first {
            // without a call
            1 => other.write(buffer.read()),
            2 => other.cast::<[Line; 2]>().write(buffer.cast().read()),
            count => buffer.copy_to_nonoverlapping(other, count),
        }
    }
}

/// Makes the beginning of a block.
///
/// # Safety
/// `FIRST` bytes at `at` are allocated, aligned for a block, and not used otherwise.
pub unsafe fn begin_block(at: NonNull<u8>, arena_ref: ArenaRef, capacity: usize) {
    let block = Block {
        arena_ref,
        extra_refs: [0; PIECES],
        capacity: u32::try_from(capacity).expect("no buffer is longer than 2 * MAX_PACKET"),
    };
    // SAFETY: the caller gives this memory to the block.
    unsafe { at.cast().write(block) };
}

/// Makes a header at `at`.
///
/// # Safety
/// `at` is aligned to a line and lies in a block behind its beginning. A buffer of the block fits there. Its bytes are
/// initialized, and no other code uses them.
pub unsafe fn place(at: NonNull<u8>) -> NonNull<Header> {
    let header = at.cast::<Header>();
    // SAFETY: the caller gives this memory to the header.
    unsafe {
        header.write(Header {
            annotations: [0; anno::SIZE],
            packet_type: 0,
            mac: 0,
        });
    }
    header
}
