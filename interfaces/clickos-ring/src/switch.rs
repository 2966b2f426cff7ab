// SPDX-License-Identifier: Apache-2.0
//! The switch's side of a port.
use std::sync::Arc;

use crate::half::{Consumer, Parts, Producer, PushError, Pushed, Rest, Side, Slot};
use crate::layout::{self, CHECKSUMS, Descriptor, LONG, Layout, SEGMENTS};
use crate::memory::Memory;
use crate::regions::{Region, Regions};
use crate::{Mapping, RingError, header};

/// The switch's side of a port: pops from `tx`, pushes to `rx`.
pub struct SwitchPort<M: Memory = Mapping> {
    memory: Arc<M>,
    layout: Layout,
    tx: Consumer,
    rx: Producer,
    /// Those that the guest offered and the switch has.
    features: u32,
    /// The guest's other regions.
    others: Option<Arc<Regions<M>>>,
    /// Those of them that fetched frames lie in.
    borrowed: Vec<(u16, Region<M>)>,
}

impl<M: Memory> SwitchPort<M> {
    /// Prepares a region before its first use.
    pub fn format(memory: M, slots: u32) -> Result<Self, RingError> {
        Self::format_as(memory, Layout::new(slots)?, 0)
    }

    /// Prepares a region with a layout: that of the guest with the number `region`, or 0.
    pub fn format_as(memory: M, layout: Layout, region: u16) -> Result<Self, RingError> {
        let layout = header::format(&memory, layout, region)?;
        Self::new(memory, layout)
    }

    /// Attaches to a region the guest has prepared; to be done once in the region's life.
    pub fn attach(memory: M, slots: u32) -> Result<Self, RingError> {
        let layout = header::check(&memory)?;
        if layout.slots() != slots {
            return Err(RingError::Slots(layout.slots()));
        }
        Self::new(memory, layout)
    }

    /// Continues with a region whose switch has ended, at the indices that it published last.
    pub fn resume(memory: M, slots: u32) -> Result<Self, RingError> {
        let new = Self::attach(memory, slots)?;
        Ok(Self {
            tx: new.tx.resume(&*new.memory)?,
            rx: new.rx.resume(&*new.memory)?,
            ..new
        })
    }

    fn new(memory: M, layout: Layout) -> Result<Self, RingError> {
        let (have, need) = (memory.size(), layout.size());
        if have < need {
            return Err(RingError::Size { have, need });
        }
        Ok(Self {
            memory: Arc::new(memory),
            layout,
            tx: Consumer::new(layout, Side::Switch),
            rx: Producer::new(layout, Side::Switch),
            features: 0,
            others: None,
            borrowed: Vec::new(),
        })
    }

    /// Lets the ports of the same guest send frames that lie in this region, and the other way
    /// around. Nothing happens in version 1.
    pub fn join(&mut self, regions: &Arc<Regions<M>>) {
        if self.layout.is_in_place() {
            regions.set(header::region(&*self.memory), &self.memory, self.layout);
            self.others = Some(Arc::clone(regions));
        }
    }

    /// Accepts the features that the guest offers; to be done before it learns that the switch is
    /// connected.
    pub fn negotiate(&mut self) {
        self.features = header::negotiate(&*self.memory, self.layout);
        if self.takes_segments() {
            self.tx.enable_gso();
            self.rx.enable_gso();
        }
        self.enable_long();
    }

    /// Gives a guest that is a process frames of several slots; to be done before it maps the region.
    /// Nothing happens in version 2.
    pub fn set_long(&mut self) {
        if !self.layout.is_in_place() {
            header::set_long(&*self.memory);
            self.features |= LONG;
            self.enable_long();
        }
    }

    fn enable_long(&mut self) {
        if self.features & LONG != 0 {
            self.tx.enable_long();
            self.rx.enable_long();
        }
    }

