// SPDX-License-Identifier: Apache-2.0
//! Where buffers live: blocks of buffers of two sizes, last in, first out, so that the next packet is
//! in the cache. It lives as long as its pool or a packet of it.
//!
//! Packets may share a buffer. For each of them but one, a free buffer of that size is held back: so a packet that is
//! to be changed finds one of its own, and as many packets need as much memory as if they shared nothing.
use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::alike::Alike;
use crate::buffer::{self, BLOCK, FIRST, Header, LINE, block_of, sharers};
use crate::packet::{HEADROOM, Packet};

/// Bytes of the buffers that are kept; most packets fit the first.
const SIZES: [usize; 2] = [HEADROOM + 384, HEADROOM + 2048 + 128];
/// Blocks begin their buffers at so many different lines, or packets would lie in the same sets of the cache.
const COLORS: usize = 9;
/// There are half as many new blocks as there are, but no more than fill a large page.
const MOST_BLOCKS: usize = (2 << 20) / BLOCK;
/// The class of buffers that are not kept, nor shared.
const SINGLE: u8 = SIZES.len() as u8;

/// Buffers of a block.
const fn per_block(class: usize) -> usize {
    (BLOCK - FIRST - (COLORS - 1) * LINE) / buffer::size(SIZES[class])
}

/// Buffers of one size.
#[derive(Default)]
struct Shelf {
    free: Vec<NonNull<Header>>,
    /// How many of those are held back for packets that share one.
    held: usize,
    blocks: usize,
}

impl Shelf {
    /// How many buffers may be taken.
    #[inline]
    fn ready(&self) -> usize {
        self.free.len() - self.held
    }
}

/// Where dropped packets leave their buffers.
pub struct Home {
    shelves: [Shelf; SIZES.len()],
    memory: Vec<(NonNull<u8>, Layout)>,
    /// Packets, shared or not.
    in_use: usize,
    /// The pool exists.
    open: bool,
}

/// Where a buffer belongs.
pub type Kind = (NonNull<Home>, u8);

