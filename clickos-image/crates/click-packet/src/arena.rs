// SPDX-License-Identifier: Apache-2.0
//! Where buffers live: blocks of buffers of two sizes, last in, first out, so that the next packet is
//! in the cache. It lives as long as its pool or a packet of it.
//!
//! Packets may share a buffer. For each of them but one, a free buffer of that size is reserved: so a packet that is
//! to be changed finds one of its own, and as many packets need as much memory as if they shared nothing.
use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::any::Any;
use core::ptr::NonNull;

use crate::buffer::{self, BLOCK, FIRST, Header, LINE, block_of};
#[cfg(feature = "threads")]
use crate::depot;
use crate::memory;
use crate::packet::{HEADROOM, Packet};
use crate::refcount::drop_refs;

/// Bytes of the buffers that are kept; most packets fit the first.
pub const SIZES: [usize; 2] = [HEADROOM + 384, HEADROOM + 2048 + 128];
/// Blocks begin their buffers at that many different lines, or packets would lie in the same sets of the cache.
const COLORS: usize = 9;
/// There are half as many new blocks as there are, but no more than fill a large page.
const MAX_BLOCKS: usize = (2 << 20) / BLOCK;
/// The class of the buffers of a device, which are not shared.
pub const REGION: usize = SIZES.len();
/// The class of buffers that are not kept, nor shared.
const LARGE: usize = REGION + 1;
/// What is added to the class of buffers that move between the pools of threads (`depot.rs`).
const MIGRATING: usize = LARGE + 1;

/// Buffers of a block.
const fn per_block(class: usize) -> usize {
    (BLOCK - FIRST - (COLORS - 1) * LINE) / buffer::size(SIZES[class])
}

#[cfg(feature = "threads")]
const _: () = assert!(SIZES.len() == depot::CLASSES);

#[cfg(feature = "threads")]
std::thread_local! {
    /// The arena of this thread's migrating pools.
    pub static OWN: core::cell::Cell<Option<NonNull<Arena>>> = const { core::cell::Cell::new(None) };
}

/// Buffers of one size.
#[derive(Default)]
pub struct FreeList {
    pub free: Vec<NonNull<Header>>,
    /// How many of those are reserved for packets that share one.
    pub reserved: usize,
    blocks: usize,
}

impl FreeList {
    /// How many buffers may be taken.
    #[inline]
    fn ready(&self) -> usize {
        self.free.len() - self.reserved
    }
}

/// Where dropped packets leave their buffers.
pub struct Arena {
    pub(crate) free_lists: [FreeList; REGION + 1],
    memory: Vec<(NonNull<u8>, Layout)>,
    /// Its buffers move between the pools of threads; their memory is then in use until the program ends.
    migrates: bool,
    /// Free buffers of a size that it keeps then, at most.
    #[cfg(feature = "threads")]
    spare: usize,
    /// The memory of a device.
    pub(crate) region: Option<DeviceRegion>,
    /// Packets, shared or not.
    in_use: usize,
    /// Those of them that are on their way to other threads.
    #[cfg(feature = "threads")]
    underway: usize,
    /// Pools that take buffers here.
    pools: usize,
}

/// Memory that is a device's.
pub struct DeviceRegion {
    pub first: NonNull<u8>,
    pub number: u16,
    /// Where the first chunk lies in the region.
    pub start: usize,
    /// Dropped after the last packet there.
    #[allow(dead_code, reason = "it is there to be dropped")]
    pub owner: Box<dyn Any>,
}

/// Where a buffer belongs: the address of its arena and, in the lowest bits of it, which are 0, the class. Two are
/// compared as one number, always: whether packets lie in the same block besides is a decision that no processor can predict.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ArenaRef(NonNull<Arena>);
const _: () = assert!(align_of::<Arena>() > LARGE + MIGRATING);

impl ArenaRef {
    #[inline]
    pub fn new(arena: NonNull<Arena>, class: usize) -> Self {
        Self(arena.map_addr(|at| at | class))
    }

    /// The arena of buffers that do not migrate.
    #[inline]
    pub fn arena(self) -> NonNull<Arena> {
        let at = self.0.as_ptr().map_addr(|at| at - self.class());
        // SAFETY: what it was made of.
        unsafe { NonNull::new_unchecked(at) }
    }

