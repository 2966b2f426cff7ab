// SPDX-License-Identifier: Apache-2.0
//! One side's half of one ring: a producer or a consumer, the same code for guest and switch.
//!
//! In netmap's terms the guest owns the slots `[head, tail)` of each ring, and one slot stays
//! empty. In `tx` the producer publishes `head` and may fill up to `tail`. In `rx` it publishes
//! `tail` and may fill up to the slot before `head`.
#[cfg(feature = "std")]
mod burst;

use core::fmt;

use crate::RingError;
use crate::layout::{
    self, BUFFER_SIZE, CUR, Descriptor, INDEX, LONGEST, Layout, NEED_KICK, NEEDS_CSUM, Ring,
};
use crate::memory::Memory;
#[cfg(feature = "std")]
pub use burst::{Parts, Pushed};

/// Bad descriptors passed over in search of one good frame.
pub(crate) const MAX_BAD: u32 = 64;

/// A frame that was not put into the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    Full,
    /// Empty or longer than [`BUFFER_SIZE`] or [`LONGEST`], or than a frame to be segmented can be.
    BadLength(usize),
    /// The peer's descriptor of the slot names no buffer; the slot was passed over.
    BadBuffer,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "ring: is full"),
            Self::BadLength(n) => write!(f, "frame: the ring takes no length of {n}"),
            Self::BadBuffer => write!(f, "ring: a slot names no buffer"),
        }
    }
}

impl core::error::Error for PushError {}

/// A checked descriptor that the switch has taken.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    frame: Descriptor,
    flags: u16,
}

impl Slot {
    /// A slot without a frame.
    pub const EMPTY: Self = Self {
        frame: Descriptor {
            offset: 0,
            len: 0,
            region: 0,
        },
        flags: 0,
    };

    /// A slot with a frame in its own region or another.
    #[cfg(feature = "std")]
    pub(crate) fn whole(frame: Descriptor) -> Self {
        Self { frame, flags: 0 }
    }

    /// A slot in its own region, whose flags both sides have agreed to.
    #[cfg(feature = "std")]
    pub(crate) fn flagged(frame: Descriptor) -> Self {
        let flags = frame.region;
        let frame = Descriptor { region: 0, ..frame };
        Self { frame, flags }
    }

    /// True if the frame's checksum covers the pseudo header only.
    pub fn needs_csum(self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }

    /// Payload bytes of the segments that the frame is to be cut into; 0 for none.
    pub fn segment(self) -> u16 {
        layout::segment(self.flags)
    }

    /// True if no work is left, and the frame fits one buffer.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.flags == 0 && self.len() <= BUFFER_SIZE
    }

    /// Length of the frame in bytes.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(self) -> usize {
        self.frame.len.into()
    }

    #[cfg(feature = "std")]
    pub(crate) fn offset(self) -> usize {
        self.frame.offset as usize
    }

    #[cfg(feature = "std")]
    pub(crate) fn region(self) -> u16 {
        self.frame.region
    }
}

/// The end of a frame, in the region of its sender.
pub struct Rest<'a, M> {
    pub(crate) memory: &'a M,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

impl<M> Clone for Rest<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Rest<'_, M> {}

impl<M: Memory> Rest<'_, M> {
    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies the bytes to the start of `into`.
    pub fn read(&self, into: &mut [u8]) {
        self.memory.read(self.at, &mut into[..self.len]);
    }
}

/// Our side, which decides which line is ours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Guest,
    Switch,
}

/// The part producers and consumers share: the lines, the handshake before sleeping.
struct Line {
    layout: Layout,
    ring: Ring,
    own: usize,
    peer: usize,
    /// Our next slot; never read back from shared memory.
    next: u32,
    /// `next` when it was last published.
    published: u32,
    /// The peer's `next` as last read, checked to be an index.
    peer_next: u32,
    /// Words of the peer that were no index.
    bad_indices: u64,
}

impl Line {
    fn new(layout: Layout, ring: Ring, side: Side) -> Self {
        let (guest, switch) = (ring.guest_line(), ring.switch_line());
        let (own, peer) = if side == Side::Guest {
            (guest, switch)
        } else {
            (switch, guest)
        };
        Self {
            layout,
            ring,
            own,
            peer,
            next: 0,
            published: 0,
            peer_next: 0,
            bad_indices: 0,
        }
    }

