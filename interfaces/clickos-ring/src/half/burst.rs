// SPDX-License-Identifier: Apache-2.0
//! Many frames in one step: their descriptors are read and written together.
use super::{Consumer, Producer, Rest, Slot};
use crate::layout::{BUFFER_SIZE, Descriptor, Extent};
use crate::memory::Memory;

/// Descriptors that one step reads.
const READS: usize = 64;
/// Descriptors that one step writes.
const WRITES: usize = 32;

/// A frame without work that is left, whose end may lie in another region.
pub struct Parts<'a, M> {
    pub head: &'a [u8],
    pub rest: Option<Rest<'a, M>>,
}

impl<M> Clone for Parts<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Parts<'_, M> {}

impl<M> Default for Parts<'_, M> {
    fn default() -> Self {
        Self {
            head: &[],
            rest: None,
        }
    }
}

impl<M> Parts<'_, M> {
    /// Length of the frame in bytes.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.head.len() + self.rest.map_or(0, |rest| rest.len)
    }
}

/// The outcome for some frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Frames that the ring took, and their bytes.
    pub frames: u64,
    pub bytes: u64,
    /// Those that it did not take, by the reasons of [`PushError`].
    pub full: u64,
    pub bad_lengths: u64,
    pub bad_buffers: u64,
}

impl Producer {
    /// True if there is room for some frames of one slot.
    pub fn has_slots(&mut self, memory: &impl Memory, frames: usize) -> bool {
        self.free() as usize >= frames || self.space(memory) as usize >= frames
    }

    /// Pushes frames of one buffer at most, as [`Self::push_parts`] does.
    pub fn push_all<M: Memory>(&mut self, memory: &M, frames: &[Parts<'_, M>]) -> Pushed {
        let (layout, ring, mut pushed) = (self.line.layout, self.line.ring, Pushed::default());
        let (extent, has_own) = (layout.extent(), self.has_spans);
        let mut words = [0; WRITES];
        let mut left = frames;
        while !left.is_empty() {
            let free = match self.free() as usize {
                free if free >= left.len() => free,
                _ => self.space(memory) as usize,
            };
            let first = self.line.next;
            let run = free.min((layout.slots() - first) as usize);
            let (now, later) = left.split_at(run.min(left.len()).min(WRITES));
            if now.is_empty() {
                self.blocked = true;
                pushed.full += left.len() as u64;
                return pushed;
            }
            left = later;
            let at = self.line.descriptor_at(first);
            let words = &mut words[..now.len()];
            match has_own {
                true => (first..).zip(&mut *words).for_each(|(slot, word)| {
                    *word = layout.own_buffer(ring, slot) as u64;
                }),
                false => memory.load_descriptors(at, words),
            }
            let used = fill(memory, extent, words, now, &mut pushed);
            memory.store_descriptors(at, &words[..used]);
            self.line.next = self.line.add(first, used as u32);
        }
        self.blocked = false;
        pushed
    }
}

/// Copies frames to the offsets in some words, which become their descriptors. Returns the number of used
/// words.
#[inline(never)]
fn fill<M: Memory>(
    memory: &M,
    extent: Extent,
    words: &mut [u64],
    frames: &[Parts<'_, M>],
    pushed: &mut Pushed,
) -> usize {
    let (mut used, mut bytes) = (0, 0);
    let (mut bad_lengths, mut bad_buffers) = (0, 0);
    for frame in frames {
        let Some(word) = words.get_mut(used) else {
            break;
        };
        let (len, offset) = (frame.len(), *word as u32);
        if len == 0 || len > BUFFER_SIZE {
            bad_lengths += 1;
            continue;
        }
        used += 1;
        if !extent.has_room_at(offset) {
            *word = 0;
            bad_buffers += 1;
            continue;
        }
        let whole = Descriptor {
            offset,
            len: len as u16,
            region: 0,
        };
        *word = whole.to_word();
        bytes += len as u64;
        memory.write(offset as usize, frame.head);
        if let Some(rest) = frame.rest {
            let at = offset as usize + frame.head.len();
            memory.copy_from(at, rest.memory, rest.at, rest.len);
        }
    }
    pushed.frames += used as u64 - bad_buffers;
    pushed.bytes += bytes;
    pushed.bad_lengths += bad_lengths;
    pushed.bad_buffers += bad_buffers;
    used
}

impl Consumer {
    /// Takes the next descriptors up to the first that is not one of a frame in one slot of the ring's own
    /// region, without flags. That one is read again, and judged by what it is then. Prefetches the frames.
    pub(super) fn fetch_plain(&mut self, memory: &impl Memory, slots: &mut [Slot]) -> usize {
        let waiting = self.waiting(memory);
        let layout = self.line.layout;
        let most = waiting.min(layout.slots() - self.line.next) as usize;
        let most = most.min(slots.len()).min(READS);
        if most == 0 {
            return 0;
        }
        let mut words = [0; READS];
        let words = &mut words[..most];
        memory.load_descriptors(self.line.descriptor_at(self.line.next), words);
        let count = plain(memory, layout.extent(), words, slots) as u32;
        if count > 0 {
            self.left = 0;
            self.line.next = self.line.add(self.line.next, count);
        }
        count as usize
    }
}

/// Takes descriptors up to the first other one, and returns their number.
#[inline(never)]
fn plain(memory: &impl Memory, extent: Extent, words: &[u64], slots: &mut [Slot]) -> usize {
    let mut count = 0;
    for (slot, word) in slots.iter_mut().zip(words) {
        // The upper half has the length, and a region or flags in its upper bits.
        let is_one = (word >> 32).wrapping_sub(1) < BUFFER_SIZE as u64;
        let found = Descriptor::parse(*word);
        if !is_one || !extent.holds(found) {
            break;
        }
        memory.prefetch(found.offset as usize);
        *slot = Slot::whole(found);
        count += 1;
    }
    count
}