    /// The size it is kept with, or none; and whether it migrates.
    #[inline]
    pub fn class(self) -> usize {
        self.0.addr().get() % align_of::<Arena>()
    }

    /// True for the buffers of a device.
    #[inline]
    pub fn is_region(self) -> bool {
        self.class() == REGION
    }

    /// The arena that has the buffer now, and the class.
    #[inline]
    pub fn parts(self) -> (NonNull<Arena>, usize) {
        #[cfg(feature = "threads")]
        if self.migrates() {
            let own = OWN
                .get()
                .expect("it lives while this thread has a packet of it");
            return (own, self.list());
        }
        (self.arena(), self.class())
    }

    /// The number of the free list, if there is one.
    #[inline]
    pub fn list(self) -> usize {
        self.class() % MIGRATING
    }

    /// True for buffers that move between the pools of threads.
    #[cfg(feature = "threads")]
    #[inline]
    pub fn migrates(self) -> bool {
        self.class() >= MIGRATING
    }
}

/// Where a buffer belongs.
///
/// # Safety
/// It is alive.
#[inline]
pub unsafe fn arena_ref(buffer: NonNull<Header>) -> ArenaRef {
    // SAFETY: its block is alive too, and this field of it never changes.
    unsafe { (*block_of(buffer).as_ptr()).arena_ref }
}

/// The class of the smallest size with room for `bytes`.
#[inline]
fn class_for(bytes: usize) -> usize {
    SIZES
        .iter()
        .fold(0, |class, size| class + usize::from(bytes > *size))
}

impl Arena {
    /// A arena for a pool, to be closed with `close`.
    pub fn open() -> NonNull<Self> {
        let arena = Self {
            free_lists: Default::default(),
            memory: Vec::new(),
            migrates: false,
            #[cfg(feature = "threads")]
            spare: 0,
            region: None,
            in_use: 0,
            #[cfg(feature = "threads")]
            underway: 0,
            pools: 1,
        };
        NonNull::from(Box::leak(Box::new(arena)))
    }

    /// Lets its buffers, before the first is made, move between the pools of threads. It keeps no more than `spare` free
    /// ones of a size.
    #[cfg(feature = "threads")]
    pub fn let_migrate(&mut self, spare: usize) {
        (self.migrates, self.spare) = (true, spare);
    }

    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// Packets that are on their way to other threads.
    #[cfg(feature = "threads")]
    pub fn underway(&self) -> usize {
        self.underway
    }

    /// Counts packets that leave for other threads.
    #[cfg(feature = "threads")]
    pub fn left(&mut self, count: usize) {
        self.underway += count;
    }

    /// Packets that left have arrived.
    ///
    /// # Safety
    /// They left, the arena is alive, and no reference to it is used any more.
    #[cfg(feature = "threads")]
    pub unsafe fn end_way(arena: NonNull<Self>, count: usize) {
        // SAFETY: as the caller says; they are in use until now, and the reference ends before they are not.
        unsafe {
            (*arena.as_ptr()).underway -= count;
            Self::end_use(arena, count);
        }
    }

    /// Counts one more pool.
    #[cfg(feature = "threads")]
    pub fn share(&mut self) {
        self.pools += 1;
    }

    /// Counts a packet that came from another thread.
    #[cfg(feature = "threads")]
    pub fn arrived(&mut self) {
        self.in_use += 1;
    }

    /// What blocks of this arena say.
    fn arena_ref(&self, arena: NonNull<Self>, class: usize) -> ArenaRef {
        if self.migrates {
            // the thread that holds a buffer knows its arena
            return ArenaRef::new(NonNull::dangling(), class + MIGRATING);
        }
        ArenaRef::new(arena, class)
    }