    /// Continues where an earlier program on this side ended: at the index that it published last.
    /// The peer may have changed the words, and then its own frames are lost or come twice.
    fn resume(&mut self, memory: &impl Memory, consumer: bool) -> Result<(), RingError> {
        let index = |at: usize, bias: u32| {
            let word = memory.load(at + INDEX);
            match word < self.layout.slots() {
                true => Ok(self.add(word, bias.wrapping_neg())),
                false => Err(RingError::BadIndex(word)),
            }
        };
        let next = index(self.own, self.bias(consumer))?;
        // A producer's progress is found by the next look at its index.
        let peer_next = match consumer {
            true => next,
            false => index(self.peer, self.bias(true))?,
        };
        (self.next, self.published, self.peer_next) = (next, next, peer_next);
        Ok(())
    }

    /// `index + n` around the ring.
    fn add(&self, index: u32, n: u32) -> u32 {
        index.wrapping_add(n) & (self.layout.slots() - 1)
    }

    /// Steps forward from `from` to `to`.
    fn distance(&self, from: u32, to: u32) -> u32 {
        self.add(to, from.wrapping_neg())
    }

    fn descriptor_at(&self, index: u32) -> usize {
        self.layout.descriptors(self.ring) + index as usize * 8
    }

    /// A consumer of `tx` publishes the slot before its next one: that is netmap's `tail`.
    fn bias(&self, consumer: bool) -> u32 {
        if consumer && self.ring == Ring::Tx {
            self.layout.slots() - 1
        } else {
            0
        }
    }

    /// Reads the peer's index and accepts it only if it moved within what is ours to give.
    fn refresh(&mut self, memory: &impl Memory, peer_consumes: bool) {
        let word = memory.load(self.peer + INDEX);
        let index = self.add(word, self.bias(peer_consumes).wrapping_neg());
        // A consumer may come up to our next slot, a producer up to the slot before it.
        let most = if peer_consumes {
            self.distance(self.peer_next, self.next)
        } else {
            self.distance(self.peer_next, self.add(self.next, self.layout.slots() - 1))
        };
        if word >= self.layout.slots() || self.distance(self.peer_next, index) > most {
            self.bad_indices = self.bad_indices.saturating_add(1);
        } else {
            self.peer_next = index;
        }
    }

    /// Publishes our progress; true if the peer sleeps and waits for a slot we passed.
    fn publish(&mut self, memory: &impl Memory, consumer: bool) -> bool {
        if self.next == self.published {
            return false;
        }
        let old = self.published;
        self.published = self.next;
        let bias = self.bias(consumer);
        memory.store(self.own + INDEX, self.add(self.next, bias));
        // Pairs with the fence in `arm`: either we see `need_kick`, or the peer sees the index.
        memory.fence();
        if memory.load(self.peer + NEED_KICK) == 0 {
            return false;
        }
        let cur = memory.load(self.peer + CUR);
        let passed = self.distance(self.add(old, bias), cur) < self.distance(old, self.next);
        if cur < self.layout.slots() && !passed {
            return false;
        }
        // The kick follows, so a second one before the peer is awake would only cost time.
        memory.store(self.peer + NEED_KICK, 0);
        true
    }

    /// Asks for a kick once the peer's published index passes `cur`.
    fn arm(&self, memory: &impl Memory, cur: u32) {
        memory.store(self.own + CUR, cur);
        memory.store(self.own + NEED_KICK, 1);
        memory.fence();
    }

    fn disarm(&self, memory: &impl Memory) {
        memory.store(self.own + NEED_KICK, 0);
    }
}

/// Fills slots.
pub(crate) struct Producer {
    line: Line,
    /// The last push found the ring full.
    blocked: bool,
    /// Buffers come from our own layout (guest) or from the peer's descriptors (switch).
    side: Side,
    /// A frame may take several slots, whose buffers are their own.
    has_spans: bool,
    /// Bytes of the longest frame that is not to be segmented.
    longest: usize,
}

impl Producer {
    pub fn new(layout: Layout, side: Side) -> Self {
        let ring = if side == Side::Guest {
            Ring::Tx
        } else {
            Ring::Rx
        };
        Self {
            line: Line::new(layout, ring, side),
            blocked: false,
            side,
            has_spans: false,
            longest: BUFFER_SIZE,
        }
    }

    /// Frames to be segmented may take several slots from now on.
    #[cfg(feature = "std")]
    pub fn enable_gso(&mut self) {
        self.has_spans = true;
    }

    /// Frames of up to [`LONGEST`] bytes may take several slots from now on.
    pub fn enable_long(&mut self) {
        (self.has_spans, self.longest) = (true, LONGEST);
    }