/// Where a buffer belongs.
///
/// # Safety
/// It is alive.
#[inline]
pub unsafe fn kind(buffer: NonNull<Header>) -> Kind {
    let block = block_of(buffer).as_ptr();
    // SAFETY: its block is alive too, and these fields of it never change.
    unsafe { ((*block).home, (*block).class) }
}

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
            shelves: Default::default(),
            memory: Vec::new(),
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
        if class == SINGLE {
            let buffer = Self::make_single(home, bytes)?;
            me.in_use += 1;
            return Some(buffer);
        }
        if me.shelves[usize::from(class)].ready() == 0 {
            me.make(home, class)?;
        }
        let buffer = me.shelves[usize::from(class)].free.pop()?;
        me.in_use += 1;
        Some(buffer)
    }

    #[cold]
    fn make_single(home: NonNull<Self>, bytes: usize) -> Option<NonNull<Header>> {
        let layout = buffer::layout(FIRST + buffer::size(bytes));
        // SAFETY: the layout is not empty.
        let at = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // SAFETY: just allocated with this layout, and zeroed.
        unsafe {
            buffer::begin_block(at, SINGLE, home);
            Some(buffer::place(at.add(FIRST), bytes))
        }
    }

    /// Makes more buffers; `None` when there is no memory.
    #[cold]
    fn make(&mut self, home: NonNull<Self>, kind: u8) -> Option<()> {
        let class = usize::from(kind);
        let before = self.shelves[class].blocks;
        let count = (before / 2).clamp(1, MOST_BLOCKS);
        let layout = buffer::layout(count * BLOCK);
        // SAFETY: the layout is not empty.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        self.memory.push((memory, layout));
        let shelf = &mut self.shelves[class];
        shelf.blocks += count;
        shelf.free.reserve(shelf.blocks * per_block(class));
        for n in (0..count).rev() {
            // SAFETY: the n-th block of the memory, which is zeroed and nobody else's.
            unsafe {
                let block = memory.add(n * BLOCK);
                buffer::begin_block(block, kind, home);
                shelf.cut(block.add(FIRST + (before + n) % COLORS * LINE), class);
            }
        }
        Some(())
    }

    /// Holds back buffers for at most `n` more packets that are to share one of this kind, which count as in use from
    /// now on. Returns for how many there were; `None` if such buffers are not shared.
    ///
    /// # Safety
    /// The home is alive and no reference to it exists.
    #[inline]
    pub unsafe fn hold((home, class): Kind, n: usize) -> Option<usize> {
        // SAFETY: as the caller says; the reference ends with this function.
        let me = unsafe { &mut *home.as_ptr() };
        let shelf = usize::from(class);
        let mut ready = me.shelves.get(shelf)?.ready();
        while ready < n && me.make(home, class).is_some() {
            ready = me.shelves[shelf].ready();
        }
        let n = n.min(ready);
        me.shelves[shelf].held += n;
        me.in_use += n;
        Some(n)
    }

    /// Ends the shares of the first packets that are shared and of one kind: those whose buffer others still have get
    /// a copy of it. Returns how many packets those are.
    ///
    /// # Safety
    /// The first one is shared, and no reference to its home exists.
    pub unsafe fn end_shares(packets: &mut [Packet]) -> usize {
        let Some(first) = packets.first() else {
            return 0;
        };
        let ((home, class), mut like) = (first.kind(), Alike::new(first));
        // SAFETY: a home lives while a packet of it is in use; this is the only reference.
        let shelf = unsafe { &mut (&mut *home.as_ptr()).shelves[usize::from(class)] };
        let (mut done, mut free) = (0, shelf.free.len());
        for packet in packets {
            if !packet.is_shared() || !like.is(packet) {
                break;
            }
            done += 1;
            // SAFETY: the buffer is alive; this is the only reference.
            let others = unsafe { &mut *sharers(packet.header) };
            packet.end_share();
            if *others > 0 {
                *others -= 1;
                free -= 1;
                // SAFETY: free, and as large as the one that the others keep.
                unsafe { packet.move_to(shelf.free[free]) };
            }
        }
        shelf.held -= shelf.free.len() - free;
        shelf.free.truncate(free);
        done
    }

    /// Gives back what was held for packets that were not made after all.
    ///
    /// # Safety
    /// So many were held for that kind by `hold`; no reference to the home exists.
    #[inline]
    pub unsafe fn give_back((home, class): Kind, n: usize) {
        // SAFETY: as the caller says; the reference ends with this function.
        let me = unsafe { &mut *home.as_ptr() };
        me.shelves[usize::from(class)].held -= n;
        me.in_use -= n;
    }

    /// Takes the buffers of packets back: of the first one, and of those behind it that are like it. Returns how many.
    ///
    /// # Safety
    /// The packets are used by nobody any more, and no reference to their homes exists.
    #[inline]
    pub unsafe fn put_back(packets: &[Packet]) -> usize {
        let Some(first) = packets.first() else {
            return 0;
        };
        let (home, class) = first.kind();
        // SAFETY: a home lives while a packet of it is in use; this is the only reference.
        let me = unsafe { &mut *home.as_ptr() };
        // SAFETY: as the caller says; `make_single` made the buffers that no shelf is for.
        let count = unsafe {
            match me.shelves.get_mut(usize::from(class)) {
                Some(shelf) if first.is_shared() => shelf.drop_shares(packets),
                Some(shelf) => shelf.put_back(packets),
                None => release_single(first.header),
            }
        };
        // SAFETY: they are gone; `me` is not used any more.
        unsafe { Self::leave(home, count) };
        count
    }

    /// Takes the buffer of one packet back.
    ///
    /// # Safety
    /// As `put_back`.
    pub unsafe fn put_back_one(packet: &Packet) {
        let (home, class) = packet.kind();
        // SAFETY: a home lives while a packet of it is in use; this is the only reference.
        let me = unsafe { &mut *home.as_ptr() };
        // SAFETY: as the caller says; `make_single` made the buffers that no shelf is for, and `me` is not used after.
        unsafe {
            match me.shelves.get_mut(usize::from(class)) {
                Some(shelf) => shelf.put_back_one(packet),
                None => _ = release_single(packet.header),
            }
            Self::leave(home, 1);
        }
    }

    /// So many packets are not in use any more.
    ///
    /// # Safety
    /// They were, the home is alive, and no reference to it is used any more.
    #[inline]
    unsafe fn leave(home: NonNull<Self>, count: usize) {
        // SAFETY: as the caller says.
        let me = unsafe { &mut *home.as_ptr() };
        me.in_use -= count;
        if me.in_use == 0 && !me.open {
            // SAFETY: closed, and those were the last packets in use.
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
        for (memory, layout) in &me.memory {
            // SAFETY: allocated with this layout in `make`; its buffers are in use by nobody.
            unsafe { dealloc(memory.as_ptr(), *layout) };
        }
    }
}