    /// Takes a buffer with room for `bytes`; `None` when there is no memory.
    ///
    /// # Safety
    /// `arena` is alive and no reference to it exists.
    #[inline]
    pub unsafe fn take(arena: NonNull<Self>, bytes: usize) -> Option<NonNull<Header>> {
        // SAFETY: as the caller says; the reference ends with this function.
        let me = unsafe { &mut *arena.as_ptr() };
        let class = class_for(bytes);
        if class == SIZES.len() {
            let buffer = Self::make_large(me.arena_ref(arena, LARGE), bytes)?;
            me.in_use += 1;
            return Some(buffer);
        }
        if me.free_lists[class].ready() == 0 {
            me.make(arena, class)?;
        }
        let buffer = me.free_lists[class].free.pop()?;
        me.in_use += 1;
        Some(buffer)
    }

    /// Takes a buffer of the device; `None` when all are in use.
    ///
    /// # Safety
    /// As `take`.
    #[inline]
    pub unsafe fn take_of_region(arena: NonNull<Self>) -> Option<NonNull<Header>> {
        // SAFETY: as the caller says; the reference ends with this function.
        let me = unsafe { &mut *arena.as_ptr() };
        let buffer = me.free_lists[REGION].free.pop()?;
        me.in_use += 1;
        Some(buffer)
    }

    #[cold]
    fn make_large(arena_ref: ArenaRef, bytes: usize) -> Option<NonNull<Header>> {
        let layout = buffer::layout(FIRST + buffer::size(bytes));
        let at = allocate(layout)?;
        // SAFETY: just allocated with this layout, and zeroed.
        unsafe {
            buffer::begin_block(at, arena_ref, bytes);
            Some(buffer::place(at.add(FIRST)))
        }
    }

    /// Makes more buffers; `None` when there is no memory.
    #[cold]
    fn make(&mut self, arena: NonNull<Self>, class: usize) -> Option<()> {
        #[cfg(feature = "threads")]
        if self.migrates && depot::refill(&mut self.free_lists[class].free, class) {
            return Some(());
        }
        let arena_ref = self.arena_ref(arena, class);
        let before = self.free_lists[class].blocks;
        let blocks = |count| Some((count, allocate(buffer::layout(count * BLOCK))?));
        let wanted = (before / 2).clamp(1, MAX_BLOCKS);
        let (count, memory) = blocks(wanted).or_else(|| blocks(1))?;
        #[cfg(feature = "threads")]
        if self.migrates && !depot::make_room(count * per_block(class), class) {
            // SAFETY: allocated just now with this layout, and not in use.
            unsafe { dealloc(memory.as_ptr(), buffer::layout(count * BLOCK)) };
            return None;
        }
        if !self.migrates {
            self.memory.push((memory, buffer::layout(count * BLOCK)));
        }
        let list = &mut self.free_lists[class];
        list.blocks += count;
        list.free.reserve(list.blocks * per_block(class));
        for n in (0..count).rev() {
            // SAFETY: the n-th block of the memory, which is zeroed and that no other code uses.
            unsafe {
                let block = memory.add(n * BLOCK);
                buffer::begin_block(block, arena_ref, SIZES[class]);
                list.cut(block.add(FIRST + (before + n) % COLORS * LINE), class);
            }
        }
        Some(())
    }

    /// Reserves buffers for at most `n` more packets that are to share one of this arena and class, which count as in
    /// use from now on. Returns for how many there were; `None` if such buffers are not shared.
    ///
    /// # Safety
    /// The arena is alive and no reference to it exists.
    #[inline]
    pub unsafe fn reserve_buffers(arena: NonNull<Self>, class: usize, n: usize) -> Option<usize> {
        // SAFETY: as the caller says; the reference ends with this function.
        let me = unsafe { &mut *arena.as_ptr() };
        debug_assert!(class != REGION, "no pool has such an arena");
        let mut ready = me.free_lists.get(class)?.ready();
        while ready < n && me.make(arena, class).is_some() {
            ready = me.free_lists[class].ready();
        }
        let n = n.min(ready);
        me.free_lists[class].reserved += n;
        me.in_use += n;
        Some(n)
    }

    /// Unshares the first packets that are shared and of one arena and class: those whose buffer others still have get
    /// a copy of it. Returns how many packets those are.
    ///
    /// # Safety
    /// The first one is shared, and no reference to its arena exists.
    pub unsafe fn unshare(packets: &mut [Packet]) -> usize {
        let Some(first) = packets.first() else {
            return 0;
        };
        let (arena, class) = first.arena_ref().parts();
        // SAFETY: an arena lives while a packet of it is in use; this is the only reference.
        let me = unsafe { &mut *arena.as_ptr() };
        // SAFETY: the first one is shared, says the caller, and belongs there.
        unsafe { me.free_lists[class].unshare(packets) }
    }