    /// Most bytes of payload of a segment by [`Self::push_gso`].
    pub fn most_segment(&self) -> u16 {
        layout::most_segment(self.features)
    }

    /// True if the guest takes frames by [`Self::push_partial_csum`].
    pub fn accepts_partial_csum(&self) -> bool {
        self.features & CHECKSUMS != 0
    }

    /// True if the guest takes frames by [`Self::push_gso`].
    pub fn takes_segments(&self) -> bool {
        self.features & SEGMENTS != 0
    }

    /// The version of the region.
    pub fn version(&self) -> u32 {
        self.layout.version()
    }

    /// Frames waiting from the guest, as it says.
    pub fn waiting(&mut self) -> u32 {
        self.tx.waiting(&*self.memory)
    }

    /// Copies the guest's next frame to the start of `buffer` and returns its length. It passes
    /// over frames that do not fit or lie in another region, and descriptors that make no sense.
    /// It counts them, and after many of those it gives up until the next call.
    pub fn pop(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.tx.pop(&*self.memory, buffer)
    }

    /// Takes the guest's next frames, which stay where they are until [`Self::publish`], and
    /// prefetches the first bytes of most. Returns their number. Passes over bad descriptors as
    /// [`Self::pop`] does.
    pub fn fetch(&mut self, slots: &mut [Slot]) -> usize {
        let (own, others, borrowed) = (self.layout, &self.others, &mut self.borrowed);
        let features = self.features;
        let good = |frame: Descriptor| match frame.region {
            0 => frame
                .lies_as_agreed(own, features)
                .then(|| Slot::whole(frame)),
            _ if features != 0 => {
                let lies = frame.lies_as_agreed(own, features);
                (lies && frame.is_agreed(features)).then(|| Slot::flagged(frame))
            }
            other => borrow(others.as_deref(), borrowed, other)
                .is_some_and(|layout| frame.lies_in(layout))
                .then(|| Slot::whole(frame)),
        };
        self.tx.fetch(&*self.memory, slots, good)
    }

    /// The region that a fetched frame lies in.
    #[inline]
    fn memory_of(&self, slot: Slot) -> Option<&M> {
        if slot.region() == 0 {
            return Some(&*self.memory);
        }
        let mut borrowed = self.borrowed.iter();
        let (_, (memory, _)) = borrowed.find(|(number, _)| *number == slot.region())?;
        Some(&**memory)
    }

    /// Copies the first N bytes of each fetched frame to a place of N bytes of its own. Other bytes of the
    /// guest may follow a shorter frame there.
    pub fn read_heads<const N: usize>(&self, slots: &[Slot], into: &mut [u8]) {
        let heads = into.chunks_exact_mut(N);
        let heads = heads.filter_map(|head| head.first_chunk_mut::<N>());
        for (slot, head) in slots.iter().zip(heads) {
            match self.memory_of(*slot) {
                Some(memory) => memory.read_head(slot.offset(), slot.len().min(N), head),
                None => head.fill(0),
            }
        }
    }

    /// Copies the first bytes of a fetched frame to `into`.
    pub fn read(&self, slot: Slot, into: &mut [u8]) {
        let len = slot.len().min(into.len());
        match self.memory_of(slot) {
            Some(memory) => memory.read(slot.offset(), &mut into[..len]),
            None => into[..len].fill(0),
        }
    }

