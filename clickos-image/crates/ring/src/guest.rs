// SPDX-License-Identifier: Apache-2.0
//! The guest's side of a port.
use crate::half::{Consumer, Producer, PushError, Side};
use crate::layout::{
    AT_BUFFER_SIZE, AT_MAGIC, AT_SLOTS, AT_VERSION, BUFFER_SIZE, Layout, MAGIC, VERSION,
};
use crate::memory::Memory;
use crate::{Mapping, RingError};

/// The guest's side of a port: pushes to `tx`, pops from `rx`.
pub struct GuestPort<M: Memory = Mapping> {
    memory: M,
    layout: Layout,
    tx: Producer,
    rx: Consumer,
}

impl<M: Memory> GuestPort<M> {
    /// Attaches to a region the switch has prepared; to be done once in the region's life.
    pub fn attach(memory: M) -> Result<Self, RingError> {
        let layout = check_header(&memory)?;
        let (tx, rx) = (
            Producer::new(layout, Side::Guest),
            Consumer::new(layout, Side::Guest),
        );
        Ok(Self {
            memory,
            layout,
            tx,
            rx,
        })
    }

    /// Slots of each ring; one of them always stays empty.
    pub fn slots(&self) -> u32 {
        self.layout.slots()
    }

    /// Frames that can be pushed now.
    pub fn space(&mut self) -> u32 {
        self.tx.space(&self.memory)
    }

    /// Copies the next frame to the start of `buffer`, which should have [`BUFFER_SIZE`] bytes,
    /// and returns its length. A frame that does not fit, or a descriptor that makes no sense, is
    /// passed over and counted; after many of those it gives up until the next call.
    pub fn pop(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.rx.pop(&self.memory, buffer)
    }

    /// Copies a frame into the ring; the switch sees it after [`Self::publish`].
    pub fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        self.tx.push(&self.memory, frame)
    }

    /// Shows the switch what was pushed and gives back what was popped; call it once per burst.
    /// True if the switch has to be kicked, which must then be done.
    #[must_use = "the switch sleeps until it is kicked"]
    pub fn publish(&mut self) -> bool {
        let pushed = self.tx.publish(&self.memory);
        let popped = self.rx.publish(&self.memory);
        pushed || popped
    }

    /// Asks for a wake-up, after a [`Self::publish`], by the next frame and, if the last push
    /// found the ring full, by free slots. True if there is something to do already: do not
    /// sleep. False: wait for the wake-up, then call [`Self::wake_done`].
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

fn check_header(memory: &impl Memory) -> Result<Layout, RingError> {
    let have = memory.size();
    if have < crate::layout::PAGE {
        return Err(RingError::Size {
            have,
            need: crate::layout::PAGE,
        });
    }
    let magic = memory.load_descriptor(AT_MAGIC);
    if magic != MAGIC {
        return Err(RingError::BadMagic(magic));
    }
    let version = memory.load(AT_VERSION);
    if version != VERSION {
        return Err(RingError::BadVersion(version));
    }
    let buffer_size = memory.load(AT_BUFFER_SIZE);
    if buffer_size as usize != BUFFER_SIZE {
        return Err(RingError::BadBufferSize(buffer_size));
    }
    let layout = Layout::new(memory.load(AT_SLOTS))?;
    if have < layout.size() {
        return Err(RingError::Size {
            have,
            need: layout.size(),
        });
    }
    Ok(layout)
}