    /// See [`Line::resume`]. Frames that were pushed and not published are lost.
    pub fn resume(mut self, memory: &impl Memory) -> Result<Self, RingError> {
        self.line.resume(memory, false)?;
        Ok(self)
    }

    /// Slots that can be filled as far as known.
    fn free(&self) -> u32 {
        self.line.layout.slots() - 1 - self.line.distance(self.line.peer_next, self.line.next)
    }

    /// Slots that can be filled now.
    pub fn space(&mut self, memory: &impl Memory) -> u32 {
        self.line.refresh(memory, true);
        self.free()
    }

    pub fn push(&mut self, memory: &impl Memory, frame: &[u8]) -> Result<(), PushError> {
        self.push_parts(memory, frame, None, 0)
    }

    /// Pushes a frame whose end lies in another region, or with flags: those of [`Descriptor`].
    pub fn push_parts<M: Memory>(
        &mut self,
        memory: &M,
        head: &[u8],
        rest: Option<Rest<'_, M>>,
        flags: u16,
    ) -> Result<(), PushError> {
        let len = head.len() + rest.map_or(0, |r| r.len);
        let most = match flags > NEEDS_CSUM {
            true => u16::MAX.into(),
            false => self.longest,
        };
        if len == 0 || len > most {
            return Err(PushError::BadLength(len));
        }
        let slot = self.claim(memory, Layout::slots_for(len))?;
        let at = self.line.descriptor_at(slot);
        let Some(offset) = self.buffer(memory, slot) else {
            memory.store_descriptor(at, 0);
            return Err(PushError::BadBuffer);
        };
        memory.write(offset as usize, head);
        if let Some(rest) = rest {
            memory.copy_from(offset as usize + head.len(), rest.memory, rest.at, rest.len);
        }
        let frame = Descriptor {
            offset,
            len: len as u16,
            region: flags,
        };
        memory.store_descriptor(at, frame.to_word());
        Ok(())
    }

    /// Takes our next slots, whose buffers follow each other, and returns the first. A descriptor
    /// of length 0 passes over slots at the end of the ring that are too few.
    fn claim(&mut self, memory: &impl Memory, count: u32) -> Result<u32, PushError> {
        let passed = self.passed(count);
        if self.free() < passed + count && self.space(memory) < passed + count {
            self.blocked = true;
            return Err(PushError::Full);
        }
        self.blocked = false;
        if passed > 0 {
            memory.store_descriptor(self.line.descriptor_at(self.line.next), 0);
        }
        let slot = self.line.add(self.line.next, passed);
        self.line.next = self.line.add(slot, count);
        Ok(slot)
    }

    /// Slots at the end of the ring that are too few for a frame of `count` slots.
    fn passed(&self, count: u32) -> u32 {
        let left = self.line.layout.slots() - self.line.next;
        if count > left { left } else { 0 }
    }

    /// True if there is room for a frame that takes several slots.
    #[cfg(feature = "std")]
    pub fn has_room_for(&mut self, memory: &impl Memory, len: usize) -> bool {
        let count = Layout::slots_for(len);
        self.space(memory) >= self.passed(count) + count
    }

    /// Pushes a frame that stays where it is while its slot [`Self::is_outstanding`].
    pub fn push_at(&mut self, memory: &impl Memory, frame: Descriptor) -> Result<u32, PushError> {
        let len = usize::from(frame.len);
        if len == 0 || len > BUFFER_SIZE {
            return Err(PushError::BadLength(len));
        }
        let slot = self.claim(memory, 1)?;
        memory.store_descriptor(self.line.descriptor_at(slot), frame.to_word());
        Ok(slot)
    }

    /// True until the peer is known to have taken a slot.
    pub fn is_outstanding(&self, slot: u32) -> bool {
        let first = self.line.peer_next;
        self.line.distance(first, slot) < self.line.distance(first, self.line.next)
    }

    /// The place for a frame in a slot of ours.
    fn buffer(&self, memory: &impl Memory, slot: u32) -> Option<u32> {
        let layout = self.line.layout;
        if self.side == Side::Guest || self.has_spans {
            return Some(layout.own_buffer(self.line.ring, slot) as u32);
        }
        let word = memory.load_descriptor(self.line.descriptor_at(slot));
        Some(word as u32).filter(|offset| layout.has_room_at(*offset))
    }

    pub fn publish(&mut self, memory: &impl Memory) -> bool {
        self.line.publish(memory, false)
    }

    /// The next sleep waits for free slots.
    pub fn want_space(&mut self) {
        self.blocked = true;
    }