    /// Releases what was reserved for packets that were not made after all.
    ///
    /// # Safety
    /// The caller reserved this number for the arena and class by `reserve_buffers`; no reference to the arena exists.
    #[inline]
    pub unsafe fn release_reserved(arena: NonNull<Self>, class: usize, n: usize) {
        // SAFETY: as the caller says; the reference ends with this function.
        let me = unsafe { &mut *arena.as_ptr() };
        me.free_lists[class].reserved -= n;
        me.in_use -= n;
    }

    /// Takes the buffers of packets back: of the first one, and of those behind it that are like it. Returns how many.
    ///
    /// # Safety
    /// The packets are not used any more, and no reference to their arenas exists.
    #[inline]
    pub unsafe fn put_back(packets: &[Packet]) -> usize {
        let Some(first) = packets.first() else {
            return 0;
        };
        let arena_ref = first.arena_ref();
        if arena_ref.class() > REGION {
            // SAFETY: as the caller says.
            return unsafe { Self::put_back_rare(packets) };
        }
        let (arena, class) = (arena_ref.arena(), arena_ref.class());
        // SAFETY: an arena lives while a packet of it is in use; this is the only reference.
        let me = unsafe { &mut *arena.as_ptr() };
        let list = &mut me.free_lists[class];
        // SAFETY: as the caller says, and the first one's buffer is of this list.
        let count = unsafe { list.take_back(packets) };
        // SAFETY: they are gone; `me` is not used any more.
        unsafe { Self::end_use(arena, count) };
        count
    }

    /// As `put_back`, for buffers that are not kept, and those that move between the pools of threads.
    ///
    /// # Safety
    /// As `put_back`; `packets` is not empty.
    #[inline(never)]
    unsafe fn put_back_rare(packets: &[Packet]) -> usize {
        let first = &packets[0];
        let (arena, class) = first.arena_ref().parts();
        let mut count = 1;
        if class == LARGE {
            // SAFETY: `make_large` made it, and the caller says that its packet is not used any more.
            unsafe { release_large(first.header) };
        } else {
            // SAFETY: an arena lives while a packet of it is in use; the reference ends with this block.
            let me = unsafe { &mut *arena.as_ptr() };
            let list = &mut me.free_lists[class];
            // SAFETY: as the caller says, and the first one's buffer is of this list.
            count = unsafe { list.take_back(packets) };
            #[cfg(feature = "threads")]
            depot::give_surplus(&mut list.free, list.reserved, me.spare, class);
        }
        // SAFETY: they are gone, and no reference to the arena is used any more.
        unsafe { Self::end_use(arena, count) };
        count
    }

    /// Takes the buffer of one packet back.
    ///
    /// # Safety
    /// As `put_back`.
    pub unsafe fn put_back_one(packet: &Packet) {
        let arena_ref = packet.arena_ref();
        if arena_ref.class() > REGION {
            // SAFETY: as the caller says.
            unsafe { Self::put_back_rare(core::slice::from_ref(packet)) };
            return;
        }
        let (arena, class) = (arena_ref.arena(), arena_ref.class());
        // SAFETY: an arena lives while a packet of it is in use; this is the only reference.
        let me = unsafe { &mut *arena.as_ptr() };
        // SAFETY: as the caller says, and the buffer is of this list; `me` is not used after.
        unsafe {
            me.free_lists[class].put_back_one(packet);
            Self::end_use(arena, 1);
        }
    }

    /// `n` packets are no longer in use.
    ///
    /// # Safety
    /// They were, the arena is alive, and no reference to it is used any more.
    #[inline]
    pub unsafe fn end_use(arena: NonNull<Self>, count: usize) {
        // SAFETY: as the caller says.
        let me = unsafe { &mut *arena.as_ptr() };
        me.in_use -= count;
        if me.in_use == 0 && me.pools == 0 {
            // SAFETY: closed, and those were the last packets in use.
            unsafe { Self::end(arena) };
        }
    }

