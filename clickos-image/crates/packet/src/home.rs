// SPDX-License-Identifier: Apache-2.0
//! Where buffers live: blocks of buffers of two sizes, last in, first out, so that the next packet is
//! in the cache. It lives as long as its pool or a packet of it.
use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::buffer::{self, Header};
use crate::packet::HEADROOM;

/// Bytes of the buffers that most packets fit.
pub const SMALL: usize = HEADROOM + 384;
/// Bytes of the buffers that are kept. With their headers odd multiples of 128: not all in the same cache sets.
const SIZES: [usize; 2] = [SMALL, HEADROOM + 2048 + 128];
/// A block has half as many buffers as there are, but not fewer than these,
const BLOCK_BUFFERS: usize = 32;
/// nor more bytes than these, a large page.
const BLOCK_BYTES: usize = 2 << 20;

/// Where dropped packets leave their buffers.
pub struct Home {
    free: [Vec<NonNull<Header>>; SIZES.len()],
    made: [usize; SIZES.len()],
    blocks: Vec<(NonNull<u8>, Layout)>,
    in_use: usize,
    /// The pool exists.
    open: bool,
}

/// The class of buffers that are not kept.
const SINGLE: u8 = SIZES.len() as u8;

/// The class of the smallest size with room for `bytes`.
#[inline]
fn class_for(bytes: usize) -> u8 {
    SIZES
        .iter()
        .fold(0, |class, size| class + u8::from(bytes > *size))
}

impl Home {
    /// A home for a pool, to be closed with `close`.
    pub fn open() -> NonNull<Self> {
        let home = Self {
            free: [Vec::new(), Vec::new()],
            made: [0; SIZES.len()],
            blocks: Vec::new(),
            in_use: 0,
            open: true,
        };
        NonNull::from(Box::leak(Box::new(home)))
    }

    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// Takes a buffer with room for `bytes`; `None` when there is no memory.
    ///
    /// # Safety
    /// `home` is alive and no reference to it exists.
    #[inline]
    pub unsafe fn take(home: NonNull<Self>, bytes: usize) -> Option<NonNull<Header>> {
        // SAFETY: as the caller says; the reference ends with this function.
        let me = unsafe { &mut *home.as_ptr() };
        let class = class_for(bytes);
        let free = me.free.get_mut(usize::from(class)).and_then(Vec::pop);
        let buffer = match free {
            Some(buffer) => buffer,
            None => me.make(home, bytes, class)?,
        };
        me.in_use += 1;
        Some(buffer)
    }

    /// Takes at most `n` buffers with room for `bytes`, of those that are free now.
    #[inline]
    pub fn take_ready(
        &mut self,
        bytes: usize,
        n: usize,
    ) -> impl Iterator<Item = NonNull<Header>> + '_ {
        let class = usize::from(class_for(bytes));
        let n = self.free.get(class).map_or(0, |free| n.min(free.len()));
        self.in_use += n;
        let free = &mut self.free[class.min(SIZES.len() - 1)];
        free.drain(free.len() - n..)
    }

    #[cold]
    fn make(&mut self, home: NonNull<Self>, bytes: usize, kind: u8) -> Option<NonNull<Header>> {
        if kind == SINGLE {
            return buffer::allocate(bytes, kind, home);
        }
        let class = usize::from(kind);
        let one = buffer::layout(SIZES[class]).size();
        let count = (self.made[class] / 2).clamp(BLOCK_BUFFERS, BLOCK_BYTES / one);
        let layout = Layout::from_size_align(one * count, buffer::ALIGN).ok()?;
        // SAFETY: the layout is not empty.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        self.blocks.push((block, layout));
        self.made[class] += count;
        self.free[class].reserve(self.made[class]);
        for n in (0..count).rev() {
            // SAFETY: within the block; the n-th piece of it is this buffer's alone, and zeroed.
            let buffer = unsafe { buffer::place(block.add(n * one), SIZES[class], kind, home) };
            self.free[class].push(buffer);
        }
        self.free[class].pop()
    }

    /// Takes a buffer back.
    ///
    /// # Safety
    /// `buffer` came from `take` and is used by nobody; no reference to its home exists.
    #[inline]
    pub unsafe fn put_back(buffer: NonNull<Header>) {
        // SAFETY: the buffer is alive.
        let (home, class) = unsafe { (buffer.as_ref().home, buffer.as_ref().class) };
        // SAFETY: a buffer's home lives while the buffer is in use; this is the only reference.
        let me = unsafe { &mut *home.as_ptr() };
        match me.free.get_mut(usize::from(class)) {
            Some(free) => free.push(buffer),
            // SAFETY: not of a kept size, so `make` allocated it alone.
            None => unsafe { buffer::release(buffer) },
        }
        // SAFETY: one that was in use is not any more.
        unsafe { Self::returned(home, 1) };
    }

    /// Takes buffers back: the first one, and those behind it that are alike. Returns how many.
    ///
    /// # Safety
    /// They came from `take` and are used by nobody; no reference to their homes exists.
    #[inline]
    pub unsafe fn put_back_alike(
        first: NonNull<Header>,
        others: impl ExactSizeIterator<Item = NonNull<Header>> + Clone,
    ) -> usize {
        // SAFETY: the buffers are alive.
        let kind =
            |buffer: NonNull<Header>| unsafe { (buffer.as_ref().home, buffer.as_ref().class) };
        let (home, class) = kind(first);
        if class == SINGLE {
            // SAFETY: as the caller says.
            unsafe { Self::put_back(first) };
            return 1;
        }
        let alike = |other: &NonNull<Header>| kind(*other) == (home, class);
        let more = others.clone().take_while(alike).count();
        // SAFETY: a buffer's home lives while the buffer is in use; this is the only reference.
        let free = unsafe { &mut (&mut *home.as_ptr()).free[usize::from(class)] };
        free.push(first);
        free.extend(others.take(more));
        // SAFETY: so many were in use and are not any more.
        unsafe { Self::returned(home, more + 1) };
        more + 1
    }

    /// Buffers are in use no longer; the last one that is ends a home whose pool is gone.
    ///
    /// # Safety
    /// So many were in use, and no reference to the home exists.
    #[inline]
    unsafe fn returned(home: NonNull<Self>, count: usize) {
        // SAFETY: it lives until `end`.
        let me = unsafe { &mut *home.as_ptr() };
        me.in_use -= count;
        if me.in_use == 0 && !me.open {
            // SAFETY: closed, and this was the last buffer in use.
            unsafe { Self::end(home) };
        }
    }

    /// The pool is gone; the home goes with the last packet.
    ///
    /// # Safety
    /// `home` came from `open`, was not closed before, and no reference to it exists.
    pub unsafe fn close(home: NonNull<Self>) {
        // SAFETY: as the caller says.
        let me = unsafe { &mut *home.as_ptr() };
        me.open = false;
        if me.in_use == 0 {
            // SAFETY: closed, and no buffer is in use.
            unsafe { Self::end(home) };
        }
    }

    /// Frees everything.
    ///
    /// # Safety
    /// Neither the pool nor a packet nor a reference to the home is left.
    #[cold]
    unsafe fn end(home: NonNull<Self>) {
        // SAFETY: `open` leaked this box, and nobody else points to it.
        let me = unsafe { Box::from_raw(home.as_ptr()) };
        for (block, layout) in &me.blocks {
            // SAFETY: allocated with this layout in `make`; its buffers are in use by nobody.
            unsafe { dealloc(block.as_ptr(), *layout) };
        }
    }
}
