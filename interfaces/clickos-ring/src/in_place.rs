// SPDX-License-Identifier: Apache-2.0
//! The guest's side of a port of version 2, whose buffers are the guest's packets.
use alloc::vec::Vec;

use crate::half::{MAX_BAD, PushError};
use crate::layout::{BUFFER_SIZE, Descriptor, Layout, SHORT};
use crate::memory::Memory;
use crate::{GuestPort, Mapping, RingError, header};

/// The guest's side of a port whose frames stay where they are. The caller owns the buffers: it
/// keeps one for each slot of rx, and leaves sent ones alone until [`Self::is_taken`].
pub struct InPlacePort<M: Memory = Mapping> {
    port: GuestPort<M>,
    region: u16,
    /// The offsets that the slots of rx offer. The words in the region are the switch's to change.
    offers: Vec<u32>,
}

impl<M: Memory> InPlacePort<M> {
    /// Attaches to a region the switch has prepared; to be done once in the region's life.
    pub fn attach(memory: M) -> Result<Self, RingError> {
        let layout = header::check(&memory)?;
        if layout.version() != 2 {
            return Err(RingError::BadVersion(layout.version()));
        }
        let region = header::region(&memory);
        Ok(Self::new(memory, layout, region))
    }

    /// Prepares a region of the guest's own, the number `region` of its regions or 0.
    pub fn format(memory: M, slots: u32, region: u16) -> Result<Self, RingError> {
        let layout = header::format(&memory, Layout::of(2, slots)?, region)?;
        Ok(Self::new(memory, layout, region))
    }

    fn new(memory: M, layout: Layout, region: u16) -> Self {
        let slots = layout.slots() as usize;
        Self {
            port: GuestPort::new(memory, layout),
            region,
            offers: (0..slots).map(|slot| layout.frame(slot) as u32).collect(),
        }
    }

    /// The region, or its words before the chunks.
    pub fn memory(&self) -> &M {
        self.port.memory()
    }

    /// The region, when the port is not used any more.
    pub fn into_memory(self) -> M {
        self.port.into_memory()
    }

    /// The layout of the region.
    pub fn layout(&self) -> Layout {
        self.port.layout
    }

    /// The number of the region among those of the guest; 0 if it has none.
    pub fn region(&self) -> u16 {
        self.region
    }

    /// Takes the next frame: its slot and its length. The frame lies where the slot's offer is. The
    /// slot offers the same room again, unless [`Self::offer`] changes that before the next publish. A
    /// descriptor that makes no sense is passed over and counted; after many of those it gives up until
    /// the next call.
    #[inline]
    pub fn receive(&mut self) -> Option<(u32, usize)> {
        for _ in 0..=MAX_BAD {
            let (slot, found) = self.port.rx.next_slot(&self.port.memory)?;
            let (offer, len) = (self.offers[slot as usize], usize::from(found.len));
            if (found.offset, found.region) == (offer, 0) && (1..=BUFFER_SIZE).contains(&len) {
                return Some((slot, len));
            }
            self.port.rx.count_bad();
            self.port.rx.offer(&self.port.memory, slot, offer);
        }
        None
    }

    /// Offers the room for a frame of [`BUFFER_SIZE`] bytes at an offset.
    #[inline]
    pub fn offer(&mut self, slot: u32, offset: u32) {
        self.offers[slot as usize] = offset;
        self.port.rx.offer(&self.port.memory, slot, offset);
    }

    /// Sends the frame at an offset of the guest's region of this number; 0 is the port's own.
    /// Returns its slot.
    #[inline]
    pub fn send(&mut self, region: u16, offset: u32, len: usize) -> Result<u32, PushError> {
        let len = u16::try_from(len).map_err(|_| PushError::BadLength(len))?;
        let frame = Descriptor {
            offset,
            len,
            region,
        };
        self.port.tx.push_at(&self.port.memory, frame)
    }

    /// Sends a copy of a frame of up to [`SHORT`] bytes, which lies in the buffer of its slot.
    #[inline]
    pub fn send_copy(&mut self, frame: &[u8]) -> Result<(), PushError> {
        match frame.len() {
            0..=SHORT => self.port.tx.push(&self.port.memory, frame),
            len => Err(PushError::BadLength(len)),
        }
    }

    /// Looks which of the sent frames the switch has taken.
    pub fn refresh(&mut self) {
        self.port.space();
    }

    /// True if the last [`Self::refresh`] found the frame in a slot of tx taken.
    pub fn is_taken(&self, slot: u32) -> bool {
        !self.port.tx.is_outstanding(slot)
    }

    /// As [`GuestPort::publish`].
    #[must_use = "the switch sleeps until it is kicked"]
    pub fn publish(&mut self) -> bool {
        self.port.publish()
    }

    /// As [`GuestPort::want_space`].
    pub fn want_space(&mut self) {
        self.port.want_space();
    }

    /// As [`GuestPort::sleep_prepare`].
    #[must_use = "sleeping after true can be forever"]
    pub fn sleep_prepare(&mut self) -> bool {
        self.port.sleep_prepare()
    }

    /// As [`GuestPort::wake_done`].
    pub fn wake_done(&mut self) {
        self.port.wake_done();
    }

    /// As [`GuestPort::malformed`].
    pub fn malformed(&self) -> u64 {
        self.port.malformed()
    }
}