    /// True if the ring was full, and half of it is free now.
    pub fn has_space_again(&mut self, memory: &impl Memory) -> bool {
        self.blocked && self.space(memory) >= self.line.layout.slots() / 2
    }

    /// If the ring was full, asks to be woken once half the ring is free. True if it is already.
    pub fn sleep_prepare(&mut self, memory: &impl Memory) -> bool {
        if !self.blocked {
            return false;
        }
        let half = self.line.layout.slots() / 2;
        let freed = self.line.add(self.line.next, half);
        let bias = self.line.bias(true);
        self.line.arm(memory, self.line.add(freed, bias));
        self.space(memory) >= half
    }

    pub fn wake_done(&mut self, memory: &impl Memory) {
        if self.blocked {
            self.line.disarm(memory);
            self.blocked = false;
        }
    }

    pub fn bad_indices(&self) -> u64 {
        self.line.bad_indices
    }
}

/// Takes frames out of slots.
pub(crate) struct Consumer {
    line: Line,
    /// Frames that were waiting when we last wanted to sleep, if none was taken since.
    left: u32,
    bad_descriptors: u64,
    side: Side,
    /// A frame may take several slots.
    has_spans: bool,
    /// Bytes of the longest frame that [`Self::pop`] takes.
    longest: usize,
}

impl Consumer {
    pub fn new(layout: Layout, side: Side) -> Self {
        let ring = if side == Side::Guest {
            Ring::Rx
        } else {
            Ring::Tx
        };
        Self {
            line: Line::new(layout, ring, side),
            left: 0,
            bad_descriptors: 0,
            side,
            has_spans: false,
            longest: BUFFER_SIZE,
        }
    }

    /// Frames to be segmented may take several slots from now on.
    #[cfg(feature = "std")]
    pub fn enable_gso(&mut self) {
        self.has_spans = true;
    }

    /// Frames of up to [`LONGEST`] bytes may take several slots from now on.
    pub fn enable_long(&mut self) {
        (self.has_spans, self.longest) = (true, LONGEST);
    }

    /// Room for the next frame, as the peer says; the usual one without a frame.
    pub fn next_room(&mut self, memory: &impl Memory) -> usize {
        if self.longest == BUFFER_SIZE || self.waiting(memory) == 0 {
            return BUFFER_SIZE;
        }
        let len = |slot: u32| {
            let word = memory.load_descriptor(self.line.descriptor_at(slot));
            usize::from(Descriptor::parse(word).len)
        };
        // A descriptor of length 0 passes over the slots up to the first.
        let found = Some(len(self.line.next)).filter(|len| *len > 0);
        let found = found.unwrap_or_else(|| len(0));
        found.clamp(BUFFER_SIZE, LONGEST)
    }

    /// See [`Line::resume`]. Frames that were taken and not published are taken again.
    pub fn resume(mut self, memory: &impl Memory) -> Result<Self, RingError> {
        self.line.resume(memory, true)?;
        Ok(self)
    }

    /// Frames waiting now, as the peer says.
    pub fn waiting(&mut self, memory: &impl Memory) -> u32 {
        if self.line.next == self.line.peer_next {
            self.line.refresh(memory, false);
        }
        self.line.distance(self.line.next, self.line.peer_next)
    }

    /// Copies the next good frame to `into`. A frame longer than `into` counts as bad.
    pub fn pop(&mut self, memory: &impl Memory, into: &mut [u8]) -> Option<usize> {
        let (layout, longest) = (self.line.layout, self.longest);
        let good = |d: Descriptor| {
            let lies = match usize::from(d.len) > BUFFER_SIZE {
                true => longest == LONGEST && d.lies_anywhere_in(layout),
                false => d.lies_in(layout),
            };
            (d.region == 0 && lies).then_some(d)
        };
        let found = self.take(memory, into.len().min(longest), good)?;
        let len = usize::from(found.len);
        memory.read(found.offset as usize, &mut into[..len]);
        Some(len)
    }

    /// Takes the next good descriptors, which stay unpublished, and returns their number.
    #[cfg(feature = "std")]
    pub fn fetch(
        &mut self,
        memory: &impl Memory,
        slots: &mut [Slot],
        mut good: impl FnMut(Descriptor) -> Option<Slot>,
    ) -> usize {
        let most = match self.has_spans {
            true => u16::MAX.into(),
            false => BUFFER_SIZE,
        };
        let (mut count, mut is_plain) = (0, true);
        while count < slots.len() {
            // frames with flags in a row do not have the others read again for each of them
            if is_plain {
                count += self.fetch_plain(memory, &mut slots[count..]);
            }
            let Some(slot) = slots.get_mut(count) else {
                break;
            };
            let Some(found) = self.take(memory, most, &mut good) else {
                break;
            };
            is_plain = found.is_plain();
            *slot = found;
            count += 1;
        }
        count
    }

