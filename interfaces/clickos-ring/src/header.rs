// SPDX-License-Identifier: Apache-2.0
//! The first words of a region: the side that allocates it formats it, the other side checks it.
use crate::RingError;
use crate::half::initialize;
use crate::layout::{
    AT_ACCEPTED, AT_BUFFER_SIZE, AT_MAGIC, AT_OFFERED, AT_REGION, AT_SLOTS, AT_VERSION,
    BUFFER_SIZE, LONG, Layout, MAGIC, PAGE,
};
#[cfg(feature = "std")]
use crate::layout::{CHECKSUMS, FEATURES};
use crate::memory::Memory;

/// Prepares a region, the number `region` of its guest, before its first use.
pub(crate) fn format(
    memory: &impl Memory,
    layout: Layout,
    region: u16,
) -> Result<Layout, RingError> {
    need(memory, reach(layout))?;
    initialize(memory, layout);
    memory.store(AT_VERSION, layout.version());
    memory.store(AT_SLOTS, layout.slots());
    memory.store(AT_REGION, region.into());
    memory.store(AT_OFFERED, 0);
    memory.store(AT_ACCEPTED, 0);
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
    let buffer_size = memory.load(AT_BUFFER_SIZE);
    if buffer_size as usize != BUFFER_SIZE {
        return Err(RingError::BadBufferSize(buffer_size));
    }
    let layout = Layout::of(version, memory.load(AT_SLOTS))?;
    need(memory, reach(layout))?;
    Ok(layout)
}

/// The number of the region among those of its guest; 0 if it has none.
pub(crate) fn region(memory: &impl Memory) -> u16 {
    u16::try_from(memory.load(AT_REGION)).unwrap_or(0)
}

/// Accepts the features that the guest offers and the switch has, and tells the guest. The words
/// begin as 0 with every region, so none is left from an earlier switch. Segments have checksums.
#[cfg(feature = "std")]
pub(crate) fn negotiate(memory: &impl Memory, layout: Layout) -> u32 {
    let offered = memory.load(AT_OFFERED) & FEATURES;
    let accepted = match (layout.is_in_place(), offered & CHECKSUMS != 0) {
        (true, _) => 0,
        (false, true) => offered,
        (false, false) => offered & LONG,
    };
    memory.store(AT_ACCEPTED, accepted);
    accepted
}

/// Notes that the guest offers frames of several slots.
pub(crate) fn offer_long(memory: &impl Memory) {
    memory.store(AT_OFFERED, LONG);
}

/// Notes that both sides have frames of several slots: for a guest that is a process.
#[cfg(feature = "std")]
pub(crate) fn set_long(memory: &impl Memory) {
    offer_long(memory);
    memory.store(AT_ACCEPTED, LONG);
}

/// True if the switch has accepted frames of several slots.
pub(crate) fn has_long(memory: &impl Memory) -> bool {
    memory.load(AT_OFFERED) & memory.load(AT_ACCEPTED) & LONG != 0
}

/// Bytes that a guest reaches by this crate: the chunks of version 2 are its packets, and it may
/// have them elsewhere.
fn reach(layout: Layout) -> usize {
    match layout.is_in_place() {
        true => layout.first_chunk(),
        false => layout.size(),
    }
}

fn need(memory: &impl Memory, need: usize) -> Result<(), RingError> {
    let have = memory.size();
    if have < need {
        return Err(RingError::Size { have, need });
    }
    Ok(())
}
