// SPDX-License-Identifier: Apache-2.0
//! The switch's side of a port.
use crate::half::{Consumer, Producer, PushError, Side};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::{Mapping, RingError, header};

/// The switch's side of a port: pops from `tx`, pushes to `rx`.
pub struct SwitchPort<M: Memory = Mapping> {
    memory: M,
    tx: Consumer,
    rx: Producer,
}

impl<M: Memory> SwitchPort<M> {
    /// Prepares a region before its first use.
    pub fn format(memory: M, slots: u32) -> Result<Self, RingError> {
        let layout = header::format(&memory, slots)?;
        Ok(Self::new(memory, layout))
    }

    /// Attaches to a region the guest has prepared; to be done once in the region's life.
    pub fn attach(memory: M, slots: u32) -> Result<Self, RingError> {
        let layout = header::check(&memory)?;
        if layout.slots() != slots {
            return Err(RingError::Slots(layout.slots()));
        }
        Ok(Self::new(memory, layout))
    }

    fn new(memory: M, layout: Layout) -> Self {
        Self {
            memory,
            tx: Consumer::new(layout, Side::Switch),
            rx: Producer::new(layout, Side::Switch),
        }
    }

    /// Frames waiting from the guest, as it says.
    pub fn waiting(&mut self) -> u32 {
        self.tx.waiting(&self.memory)
    }

    /// Copies the guest's next frame to the start of `buffer` and returns its length. A frame
    /// that does not fit, or a descriptor that makes no sense, is passed over and counted; after
    /// many of those it gives up until the next call.
    pub fn pop(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.tx.pop(&self.memory, buffer)
    }

    /// Copies a frame into the guest's ring; the guest sees it after [`Self::publish`].
    pub fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        self.rx.push(&self.memory, frame)
    }

    /// Shows the guest what was pushed and gives back what was popped; call it once per batch.
    /// True if the guest has to be woken, which must then be done.
    #[must_use = "the guest sleeps until it is woken"]
    pub fn publish(&mut self) -> bool {
        let pushed = self.rx.publish(&self.memory);
        let popped = self.tx.publish(&self.memory);
        pushed || popped
    }

    /// Asks for a kick by the guest's next frame, after a [`Self::publish`]. True if there is one
    /// already: do not sleep. False: wait for the kick, then call [`Self::wake_done`].
    #[must_use = "sleeping after true can be forever"]
    pub fn sleep_prepare(&mut self) -> bool {
        let frames = self.tx.sleep_prepare(&self.memory);
        if frames {
            self.wake_done();
        }
        frames
    }

    /// Ends what [`Self::sleep_prepare`] began; harmless at any time.
    pub fn wake_done(&mut self) {
        self.tx.wake_done(&self.memory);
    }

    /// Descriptors and indices of the guest that made no sense so far.
    pub fn malformed(&self) -> u64 {
        self.tx.malformed().saturating_add(self.rx.bad_indices())
    }
}
