// SPDX-License-Identifier: Apache-2.0
//! The first words of a region: whoever allocates it formats it, the other side checks it.
use crate::RingError;
use crate::half::initialize;
use crate::layout::{
    AT_BUFFER_SIZE, AT_MAGIC, AT_SLOTS, AT_VERSION, BUFFER_SIZE, Layout, MAGIC, PAGE, VERSION,
};
use crate::memory::Memory;

/// Prepares a region before its first use.
pub(crate) fn format(memory: &impl Memory, slots: u32) -> Result<Layout, RingError> {
    let layout = Layout::new(slots)?;
    need(memory, layout.size())?;
    initialize(memory, layout);
    memory.store(AT_VERSION, VERSION);
    memory.store(AT_SLOTS, slots);
    memory.store(AT_BUFFER_SIZE, BUFFER_SIZE as u32);
    memory.store_descriptor(AT_MAGIC, MAGIC);
    Ok(layout)
}

/// Reads what the other side prepared.
pub(crate) fn check(memory: &impl Memory) -> Result<Layout, RingError> {
    need(memory, PAGE)?;
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
    need(memory, layout.size())?;
    Ok(layout)
}

fn need(memory: &impl Memory, need: usize) -> Result<(), RingError> {
    let have = memory.size();
    if have < need {
        return Err(RingError::Size { have, need });
    }
    Ok(())
}