    /// The bytes of a fetched frame from byte `from` on; None if there are none.
    pub fn rest(&self, slot: Slot, from: usize) -> Option<Rest<'_, M>> {
        let len = slot.len().checked_sub(from).filter(|len| *len > 0)?;
        let at = slot.offset() + from;
        let memory = self.memory_of(slot)?;
        Some(Rest { memory, at, len })
    }

    /// As [`Self::push`], for a frame whose end lies in the region of its sender.
    pub fn push_parts(&mut self, head: &[u8], rest: Option<Rest<'_, M>>) -> Result<(), PushError> {
        self.rx.push_parts(&*self.memory, head, rest, 0)
    }

    /// As [`Self::push_parts`], for frames of one buffer at most.
    pub fn push_all(&mut self, frames: &[Parts<'_, M>]) -> Pushed {
        self.rx.push_all(&*self.memory, frames)
    }

    /// As [`Self::push_parts`], for a frame whose TCP or UDP checksum covers the pseudo header only.
    /// The guest must have agreed to [`CHECKSUMS`].
    pub fn push_partial_csum(
        &mut self,
        head: &[u8],
        rest: Option<Rest<'_, M>>,
    ) -> Result<(), PushError> {
        let flags = layout::flags(0);
        self.rx.push_parts(&*self.memory, head, rest, flags)
    }

    /// As [`Self::push_partial_csum`], for a frame that the guest may have to cut into segments with
    /// `segment` bytes of payload. The guest must have agreed to [`SEGMENTS`].
    pub fn push_gso(&mut self, frame: &[u8], segment: u16) -> Result<(), PushError> {
        let flags = layout::flags(segment);
        self.rx.push_parts(&*self.memory, frame, None, flags)
    }

    /// True if the guest's ring has room for a frame that may take several slots.
    pub fn has_room_for(&mut self, len: usize) -> bool {
        self.rx.has_room_for(&*self.memory, len)
    }

    /// True if the guest's ring has room for some frames of one buffer at most.
    pub fn has_slots(&mut self, frames: usize) -> bool {
        self.rx.has_slots(&*self.memory, frames)
    }

    /// Copies a frame into the guest's ring; the guest sees it after [`Self::publish`].
    pub fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        self.rx.push(&*self.memory, frame)
    }

    /// Frames that the guest's ring has room for.
    pub fn room(&mut self) -> usize {
        self.rx.space(&*self.memory) as usize
    }

    /// Gives back the popped frames' slots. True if the guest has to be woken, which must then be
    /// done. A switch that ends between this and [`Self::publish`] loses frames; in the other order
    /// its successor would forward them twice.
    #[must_use = "the guest sleeps until it is woken"]
    pub fn release(&mut self) -> bool {
        self.borrowed.clear();
        self.tx.publish(&*self.memory)
    }

    /// Shows the guest what was pushed and gives back what was popped; call it once per batch.
    /// True if the guest has to be woken, which must then be done.
    #[must_use = "the guest sleeps until it is woken"]
    pub fn publish(&mut self) -> bool {
        let popped = self.release();
        let pushed = self.rx.publish(&*self.memory);
        pushed || popped
    }

    /// Asks for a kick by the guest's next frame, after a [`Self::publish`]. True if there is one
    /// already: do not sleep. False: wait for the kick, then call [`Self::wake_done`].
    #[must_use = "sleeping after true can be forever"]
    pub fn sleep_prepare(&mut self) -> bool {
        let frames = self.tx.sleep_prepare(&*self.memory);
        if frames {
            self.wake_done();
        }
        frames
    }

    /// Ends what [`Self::sleep_prepare`] began; harmless at any time.
    pub fn wake_done(&mut self) {
        self.tx.wake_done(&*self.memory);
    }

    /// Descriptors and indices of the guest that made no sense so far.
    pub fn malformed(&self) -> u64 {
        self.tx.malformed().saturating_add(self.rx.bad_indices())
    }
}

/// The layout of another region of the guest, which stays mapped while it is borrowed.
fn borrow<M: Memory>(
    others: Option<&Regions<M>>,
    borrowed: &mut Vec<(u16, Region<M>)>,
    number: u16,
) -> Option<Layout> {
    if let Some((_, (_, layout))) = borrowed.iter().find(|(n, _)| *n == number) {
        return Some(*layout);
    }
    let found = others?.get(number)?;
    let layout = found.1;
    borrowed.push((number, found));
    Some(layout)
}