impl Shelf {
    /// Cuts a block's memory from `at` on into buffers, the first of which is taken first.
    ///
    /// # Safety
    /// There is room for `per_block` buffers within the block, zeroed and used by nobody.
    unsafe fn cut(&mut self, at: NonNull<u8>, class: usize) {
        for n in (0..per_block(class)).rev() {
            // SAFETY: the n-th piece of what the caller gives away.
            let buffer =
                unsafe { buffer::place(at.add(n * buffer::size(SIZES[class])), SIZES[class]) };
            self.free.push(buffer);
        }
    }

    /// Takes the buffers of the first packets back that are not shared. Returns how many those are.
    ///
    /// # Safety
    /// The first one's is of this shelf, and they are used by nobody any more.
    #[inline]
    unsafe fn put_back(&mut self, packets: &[Packet]) -> usize {
        let mut like = Alike::new(&packets[0]);
        let run = packets.iter();
        let run = run.take_while(|packet| !packet.is_shared() && like.is(packet));
        let (run, _) = packets.split_at(run.count());
        self.free.extend(run.iter().map(|packet| packet.header));
        run.len()
    }

    /// Takes the buffer of one packet back, unless others have it too.
    ///
    /// # Safety
    /// It is of this shelf, and the packet is used by nobody any more.
    #[inline]
    unsafe fn put_back_one(&mut self, packet: &Packet) {
        if packet.is_shared() {
            // SAFETY: the buffer is alive; this is the only reference.
            let others = unsafe { &mut *sharers(packet.header) };
            if *others > 0 {
                *others -= 1;
                self.held -= 1;
                return;
            }
        }
        self.free.push(packet.header);
    }

    /// Ends the shares of the first packets that are shared; a buffer whose last one ends is free. Returns how many
    /// those are.
    ///
    /// # Safety
    /// The first one's buffer is of this shelf, and they are used by nobody any more.
    #[inline]
    unsafe fn drop_shares(&mut self, packets: &[Packet]) -> usize {
        let (mut like, mut done, mut freed) = (Alike::new(&packets[0]), 0, 0);
        while let Some(first) = packets.get(done) {
            if !first.is_shared() || !like.is(first) {
                break;
            }
            // those of one buffer together, so that its number need not be written and read again for each
            let others = packets[done + 1..].iter();
            let same = others.take_while(|packet| packet.header == first.header);
            let count = 1 + same.count();
            // SAFETY: the buffer is alive; this is the only reference.
            let others = unsafe { &mut *sharers(first.header) };
            let left = (*others as usize).checked_sub(count);
            *others = left.unwrap_or(0) as u32;
            if left.is_none() {
                freed += 1;
                self.free.push(first.header);
            }
            done += count;
        }
        self.held -= done - freed;
        done
    }
}

/// Frees a buffer that is alone in its block; returns that it is one.
///
/// # Safety
/// It came from `make_single` and is not used any more.
unsafe fn release_single(buffer: NonNull<Header>) -> usize {
    // SAFETY: alive, and made with this layout, as the caller says.
    unsafe {
        let capacity = buffer.as_ref().capacity as usize;
        let layout = buffer::layout(FIRST + buffer::size(capacity));
        dealloc(block_of(buffer).as_ptr().cast(), layout);
    }
    1
}