    /// A pool is gone; the arena goes with the last one, or the last packet.
    ///
    /// # Safety
    /// `arena` came from `open` or was shared, was not closed as often before, and no reference to it exists.
    pub unsafe fn close(arena: NonNull<Self>) {
        // SAFETY: as the caller says.
        let me = unsafe { &mut *arena.as_ptr() };
        me.pools -= 1;
        if me.in_use == 0 && me.pools == 0 {
            // SAFETY: closed, and no buffer is in use.
            unsafe { Self::end(arena) };
        }
    }

    /// Frees everything.
    ///
    /// # Safety
    /// Neither the pool nor a packet nor a reference to the arena is left.
    #[cold]
    unsafe fn end(arena: NonNull<Self>) {
        // SAFETY: `open` leaked this box, and no other pointer to it exists.
        #[cfg_attr(not(feature = "threads"), allow(unused_mut))]
        let mut me = unsafe { Box::from_raw(arena.as_ptr()) };
        #[cfg(feature = "threads")]
        if me.migrates {
            for (class, list) in me.free_lists.iter_mut().enumerate().take(SIZES.len()) {
                depot::give(list.free.drain(..), class);
            }
            OWN.set(None);
        }
        for (memory, layout) in &me.memory {
            // SAFETY: allocated with this layout in `make`; none of its buffers is in use.
            unsafe { dealloc(memory.as_ptr(), *layout) };
        }
    }
}

impl FreeList {
    /// Cuts a block's memory from `at` on into buffers, the first of which is taken first.
    ///
    /// # Safety
    /// There is room for `per_block` buffers within the block, zeroed and unused.
    unsafe fn cut(&mut self, at: NonNull<u8>, class: usize) {
        for n in (0..per_block(class)).rev() {
            // SAFETY: the n-th piece of what the caller gives away.
            let buffer = unsafe { buffer::place(at.add(n * buffer::size(SIZES[class]))) };
            self.free.push(buffer);
        }
    }

    /// Takes the first packets back that are of one arena and class, and shared like the first. Returns how many those
    /// are.
    ///
    /// # Safety
    /// The first one's buffer is of this free list, and they are not used any more.
    #[inline]
    unsafe fn take_back(&mut self, packets: &[Packet]) -> usize {
        // SAFETY: as the caller says.
        unsafe {
            match packets[0].is_shared() {
                true => self.release_refs(packets),
                false => self.put_back(packets),
            }
        }
    }

    /// Takes the buffers of the first packets back that are not shared. Returns how many those are.
    ///
    /// # Safety
    /// The first one's is of this free list, and they are not used any more.
    #[inline]
    unsafe fn put_back(&mut self, packets: &[Packet]) -> usize {
        let (arena_ref, before) = (packets[0].arena_ref(), self.free.len());
        for packet in packets {
            if packet.is_shared() || packet.arena_ref() != arena_ref {
                break;
            }
            self.free.push(packet.header);
        }
        self.free.len() - before
    }

    /// Takes the buffer of one packet back, unless others have it too.
    ///
    /// # Safety
    /// It is of this free list, and the packet is not used any more.
    #[inline]
    unsafe fn put_back_one(&mut self, packet: &Packet) {
        // SAFETY: the buffer is alive, and one of its packets is gone.
        if packet.is_shared() && unsafe { drop_refs(packet.header, 1) } {
            self.reserved -= 1;
            return;
        }
        self.free.push(packet.header);
    }
}

/// Zeroed memory, unless less than [`memory::RESERVE`] would be left.
fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    if !memory::has_room(layout.size() + memory::RESERVE) {
        return None;
    }
    // SAFETY: no caller's layout is empty.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// Frees a buffer that is alone in its block.
///
/// # Safety
/// It came from `make_large` and is not used any more.
pub unsafe fn release_large(buffer: NonNull<Header>) {
    // SAFETY: alive, and made with this layout, as the caller says.
    unsafe {
        let capacity = buffer::capacity(buffer) as usize;
        let layout = buffer::layout(FIRST + buffer::size(capacity));
        dealloc(block_of(buffer).as_ptr().cast(), layout);
    }
}
