// SPDX-License-Identifier: Apache-2.0
//! Finds a flow by the hash of its key: open addressing in segments that grow one by one, so that no
//! insertion has to move more than a 256th of the table.
use crate::prelude::*;

/// A flow in one of its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(u32);

impl At {
    /// Slots that an entry of an index has room for.
    pub const MAX_SLOTS: usize = PLACE as usize / 2;

    /// The flow in a slot as its first packet went, or as its answers go.
    pub fn new(slot: u32, reply: bool) -> Self {
        Self(slot << 1 | u32::from(reply))
    }

    /// Where the flow is.
    pub fn slot(self) -> u32 {
        self.0 >> 1
    }

    /// True if this is the direction of the answers.
    pub fn is_reply(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Bits of an entry that say where the flow is, counted from 1; the others are bits of its hash.
const PLACE: u32 = (1 << 25) - 1;
/// Segments, chosen by the upper bits of the hash.
const SEGMENTS: usize = 256;
/// Entries of the smallest segment.
const SMALLEST: usize = 8;

/// Entries, a power of two of them; 0 is none.
#[derive(Default)]
struct Segment {
    entries: Vec<u32>,
    used: usize,
}

/// Returns the hash of a flow in the table. A trait object, so that its code is not compiled for each table.
pub type HashOf<'a> = &'a dyn Fn(At) -> u64;

/// Where flows are.
pub struct Index {
    segments: Vec<Segment>,
}

fn entry(hash: u64, at: At) -> u32 {
    tag(hash) | (at.0 + 1)
}

/// Bits of the hash that neither choose the segment nor, but in enormous ones, the place in it.
fn tag(hash: u64) -> u32 {
    ((hash >> 24) as u32) & !PLACE
}

impl Index {
    /// An empty index.
    pub fn new() -> Self {
        Self {
            segments: (0..SEGMENTS).map(|_| Segment::default()).collect(),
        }
    }

    #[inline]
    fn segment(&self, hash: u64) -> &Segment {
        &self.segments[(hash >> 56) as usize]
    }

    /// The most entries that a search compares.
    #[cfg(test)]
    pub fn longest_search(&self) -> usize {
        let longest = |segment: &Segment| {
            // a run of entries may go around the end
            let all = segment.entries.iter().chain(&segment.entries);
            let mut run = 0;
            all.map(|entry| {
                run = if *entry == 0 { 0 } else { run + 1 };
                run
            })
            .max()
        };
        self.segments.iter().filter_map(longest).max().unwrap_or(0)
    }

    /// The entry where the search for a hash begins, to have it near when the search comes.
    #[inline]
    pub fn first(&self, hash: u64) -> Option<At> {
        let entries = &self.segment(hash).entries;
        let mask = entries.len().checked_sub(1)?;
        (entries[hash as usize & mask] & PLACE)
            .checked_sub(1)
            .map(At)
    }

    /// The first flow of this hash that `is` accepts.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(At) -> bool) -> Option<At> {
        let entries = &self.segment(hash).entries;
        let mask = entries.len().checked_sub(1)?;
        let (wanted, mut place) = (tag(hash), hash as usize & mask);
        loop {
            let entry = entries[place];
            let at = At((entry & PLACE).checked_sub(1)?);
            if entry & !PLACE == wanted && is(at) {
                return Some(at);
            }
            place = (place + 1) & mask;
        }
    }

    /// Adds a flow. `hash_of` returns the hashes of those in the table.
    pub fn insert(&mut self, hash: u64, at: At, hash_of: HashOf<'_>) {
        let segment = &mut self.segments[(hash >> 56) as usize];
        if 2 * (segment.used + 1) > segment.entries.len() {
            segment.grow(hash_of);
        }
        segment.put(hash, entry(hash, at));
        segment.used += 1;
    }

    /// Removes a flow, if it is there, and moves those up that were pushed aside.
    pub fn remove(&mut self, hash: u64, at: At, hash_of: HashOf<'_>) {
        let segment = &mut self.segments[(hash >> 56) as usize];
        let Some(mut hole) = segment.place_of(hash, entry(hash, at)) else {
            return;
        };
        let mask = segment.entries.len() - 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let Some(next) = (segment.entries[place] & PLACE).checked_sub(1) else {
                break;
            };
            let home = hash_of(At(next)) as usize & mask;
            // the entry may move to the hole if that is not before its home
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(hole) & mask {
                segment.entries[hole] = segment.entries[place];
                hole = place;
            }
        }
        segment.entries[hole] = 0;
        segment.used -= 1;
    }
}

impl Segment {
    /// Writes an entry to the first free place; there is one.
    fn put(&mut self, hash: u64, entry: u32) {
        let mask = self.entries.len() - 1;
        let mut place = hash as usize & mask;
        while self.entries[place] != 0 {
            place = (place + 1) & mask;
        }
        self.entries[place] = entry;
    }

    fn place_of(&self, hash: u64, entry: u32) -> Option<usize> {
        let mask = self.entries.len().checked_sub(1)?;
        let mut place = hash as usize & mask;
        while self.entries[place] != entry {
            if self.entries[place] == 0 {
                return None;
            }
            place = (place + 1) & mask;
        }
        Some(place)
    }

    fn grow(&mut self, hash_of: HashOf<'_>) {
        let size = (2 * self.entries.len()).max(SMALLEST);
        let old = core::mem::replace(&mut self.entries, vec![0; size]);
        for entry in old {
            if let Some(at) = (entry & PLACE).checked_sub(1) {
                self.put(hash_of(At(at)), entry);
            }
        }
    }
}
