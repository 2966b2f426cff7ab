// SPDX-License-Identifier: Apache-2.0
//! A run of packets that travel together, in arrival order.
use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::slice;

use crate::copy::copy_packets;
use crate::packet::Packet;

/// What a batch points to; `capacity` slots follow, those in `head..tail` hold packets.
#[repr(C)]
struct Slots {
    head: usize,
    tail: usize,
    capacity: usize,
}

/// The head of all empty batches without memory; never written.
static NO_SLOTS: Slots = Slots {
    head: 0,
    tail: 0,
    capacity: 0,
};

/// Slots of a batch's first memory.
const FIRST: usize = 32;

/// Packets in arrival order. It is one pointer, so handing it on costs nothing.
pub struct Batch {
    slots: NonNull<Slots>,
}

fn layout(capacity: usize) -> Layout {
    let slots = Layout::array::<Packet>(capacity).expect("a batch fits into memory");
    let (layout, _) = Layout::new::<Slots>()
        .extend(slots)
        .expect("a batch fits into memory");
    layout
}

impl Batch {
    /// An empty batch; it allocates at the first packet.
    #[inline]
    pub fn new() -> Self {
        Self {
            slots: NonNull::from(&NO_SLOTS),
        }
    }

    #[inline]
    fn s(&self) -> &Slots {
        // SAFETY: alive as long as the batch; `&self` keeps it from being written.
        unsafe { self.slots.as_ref() }
    }

    /// Sets which slots hold packets.
    ///
    /// # Safety
    /// The batch has memory, and exactly these slots hold packets.
    #[inline]
    pub(crate) unsafe fn set_range(&mut self, head: usize, tail: usize) {
        // SAFETY: alive, ours alone, and with memory of its own, says the caller.
        let slots = unsafe { self.slots.as_mut() };
        (slots.head, slots.tail) = (head, tail);
    }

    /// Like `set_range`, and an empty batch begins at its first slot again.
    ///
    /// # Safety
    /// As `set_range`.
    #[inline]
    pub(crate) unsafe fn set_range_or_reset(&mut self, head: usize, tail: usize) {
        let (head, tail) = if head == tail { (0, 0) } else { (head, tail) };
        // SAFETY: as the caller says.
        unsafe { self.set_range(head, tail) };
    }

    /// The slots with packets.
    #[inline]
    pub(crate) fn range(&self) -> (usize, usize) {
        (self.s().head, self.s().tail)
    }