    /// Takes the next good descriptor. Passes over bad ones and counts them, [`MAX_BAD`] at most:
    /// a peer can make them as fast as this side passes over them.
    fn take<T>(
        &mut self,
        memory: &impl Memory,
        most: usize,
        mut good: impl FnMut(Descriptor) -> Option<T>,
    ) -> Option<T> {
        for _ in 0..=MAX_BAD {
            let (slot, found) = self.next_slot(memory)?;
            if self.has_spans && found.len == 0 && self.pass_to_end() {
                continue;
            }
            // A frame that is too long takes its slots with it.
            let is_whole = found.len > 0 && self.pass_frame(found);
            if is_whole && usize::from(found.len) <= most {
                if let Some(taken) = good(found) {
                    return Some(taken);
                }
            }
            self.bad_slot(memory, slot);
        }
        None
    }

    /// Passes over the slots up to the end of the ring. False if the peer has not given them all.
    fn pass_to_end(&mut self) -> bool {
        self.pass(self.line.distance(self.line.next, 0))
    }

    /// Passes over the other slots of a frame. False if the peer has not given them all.
    fn pass_frame(&mut self, frame: Descriptor) -> bool {
        let count = Layout::slots_for(frame.len.into());
        count == 1 || (self.has_spans && self.pass(count - 1))
    }

    /// The peer publishes all slots of a frame at once, so its index is read no further.
    fn pass(&mut self, count: u32) -> bool {
        let given = count <= self.line.distance(self.line.next, self.line.peer_next);
        if given {
            self.line.next = self.line.add(self.line.next, count);
        }
        given
    }

    /// Takes the next slot with what its descriptor says.
    #[inline]
    pub fn next_slot(&mut self, memory: &impl Memory) -> Option<(u32, Descriptor)> {
        if self.waiting(memory) == 0 {
            return None;
        }
        self.left = 0;
        let slot = self.line.next;
        self.line.next = self.line.add(slot, 1);
        let word = memory.load_descriptor(self.line.descriptor_at(slot));
        Some((slot, Descriptor::parse(word)))
    }

    /// Counts a bad descriptor; a guest also offers the slot's own buffer again, because the
    /// switch may have destroyed the descriptor.
    fn bad_slot(&mut self, memory: &impl Memory, slot: u32) {
        self.count_bad();
        if self.side == Side::Guest {
            let at = self.line.descriptor_at(slot);
            let offered = self.line.layout.own_buffer(self.line.ring, slot);
            memory.store_descriptor(at, offered as u64);
        }
    }

    pub fn count_bad(&mut self) {
        self.bad_descriptors = self.bad_descriptors.saturating_add(1);
    }

    /// Offers the room at `offset` in a slot that was taken and not published.
    pub fn offer(&self, memory: &impl Memory, slot: u32, offset: u32) {
        memory.store_descriptor(self.line.descriptor_at(slot), offset.into());
    }

    pub fn publish(&mut self, memory: &impl Memory) -> bool {
        self.line.publish(memory, true)
    }

    /// Asks to be woken by the next frame. True if one came since we last wanted to sleep.
    pub fn sleep_prepare(&mut self, memory: &impl Memory) -> bool {
        self.line.arm(memory, self.line.peer_next);
        self.line.refresh(memory, false);
        let waiting = self.line.distance(self.line.next, self.line.peer_next);
        waiting > core::mem::replace(&mut self.left, waiting)
    }

    pub fn wake_done(&mut self, memory: &impl Memory) {
        self.line.disarm(memory);
    }

    pub fn malformed(&self) -> u64 {
        self.bad_descriptors.saturating_add(self.line.bad_indices)
    }
}

/// Writes the words both sides start from.
pub(crate) fn initialize(memory: &impl Memory, layout: Layout) {
    for ring in [Ring::Tx, Ring::Rx] {
        for slot in 0..layout.slots() {
            let at = layout.descriptors(ring) + slot as usize * 8;
            memory.store_descriptor(at, layout.own_buffer(ring, slot) as u64);
        }
    }
    memory.store(Ring::Tx.switch_line() + INDEX, layout.slots() - 1);
}
