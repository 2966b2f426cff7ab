// SPDX-License-Identifier: Apache-2.0
//! Remembers which choices of a pattern's range were found taken, so that the next search passes them in one step.
//!
//! A search costs a look-up in the table of flows for each choice. Where almost all are taken, that is the whole range
//! for each new flow. A choice that is noted here is passed until a flow ends that may have had it.
use click_core::memory;

use crate::flows::{FlowId, Freed};
use crate::prelude::*;

/// Searches of different flows that are remembered, each with the choices of a range.
const MAX_POOLS: usize = 8;
/// Choices of the largest range that is remembered.
const MAX_CHOICES: u32 = 1 << 20;
const BITS: u32 = u64::BITS;

/// A bit for each choice of a range: whether it is known to be taken.
pub struct Choices {
    taken: Vec<u64>,
    /// A bit for each word of `taken` in which all bits are set.
    full: Vec<u64>,
}

fn bit(n: u32) -> (usize, u64) {
    ((n / BITS) as usize, 1 << (n % BITS))
}

fn words(bits: u32) -> usize {
    bits.div_ceil(BITS) as usize
}

impl Choices {
    /// None is taken, of choices 0 to `last`.
    fn new(last: u32) -> Self {
        let count = words(last + 1);
        let mut choices = Self {
            taken: vec![0; count],
            full: vec![0; words(count as u32)],
        };
        let behind = last + 1..count as u32 * BITS;
        behind.for_each(|n| choices.take(n));
        choices
    }

    /// Notes that a choice is taken.
    pub fn take(&mut self, n: u32) {
        let (word, bit_of) = bit(n);
        self.taken[word] |= bit_of;
        if self.taken[word] == u64::MAX {
            let (word, bit) = bit(word as u32);
            self.full[word] |= bit;
        }
    }

    /// True if a choice is known to be taken.
    pub fn has(&self, n: u32) -> bool {
        let (word, bit) = bit(n);
        self.taken[word] & bit != 0
    }

    fn free(&mut self, n: u32) {
        let (word, bit_of) = bit(n);
        self.taken[word] &= !bit_of;
        let (word, bit) = bit(word as u32);
        self.full[word] &= !bit;
    }

    /// The first choice from `n` on that is not known to be taken; after the last one the search continues at the first.
    pub fn next(&self, n: u32) -> Option<u32> {
        self.behind(n).or_else(|| self.behind(0))
    }

    fn behind(&self, n: u32) -> Option<u32> {
        let (word, first) = bit(n);
        // the bits from `first` on
        let here = !self.taken.get(word)? & first.wrapping_neg();
        if here != 0 {
            return Some(word as u32 * BITS + here.trailing_zeros());
        }
        let word = first_clear(&self.full, word as u32 + 1)?;
        let left = !*self.taken.get(word as usize)?;
        Some(word * BITS + left.trailing_zeros())
    }
}

/// The first bit from `n` on that is not set.
fn first_clear(bits: &[u64], n: u32) -> Option<u32> {
    let (word, first) = bit(n);
    let here = !*bits.get(word)? & first.wrapping_neg();
    let rest = bits[word + 1..].iter().map(|bits| !bits);
    let mut all = core::iter::once(here).chain(rest).zip(word as u32..);
    let (clear, word) = all.find(|(clear, _)| *clear != 0)?;
    Some(word * BITS + clear.trailing_zeros())
}

/// Choices of one pattern, for flows that differ in nothing but the choice.
#[derive(Default)]
pub struct Pools {
    pools: Vec<(u16, FlowId, Choices)>,
    /// The pool that makes place for another one.
    next: usize,
    /// Flows that had ended when the pools were looked at last.
    seen: u64,
}

impl Pools {
    /// Lets go of what flows had that have ended since; `choice` is the one that a flow may have had.
    pub fn follow(&mut self, freed: &Freed, choice: impl Fn(&FlowId) -> Option<u32>) {
        let seen = core::mem::replace(&mut self.seen, freed.count());
        if self.pools.is_empty() {
            return;
        }
        match freed.since(seen) {
            None => self.pools.clear(),
            Some(ended) => {
                for id in ended.iter().flatten() {
                    if let Some(n) = choice(id) {
                        self.pools.iter_mut().for_each(|(.., pool)| pool.free(n));
                    }
                }
            }
        }
    }

    fn place(&self, map: u16, like: &FlowId) -> Option<usize> {
        let mut pools = self.pools.iter();
        pools.position(|(other, id, _)| *other == map && id == like)
    }

    /// The choices of flows that become `like` with one of them.
    pub fn find(&mut self, map: u16, like: &FlowId) -> Option<&mut Choices> {
        let n = self.place(map, like)?;
        Some(&mut self.pools[n].2)
    }

    /// As [`Self::find`], to read them only.
    pub fn known(&self, map: u16, like: &FlowId) -> Option<&Choices> {
        self.place(map, like).map(|n| &self.pools[n].2)
    }

    /// Begins to remember choices 0 to `last`; `None` if they are too many, or for the memory.
    pub fn open(&mut self, map: u16, like: &FlowId, last: u32) -> Option<&mut Choices> {
        let bytes = words(last) * size_of::<u64>();
        if last >= MAX_CHOICES || !memory::has_room(bytes + memory::RESERVE) {
            return None;
        }
        let pool = (map, *like, Choices::new(last));
        if self.pools.len() < MAX_POOLS {
            self.pools.push(pool);
            return self.pools.last_mut().map(|(.., pool)| pool);
        }
        self.next = (self.next + 1) % MAX_POOLS;
        let place = &mut self.pools[self.next];
        *place = pool;
        Some(&mut place.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_next_choice_is_that_of_a_set(
            last in prop_oneof![0u32..200, 4000u32..9000],
            steps in prop::collection::vec((any::<u32>(), 0u8..20, any::<u32>()), 1..200),
        ) {
            let mut choices = Choices::new(last);
            let mut free: BTreeSet<u32> = (0..=last).collect();
            for (n, kind, from) in steps {
                let (n, from) = (n % (last + 1), from % (last + 1));
                match kind {
                    0 => {
                        choices.free(n);
                        free.insert(n);
                    }
                    // whole stretches, so that words become full
                    _ => (n..=last.min(n + 300)).for_each(|n| {
                        choices.take(n);
                        free.remove(&n);
                    }),
                }
                let want = free.range(from..).next().or(free.first()).copied();
                prop_assert_eq!(choices.next(from), want);
            }
        }
    }
}