    /// A slot's place.
    ///
    /// # Safety
    /// `n` is at most the capacity.
    #[inline]
    pub(crate) unsafe fn slot(&self, n: usize) -> *mut Packet {
        // SAFETY: the slots follow the `Slots`, and n is among them or one behind.
        unsafe { self.slots.add(1).cast::<Packet>().as_ptr().add(n) }
    }

    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.s().tail - self.s().head
    }

    /// True if there is no packet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if it has memory of its own.
    #[inline]
    pub fn has_memory(&self) -> bool {
        self.s().capacity > 0
    }

    /// How many slots it has.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.s().capacity
    }

    /// Makes `front` and `back` free slots before and after the packets.
    #[cold]
    pub(crate) fn make_room(&mut self, front: usize, back: usize) {
        let (old, len) = (self.slots, self.len());
        let (head, capacity) = (self.s().head, self.s().capacity);
        let needed = front + len + back;
        let roomy = needed <= capacity && head.max(capacity - head - len) >= capacity / 2;
        if !roomy {
            self.slots = new_slots((2 * capacity).max(needed).max(FIRST));
        }
        // SAFETY: both have room for the packets, which move to slots that hold none.
        unsafe {
            let from = old.add(1).cast::<Packet>().as_ptr().add(head);
            ptr::copy(from, self.slot(front), len);
            self.set_range(front, front + len);
            if !roomy {
                free_slots(old);
            }
        }
    }

    /// Makes room for `n` packets at the end.
    #[inline]
    pub(crate) fn reserve(&mut self, n: usize) {
        if self.s().capacity - self.s().tail < n {
            self.make_room(0, n);
        }
    }

    /// Appends a packet.
    #[inline]
    pub fn push_back(&mut self, packet: Packet) {
        self.reserve(1);
        let (head, tail) = self.range();
        // SAFETY: there is a free slot at the tail.
        unsafe {
            self.slot(tail).write(packet);
            self.set_range(head, tail + 1);
        }
    }

    /// Appends the packet at `from`, where it is not any more then.
    ///
    /// # Safety
    /// There is a packet, in none of our slots.
    #[inline]
    pub(crate) unsafe fn append_moved(&mut self, from: *const Packet) {
        self.reserve(1);
        let (head, tail) = self.range();
        // SAFETY: there is a free slot at the tail, and a packet says the caller.
        unsafe {
            self.slot(tail).copy_from_nonoverlapping(from, 1);
            self.set_range(head, tail + 1);
        }
    }

    /// Puts a packet in front, as one that did not fit a device.
    pub fn push_front(&mut self, packet: Packet) {
        if self.s().head == 0 {
            self.make_room(self.len() / 2 + 1, 0);
        }
        let (head, tail) = self.range();
        // SAFETY: there is a free slot before the head.
        unsafe {
            self.slot(head - 1).write(packet);
            self.set_range(head - 1, tail);
        }
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Packet> {
        let (head, tail) = self.range();
        // SAFETY: the slot at the head holds a packet, and none from then on.
        (head < tail).then(|| unsafe {
            self.set_range_or_reset(head + 1, tail);
            self.slot(head).read()
        })
    }

    /// Takes the youngest packet.
    #[inline]
    pub fn pop_back(&mut self) -> Option<Packet> {
        let (head, tail) = self.range();
        // SAFETY: the slot before the tail holds a packet, and none from then on.
        (head < tail).then(|| unsafe {
            self.set_range(head, tail - 1);
            self.slot(tail - 1).read()
        })
    }

    /// All packets, oldest first.
    #[inline]
    pub fn packets(&self) -> &[Packet] {
        let (head, tail) = self.range();
        // SAFETY: these slots hold packets.
        unsafe { slice::from_raw_parts(self.slot(head), tail - head) }
    }

    #[inline]
    pub(crate) fn packets_mut(&mut self) -> &mut [Packet] {
        let (head, tail) = self.range();
        // SAFETY: these slots hold packets, and `&mut self` is the only way to them.
        unsafe { slice::from_raw_parts_mut(self.slot(head), tail - head) }
    }

    /// The oldest packet.
    pub fn front(&self) -> Option<&Packet> {
        self.packets().first()
    }

    /// All packets, oldest first.
    #[inline]
    pub fn iter(&self) -> slice::Iter<'_, Packet> {
        self.packets().iter()
    }

    /// All packets, to change in place.
    #[inline]
    pub fn iter_mut(&mut self) -> slice::IterMut<'_, Packet> {
        self.packets_mut().iter_mut()
    }

    /// Asks the processor to fetch the beginnings of all packets, for who is to read them first.
    #[inline]
    pub fn prefetch(&self) {
        self.iter().for_each(Packet::prefetch);
    }

    /// Gives every packet a buffer of its own, for who is to change them: quicker than one by one, when it happens.
    #[inline]
    pub fn uniqueify(&mut self) {
        Packet::uniqueify_all(self.packets_mut());
    }

    /// Appends packets as they are.
    ///
    /// # Safety
    /// Either they are not used any more, or they say that they are shared, and each copy is counted and has a
    /// reserved buffer.
    #[inline]
    pub(crate) unsafe fn extend_copied(&mut self, packets: &[Packet]) {
        self.reserve(packets.len());
        let (head, tail) = self.range();
        if packets.is_empty() {
            return;
        }
        // SAFETY: that many slots after our tail are free, and what they hold then are packets of their own.
        unsafe {
            copy_packets(packets.as_ptr(), self.slot(tail), packets.len());
            self.set_range(head, tail + packets.len());
        }
    }

    /// Appends a packet `n` times.
    ///
    /// # Safety
    /// It says that it is shared, and each copy is counted and has a reserved buffer.
    #[inline]
    pub(crate) unsafe fn extend_repeated(&mut self, packet: &Packet, n: usize) {
        self.reserve(n);
        let (head, tail) = self.range();
        if n == 0 {
            return;
        }
        // SAFETY: that many slots after our tail are free, and hold packets of their own then; there is memory.
        unsafe {
            ptr::copy_nonoverlapping(packet, self.slot(tail), 1);
            for at in tail + 1..tail + n {
                ptr::copy_nonoverlapping(packet, self.slot(at), 1);
            }
            self.set_range(head, tail + n);
        }
    }

    /// Moves the oldest `n` packets (at most all) of `other` to the end of this batch.
    #[inline]
    pub fn append_front(&mut self, other: &mut Self, n: usize) {
        let n = n.min(other.len());
        if n == 0 {
            return;
        }
        self.reserve(n);
        let ((head, tail), (from, end)) = (self.range(), other.range());
        // SAFETY: n slots of `other` hold packets and n behind our tail do not; then the other way round.
        unsafe {
            copy_packets(other.slot(from), self.slot(tail), n);
            other.set_range_or_reset(from + n, end);
            self.set_range(head, tail + n);
        }
    }

    /// Moves all packets of `other` to the end of this batch.
    #[inline]
    pub fn append(&mut self, other: &mut Self) {
        self.append_front(other, usize::MAX);
    }

    /// Keeps the packets for which `keep` is true.
    pub fn retain_mut(&mut self, mut keep: impl FnMut(&mut Packet) -> bool) {
        let mut cursor = self.cursor_mut();
        while let Some(mut packet) = cursor.next() {
            if keep(&mut packet) {
                cursor.keep(packet);
            }
        }
    }

    /// Drops all packets, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        let (head, tail) = self.range();
        if head == tail {
            if head > 0 {
                // SAFETY: no slot holds a packet, and a batch with a slot has memory.
                unsafe { self.set_range(0, 0) };
            }
            return;
        }
        // SAFETY: these slots held packets; from here on none does, and what was in them goes arena.
        unsafe {
            self.set_range(0, 0);
            let packets = slice::from_raw_parts(self.slot(head), tail - head);
            Packet::drop_all(packets);
        }
    }
}

