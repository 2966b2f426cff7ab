// SPDX-License-Identifier: Apache-2.0
//! The guest's side of a port.
use crate::half::{Consumer, Producer, PushError, Side};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::{Mapping, RingError, header};

/// The guest's side of a port: pushes to `tx`, pops from `rx`.
pub struct GuestPort<M: Memory = Mapping> {
    pub(crate) memory: M,
    pub(crate) layout: Layout,
    pub(crate) tx: Producer,
    pub(crate) rx: Consumer,
}

impl<M: Memory> GuestPort<M> {
    /// Attaches to a region the switch has prepared; to be done once in the region's life.
    pub fn attach(memory: M) -> Result<Self, RingError> {
        let layout = header::check(&memory)?;
        if layout.version() != 1 {
            return Err(RingError::BadVersion(layout.version()));
        }
        let mut port = Self::new(memory, layout);
        port.negotiate();
        Ok(port)
    }

    /// Prepares a region of the guest's own, to which the switch attaches.
    pub fn format(memory: M, slots: u32) -> Result<Self, RingError> {
        let layout = header::format(&memory, Layout::new(slots)?, 0)?;
        Ok(Self::new(memory, layout))
    }

    /// Offers the switch frames of several slots, after [`Self::format`].
    pub fn offer_long(&self) {
        header::offer_long(&self.memory);
    }

    /// Takes what the switch has accepted; to be done once it is connected.
    pub fn negotiate(&mut self) {
        if header::has_long(&self.memory) {
            self.tx.enable_long();
            self.rx.enable_long();
        }
    }

    /// Bytes of a buffer for the next [`Self::pop`].
    pub fn next_room(&mut self) -> usize {
        self.rx.next_room(&self.memory)
    }

    pub(crate) fn new(memory: M, layout: Layout) -> Self {
        Self {
            memory,
            layout,
            tx: Producer::new(layout, Side::Guest),
            rx: Consumer::new(layout, Side::Guest),
        }
    }

    /// The region.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The region, when the port is not used any more.
    pub fn into_memory(self) -> M {
        self.memory
    }

    /// Slots of each ring; one of them always stays empty.
    pub fn slots(&self) -> u32 {
        self.layout.slots()
    }

    /// Frames that can be pushed now.
    pub fn space(&mut self) -> u32 {
        self.tx.space(&self.memory)
    }

    /// Copies the next frame to the start of `buffer`, which should have
    /// the bytes of [`Self::next_room`],
    /// and returns its length. It passes over frames that do not fit and descriptors that make no
    /// sense, and counts them. After many of those it gives up until the next call.
    pub fn pop(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.rx.pop(&self.memory, buffer)
    }

    /// Copies a frame into the ring; the switch sees it after [`Self::publish`].
    pub fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        self.tx.push(&self.memory, frame)
    }

    /// True if a frame waits, or if the last push found the ring full and half of it is free now.
    pub fn has_work(&mut self) -> bool {
        self.rx.waiting(&self.memory) > 0 || self.tx.has_space_again(&self.memory)
    }

    /// Shows the switch what was pushed and gives back what was popped; call it once per burst.
    /// True if the switch has to be kicked, which must then be done.
    #[must_use = "the switch sleeps until it is kicked"]
    pub fn publish(&mut self) -> bool {
        let pushed = self.tx.publish(&self.memory);
        let popped = self.rx.publish(&self.memory);
        pushed || popped
    }

    /// The next [`Self::sleep_prepare`] asks for free slots, as after a push that found the ring
    /// full.
    pub fn want_space(&mut self) {
        self.tx.want_space();
    }

    /// Asks for a wake-up, after a [`Self::publish`], by the next frame and, if the last push found
    /// the ring full, by free slots. True if something came since this was last asked: look at it
    /// before you sleep. False: wait for the wake-up, then call [`Self::wake_done`]. Frames that no
    /// reader takes keep no side awake.
    #[must_use = "sleeping after true can be forever"]
    pub fn sleep_prepare(&mut self) -> bool {
        let frames = self.rx.sleep_prepare(&self.memory);
        let slots = self.tx.sleep_prepare(&self.memory);
        if frames || slots {
            self.wake_done();
        }
        frames || slots
    }

    /// Ends what [`Self::sleep_prepare`] began; harmless at any time.
    pub fn wake_done(&mut self) {
        self.rx.wake_done(&self.memory);
        self.tx.wake_done(&self.memory);
    }

    /// Descriptors and indices of the switch that made no sense so far.
    pub fn malformed(&self) -> u64 {
        self.rx.malformed().saturating_add(self.tx.bad_indices())
    }
}