/// Memory for a batch without packets.
fn new_slots(capacity: usize) -> NonNull<Slots> {
    let layout = layout(capacity);
    // SAFETY: the layout is not empty.
    let Some(at) = NonNull::new(unsafe { alloc(layout) }) else {
        handle_alloc_error(layout)
    };
    let slots = at.cast::<Slots>();
    let empty = Slots {
        capacity,
        ..NO_SLOTS
    };
    // SAFETY: allocated with a layout that begins with `Slots`.
    unsafe { slots.write(empty) };
    slots
}

/// Frees a batch's memory, if it has any.
///
/// # Safety
/// It came from `new_slots` or is `NO_SLOTS`, and is not used any more.
unsafe fn free_slots(slots: NonNull<Slots>) {
    // SAFETY: alive until here.
    let capacity = unsafe { slots.as_ref() }.capacity;
    if capacity > 0 {
        // SAFETY: made by `new_slots` with this capacity.
        unsafe { dealloc(slots.as_ptr().cast(), layout(capacity)) };
    }
}

impl Default for Batch {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Batch {
    #[inline]
    fn drop(&mut self) {
        self.clear();
        // SAFETY: the batch's own memory, which goes with it.
        unsafe { free_slots(self.slots) };
    }
}

impl core::fmt::Debug for Batch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
